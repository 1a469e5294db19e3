//! The two lanes agree; bombs are refused quickly; the schema and the reader know the same keys.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::document::{Lane, Services, Source};
use super::scan::scan_line;
use super::shape::Shape;
use super::tape::{Flaw, Kind, Place, Root, Tape};
use super::{schema, v1};

type Dump = Vec<(Kind, String, Place, u32)>;

/// Reads all services item by item.
fn by_item(text: &str) -> Vec<Result<Dump, Vec<Flaw>>> {
    let source = Source::new(text, Lane::Auto);
    let mut tape = Tape::default();
    let mut services = source.read(&mut tape).expect("readable").expect("cut");
    let mut item = Tape::default();
    let mut out = Vec::new();
    while let Some(result) = services.next(&mut item) {
        out.push(result.map(|()| item.dump()));
        item.clear(Root::File);
    }
    out
}

/// Reads the file in one piece and gives each service as if it stood alone.
fn in_one_piece(text: &str) -> Vec<Dump> {
    let source = Source::new(text, Lane::Whole);
    let mut tape = Tape::default();
    assert!(source.read(&mut tape).expect("readable").is_none());
    let root = tape.root().expect("a root");
    let (_, services) = root
        .entries()
        .find(|(key, _)| key.text() == "services")
        .expect("services");
    let dump = tape.dump();
    let mut at = dump
        .iter()
        .position(|(.., place, _)| *place == services.place())
        .expect("found");
    // Of nodes at one place the list comes first.
    assert_eq!(dump[at].0, Kind::List);
    at += 1;
    let mut out = Vec::new();
    for _ in services.items() {
        let end = dump[at].3 as usize;
        let base = u32::try_from(at).unwrap();
        out.push(
            dump[at..end]
                .iter()
                .map(|(kind, text, place, end)| (*kind, text.clone(), *place, end - base))
                .collect(),
        );
        at = end;
    }
    out
}

fn check_lanes(text: &str) {
    let items: Vec<Dump> = by_item(text)
        .into_iter()
        .map(|item| item.expect("readable"))
        .collect();
    assert_eq!(items, in_one_piece(text), "{text}");
}

/// Any scalar that may stand in a flow map, in and out of the subset of the fast lane.
fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z0-9][a-z0-9._/+~-]{0,10}[a-z0-9]",
        1 => "-?[0-9]{1,3}(\\.[0-9]{1,2})?",
        1 => "[a-f0-9]{1,4}(:[a-f0-9]{1,4}){1,3}",
        1 => Just("2001:db8::1".to_owned()),
        1 => "[a-z]{1,4}:[a-zA-Z0-9-]{0,4}[a-z]",
        1 => "\"[ -!#-\\[\\]-~]{0,12}\"",
        1 => "'[ -&(-~]{0,12}'",
        1 => Just("\"a\\tb\\u00e4\"".to_owned()),
        1 => Just("'it''s'".to_owned()),
        1 => Just("two words".to_owned()),
        1 => Just("ünïcode".to_owned()),
        1 => Just("~".to_owned()),
        1 => Just("--x".to_owned()),
        1 => Just("a--b".to_owned()),
        1 => Just("...".to_owned()),
    ]
}

fn flow() -> impl Strategy<Value = String> {
    scalar().prop_recursive(4, 40, 5, |inner| {
        let space = prop_oneof![Just(""), Just(" "), Just("  ")];
        let item = (space.clone(), inner.clone(), space.clone())
            .prop_map(|(a, item, b)| format!("{a}{item}{b}"));
        let entry = (space, "[a-zA-Z][a-zA-Z0-9_-]{0,6}[a-z]", inner)
            .prop_map(|(a, key, value)| format!("{a}{key}: {a}{value}{a}"));
        prop_oneof![
            proptest::collection::vec(item, 0..4)
                .prop_map(|items| format!("[{}]", items.join(","))),
            proptest::collection::vec(entry, 0..4)
                .prop_map(|entries| format!("{{{}}}", entries.join(","))),
        ]
    })
}

