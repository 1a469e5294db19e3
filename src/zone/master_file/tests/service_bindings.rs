//! SVCB and HTTPS (RFC 9460).

use super::{bad, data};

/// The test vectors of RFC 9460 appendix D, then some of our own: data as written, and the octets.
const GOOD: &[(&str, &str)] = &[
    (
        "0 foo.example.com.",
        "000003666f6f076578616d706c6503636f6d00",
    ),
    ("1 .", "000100"),
    (
        "16 foo.example.com. port=53",
        "001003666f6f076578616d706c6503636f6d00000300020035",
    ),
    (
        "1 foo.example.com. key667=hello",
        "000103666f6f076578616d706c6503636f6d00029b000568656c6c6f",
    ),
    (
        "1 foo.example.com. key667=\"hello\\210qoo\"",
        "000103666f6f076578616d706c6503636f6d00029b000968656c6c6fd2716f6f",
    ),
    (
        "1 foo.example.com. ( ipv6hint=\"2001:db8::1,2001:db8::53:1\" )",
        "000103666f6f076578616d706c6503636f6d000006002020010db800000000000000000000000120010db8000000000000000000530001",
    ),
    (
        "1 example.com. ( ipv6hint=\"2001:db8:122:344::192.0.2.33\" )",
        "0001076578616d706c6503636f6d000006001020010db8012203440000\
             0000c0000221",
    ),
    (
        "16 foo.example.org. ( alpn=h2,h3-19 mandatory=ipv4hint,alpn ipv4hint=192.0.2.1 )",
        "001003666f6f076578616d706c65036f72670000000004000100040001000902683205\
             68332d313900040004c0000201",
    ),
    (
        "16 foo.example.org. alpn=\"f\\\\\\\\oo\\\\,bar,h2\"",
        "001003666f6f076578616d706c65036f7267000001000c08665c6f6f2c626172026832",
    ),
    (
        "16 foo.example.org. alpn=f\\\\\\092oo\\092,bar,h2",
        "001003666f6f076578616d706c65036f7267000001000c08665c6f6f2c626172026832",
    ),
    (
        "1 . key9=23,29 key8",
        "0001000008000000090004001700\
          1d",
    ),
    (
        "1 . ech=AQID dohpath=/q{?dns} alpn=dot no-default-alpn",
        "000100000100040364\
          6f74000200000005000301020300070008\
          2f717b3f646e737d",
    ),
];

/// Data, and a part of what is said of it.
const BAD: &[(&str, &str)] = &[
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
];

#[test]
fn service_bindings() {
    for (fields, hex) in GOOD {
        for rtype in ["SVCB", "HTTPS"] {
            data(&format!("{rtype} {fields}"), hex);
        }
    }
    for (fields, part) in BAD {
        bad(&format!("@ 60 SVCB {fields}"), &[part]);
    }
}
