//! The static zones that tests ask.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::model::Ttl;
use crate::zone::{NameForms, Nameserver, SoaTimers, Zone, ZoneFile, ZoneSpec};

/// Everything that can stand in a zone.
const EXAMPLE: &str = r"
$ORIGIN example.
$TTL 300
@       3600 SOA ns1 hostmaster 7 7200 900 1209600 60
@       3600 NS ns1
@       3600 NS ns2
ns1     A 192.0.2.53
ns1     AAAA 2001:db8::53
ns2     A 192.0.2.54
@       MX 10 mail
@       MX 20 mail2
mail    A 192.0.2.25
mail2   A 192.0.2.26
www     A 192.0.2.80
www     A 192.0.2.81
www     AAAA 2001:db8::80
UPPER   A 192.0.2.82
alias   60 CNAME www
alias2  CNAME alias
loop1   CNAME loop2
loop2   CNAME loop1
self    CNAME self
out     CNAME www.example.net.
gone    CNAME nothing
nodata  CNAME mail
below   CNAME x.child
near    CNAME near.svc.test.
far     CNAME weighted.svc.test.
c0      CNAME c1
c1      CNAME c2
c2      CNAME c3
c3      CNAME c4
c4      CNAME c5
c5      CNAME c6
c6      CNAME c7
c7      CNAME c8
c8      CNAME c9
c9      CNAME c10
c10     CNAME c11
c11     CNAME c12
c12     CNAME c13
c13     CNAME c14
c14     CNAME c15
c15     CNAME c16
c16     CNAME c17
c17     CNAME c18
c18     A 192.0.2.118
a.b.ent A 192.0.2.90
*.wild  A 192.0.2.99
x.wild  TXT here
*.cw    CNAME www
child   NS ns.child
child   NS ns.sibling
child   NS ns.example.net.
child   DS 1 13 2 0011223344556677889900112233445566778899001122334455667788990011
ns.child A 192.0.2.100
ns.child AAAA 2001:db8::100
sibling NS ns.sibling
ns.sibling A 192.0.2.101
dname   DNAME target
x.target A 192.0.2.110
long    DNAME aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.ccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc
dttl    77 DNAME target
dnloop  DNAME dnloop2
dnloop2 DNAME dnloop
dngrow  DNAME a.dngrow
dnin    DNAME svc.test.
dnup    DNAME example.
dnout   DNAME example.net.
bigalias CNAME large
zero    0 A 192.0.2.140
hi\192  A 192.0.2.141
hi\224  A 192.0.2.142
kid     NS ns1.kid
kid     DS 2 13 2 0011223344556677889900112233445566778899001122334455667788990011
ns1.kid A 192.0.2.150
s       NS ns.example.net.
_s._tcp SRV 0 5 443 www
https   HTTPS 0 svc
svc     HTTPS 1 . alpn=h2
svc     A 192.0.2.120
new     TYPE65280 \# 4 0A000001
d\.ot   A 192.0.2.130
n\000l  A 192.0.2.131
sp\032e A 192.0.2.132
";

/// A zone inside `example.`, and one below a name that `example.` delegates elsewhere.
const KID: &str = "$TTL 30\nwww A 192.0.2.151\nns1 A 192.0.2.150\n";
/// A SOA whose TTL is less than its MINIMUM.
const SHORT: &str = "@ 30 SOA ns1 hostmaster 7 7200 900 1209600 300\n";

/// Compiles `example.`, and `svc.test.` without static records but its name servers.
pub(super) fn zones() -> Vec<Arc<Zone>> {
    let mut text = EXAMPLE.to_owned();
    // More than 512 octets, and more than 1232.
    for (name, count) in [("medium", 40), ("large", 150)] {
        for host in 0..count {
            text.push_str(&format!("{name} A 10.0.0.{host}\n"));
        }
    }
    // Replies of exactly 511, 512 and 513 octets without EDNS, and of 512 and 513 with an empty OPT.
    for size in [501, 502, 511, 512, 513] {
        let rest = "b".repeat(size - 43 - 256 - 1);
        text.push_str(&format!("sz{size} TXT {} {rest}\n", "a".repeat(255)));
    }
    // More than 0x3fff octets of records with one name, then another one.
    for preference in 0..1100 {
        text.push_str(&format!("huge MX {preference} mail\n"));
    }
    text.push_str("huge MX 2000 mail2\n");
    // A cut with name servers of a sibling, whose addresses do not fit a small datagram.
    text.push_str("sib NS n0.sib\n");
    for server in 0..13 {
        text.push_str(&format!("tight NS n{server}.sib\n"));
        text.push_str(&format!("n{server}.sib A 10.2.0.{server}\n"));
        text.push_str(&format!("n{server}.sib AAAA 2001:db8:2::{server:x}\n"));
    }
    // A cut whose glue does not fit a small datagram.
    for server in 0..13 {
        text.push_str(&format!("wide NS server{server}.wide\n"));
        text.push_str(&format!("server{server}.wide A 10.1.0.{server}\n"));
        text.push_str(&format!(
            "server{server}.wide AAAA 2001:db8:1::{server:x}\n"
        ));
    }
    let example = ZoneSpec {
        nameservers: Vec::new(),
        contact: None,
        ..with_file("example", text)
    };
    let others = [
        ("kid.example", KID),
        ("t.s.example", KID),
        ("short.test", SHORT),
    ];
    let others = others.map(|(apex, text)| with_file(apex, text.to_owned()));
    [example, spec("svc.test")]
        .iter()
        .chain(&others)
        .map(|spec| Arc::new(Zone::compile(spec).expect("a good zone")))
        .collect()
}

/// A zone with one name server, and these records.
pub(super) fn with_file(apex: &str, text: String) -> ZoneSpec {
    let file = ZoneFile {
        path: PathBuf::from(format!("/zones/{apex}.zone")),
        text: text.into_bytes().into(),
        includes: Vec::new(),
    };
    ZoneSpec {
        file: Some(file),
        ..spec(apex)
    }
}

/// A zone with one name server, and no static records else.
pub(super) fn spec(apex: &str) -> ZoneSpec {
    ZoneSpec {
        apex: apex.parse().unwrap(),
        nameservers: vec![Nameserver {
            name: format!("ns1.{apex}").parse().unwrap(),
            addresses: vec!["192.0.2.53".parse().unwrap()],
        }],
        contact: format!("hostmaster.{apex}").parse().ok(),
        soa: SoaTimers {
            ttl: Ttl::new(3600).unwrap(),
            refresh: Duration::from_secs(7200),
            retry: Duration::from_secs(900),
            expire: Duration::from_secs(1_209_600),
        },
        ns_ttl: Ttl::new(3600).unwrap(),
        ttl: Ttl::new(30).unwrap(),
        negative_ttl: Ttl::new(20).unwrap(),
        file: None,
        serial: 9,
        acme: None,
        forms: NameForms::default(),
    }
}
