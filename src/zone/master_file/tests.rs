//! Directives, record data and faults of master files, as tables.

use std::fmt::Write;

use proptest::prelude::*;

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
        "/zones/bad.zone: line 2: expected IPv4 address",
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

#[test]
fn data_of_every_type() {
    for (fields, hex) in [
        ("A 192.0.2.1", "c0000201"),
        ("AAAA 2001:db8::1", "20010db8000000000000000000000001"),
        ("NS ns.", "026e7300"),
        ("MX 10 mail.", "000a046d61696c00"),
        ("TXT abc \"d e\" \\\"\\009", "0361626303642065022209"),
        ("TXT \"é\"", "02c3a9"),
        ("SPF \"v=spf1\"", "06763d73706631"),
        ("SRV 1 2 443 h.", "0001000201bb016800"),
        (
            "CAA 0 issue \"ca.net; x=y\"",
            "000569737375656361\
          2e6e65743b20783d79",
        ),
        ("CAA 128 iodef mailto:a", "8005696f6465666d61696c746f3a61"),
        (
            "NAPTR 1 2 \"u\" \"E2U+sip\" \"!^.*$!sip:a@b!\" .",
            "00010002017507453255\
          2b7369700e215e2e2a24217369703a6140622100",
        ),
        (
            "SSHFP 1 1 dd465c09cfa51fb45020cc83316fff21b9ec74ac",
            "0101dd465c09cfa51fb45020cc83316fff21b9ec74ac",
        ),
        ("URI 10 1 \"https://x/\"", "000a000168747470733a2f2f782f"),
        ("PTR a.b.", "0161016200"),
        ("DNAME a.", "016100"),
        ("HINFO PC \"a b\"", "02504303612062"),
        ("RP a. b.", "016100016200"),
        ("AFSDB 1 a.", "0001016100"),
        ("KX 1 a.", "0001016100"),
        ("MINFO a. b.", "016100016200"),
        ("EUI48 00-00-5e-00-53-2a", "00005e00532a"),
        ("EUI64 00-00-5e-ef-10-00-00-2A", "00005eef1000002a"),
        ("OPENPGPKEY AQID BA==", "01020304"),
        ("DHCID AQID", "010203"),
        (
            "DS 60485 5 1 2BB183AF5F22588179A53B0A ( 98631FAD1A292118 )",
            "ec4505012bb183af5f22588179a53b0a98631fad1a292118",
        ),
        ("CDS 0 0 0 00", "0000000000"),
        ("CDNSKEY 0 3 0 AA==", "0000030000"),
        ("DNSKEY 257 3 13 AQID", "0101030d010203"),
        ("CERT PKIX 1 13 AQID", "000100010d010203"),
        (
            "CSYNC 66 3 A NS AAAA",
            "00000042000300046000\
          0008",
        ),
        (
            "APL 1:192.168.32.0/21 !1:192.168.38.0/28 2:FF00::/8",
            "00011503c0a82000011c83c0a8260002\
          0801ff",
        ),
        ("APL", ""),
        (
            "HIP 2 2001 AQID r.",
            "0202000320010102\
          03017200",
        ),
        ("IPSECKEY 10 1 2 192.0.2.38 AQID", "0a0102c0000226010203"),
        ("IPSECKEY 10 0 0 .", "0a0000"),
        (
            "ZONEMD 1 1 1 ( 000102030405060708090a0b )",
            "000000010101000102030405060708090a0b",
        ),
        // RFC 3597 section 5: any type, also one that is known; names in it get their lower case.
        ("TYPE731 \\# 6 abcdef ( 01 23\n 45 )", "abcdef012345"),
        ("CLASS1 TYPE65280 \\# 0", ""),
        ("TYPE1 10.0.0.1", "0a000001"),
        ("A \\# 4 0a000001", "0a000001"),
        ("MX \\# 5 00 0a 01 41 00", "000a016100"),
        ("NULL \\# 1 ff", "ff"),
    ] {
        data(fields, hex);
    }
    let digest = "ab".repeat(32);
    data(&format!("TLSA 3 1 1 {digest}"), &format!("030101{digest}"));
    data(
        &format!("SMIMEA 3 1 1 {digest}"),
        &format!("030101{digest}"),
    );
}

