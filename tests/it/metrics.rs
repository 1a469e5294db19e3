//! What `/metrics` shows: the list in the documents, the bound on series, counts that are right, and what is built on them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use hickory_proto::rr::RecordType;

use crate::harness::client::Ask;
use crate::harness::node::Node;
use crate::harness::objects::kubeconfig;
use crate::harness::packages::{PROMTOOL, need};
use crate::harness::{loopback, wait_for};
use crate::samples::{FIVE, FIVE_ZONE};

/// Reads a file of the repository.
pub fn repository(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Series of a node at most.
const MOST_SERIES: usize = 2000;
/// Countries that may come up, the unknown one included.
const COUNTRIES: usize = 251;

/// A family as shown or documented: its type, and values by label.
#[derive(Debug, Default, PartialEq)]
struct Family {
    kind: String,
    labels: BTreeMap<String, BTreeSet<String>>,
}

/// Reads the body of a scrape.
fn scrape(node: &Node) -> String {
    let response = node.get("/metrics").expect("metrics");
    response.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// Splits a sample into its name and labels. No value in these tests holds a comma or a quote.
fn sample(line: &str) -> (&str, Vec<(&str, &str)>) {
    let (series, _) = line.rsplit_once(' ').unwrap();
    let Some((name, labels)) = series.split_once('{') else {
        return (series, Vec::new());
    };
    let labels = labels.trim_end_matches('}').split(',').map(|label| {
        let (name, value) = label.split_once('=').unwrap();
        (name, value.trim_matches('"'))
    });
    (name, labels.collect())
}

/// Lists the families of a scrape.
fn shown(text: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            let family = families.entry(name.to_owned()).or_default();
            assert_eq!(family.kind, "", "{name} is shown twice");
            family.kind = kind.to_owned();
        } else if !line.starts_with('#') {
            let (name, labels) = sample(line);
            let parts = ["_bucket", "_sum", "_count"];
            let whole = parts.iter().find_map(|part| name.strip_suffix(part));
            let name = whole
                .filter(|name| families.contains_key(*name))
                .unwrap_or(name);
            let family = families.get_mut(name).unwrap_or_else(|| panic!("{line}"));
            for (label, value) in labels.into_iter().filter(|(label, _)| *label != "le") {
                let values = family.labels.entry(label.to_owned()).or_default();
                values.insert(value.to_owned());
            }
        }
    }
    families
}

/// Lists the families of the document; the values of a label with no closed set are empty.
fn documented() -> BTreeMap<String, Family> {
    let text = repository("docs/metrics.md");
    let rows = text.lines().filter(|line| line.starts_with("| `meridian_"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, name, kind, unit, labels, meaning, _] = cells[..] else {
            panic!("{row}")
        };
        assert!(!unit.is_empty() && meaning.ends_with('.'), "{row}");
        let labels = labels.split(';').filter(|label| !label.is_empty());
        let labels = labels.flat_map(|label| {
            let (names, values) = label.split_once(':').unwrap_or((label, ""));
            let values: BTreeSet<String> = values
                .split(',')
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty() && !value.contains(' '))
                .collect();
            let names = names.split(',').map(|name| name.trim().trim_matches('`'));
            names
                .map(move |name| (name.to_owned(), values.clone()))
                .collect::<Vec<_>>()
        });
        let family = Family {
            kind: kind.to_owned(),
            labels: labels.collect(),
        };
        (name.trim_matches('`').to_owned(), family)
    })
    .collect()
}

/// A node of which every family has a series: a monitor, a database, a zone file, a directory of kubeconfigs, a peer and a member
/// cluster that nobody has ever seen.
fn node() -> Node {
    let peer = loopback();
    let member =
        "clusters:\n  - {name: member, location: {country: FR}, kubeconfig: {file: member.yaml}}\n";
    let five = FIVE.replacen("clusters:\n", member, 1);
    assert_ne!(five, FIVE);
    let text = format!(
        "{five}geoip: {{databases: [geo.mmdb]}}\npeers: [{{url: \"http://{peer}:1\"}}]\nkubernetes: {{writeBack: events}}\nclustersFrom: [{{directory: clusters.d}}]\n"
    );
    let node = Node::start_on(loopback(), "", &text, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
        let server = format!("http://{peer}:2");
        std::fs::write(folder.join("member.yaml"), kubeconfig(&server)).unwrap();
        std::fs::create_dir(folder.join("clusters.d")).unwrap();
        std::fs::write(
            folder.join("geo.mmdb"),
            crate::geoip::database("198.51.100.0/24", "DE"),
        )
        .unwrap();
    });
    wait_for("the member to be shown", Duration::from_secs(10), || {
        let shown = node.get("/metrics")?;
        shown.contains("meridian_write_back_leader{").then_some(())
    });
    node
}