/// One service, in flow or block style, with what may stand after it.
fn item() -> impl Strategy<Value = String> {
    let after = prop_oneof![
        4 => Just("\n"),
        1 => Just(" # a comment\n"),
        1 => Just("  \n\n"),
        1 => Just("\n# left\n    # deep\n"),
    ];
    let map = proptest::collection::vec(("[a-z]{1,8}", flow()), 1..5);
    (
        map,
        any::<bool>(),
        after,
        prop_oneof![Just(" "), Just("   ")],
    )
        .prop_map(|(entries, block, after, gap)| {
            let mut keys = std::collections::HashSet::new();
            let entries: Vec<_> = entries
                .into_iter()
                .filter(|(key, _)| keys.insert(key.clone()))
                .collect();
            let join = |between: &str| {
                entries
                    .iter()
                    .map(|(key, value)| format!("{key}: {value}"))
                    .collect::<Vec<_>>()
                    .join(between)
            };
            if block {
                let deep = format!("\n{}", " ".repeat(3 + gap.len()));
                format!("  -{gap}{}{after}", join(&deep))
            } else {
                format!("  -{gap}{{{}}}{after}", join(", "))
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn both_lanes_give_equal_nodes_and_places(items in proptest::collection::vec(item(), 1..6), after in any::<bool>()) {
        let after = if after { "probes: {perTarget: 5}\n" } else { "" };
        check_lanes(&format!("version: 1\nservices:  # all of them\n{}{after}", items.concat()));
    }

    #[test]
    fn a_line_of_the_fast_lane_is_the_same_yaml(flow in flow()) {
        let line = format!("  - {flow}");
        let mut tape = Tape::default();
        if scan_line(&line, 4, 2, &mut tape) {
            prop_assert_eq!(vec![tape.dump()], in_one_piece(&format!("services:\n{line}\n")));
        }
    }

    #[test]
    fn no_text_makes_the_fast_lane_lie(line in "[-a-c{}\\[\\]:, \"'#&*!|>%@`?~.1\\\\é]{0,24}") {
        let line = format!("  - {{a: {line}}}");
        let mut tape = Tape::default();
        if scan_line(&line, 4, 2, &mut tape) {
            prop_assert_eq!(vec![tape.dump()], in_one_piece(&format!("services:\n{line}\n")));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "([-a-c{}\\[\\]:, \"'#&*!|>%@`?~.1\\\\é\t\r]|\n|\nservices:\n|\n  - |: ){0,60}") {
        for lane in [Lane::Auto, Lane::Whole] {
            let source = Source::new(&text, lane);
            let mut tape = Tape::default();
            if let Ok(Some(mut services)) = source.read(&mut tape) {
                while services.next(&mut Tape::default()).is_some() {}
            }
        }
    }

    #[test]
    fn what_is_read_whole_is_read_in_items(text in "(  - \\{a: [a-c\"' ,]{0,4}\\}|  - a: b|    c: d|  - |   x|# c|\t|      - y|  - \"q|  \"|)\n{1,2}((  - \\{a: [a-c\"' ,]{0,4}\\}|  - a: b|    c: d|  - |   x|# c|\t|      - y|  - \"q|  \"|)\n){0,4}") {
        // Items are read more strictly: the parser alone lets a text in quotes go on at the indentation of the dash, where
        // YAML 1.2 section 8.2.1 wants it deeper. What items accept is accepted whole, and equal.
        let text = format!("version: 1\nservices:\n{text}version2: 1\n");
        let mut tape = Tape::default();
        let cut = Source::new(&text, Lane::Auto);
        let Ok(Some(mut services)) = cut.read(&mut tape) else { return Ok(()) };
        let mut item = Tape::default();
        let mut items = Vec::new();
        let mut is_bad = false;
        while let Some(result) = services.next(&mut item) {
            is_bad |= result.is_err();
            items.push(item.dump());
            item.clear(Root::File);
        }
        let whole = Source::new(&text, Lane::Whole);
        let mut tape = Tape::default();
        let result = whole.read(&mut tape);
        prop_assert!(is_bad || result.is_ok(), "{}: {:?}", text, result);
        if !is_bad {
            prop_assert_eq!(items, in_one_piece(&text));
        }
    }
}

/// Counts the items that the fast lane takes.
fn fast_items(text: &str) -> usize {
    let lines = text.lines().skip_while(|line| *line != "services:").skip(1);
    lines
        .filter(|line| scan_line(line, 4, 1, &mut Tape::default()))
        .count()
}

/// The service of the benches, as one line.
fn service(n: u32) -> String {
    let clusters = ["us-east", "eu-west", "ap-se", "sa-east"];
    let endpoints: Vec<String> = clusters
        .iter()
        .zip(1..)
        .map(|(cluster, at)| {
            format!(
                "{{cluster: {cluster}, addresses: [10.{at}.{}.{}, \"2001:db8:{at}::{:x}\"]}}",
                n >> 8 & 255,
                n & 255,
                n + 1
            )
        })
        .collect();
    format!(
        "  - {{namespace: bench, name: s{n:06}, hostnames: [s{n:06}.svc.example], ttl: 60, policy: {{steer: proximity, maps: [{{continents: [NA], clusters: [us-east]}}, {{continents: [EU, AF], clusters: [eu-west]}}]}}, endpoints: [{}]}}\n",
        endpoints.join(", ")
    )
}

#[test]
fn ten_thousand_services_are_equal_in_both_lanes() {
    let text: String = std::iter::once("services:\n".to_owned())
        .chain((0..10_000).map(service))
        .collect();
    assert_eq!(fast_items(&text), 10_000);
    check_lanes(&text);
}

#[test]
fn only_a_block_list_at_the_left_edge_is_cut() {
    let item = "  - {a: b}\n";
    for (text, expected) in [
        (format!("services:\n{item}{item}"), Some(2)),
        (
            format!("services:\r\n{}", item.replace('\n', "\r\n")),
            Some(1),
        ),
        (
            format!("services:   # c\n\n# c\n{item}zones: []\n"),
            Some(1),
        ),
        (
            "services:\n- {a: b}\n- a: b\n  c: d\nzones: []\n".to_owned(),
            Some(2),
        ),
        (format!("---\nservices:\n{item}...\n"), Some(1)),
        (format!("\u{feff}services:\n{item}"), None),
        (format!("'services':\n{item}"), None),
        ("services: [{a: b}]\n".to_owned(), None),
        ("services:\n  {a: b}\n".to_owned(), None),
        ("services:\nzones: []\n".to_owned(), None),
        (format!("a:\n  services:\n{item}"), None),
        (format!("\"a\nservices:\n{item}\": b\n"), None),
        (format!("a: |\n  x\nservices:\n{item}"), Some(1)),
    ] {
        let source = Source::new(&text, Lane::Auto);
        let mut tape = Tape::default();
        let services = source.read(&mut tape).unwrap_or_default();
        let count = services.map(|mut services: Services<'_>| {
            std::iter::from_fn(|| services.next(&mut Tape::default())).count()
        });
        assert_eq!(count, expected, "{text}");
    }
}

#[test]
fn lines_after_the_services_keep_their_numbers() {
    let text = "version: 1\nservices:\n  - {a: b}\n\n  - {a: c}\nzones:\n  - x\n";
    let source = Source::new(text, Lane::Auto);
    let mut tape = Tape::default();
    assert!(source.read(&mut tape).unwrap().is_some());
    let root = tape.root().unwrap();
    let lines: Vec<(&str, u32)> = root
        .entries()
        .map(|(key, _)| (key.text(), key.place().line))
        .collect();
    assert_eq!(lines, [("version", 1), ("services", 2), ("zones", 6)]);
}

#[test]
fn paths_lead_to_the_node() {
    let text = "a:\n  b: [x, {c: y}]\n";
    let source = Source::new(text, Lane::Auto);
    let mut tape = Tape::default();
    source.read(&mut tape).unwrap();
    let (_, a) = tape.root().unwrap().entries().next().unwrap();
    let (b_key, b) = a.entries().next().unwrap();
    let second = b.items().nth(1).unwrap();
    let (_, c) = second.entries().next().unwrap();
    let paths = [
        a.path(),
        b_key.path(),
        b.path(),
        second.path(),
        c.path(),
        tape.root().unwrap().path(),
    ];
    assert_eq!(paths, ["a", "a.b", "a.b", "a.b[1]", "a.b[1].c", ""]);
}

#[test]
fn bombs_are_refused_quickly() {
    let laughs: String = (1..60)
        .map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}]\n", n - 1))
        .collect();
    let deep =
        |open: &str, close: &str| format!("x: {}{}\n", open.repeat(10_000), close.repeat(10_000));
    let steps: String = (0..2_000)
        .map(|n| format!("{}a:\n", " ".repeat(n)))
        .collect();
    for (name, text, part) in [
        ("laughs", format!("a0: &a0 x\n{laughs}"), "anchors"),
        ("alias", "a: &x 1\nb: *x\n".to_owned(), "aliases"),
        ("tag", "a: !!binary x\n".to_owned(), "tags"),
        ("lists", deep("[", "]"), "deep"),
        ("maps", deep("{a: ", "}"), "deep"),
        ("open lists", deep("[", ""), "not YAML"),
        ("dashes", format!("{}x\n", "- ".repeat(10_000)), "deep"),
        ("steps", steps, "deep"),
        (
            "documents",
            "a: b\n---\nc: d\n".to_owned(),
            "second document",
        ),
        ("keys", "{[a]: b}\n".to_owned(), "key must be a word"),
        (
            "service",
            format!("services:\n  - {}\n", "[".repeat(10_000)),
            "not YAML",
        ),
    ] {
        #[expect(clippy::disallowed_methods, reason = "the test bounds the time")]
        let start = Instant::now();
        let source = Source::new(&text, Lane::Auto);
        let mut tape = Tape::default();
        let flaws = match source.read(&mut tape) {
            Ok(Some(mut services)) => services.next(&mut Tape::default()).unwrap().unwrap_err(),
            Ok(None) => panic!("{name} was accepted"),
            Err(flaws) => flaws,
        };
        assert!(
            flaws
                .iter()
                .any(|flaw| flaw.message.contains(part) || flaw.message.contains("recursion")),
            "{name}: {:?}",
            flaws.first()
        );
        assert!(flaws.iter().all(|flaw| flaw.place.line > 0), "{name}");
        assert!(
            start.elapsed() < Duration::from_secs(1),
            "{name} took {:?}",
            start.elapsed()
        );
    }
}

#[test]
fn a_scalar_of_ten_megabytes_is_read_quickly() {
    let long = "x".repeat(10 << 20);
    for text in [
        format!("services:\n  - {{a: {long}}}\n"),
        format!("a: '{long}'\n"),
    ] {
        #[expect(clippy::disallowed_methods, reason = "the test bounds the time")]
        let start = Instant::now();
        let source = Source::new(&text, Lane::Auto);
        let mut tape = Tape::default();
        if let Some(mut services) = source.read(&mut tape).unwrap() {
            services.next(&mut Tape::default()).unwrap().unwrap();
        }
        // Without optimization the YAML parser is some twenty times slower.
        let limit = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 1 });
        assert!(start.elapsed() < limit, "{:?}", start.elapsed());
    }
}

