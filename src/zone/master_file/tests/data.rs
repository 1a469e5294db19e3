//! The text form of every type, as octets.

use super::super::scan;
use super::{bad, data};

/// Type and data as written, and the octets.
const TYPES: &[(&str, &str)] = &[
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
    ("CNAME a.", "016100"),
    ("MB a.", "016100"),
    ("MD a.", "016100"),
    ("MF a.", "016100"),
    ("MG a.", "016100"),
    ("MR a.", "016100"),
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
];

#[test]
fn data_of_every_type() {
    for rtype in scan::TYPES {
        let name = rtype.to_string();
        let has_row = TYPES
            .iter()
            .any(|(fields, _)| fields.split(' ').next() == Some(&*name));
        assert!(has_row || name == "TLSA", "{name}");
    }
    for (fields, hex) in TYPES {
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