#[test]
fn loc() {
    // Examples of RFC 1876 section 4, encoded by hand.
    for (fields, hex) in [
        (
            "LOC 42 21 54 N 71 06 18 W -24m 30m",
            "0033161389172dd070be15f000988d20",
        ),
        (
            "LOC 52 14 05 N 00 08 50 E 10m",
            "001216138b3556c88008165000989a68",
        ),
        (
            "LOC 32 7 19 S 116 2 25 E 10m",
            "00121613791b7d2898e6486800989a68",
        ),
        ("LOC 0 N 0 E 0", "00121613800000008000000000989680"),
        (
            "LOC 90 S 180 W -100000.00 0.00m 90000000.00 1.5",
            "000099126cb0270059604e0000000000",
        ),
    ] {
        data(fields, hex);
    }
    for (fields, part) in [
        ("91 N 0 E 0", "`91` is out of range"),
        ("90 0 0.001 N 0 E 0", "more than 90 degrees"),
        ("0 60 N 0 E 0", "`60` is out of range"),
        ("0 0 59.9999 N 0 E 0", "out of range"),
        ("0 0 0 X 0 E 0", "`X` where N or S is expected"),
        ("0 N 0 E 42849673m", "out of range"),
        ("0 N 0 E", "a field is missing"),
        ("0 N 0 E 0 1 1 1 1", "one field too many"),
        ("0 N 0 E 0 1e3", "out of range or no number"),
    ] {
        bad(&format!("@ 60 LOC {fields}"), &[part]);
    }
}

#[test]
fn service_bindings() {
    let foo = "03666f6f076578616d706c6503636f6d00";
    // The test vectors of RFC 9460 appendix D.
    for (fields, hex) in [
        ("0 foo.example.com.", format!("0000{foo}")),
        ("1 .", "000100".to_owned()),
        (
            "16 foo.example.com. port=53",
            format!("0010{foo}000300020035"),
        ),
        (
            "1 foo.example.com. key667=hello",
            format!("0001{foo}029b000568656c6c6f"),
        ),
        (
            "1 foo.example.com. key667=\"hello\\210qoo\"",
            format!("0001{foo}029b000968656c6c6fd2716f6f"),
        ),
        (
            "1 foo.example.com. ( ipv6hint=\"2001:db8::1,2001:db8::53:1\" )",
            format!(
                "0001{foo}0006002020010db800000000000000000000000120010db8000000000000000000530001"
            ),
        ),
        (
            "1 example.com. ( ipv6hint=\"2001:db8:122:344::192.0.2.33\" )",
            "0001076578616d706c6503636f6d000006001020010db8012203440000\
             0000c0000221"
                .to_owned(),
        ),
        (
            "16 foo.example.org. ( alpn=h2,h3-19 mandatory=ipv4hint,alpn ipv4hint=192.0.2.1 )",
            "001003666f6f076578616d706c65036f72670000000004000100040001000902683205\
             68332d313900040004c0000201"
                .to_owned(),
        ),
        (
            "16 foo.example.org. alpn=\"f\\\\\\\\oo\\\\,bar,h2\"",
            "001003666f6f076578616d706c65036f7267000001000c08665c6f6f2c626172026832".to_owned(),
        ),
        (
            "16 foo.example.org. alpn=f\\\\\\092oo\\092,bar,h2",
            "001003666f6f076578616d706c65036f7267000001000c08665c6f6f2c626172026832".to_owned(),
        ),
        (
            "1 . key9=23,29 key8",
            "0001000008000000090004001700\
          1d"
            .to_owned(),
        ),
        (
            "1 . ech=AQID dohpath=/q{?dns} alpn=dot no-default-alpn",
            "000100000100040364\
          6f74000200000005000301020300070008\
          2f717b3f646e737d"
                .to_owned(),
        ),
    ] {
        for rtype in ["SVCB", "HTTPS"] {
            data(&format!("{rtype} {fields}"), &hex);
        }
    }
    for (fields, part) in [
        ("1 . key123=abc key123=def", "the parameter key123 twice"),
        ("1 . mandatory", "wrong value"),
        ("1 . alpn", "wrong value"),
        ("1 . alpn=", "wrong value"),
        ("1 . port", "wrong value"),
        ("1 . ipv4hint", "wrong value"),
        ("1 . ipv6hint=192.0.2.1", "wrong value"),
        ("1 . no-default-alpn=abc", "wrong value"),
        ("1 . no-default-alpn", "needs alpn"),
        (
            "1 . mandatory=key123",
            "the mandatory key key123 is missing",
        ),
        ("1 . mandatory=mandatory", "a wrong value of mandatory"),
        (
            "1 . mandatory=key123,key123 key123=abc",
            "a wrong value of mandatory",
        ),
        ("0 a. port=53", "priority 0 is an alias"),
        ("1 . foo=bar", "no key that is known"),
        ("1 . key07=x", "no key that is known"),
        ("1 . key65535=x", "no key that is known"),
        ("1 . \"port=53\"", "is no parameter"),
        ("1 . port=65536", "wrong value"),
        ("1 . dohpath=relative", "a wrong value of dohpath"),
        ("1 . alpn=h2,,h3", "a wrong value of alpn"),
        ("1", "a field is missing"),
        ("\\# 7 000100 0003 0001 35", "7 are announced"),
        ("\\# 8 000100 0003 0001 35", "no data of SVCB"),
        ("\\# 13 000100 00030002 0035 00020000", "no data of SVCB"),
        ("\\# 9 000000 0003 0002 0035", "no data of SVCB"),
    ] {
        bad(&format!("@ 60 SVCB {fields}"), &[part]);
    }
}