/// Checks that a schema has the built keys of a shape, all the way down.
fn check_schema(schema: &serde_json::Value, shape: &Shape, path: &str) {
    let properties = schema["properties"]
        .as_object()
        .unwrap_or_else(|| panic!("{path}: {schema}"));
    let built: Vec<&str> = shape
        .keys
        .iter()
        .filter(|key| key.form().is_some_and(|form| !is_nothing(form)))
        .map(|key| key.name)
        .collect();
    assert_eq!(properties.keys().collect::<Vec<_>>(), built, "{path}");
    assert_eq!(schema["additionalProperties"], false, "{path}");
    for key in shape.keys {
        if let Some(form) = key.form().filter(|form| !is_nothing(*form)) {
            let value = &properties[key.name];
            assert!(
                !value["description"].as_str().unwrap_or_default().is_empty(),
                "{path}.{}",
                key.name
            );
            check_form(value, form, &format!("{path}.{}", key.name));
        }
    }
}

/// What must be empty until it is built is not offered.
fn is_nothing(form: super::shape::Form) -> bool {
    matches!(form, super::shape::Form::Nothing)
}

fn check_form(schema: &serde_json::Value, form: super::shape::Form, path: &str) {
    use super::shape::Form;
    match form {
        Form::Map(shape) => check_schema(schema, shape, path),
        Form::List(item) => check_form(&schema["items"], *item, path),
        Form::ByName(value) => check_form(&schema["additionalProperties"], *value, path),
        Form::Any(forms) => {
            for (form, schema) in forms.iter().zip(schema["anyOf"].as_array().unwrap()) {
                check_form(schema, *form, path);
            }
        }
        _ => {}
    }
}

#[test]
fn the_schema_prints_what_works_and_nothing_else() {
    let schema = schema();
    check_schema(&schema, &v1::FILE, "");
    let text = schema.to_string();
    let cluster = &schema["properties"]["clusters"]["items"]["properties"];
    assert_eq!(cluster["inCluster"]["type"], "boolean");
    assert_eq!(cluster["kubeconfig"]["required"][0], "file");
    let zone = &schema["properties"]["zones"]["items"]["properties"];
    let forms = &zone["names"]["items"]["enum"];
    assert_eq!(
        *forms,
        serde_json::json!(["{service}.{namespace}", "kubefed", "clusterset"])
    );
    for later in ["primaries", "capacity", "rateLimit", "quorum"] {
        assert!(
            !text.contains(&format!("\"{later}\"")),
            "{later} is in the schema"
        );
    }
}
