//! `kubernetes`: how objects of member clusters are read.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use super::members::NO_MEMBER;
use super::monitor::MonitorKeys;
use super::policy::PolicyKeys;
use super::selectors::Scope;
use super::{checks, read};
use crate::config::faults::Report;
use crate::config::spec::{Fields, Node, fields, v1};
use crate::source::kubernetes::annotations::compat::Reader;
use crate::source::kubernetes::{Config, MassDeletion, Rules, WriteBack};

const HOUR: Duration = Duration::from_secs(3600);
/// Where the Lease is, where nobody says it: what the manifests make.
const EVENTS_NAMESPACE: &str = "meridian";
/// Bounds of `staleAfter`.
const STALE_AFTER: RangeInclusive<Duration> = Duration::from_secs(1)..=HOUR;
/// Bounds of `maxAge`.
const MAX_AGE: RangeInclusive<Duration> =
    Duration::from_secs(60)..=Duration::from_secs(30 * 86_400);
/// Bounds of `limits.interval.min`: those of intervals.
const INTERVAL: RangeInclusive<Duration> = Duration::from_millis(100)..=HOUR;
/// Bounds of `massDeletion.for`.
const HOLD: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(7 * 86_400);

/// Checks `kubernetes`. `defaults` is `defaults.monitor`, and where it stands.
pub(super) fn read(
    node: Option<Node<'_, '_>>,
    scope: Scope<'_, '_, '_>,
    (defaults, policy): ((&MonitorKeys, Option<Node<'_, '_>>), &PolicyKeys),
    report: &mut Report,
) -> Config {
    let clusters = scope.clusters;
    let mut config = Config {
        members: clusters.members(),
        ..Config::default()
    };
    let mut rules = Rules {
        groups: scope.groups.clone(),
        ..Rules::default()
    };
    if let Some(fields) = node.and_then(|node| fields(node, &v1::KUBERNETES, report)) {
        if !clusters.has_members() {
            report.warn(fields.node, format_args!("nothing is watched: {NO_MEMBER}"));
        }
        let stale_after = fields.get("staleAfter");
        let stale_after = stale_after.and_then(|node| read::duration(node, STALE_AFTER, report));
        config.stale_after = stale_after.unwrap_or(config.stale_after);
        config.write_back = write_back(fields, report);
        let max_age = fields.get("maxAge");
        let max_age = max_age.and_then(|node| read::duration(node, MAX_AGE, report));
        config.max_age = max_age.unwrap_or(config.max_age);
        self::rules(fields, &mut rules, report);
    }
    if clusters.has_members() {
        let (keys, node) = defaults;
        rules.checks = checks::of(keys, node, rules.min_interval, report);
    }
    rules.compat.keeps_steer = policy.says_steer();
    rules.compat.keeps_tiers = policy.says_tiers();
    config.rules = Arc::new(rules);
    config
}

/// Checks what is written into members. The name of the node is filled in by who knows it.
fn write_back(fields: Fields<'_, '_>, report: &mut Report) -> Option<WriteBack> {
    let word = fields.get("writeBack");
    let word = word.and_then(|node| read::word(node, v1::WRITE_BACKS, report));
    let is_on = word == Some("events");
    let node = fields.get("eventsNamespace");
    if let Some(node) = node.filter(|_| !is_on) {
        report.warn(node, "has no effect without `writeBack: events`");
    }
    let namespace = match node {
        Some(node) => namespace(node, report)?,
        None => EVENTS_NAMESPACE.into(),
    };
    is_on.then(|| WriteBack {
        namespace,
        node: Box::default(),
    })
}

/// Checks how objects are read.
fn rules(fields: Fields<'_, '_>, rules: &mut Rules, report: &mut Report) {
    if let Some(node) = fields.get("optIn") {
        rules.opt_in = read::boolean(node, report).unwrap_or(rules.opt_in);
    }
    if let Some(class) = fields.get("class").and_then(|node| class(node, report)) {
        rules.class = class;
    }
    if let Some(node) = fields.get("compat") {
        rules.compat.readers = compat(node, report);
    }
    if let Some(node) = fields.get("massDeletion") {
        mass_deletion(node, &mut rules.mass_deletion, report);
    }
    let limits = fields.get("limits");
    if let Some(limits) = limits.and_then(|node| self::fields(node, &v1::LIMITS, report)) {
        self::limits(limits, rules, report);
    }
}