#[test]
fn faults_of_records() {
    for (text, part) in [
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
    ] {
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

/// Pieces that master files are made of, and some that break them.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "$ORIGIN",
            "$TTL",
            "$INCLUDE",
            "$GENERATE",
            "1-9",
            "a$",
            "${1,2,x}",
            "(",
            ")",
            "\"",
            ";",
            "\n",
            "\n",
            "\n ",
            " ",
            "\\",
            "\\#",
            "\\000",
            "@",
            ".",
            "a",
            "*",
            "60",
            "1h",
            "IN",
            "CH",
            "A",
            "AAAA",
            "TXT",
            "SOA",
            "SVCB",
            "HTTPS",
            "LOC",
            "NAPTR",
            "CAA",
            "APL",
            "HIP",
            "CERT",
            "CSYNC",
            "IPSECKEY",
            "DNSKEY",
            "DS",
            "TLSA",
            "NSEC",
            "ZONEMD",
            "TYPE65280",
            "192.0.2.1",
            "::1",
            "alpn=h2,h3",
            "key9=",
            "mandatory=alpn",
            "N",
            "E",
            "10m",
            "0",
            "1",
            "65535",
            "AQID",
            "abcd",
            "e",
            "\u{e9}",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,6}",
    ]
}

proptest! {
    #[test]
    fn any_octets_are_read_without_panic(octets in prop::collection::vec(any::<u8>(), 0..300)) {
        let (records, faults) = read_text(&octets, &[("a", "$INCLUDE a\nx 1 A 192.0.2.1\n")]);
        prop_assert!(records.len() <= octets.len() && faults.len() <= 101);
    }

    #[test]
    fn any_pieces_are_read_without_panic(
        pieces in prop::collection::vec((piece(), prop::bool::ANY), 0..60),
    ) {
        let text: String = pieces
            .iter()
            .map(|(piece, space)| format!("{piece}{}", if *space { " " } else { "" }))
            .collect();
        let (records, _) = read_text(text.as_bytes(), &[("a", "$INCLUDE a\nx 1 A 192.0.2.1\n")]);
        for record in records {
            prop_assert!(record.owner.to_string().ends_with("example.com"));
        }
    }

    #[test]
    fn any_data_of_any_known_type_is_read_or_refused(
        rtype in 1u16..270,
        octets in prop::collection::vec(prop_oneof![Just(0u8), Just(1), any::<u8>()], 0..40),
    ) {
        let hex: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
        let text = format!("a 1 TYPE{rtype} \\# {} {hex}", octets.len());
        let (records, faults) = read_text(text.as_bytes(), &[]);
        prop_assert_eq!(records.len() + faults.len(), 1);
        for record in records {
            prop_assert!(record.rdata.eq_ignore_ascii_case(&octets));
        }
    }
}