#[test]
fn the_document_lists_what_is_shown_and_nothing_else() {
    let node = node();
    let (shown, documented) = (shown(&scrape(&node)), documented());
    let names = |families: &BTreeMap<String, Family>| -> BTreeSet<String> {
        families.keys().cloned().collect()
    };
    assert_eq!(names(&shown), names(&documented));
    for (name, family) in &shown {
        let said = &documented[name];
        assert_eq!(family.kind, said.kind, "{name}");
        assert_eq!(
            family.labels.keys().collect::<Vec<_>>(),
            said.labels.keys().collect::<Vec<_>>(),
            "{name}"
        );
        // Closed sets are shown whole from the start; countries come as they ask.
        for (label, values) in family
            .labels
            .iter()
            .filter(|(label, _)| *label != "country")
        {
            let set = &said.labels[label];
            assert!(
                set.is_empty() || values == set,
                "{name} {label}: {values:?}"
            );
        }
    }
}

#[test]
fn promtool_finds_no_fault() {
    need(&[PROMTOOL]);
    let node = node();
    Ask::a("www.svc.mesh").from("46.114.0.0/24").udp(node.dns());
    let mut check = Command::new(PROMTOOL.0)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let text = scrape(&node);
    check
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = check.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}\n{text}");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/observability");
    for args in [
        ["check", "rules", "alerts.yaml"],
        ["test", "rules", "alerts_test.yaml"],
    ] {
        let output = Command::new(PROMTOOL.0)
            .args(args)
            .current_dir(&folder)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{args:?}: {said}");
    }
}

#[test]
fn series_are_bounded_whatever_is_served() {
    let mut text = String::from("zones:\n");
    for zone in 0..1000 {
        text += &format!(
            "  - {{name: z{zone}.example, nameservers: [{{name: ns.example.net}}], contact: h.example.net}}\n"
        );
    }
    text += "clusters:\n";
    for cluster in 0..300 {
        text += &format!("  - {{name: c{cluster}, location: {{country: FR}}}}\n");
    }
    text += "services:\n";
    for cluster in 0..300 {
        text += &format!(
            "  - {{namespace: n, name: s{cluster}, hostnames: [w.z{cluster}.example], endpoints: [{{cluster: c{cluster}, addresses: [192.0.2.1]}}]}}\n"
        );
    }
    let node = Node::start(&text);
    for zone in [0, 23, 24, 299] {
        let name = format!("w.z{zone}.example");
        Ask::a(&name).from("46.114.0.0/24").udp(node.dns());
        Ask::a(&format!("no.z{zone}.example")).udp(node.dns());
    }
    let of = |family: &str, labels: &str| node.metric(&format!("meridian_{family}{{{labels}}}"));
    for (zone, queries) in [("z0.example", 1.0), ("z23.example", 1.0), ("(other)", 2.0)] {
        let labels = |label: &str| format!("zone=\"{zone}\",{label}");
        assert_eq!(
            of("answer_zone_queries_total", &labels("type=\"A\"")),
            2.0 * queries,
            "{zone}"
        );
        assert_eq!(
            of("answer_zone_replies_total", &labels("rcode=\"NXDOMAIN\"")),
            queries
        );
    }
    assert_eq!(of("answer_cluster_answers_total", "cluster=\"c24\""), 1.0);
    assert_eq!(
        of("answer_cluster_answers_total", "cluster=\"(other)\""),
        1.0
    );
    let text = scrape(&node);
    let series = text.lines().filter(|line| !line.starts_with('#'));
    let (countries, others): (Vec<_>, Vec<_>) =
        series.partition(|line| line.starts_with("meridian_answer_country"));
    let series = others.len() + COUNTRIES;
    assert!(
        countries.len() <= COUNTRIES && series <= MOST_SERIES,
        "{series}"
    );
    println!("at most {series} series, {} octets", text.len());
}

#[test]
fn counts_are_exact_where_batches_are_single_queries() {
    let node = node();
    for _ in 0..7 {
        Ask::a("www.svc.mesh")
            .from("198.51.100.0/24")
            .udp(node.dns());
    }
    for _ in 0..3 {
        Ask::a("www.svc.mesh")
            .from("198.51.100.0/24")
            .tcp(node.dns());
    }
    Ask::a("text.svc.mesh")
        .of_type(RecordType::TXT)
        .udp(node.dns());
    Ask::a("nothing.svc.mesh").udp(node.dns());
    Ask::a("www.example.net").udp(node.dns());
    for (name, value) in [
        ("answer_country_queries_total{country=\"DE\"}", 10.0),
        ("answer_country_queries_total{country=\"unknown\"}", 2.0),
        ("answer_senders_total{address=\"loopback\"}", 12.0),
        ("answer_queries_total{transport=\"udp\"}", 10.0),
        ("answer_queries_total{transport=\"tcp\"}", 3.0),
        ("answer_replies_total{rcode=\"NOERROR\"}", 11.0),
        ("answer_replies_total{rcode=\"REFUSED\"}", 1.0),
        (
            "answer_zone_queries_total{zone=\"svc.mesh\",type=\"A\"}",
            11.0,
        ),
        (
            "answer_zone_queries_total{zone=\"svc.mesh\",type=\"TXT\"}",
            1.0,
        ),
        (
            "answer_zone_replies_total{zone=\"svc.mesh\",rcode=\"NXDOMAIN\"}",
            1.0,
        ),
        ("answer_decisions_total{reason=\"up\"}", 10.0),
        ("answer_decision_orders_total{order=\"distance\"}", 10.0),
        ("answer_cluster_answers_total{cluster=\"europe\"}", 10.0),
        ("transport_batch_duration_seconds_count", 10.0),
    ] {
        assert_eq!(node.metric(&format!("meridian_{name}")), value, "{name}");
    }
    // A reload changes no row: the zone that came first keeps its own.
    let before = node.metric("meridian_config_reloads_total");
    let zone =
        "  - {name: aaa.mesh, nameservers: [{name: ns.example.net}], contact: h.example.net}\n";
    node.write_config(
        &node
            .config()
            .replace("zones:\n", &format!("zones:\n{zone}")),
    );
    wait_for("the reload", Duration::from_secs(10), || {
        (node.metric("meridian_config_reloads_total") > before).then_some(())
    });
    Ask::a("www.svc.mesh").udp(node.dns());
    Ask::a("aaa.mesh").udp(node.dns());
    let queries = |zone: &str| {
        let labels = format!("{{zone=\"{zone}\",type=\"A\"}}");
        node.metric(&format!("meridian_answer_zone_queries_total{labels}"))
    };
    assert_eq!((queries("svc.mesh"), queries("aaa.mesh")), (12.0, 1.0));
}

