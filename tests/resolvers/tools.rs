//! What operators ask with: dig, kdig and delv show no warning.

use std::process::Command;

use crate::harness::node::Node;
use crate::harness::packages::{DELV, DIG, KDIG, need};

const CONFIG: &str = "
zones:
  - name: svc.mesh
    nameservers: [{name: ns1.svc.mesh, addresses: [192.0.2.53, \"2001:db8::53\"]}]
    contact: hostmaster.svc.mesh
    file: svc.mesh.zone
clusters:
  - {name: europe, provider: aws, region: eu-central-1}
services:
  - {namespace: shop, name: web, hostnames: [www.svc.mesh], endpoints: [{cluster: europe, addresses: [192.0.2.1, \"2001:db8::1\"]}]}
";

const ZONE: &str = "
$TTL 300
mail MX 10 www
txt TXT \"one\" \"two\"
alias CNAME www
*.wild A 192.0.2.9
old DNAME www
child NS ns.child
ns.child A 192.0.2.54
deep.er.names A 192.0.2.10
service HTTPS 1 . alpn=h2 ipv4hint=192.0.2.1
big TXT ( \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\" )
$GENERATE 0-99 big TXT number-$-padding-padding-padding
";

/// Questions of every kind of answer.
const QUESTIONS: &[(&str, &str)] = &[
    ("www.svc.mesh", "A"),
    ("www.svc.mesh", "AAAA"),
    ("www.svc.mesh", "MX"),
    ("www.svc.mesh", "ANY"),
    ("WwW.SvC.mEsH", "A"),
    ("svc.mesh", "SOA"),
    ("svc.mesh", "NS"),
    ("mail.svc.mesh", "MX"),
    ("txt.svc.mesh", "TXT"),
    ("alias.svc.mesh", "A"),
    ("a.b.wild.svc.mesh", "A"),
    ("x.old.svc.mesh", "A"),
    ("x.child.svc.mesh", "A"),
    ("child.svc.mesh", "DS"),
    ("er.names.svc.mesh", "A"),
    ("nothing.svc.mesh", "A"),
    ("service.svc.mesh", "HTTPS"),
    ("big.svc.mesh", "TXT"),
    ("www.svc.mesh", "TYPE65280"),
];

/// How dig and kdig show that there is an answer.
const STATUS: [&str; 2] = ["status: noerror", "status: nxdomain"];

/// Runs a tool and looks for complaints, and for one of the signs of an answer.
fn check(tool: &str, args: &[&str], signs: &[&str]) {
    let output = Command::new(tool).args(args).output().unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let lower = text.to_lowercase();
    // Both tools announce their retry over TCP; that is the protocol, not a complaint.
    let is_retry = |line: &&str| line.contains("truncated") && line.contains("tcp");
    let text: Vec<&str> = lower.lines().filter(|line| !is_retry(line)).collect();
    let text = text.join("\n");
    for complaint in [
        "warning",
        "malformed",
        "mismatch",
        "got bad",
        "extra bytes",
        "timed out",
        // delv says so and ends well.
        "resolution failed",
        "servfail",
        "truncated",
    ] {
        assert!(
            !text.contains(complaint),
            "{tool} {args:?} says `{complaint}`:\n{lower}"
        );
    }
    assert!(
        signs.iter().any(|sign| lower.contains(sign)),
        "{tool} {args:?} has no answer:\n{lower}"
    );
    assert!(
        output.status.success(),
        "{tool} {args:?}: {}\n{text}",
        output.status
    );
}

#[test]
fn dig_kdig_and_delv_show_no_warning() {
    let _machine = crate::shared();
    need(&[DIG, KDIG, DELV]);
    let address = crate::harness::loopback();
    let node = Node::start_on(address, "identity: mesh-1, ", CONFIG, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), ZONE).unwrap();
    });
    let at = format!("@{}", node.dns().ip());
    for (name, rtype) in QUESTIONS {
        for options in [
            &["+norecurse"][..],
            &["+norecurse", "+tcp"],
            &["+norecurse", "+subnet=46.114.0.0/24", "+nsid"],
            &["+norecurse", "+noedns"],
            &["+norecurse", "+dnssec"],
        ] {
            let args = [&[at.as_str(), name, rtype][..], options].concat();
            check(DIG.0, &args, &STATUS);
        }
        for options in [
            &["+norec"][..],
            &["+norec", "+tcp"],
            &["+norec", "+edns", "+subnet=46.114.0.0/24", "+nsid"],
        ] {
            let args = [&[at.as_str(), name, rtype][..], options].concat();
            check(KDIG.0, &args, &STATUS);
        }
    }
    for (name, rtype) in [
        ("www.svc.mesh", "A"),
        ("svc.mesh", "SOA"),
        ("txt.svc.mesh", "TXT"),
        ("alias.svc.mesh", "A"),
    ] {
        check(DELV.0, &[&at, "-i", name, rtype], &["\tin\t"]);
    }
}
