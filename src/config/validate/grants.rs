//! `grants` of a zone: which namespaces may have which names.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Display;

use super::clusters::Clusters;
use super::read;
use super::zones::Zones;
use crate::config::faults::Report;
use crate::config::spec::{Kind, Node, fields, v1};
use crate::inventory::Grant;
use crate::model::{ClusterId, LowerName, NameRef};

/// Most grants of one zone.
const MAX_GRANTS: usize = 10_000;
/// Most clusters, namespaces or names of one grant.
const MAX_LISTED: usize = 1000;

/// What a zone's grants refer to.
#[derive(Clone, Copy)]
pub(super) struct Scope<'s, 't, 'a> {
    /// The zone; `None`: its name could not be read.
    pub(super) apex: Option<&'s LowerName>,
    pub(super) zones: &'s Zones,
    pub(super) clusters: &'s Clusters<'t, 'a>,
}

/// A grant without a fault of its own.
struct Written<'t, 'a> {
    /// Its place in the list, from 0.
    index: usize,
    grant: Grant,
    /// Beside its names.
    nodes: Vec<Node<'t, 'a>>,
}

impl Scope<'_, '_, '_> {
    /// Checks `grants`. One with a fault is left out.
    pub(super) fn read(&self, node: Node<'_, '_>, report: &mut Report) -> Vec<Grant> {
        if node.items().count() > MAX_GRANTS {
            report.fault(node, format_args!("more than {MAX_GRANTS} are listed"));
        }
        let mut index = 0;
        let written = read::list(node, report, |item, report| {
            index += 1;
            self.grant(item, index - 1, report)
        });
        check_overlaps(&written, report);
        written.into_iter().map(|written| written.grant).collect()
    }

    /// Checks one grant.
    fn grant<'n, 'b>(
        &self,
        node: Node<'n, 'b>,
        index: usize,
        report: &mut Report,
    ) -> Option<Written<'n, 'b>> {
        let before = report.count();
        let fields = fields(node, &v1::GRANT, report)?;
        let clusters = fields
            .get("clusters")
            .and_then(|node| some_or_all(node, report, |item, report| self.cluster(item, report)));
        let namespaces = fields
            .get("namespaces")
            .and_then(|node| some_or_all(node, report, namespace));
        let hostnames = fields.get("hostnames");
        let names = hostnames.map_or_else(Vec::new, |node| self.hostnames(node, report));
        let (hostnames, nodes) = names.into_iter().unzip();
        (report.count() == before).then_some(Written {
            index,
            grant: Grant {
                clusters,
                namespaces,
                hostnames,
            },
            nodes,
        })
    }

    /// Reads the name of a cluster.
    fn cluster(&self, node: Node<'_, '_>, report: &mut Report) -> Option<ClusterId> {
        let name = read::text(node, report)?;
        if name.contains(':') {
            report.fault(
                node,
                format_args!("`{name}`: grants are for clusters by their names, not by selectors"),
            );
            return None;
        }
        let (_, cluster) = self.clusters.find(node, name, report)?;
        if self.clusters.has_members() && self.clusters.is_outside(name) {
            report.warn(
                node,
                format_args!(
                    "`{name}` has neither `kubeconfig` nor `inCluster`, so nothing comes from it"
                ),
            );
        }
        Some(cluster.id.clone())
    }

    /// Checks the names, which all belong to the zone.
    fn hostnames<'n, 'b>(
        &self,
        node: Node<'n, 'b>,
        report: &mut Report,
    ) -> Vec<(LowerName, Node<'n, 'b>)> {
        check_count(node, report);
        let mut seen = BTreeSet::new();
        read::list(node, report, |item, report| {
            if let Some(apex) = self.apex.filter(|_| item.text() == "*") {
                report.fault(
                    item,
                    format_args!("`*` is no name here: write `*.{apex}` for all below the zone"),
                );
                return None;
            }
            let name = read::hostname_or_wildcard(item, report)?;
            self.check_zone(item, name.as_ref(), report);
            if !seen.insert(name.clone()) {
                report.fault(item, format_args!("`{name}` is listed twice"));
            }
            Some((name, item))
        })
    }

    /// Refuses a name that belongs to another zone, or to none.
    fn check_zone(&self, node: Node<'_, '_>, name: NameRef<'_>, report: &mut Report) {
        let Some(apex) = self.apex else { return };
        if !name.is_at_or_below(apex.as_ref()) {
            report.fault(
                node,
                format_args!("`{name}` does not lie in the zone `{apex}`"),
            );
            return;
        }
        let zone = self.zones.longest(base(name));
        if let Some(other) = zone.filter(|zone| zone.as_wire() != apex.as_wire()) {
            report.fault(
                node,
                format_args!("`{name}` belongs to the zone `{other}`: grant it there"),
            );
        }
    }
}

