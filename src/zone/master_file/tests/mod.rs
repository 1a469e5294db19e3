//! Directives, record data and faults of master files, as tables.

mod any_input;
mod data;
mod faults;
mod service_bindings;

use std::fmt::Write;

use super::*;
use crate::model::Rejection;

/// Reads a text as zone `example.com` in `/zones/x.zone`, with these files beside it.
fn read_text(text: &[u8], includes: &[(&str, &str)]) -> (Vec<Record>, Vec<Rejection>) {
    let mut report = Report::new("zone example.com".to_owned());
    let file = ZoneFile {
        path: "/zones/x.zone".into(),
        text: text.into(),
        includes: includes
            .iter()
            .map(|(path, text)| (Path::new("/zones").join(path), text.as_bytes().into()))
            .collect(),
    };
    let records = read(&"example.com".parse().unwrap(), &file, &mut report);
    (records, report.into_faults())
}

/// Shows records as `owner ttl type hex`, faults as `source: line n: reason`.
fn shown(text: &str, includes: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let (records, faults) = read_text(text.as_bytes(), includes);
    let show = |record: &Record| {
        let mut line = format!("{} {} {:?} ", record.owner, record.ttl, record.rtype);
        for octet in &record.rdata {
            write!(line, "{octet:02x}").unwrap();
        }
        line
    };
    let faults = faults.iter().map(ToString::to_string).collect();
    (records.iter().map(show).collect(), faults)
}

/// Checks that a text has these records and no fault.
fn good(text: &str, expected: &[&str]) {
    assert_eq!(
        shown(text, &[]),
        (
            expected.iter().map(|&line| line.to_owned()).collect(),
            vec![]
        ),
        "{text}"
    );
}

/// Checks that one record's data reads as these octets, in hexadecimal.
fn data(fields: &str, expected: &str) {
    let (records, faults) = shown(&format!("@ 60 {fields}"), &[]);
    assert_eq!(faults, [""; 0], "{fields}");
    let hex = records.first().and_then(|line| line.rsplit(' ').next());
    assert_eq!(hex, Some(expected), "{fields}");
}

/// Checks that the faults of a text contain these parts, in order, and no further one.
fn bad(text: &str, parts: &[&str]) {
    let (_, faults) = shown(text, &[]);
    assert_eq!(faults.len(), parts.len(), "{text}: {faults:?}");
    for (fault, part) in faults.iter().zip(parts) {
        assert!(
            fault.contains(part),
            "{text}: {fault} does not contain {part}"
        );
    }
}

#[test]
fn owners_ttls_and_classes() {
    // RFC 1035 section 5.1, RFC 2308 section 4.
    good(
        "$TTL 1h\n@ A 192.0.2.1\nwww IN 60 A 192.0.2.2\n    30 IN A 192.0.2.3\n\tTXT x\n\
         $TTL 2m ; from here on\nb.example.com. A 192.0.2.4\n5m.a 1m A 192.0.2.5",
        &[
            "example.com 3600 A c0000201",
            "www.example.com 60 A c0000202",
            "www.example.com 30 A c0000203",
            "www.example.com 3600 TXT 0178",
            "b.example.com 120 A c0000204",
            "5m.a.example.com 60 A c0000205",
        ],
    );
    // Without $TTL the last one stated counts.
    good(
        "a 60 A 192.0.2.1\nb A 192.0.2.2\nc 30 A 192.0.2.3\n  A 192.0.2.4",
        &[
            "a.example.com 60 A c0000201",
            "b.example.com 60 A c0000202",
            "c.example.com 30 A c0000203",
            "c.example.com 30 A c0000204",
        ],
    );
    // A SOA without a TTL has its MINIMUM, and hands it on.
    good(
        "@ SOA . . 1 2 3 4 5m\nb A 192.0.2.2",
        &[
            "example.com 300 SOA 0000000000010000000200000003000000040000012c",
            "b.example.com 300 A c0000202",
        ],
    );
}

#[test]
fn origins() {
    good(
        "$TTL 1\n$ORIGIN sub\na MX 1 @\n$origin b.sub.example.com.\na MX 2 a\n@ MX 3 .",
        &[
            "a.sub.example.com 1 MX 00010373756207\
             6578616d706c6503636f6d00",
            "a.b.sub.example.com 1 MX 00020161016203737562076578616d706c6503636f6d00",
            "b.sub.example.com 1 MX 000300",
        ],
    );
}

#[test]
fn names_are_lower_case_and_any_octet_may_stand_in_labels() {
    good(
        "$TTL 1\nWwW CNAME A.B.\n\\000\\032\\.x NS N.\n* PTR \\065.\n\\$x A 192.0.2.1",
        &[
            "www.example.com 1 CNAME 0161016200",
            "\\000\\032\\.x.example.com 1 NS 016e00",
            "*.example.com 1 PTR 016100",
            "\\$x.example.com 1 A c0000201",
        ],
    );
}

