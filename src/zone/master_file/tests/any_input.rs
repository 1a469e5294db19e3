//! Octets and pieces of any kind never panic.

use proptest::prelude::*;

use super::read_text;

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
