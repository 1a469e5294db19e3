//! `probes`.

use super::clusters::Clusters;
use super::members::NO_MEMBER;
use super::read;
use crate::config::faults::Report;
use crate::config::spec::{Node, fields, v1};
use crate::prober::Config;

/// Checks `probes`.
pub(super) fn read(
    node: Option<Node<'_, '_>>,
    clusters: &Clusters<'_, '_>,
    report: &mut Report,
) -> Config {
    let mut config = Config::default();
    let Some(fields) = node.and_then(|node| fields(node, &v1::PROBES, report)) else {
        return config;
    };
    if let Some(node) = fields.get("allow") {
        config.allow = read::prefixes(node, report);
        if !clusters.has_members() {
            report.warn(
                node,
                format_args!("has no effect: targets of this file are trusted, and {NO_MEMBER}"),
            );
        }
    }
    if let Some(count) = fields
        .get("perTarget")
        .and_then(|node| read::integer(node, 1..=1000_u16, report))
    {
        config.per_target = usize::from(count);
    }
    if let Some(count) = fields
        .get("concurrency")
        .and_then(|node| read::integer(node, 1..=65_536_u32, report))
    {
        config.concurrency = usize::try_from(count).unwrap_or(config.concurrency);
    }
    if let Some(node) = fields.get("references") {
        report.fault(node, "`references` is not supported yet; leave it out");
    }
    config
}