#[test]
fn lines_in_parentheses_and_quotes() {
    good(
        "$TTL 1\n@ SOA ns host (\n 2026010100 ; serial\n 1h 10m ; refresh, retry\n 2w\n 5m )\na TXT ( \"x;y\" z\n \"\" )\n",
        &[
            "example.com 1 SOA 026e73076578616d706c6503636f6d0004686f7374076578616d706c6503636f6d00\
             78c275f400000e100000025800127500\
             0000012c",
            "a.example.com 1 TXT 03783b79017a00",
        ],
    );
}

#[test]
fn generated_records() {
    good(
        "$GENERATE 1-3/2 host$ 60 A 192.0.2.$\n$TTL 5\n$GENERATE 10-11 ${0,3}.x IN 7 MX \"10 m$\"\n\
         $GENERATE 1-1 t TXT \"$\" \"a b\"\n$GENERATE 2-2 $ CNAME $.a.\nz A 192.0.2.9",
        &[
            "host1.example.com 60 A c0000201",
            "host3.example.com 60 A c0000203",
            "010.x.example.com 7 MX 000a036d3130076578616d706c6503636f6d00",
            "011.x.example.com 7 MX 000a036d3131076578616d706c6503636f6d00",
            "t.example.com 5 TXT 013103612062",
            "2.example.com 5 CNAME 0132016100",
            "z.example.com 5 A c0000209",
        ],
    );
    bad(
        "$TTL 1\n$GENERATE 1-9 a$ A 192.0.2.300\n$GENERATE 1-9 a$ A\n$GENERATE 9-1 a$ A 1\n$GENERATE\n\
         $GENERATE 1-2 ${ A 192.0.2.1\n$GENERATE 1-65537 a$ A 192.0.2.1\n",
        &[
            "/zones/x.zone: line 2: ",
            "line 3: $GENERATE is written",
            "line 4: `9-1` is empty",
            "line 5: $GENERATE is written",
            "line 6: `${` without `}`",
            "line 7: `1-65537` makes more than 65536",
        ],
    );
}

#[test]
fn included_files() {
    let includes = [
        (
            "a.zone",
            "x A 192.0.2.1\n$ORIGIN o\n$TTL 9\ny A 192.0.2.2\n",
        ),
        ("sub/b.zone", "x A 192.0.2.3\n$INCLUDE a.zone\n"),
        ("loop.zone", "$INCLUDE loop.zone\n"),
        ("bad.zone", "\nx A nowhere\n"),
    ];
    let text =
        "$TTL 5\nw A 192.0.2.0\n$INCLUDE a.zone\n  TXT w\n$INCLUDE ./sub/b.zone s\nz A 192.0.2.4";
    let (records, faults) = shown(text, &includes);
    assert_eq!(faults, [""; 0]);
    assert_eq!(
        records,
        [
            "w.example.com 5 A c0000200",
            "x.example.com 5 A c0000201",
            "y.o.example.com 9 A c0000202",
            // Owner, origin and TTL are back to what they were (RFC 1035 section 5.1).
            "w.example.com 5 TXT 0177",
            "x.s.example.com 5 A c0000203",
            "x.s.example.com 5 A c0000201",
            "y.o.s.example.com 9 A c0000202",
            "z.example.com 5 A c0000204",
        ]
    );
    let text = "$TTL 1\n$INCLUDE loop.zone\n$INCLUDE missing.zone\n$INCLUDE ../x\n$INCLUDE /zones/a.zone\n$INCLUDE\n\
                $INCLUDE bad.zone\n$INCLUDE a.zone b c";
    let (_, faults) = shown(text, &includes);
    for (fault, part) in faults.iter().zip([
        "/zones/loop.zone: line 1: /zones/loop.zone includes itself",
        "/zones/x.zone: line 3: /zones/missing.zone cannot be read",
        "line 4: `../x` leads out of the zone file's folder",
        "line 5: `/zones/a.zone` leads out",
        "line 6: $INCLUDE is written",
        "/zones/bad.zone: line 2: `nowhere`: expected IPv4 address",
        "/zones/x.zone: line 8: $INCLUDE is written",
    ]) {
        assert!(fault.contains(part), "{fault} does not contain {part}");
    }
    assert_eq!(faults.len(), 7);
}

#[test]
fn includes_are_bounded_in_depth_and_count() {
    let deep: Vec<(String, String)> = (0..20)
        .map(|number| (format!("d{number}"), format!("$INCLUDE d{}\n", number + 1)))
        .collect();
    let deep: Vec<(&str, &str)> = deep.iter().map(|(a, b)| (&**a, &**b)).collect();
    let (_, faults) = shown("$INCLUDE d0", &deep);
    assert_eq!(
        faults,
        ["/zones/d7: line 1: files are included 8 deep at most"]
    );
    let text = "$INCLUDE e\n".repeat(300);
    let (_, faults) = shown(&text, &[("e", "")]);
    assert_eq!(faults.len(), 300 - 256);
    assert_eq!(
        faults[0],
        "/zones/x.zone: line 257: a zone includes 256 files at most"
    );
}

#[test]
fn text_is_bounded_over_all_includes() {
    let big = format!(";{}\n", "x".repeat(1 << 20));
    let text = "$INCLUDE big\n".repeat(70);
    let (_, faults) = shown(&text, &[("big", &big)]);
    assert_eq!(faults.len(), 1);
    assert!(faults[0].contains("more than 67108864 octets in all"));
}
