//! What a zone's new records mean for names and claims: mostly nothing, for a serial or an address changes neither.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::model::{NameRef, NodeIndex, RecordType};
use crate::zone::{Node, Rrset, Zone};

/// How one zone's records differ from those it had.
#[derive(Debug, Default)]
pub(super) struct ZoneDiff<'z> {
    /// Owner names that the zone has no more.
    pub(super) gone: Vec<NameRef<'z>>,
    /// Owner names that came, or whose node has another index now.
    pub(super) moved: Vec<(NameRef<'z>, NodeIndex)>,
    /// Owner names that came, went, or have other types of records: what may be claimed there may differ.
    pub(super) claims: Vec<NameRef<'z>>,
    /// One of `claims` is or was a cut or DNAME: what may be claimed below may differ too.
    pub(super) divides: bool,
}

impl<'z> ZoneDiff<'z> {
    /// Compares the names of two states of one zone, and what stands there.
    pub(super) fn between(old: &'z Zone, new: &'z Zone) -> Self {
        let mut diff = Self::default();
        if old.names().eq(new.names()) && old.names().all(|(_, at)| same_types(old, at, new, at)) {
            return diff;
        }
        let olds: HashMap<NameRef<'z>, NodeIndex, RandomState> = old.names().collect();
        let news: HashMap<NameRef<'z>, NodeIndex, RandomState> = new.names().collect();
        for (&name, &node) in &news {
            let before = olds.get(&name).copied();
            if before != Some(node) {
                diff.moved.push((name, node));
            }
            if !before.is_some_and(|before| same_types(old, before, new, node)) {
                let before = before.and_then(|before| old.node(before));
                diff.claim(name, [before, new.node(node)]);
            }
        }
        for (&name, &node) in olds.iter().filter(|(name, _)| !news.contains_key(*name)) {
            diff.gone.push(name);
            diff.claim(name, [old.node(node), None]);
        }
        diff
    }

    /// Tells whether names and claims stay as they are.
    pub(super) fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.moved.is_empty() && self.claims.is_empty()
    }

    fn claim(&mut self, name: NameRef<'z>, nodes: [Option<&Node>; 2]) {
        self.claims.push(name);
        self.divides |= nodes.into_iter().flatten().any(divides);
    }
}

/// Tells whether two nodes have records of the same types, and both or neither is a cut.
fn same_types(old: &Zone, old_at: NodeIndex, new: &Zone, new_at: NodeIndex) -> bool {
    let (Some(old), Some(new)) = (old.node(old_at), new.node(new_at)) else {
        return false;
    };
    let types = |rrset: &Rrset| rrset.rtype();
    old.cut.is_some() == new.cut.is_some()
        && old
            .rrsets
            .iter()
            .map(types)
            .eq(new.rrsets.iter().map(types))
}

/// Tells whether a node takes what lies below it out of the zone.
fn divides(node: &Node) -> bool {
    node.cut.is_some() || node.rrset(RecordType::DNAME).is_some()
}