/// Checks `compat`.
fn compat(node: Node<'_, '_>, report: &mut Report) -> Vec<Reader> {
    let mut seen = Vec::new();
    read::list(node, report, |item, report| {
        if item.is_scalar() && item.text() == "kuadrant" {
            report.fault(item, "`kuadrant` is not supported yet");
            return None;
        }
        let word = read::word(item, v1::COMPAT, report)?;
        let reader = Reader::ALL.into_iter().find(|one| one.as_str() == word)?;
        if seen.contains(&reader) {
            report.fault(item, format_args!("`{word}` is listed twice"));
            return None;
        }
        seen.push(reader);
        Some(reader)
    })
}

/// Reads a class, as the annotation has it.
fn class(node: Node<'_, '_>, report: &mut Report) -> Option<Box<str>> {
    let text = read::text(node, report)?;
    let is_fine = |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit() || octet == b'-';
    let fits = (1..=63).contains(&text.len()) && text.bytes().all(is_fine);
    if !fits {
        report.fault(
            node,
            format_args!("`{text}`: 1 to 63 lower-case letters, digits and hyphens are wanted"),
        );
    }
    fits.then(|| text.into())
}

/// Reads the name of a namespace (RFC 1123 label).
fn namespace(node: Node<'_, '_>, report: &mut Report) -> Option<Box<str>> {
    let text = class(node, report)?;
    let is_fine = !text.starts_with('-') && !text.ends_with('-');
    if !is_fine {
        report.fault(
            node,
            "the name of a namespace neither begins nor ends with a hyphen",
        );
    }
    is_fine.then_some(text)
}

/// Checks `massDeletion`.
fn mass_deletion(node: Node<'_, '_>, rules: &mut MassDeletion, report: &mut Report) {
    let Some(fields) = fields(node, &v1::MASS_DELETION, report) else {
        return;
    };
    if let Some(node) = fields.get("action") {
        rules.hold = read::word(node, v1::MASS_ACTIONS, report) != Some("release");
    }
    if let Some(node) = fields.get("share") {
        rules.share = read::number(node, 0.0..=1.0, report).unwrap_or(rules.share);
    }
    let count = fields.get("atLeast");
    if let Some(count) = count.and_then(|node| read::integer(node, 1..=1_000_000_u32, report)) {
        rules.at_least = usize::try_from(count).unwrap_or(rules.at_least);
    }
    if let Some(node) = fields.get("for") {
        rules.wait = read::duration(node, HOLD, report).unwrap_or(rules.wait);
    }
    for key in ["share", "atLeast", "for"] {
        if let Some(node) = fields.get(key).filter(|_| !rules.hold) {
            report.warn(
                node,
                "has no effect beside `action: release`: nothing is held",
            );
        }
    }
}

/// Checks `limits`.
fn limits(fields: Fields<'_, '_>, rules: &mut Rules, report: &mut Report) {
    let mut least = |name, shape| {
        let node = fields.get(name)?;
        self::fields(node, shape, report)?.get("min")
    };
    let (ttl, interval) = (
        least("ttl", &v1::LEAST_TTL),
        least("interval", &v1::LEAST_INTERVAL),
    );
    if let Some(node) = ttl {
        rules.min_ttl = read::ttl(node, 1..=86_400, report).unwrap_or(rules.min_ttl);
    }
    if let Some(node) = interval {
        rules.min_interval = read::duration(node, INTERVAL, report).unwrap_or(rules.min_interval);
    }
    let count = fields.get("monitorsPerNamespace");
    if let Some(count) = count.and_then(|node| read::integer(node, 0..=1_000_000_u32, report)) {
        rules.monitors_per_namespace =
            usize::try_from(count).unwrap_or(rules.monitors_per_namespace);
    }
}
