//! k8gb: `k8gb.io/` on the Ingress that a Gslb is made of.

use super::{TheirKey, as_ours};
use crate::source::kubernetes::annotations::{Service, Target, grammar};

/// Its strategies.
const STRATEGIES: &[(&str, &str)] = &[
    ("roundRobin", "roundRobin"),
    ("failover", "failover"),
    ("geoip", "geoip"),
];

/// Its keys.
pub(super) const KEYS: &[TheirKey] = &[
    TheirKey {
        names: &["k8gb.io/strategy"],
        ours: Some("steer"),
        grammar: "`roundRobin`, `failover` or `geoip`",
        read: |text, said| as_ours("steer", grammar::word(text, STRATEGIES)?, said),
    },
    TheirKey {
        names: &["k8gb.io/primary-geotag"],
        ours: Some("tiers"),
        grammar: "the name of a cluster: it is the first tier, all others are the second",
        read: |text, said| {
            let is_tag = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-';
            if !(1..=63).contains(&text.len()) || !text.bytes().all(is_tag) {
                return Err("1 to 63 letters, digits and hyphens are wanted".to_owned());
            }
            as_ours("tiers", &format!("{text},*"), said)
        },
    },
    TheirKey {
        names: &["k8gb.io/dns-ttl-seconds"],
        ours: Some("ttl"),
        grammar: "seconds, 0..86400; 0 is the default",
        read: |text, said| {
            let seconds = grammar::number(text, 0_u32, 86_400)?;
            as_ours("ttl", &seconds.to_string(), said)
        },
    },
    TheirKey {
        names: &["k8gb.io/hostname"],
        ours: Some("hostname"),
        grammar: "a host name",
        read: |text, said| as_ours("hostname", text, said),
    },
    TheirKey {
        names: &["k8gb.io/exposed-ip-addresses"],
        ours: Some("target"),
        grammar: "addresses between commas",
        read: |text, said| add_targets(text, said, true),
    },
    TheirKey {
        names: &["k8gb.io/exposed-hostnames"],
        ours: Some("target"),
        grammar: "host names between commas; beside addresses both count",
        read: |text, said| add_targets(text, said, false),
    },
];

/// Adds targets of one kind to those that are there.
fn add_targets(text: &str, said: &mut Service, addresses: bool) -> Result<(), String> {
    let targets = grammar::targets(text)?;
    let is_address = |target: &Target| matches!(target, Target::Address(_));
    if targets.iter().any(|target| is_address(target) != addresses) {
        let wanted = if addresses { "addresses" } else { "host names" };
        return Err(format!("{wanted} alone are wanted"));
    }
    let all = said.targets.get_or_insert_default();
    for target in targets {
        if !all.contains(&target) {
            all.push(target);
        }
    }
    Ok(())
}
