//! What is refused, with file and line, and what would be right.

use super::{bad, shown};

/// A line, and a part of what is said of it.
const RECORDS: &[(&str, &str)] = &[
    (
        "www.example.org. 60 A 192.0.2.1",
        "www.example.org lies outside of the zone example.com",
    ),
    (" 60 A 192.0.2.1", "no owner was stated"),
    ("a A 192.0.2.1", "no TTL"),
    ("a 2147483648 A 192.0.2.1", "more than 2147483647 s"),
    ("a 60 CH A 192.0.2.1", "class `CH` is not served"),
    ("a 60 IN IN A 192.0.2.1", "`IN` is no RR type"),
    ("a 60", "no RR type; a record is written"),
    ("a", "no RR type"),
    ("a 60 FOO bar", "`FOO` is no RR type"),
    ("a 60 ANY x", "ANY can stand in questions only"),
    ("a 60 OPT \\# 0", "OPT can stand in questions only"),
    ("a 60 AXFR \\# 0", "AXFR can stand"),
    ("a 60 TYPE129 \\# 0", "TYPE129 can stand"),
    (
        "a 60 RRSIG A 13 2 60 1 2 3 a. AA==",
        "take the unsigned zone",
    ),
    ("a 60 NSEC b. A", "take the unsigned zone"),
    (
        "a 60 A 192.0.2.256",
        "expected IPv4 address; A is written `192.0.2.1`",
    ),
    ("a 60 A", "a field is missing at the end; A is written"),
    (
        "a 60 A 192.0.2.1 192.0.2.2",
        "`192.0.2.2` is one field too many",
    ),
    (
        "a 60 AAAA 192.0.2.1",
        "expected IPv6 address; AAAA is written `2001:db8::1`",
    ),
    ("a 60 MX mail", "MX is written `10 mail.example.com.`"),
    ("a 60 MX 65536 m.", "MX is written"),
    ("a 60 NS a..b", "a label must not be empty"),
    ("a 60 TXT", "TXT"),
    ("a 60 CAA 0 is_sue x", "CAA is written"),
    (
        "a 60 SOA a. b. 4294967296 1 1 1 1",
        "no number from 0 to 4294967295",
    ),
    ("a 60 SOA a. b. 1 1x 1 1 1", "is no time"),
    (
        "a 60 DS 1 13 2 abcd",
        "a digest of 2 octets, where type 2 has 32",
    ),
    ("a 60 DS 1 13 2", "a field is missing"),
    ("a 60 SSHFP 4 2 abc", "hex digits"),
    ("a 60 TLSA 3 1 1 00", "a digest of 1 octets"),
    ("a 60 EUI48 00-00-5e-00-53", "no address of 6 octets"),
    ("a 60 EUI48 00-00-5e-00-53-+a", "no address of 6 octets"),
    ("a 60 URI 1 1 \"\"", "an empty URI"),
    (
        "a 60 WKS 192.0.2.1 6 25",
        "WKS has no text form here; write its data as `\\# 4 c0000201`",
    ),
    ("a 60 TYPE65280 abc", "TYPE65280 has no text form here"),
    (
        "a 60 TYPE65280 \\# 3 abcd",
        "the data has 2 octets, but 3 are announced",
    ),
    ("a 60 TYPE65280 \\# x", "no number from 0 to 65535"),
    ("a 60 A \\# 3 010203", "these octets are no data of A"),
    ("a 60 MX \\# 4 0001c000", "these octets are no data of MX"),
    ("a 60 NS \\# 4 016100ff", "these octets are no data of NS"),
    ("a 60 APL 3:1.2.3.4/8", "no prefix with its family"),
    ("a 60 APL 1:1.2.3.4/33", "no prefix with its family"),
    ("bücher 60 A 192.0.2.1", "punycode"),
    ("$FOO", "`$FOO` is no directive"),
    (" $ORIGIN a", "must stand at the beginning of the line"),
    ("$ORIGIN", "$ORIGIN is written"),
    ("$TTL", "$TTL is written"),
    ("$TTL 1y", "`1y` is no time"),
    ("a 60 TXT \\# 0", "these octets are no data of TXT"),
    ("a 60 SPF \\# 2 0561", "these octets are no data of TYPE99"),
    ("a 60 NS \\# 0", "these octets are no data of NS"),
    ("a 60 CAA \\# 1 00", "these octets are no data of CAA"),
    ("a 60 HINFO \\# 1 00", "these octets are no data of HINFO"),
    (
        "a 60 LOC \\# 16 01000000000000000000000000000000",
        "these octets are no data of LOC",
    ),
    ("a 60 KX \\# 4 00010161", "these octets are no data of KX"),
    ("a 60 DS \\# 5 0001 0d 02 00", "a digest of 1 octets"),
    ("a 60 MX 10 m\u{fc}.", "punycode"),
    (
        "a 60 SRV 1 2 x h.",
        "`x`: expected decimal number; SRV is written",
    ),
];

#[test]
fn faults_of_records() {
    for (text, part) in RECORDS {
        bad(text, &[part]);
        bad(&format!("; one\n\n{text}\n"), &["/zones/x.zone: line 3: "]);
    }
    let long = "x".repeat(256);
    bad(&format!("a 60 TXT {long}"), &["more than 255 octets"]);
    let name = "a.".repeat(128);
    bad(&format!("a 60 NS {name}"), &["at most 255 octets"]);
    let text = "x ".repeat(40_000);
    bad(&format!("a 60 TXT {text}"), &["TXT"]);
}

#[test]
fn a_fault_has_the_line_of_its_field_and_all_are_told() {
    bad(
        "$TTL 1\na SOA a. b. (\n 1\n 2\n 3x ; here\n 4 5 )\nb A x\nc A 192.0.2.1\nd FOO\n",
        &["line 5: ", "line 7: ", "line 9: "],
    );
    let (_, faults) = shown(&"a 60 A x\n".repeat(500), &[]);
    assert_eq!(faults.len(), 101);
    assert_eq!(
        faults[100],
        "zone example.com: 400 more faults are not listed"
    );
}