/// Gives what a wildcard stands below; a name without `*` as it is.
fn base(name: NameRef<'_>) -> NameRef<'_> {
    let above = name.parent().filter(|_| name.is_wildcard());
    above.unwrap_or(name)
}

/// Refuses a list with nothing in it, or too much.
fn check_count(node: Node<'_, '_>, report: &mut Report) {
    let count = node.items().count();
    if node.kind() == Kind::List && !(1..=MAX_LISTED).contains(&count) {
        report.fault(node, format_args!("1 to {MAX_LISTED} are wanted"));
    }
}

/// Reads a set of names; `None` for `*`, which stands alone.
fn some_or_all<T: Ord + Display + Clone>(
    node: Node<'_, '_>,
    report: &mut Report,
    mut read: impl FnMut(Node<'_, '_>, &mut Report) -> Option<T>,
) -> Option<BTreeSet<T>> {
    check_count(node, report);
    let star = node.items().find(|item| item.text() == "*");
    if let Some(star) = star {
        if node.items().count() > 1 {
            report.fault(star, "`*` is all of them: leave the others out");
        }
        return None;
    }
    let mut set = BTreeSet::new();
    let _: Vec<()> = read::list(node, report, |item, report| {
        let name = read(item, report)?;
        if !set.insert(name.clone()) {
            report.fault(item, format_args!("`{name}` is listed twice"));
        }
        None
    });
    Some(set)
}

/// Reads the name of a namespace (RFC 1123 label, as Kubernetes has it).
fn namespace(node: Node<'_, '_>, report: &mut Report) -> Option<Box<str>> {
    let text = read::text(node, report)?;
    let is_edge = |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit();
    let fits = (1..=63).contains(&text.len())
        && text.bytes().all(|octet| is_edge(octet) || octet == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-');
    if !fits {
        report.fault(
            node,
            format_args!("`{text}`: a namespace has 1 to 63 lower-case letters, digits and `-`, and begins and ends with a letter or digit"),
        );
    }
    fits.then(|| text.into())
}

/// Refuses grants of one name to different namespaces (DESIGN section 7), of whatever clusters: a name has one owner in all of
/// them, and who has it would be chance.
/// Several namespaces in one entry are meant so: the first to come has it.
fn check_overlaps(written: &[Written<'_, '_>], report: &mut Report) {
    let mut by_name = ByName::default();
    for one in written {
        for name in &one.grant.hostnames {
            by_name.0.entry(name).or_default().push(one);
        }
    }
    for one in written {
        for (name, node) in one.grant.hostnames.iter().zip(&one.nodes) {
            if let Some((index, granted)) = by_name.rival(one, name) {
                report.fault(
                    *node,
                    format_args!("`{name}` is granted to other namespaces too: by `{granted}` of grants[{index}]; a name has one namespace in all clusters, so list all that may have it in one entry"),
                );
            }
        }
    }
}

/// Grants by name.
#[derive(Default)]
struct ByName<'w, 't, 'a>(HashMap<&'w LowerName, Vec<&'w Written<'t, 'a>>>);

impl ByName<'_, '_, '_> {
    /// Finds a grant that gives a name to other namespaces: its place in the list, and the name as it has it. Of two that
    /// grant the very same name, the later one has the rival.
    fn rival(&self, one: &Written<'_, '_>, name: &LowerName) -> Option<(usize, LowerName)> {
        let holders = |name: &LowerName, is_it: &dyn Fn(usize) -> bool| {
            let mut all = self.0.get(name)?.iter();
            all.find(|other| is_it(other.index) && are_rivals(&one.grant, &other.grant))
                .map(|other| other.index)
        };
        if let Some(index) = holders(name, &|index| index < one.index) {
            return Some((index, name.clone()));
        }
        wildcards_above(name.as_ref()).find_map(|wildcard| {
            let index = holders(&wildcard, &|index| index != one.index)?;
            Some((index, wildcard))
        })
    }
}

/// Iterates over the wildcards that a name lies below.
fn wildcards_above(name: NameRef<'_>) -> impl Iterator<Item = LowerName> {
    let above = std::iter::successors(base(name).parent(), |name| name.parent());
    above.filter_map(|name| name.to_lower().prepend(b"*").ok())
}

/// Tells whether two grants of one name are for different namespaces.
fn are_rivals(one: &Grant, other: &Grant) -> bool {
    one.namespaces != other.namespaces
}