/// Collects the expressions of a dashboard.
fn expressions(value: &serde_json::Value, found: &mut Vec<String>) {
    if let Some(expression) = value["expr"].as_str() {
        found.push(expression.to_owned());
    }
    match value {
        serde_json::Value::Object(members) => {
            members.values().for_each(|one| expressions(one, found));
        }
        serde_json::Value::Array(items) => items.iter().for_each(|one| expressions(one, found)),
        _ => {}
    }
}

#[test]
fn promtool_reads_every_expression_of_the_dashboard() {
    need(&[PROMTOOL]);
    let dashboard = repository("deploy/observability/grafana-dashboard.json");
    let mut found = Vec::new();
    expressions(&serde_json::from_str(&dashboard).unwrap(), &mut found);
    assert!(found.len() > 30, "{}", found.len());
    // What Grafana fills in; each becomes a rule, for that is what promtool reads.
    let rules = found.iter().enumerate().map(|(at, expression)| {
        let filled = expression
            .replace("$__rate_interval", "5m")
            .replace("$instance", ".*")
            .replace("$job", "meridian");
        assert!(!filled.contains('$'), "{expression}");
        serde_json::json!({"record": format!("dashboard:{at}"), "expr": filled})
    });
    let rules: Vec<_> = rules.collect();
    let groups = serde_json::json!({"groups": [{"name": "dashboard", "rules": rules}]});
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dashboard.yaml");
    std::fs::write(&file, groups.to_string()).unwrap();
    let output = Command::new(PROMTOOL.0)
        .args(["check", "rules"])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let all = format!("{} rules found", found.len());
    assert!(output.status.success() && said.contains(&all), "{said}");
}

#[test]
fn the_dashboard_and_the_alerts_name_only_what_is_documented() {
    let families = documented();
    let dashboard = repository("deploy/observability/grafana-dashboard.json");
    let alerts = repository("deploy/observability/alerts.yaml");
    let json: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    assert!(json["panels"].as_array().unwrap().len() > 20);
    for text in [&dashboard, &alerts] {
        let mut named = 0;
        for (at, _) in text.match_indices("meridian_") {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let rest = &text[at..];
            let name = &rest[..rest.find(|c| !is_word(c)).unwrap()];
            let parts = ["", "_bucket", "_sum", "_count"];
            let is_family = |part: &&str| {
                let whole = name.strip_suffix(*part);
                whole.is_some_and(|whole| families.contains_key(whole))
            };
            assert!(parts.iter().any(is_family), "{name}");
            named += 1;
        }
        assert!(named > 10, "{named}");
    }
}

#[test]
fn every_alert_leads_to_a_paragraph() {
    let alerts = repository("deploy/observability/alerts.yaml");
    let operations = repository("docs/operations.md");
    let anchors: BTreeSet<String> = operations
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .map(|title| title.to_lowercase().replace(' ', "-"))
        .collect();
    let value = |line: &'static str, key: &str| line.trim().strip_prefix(key);
    let lines: Vec<&'static str> = alerts.leak().lines().collect();
    let count = |key: &str| {
        lines
            .iter()
            .filter(|line| value(line, key).is_some())
            .count()
    };
    let urls = lines.iter().filter_map(|line| value(line, "runbook_url: "));
    for url in urls {
        let anchor = url.strip_prefix("docs/operations.md#").expect(url);
        assert!(anchors.contains(anchor), "{anchor} is not in {anchors:?}");
    }
    let all = count("- alert: ");
    for key in [
        "runbook_url: ",
        "summary: ",
        "description: ",
        "labels: {severity: ",
    ] {
        assert_eq!(count(key), all, "{key}");
    }
    for name in lines.iter().filter_map(|line| value(line, "- alert: ")) {
        assert!(operations.contains(&format!("`{name}`")), "{name}");
    }
}
