//! Nodes, cuts and the set of zones.

use std::collections::HashMap;
use std::sync::Arc;

use super::compile::Zone;
use super::rrset::Rrset;
use crate::model::{LowerName, NameRef, RecordType, ZoneIndex};

/// A zone cut: where authority is handed down.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The delegation's NS RRset.
    pub ns: Rrset,
    /// DS, answered by us as the parent.
    pub ds: Option<Rrset>,
    /// Addresses of the name servers in or below this zone: all must go into a referral (RFC 9471 section 2.1).
    pub glue: Vec<(LowerName, Rrset)>,
}

/// What stands at one owner name of a zone's static records.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// The RRsets, by ascending type; of a cut node none.
    pub rrsets: Box<[Rrset]>,
    /// Set where this is a zone cut.
    pub cut: Option<Box<Cut>>,
}

impl Node {
    /// Finds the RRset of one type.
    #[must_use]
    pub fn rrset(&self, rtype: RecordType) -> Option<&Rrset> {
        self.rrsets.iter().find(|rrset| rrset.rtype() == rtype)
    }
}

/// The zones served, by index.
#[derive(Clone, Debug, Default)]
pub struct ZoneSet {
    zones: Box<[Arc<Zone>]>,
    /// The zone that each zone's apex lies in.
    parents: Box<[Option<ZoneIndex>]>,
    /// Apex in wire form -> zone.
    by_apex: HashMap<Box<[u8]>, ZoneIndex>,
    /// Bit n is set when some apex has n labels: a name has at most 127, and only its ancestors of these lengths are looked
    /// up.
    apex_labels: u128,
}

impl ZoneSet {
    /// Makes a set. Of two zones with the same apex the later one is ignored: configuration refuses such a pair before.
    ///
    /// # Panics
    /// Never: fewer than 2^32 zones fit into memory.
    #[must_use]
    pub fn new(zones: Vec<Arc<Zone>>) -> Self {
        let mut set = Self::default();
        let mut kept = Vec::with_capacity(zones.len());
        for zone in zones {
            let wire: Box<[u8]> = zone.apex().as_wire().into();
            if set.by_apex.contains_key(&wire) {
                continue;
            }
            let index = u32::try_from(kept.len()).expect("fewer than 2^32 zones fit into memory");
            set.apex_labels |= 1 << zone.apex().as_ref().label_count();
            set.by_apex.insert(wire, ZoneIndex(index));
            kept.push(zone);
        }
        set.parents = kept
            .iter()
            .map(|zone| set.find(zone.apex().as_ref().parent()?))
            .collect();
        set.zones = kept.into();
        set
    }

    /// Finds the longest zone that `name` lies in. `name` is in lower case. Costs one hash lookup for each length of apex
    /// that some zone has and the name reaches.
    #[must_use]
    pub fn find(&self, name: NameRef<'_>) -> Option<ZoneIndex> {
        if self.apex_labels == 0 {
            return None;
        }
        let ancestors = std::iter::successors(Some(name), |name| name.parent());
        let labels = (0..=name.label_count()).rev();
        ancestors
            .zip(labels)
            .filter(|(_, labels)| self.apex_labels >> labels & 1 == 1)
            .find_map(|(ancestor, _)| self.by_apex.get(ancestor.as_wire()).copied())
    }

    /// Gives a zone.
    #[must_use]
    pub fn get(&self, index: ZoneIndex) -> Option<&Arc<Zone>> {
        self.zones.get(index.get())
    }

    /// Finds the zone that a zone's apex lies in, if we serve it too.
    #[must_use]
    pub fn parent(&self, index: ZoneIndex) -> Option<ZoneIndex> {
        self.parents.get(index.get()).copied().flatten()
    }

    /// Tells whether some zone served lies in this one.
    #[must_use]
    pub fn has_children(&self, index: ZoneIndex) -> bool {
        self.parents.contains(&Some(index))
    }

    /// Lists zones whose parent is served as well and delegates neither them nor a name above them, parent first: a fault of
    /// the configuration, because what the parent says of such a name and what the child says would both be ours (DESIGN
    /// section 7).
    pub fn missing_cuts(&self) -> impl Iterator<Item = (&Arc<Zone>, &Arc<Zone>)> {
        self.iter().filter_map(|(index, child)| {
            let parent = self.get(self.parent(index)?)?;
            let is_missing = !parent.delegates(child.apex().as_ref());
            is_missing.then_some((parent, child))
        })
    }

    /// Iterates over all zones.
    pub fn iter(&self) -> impl Iterator<Item = (ZoneIndex, &Arc<Zone>)> {
        (0..).map(ZoneIndex).zip(self.zones.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zone::testing::zone;

    #[test]
    fn the_longest_zone_holds_a_name() {
        let set = ZoneSet::new(vec![
            zone("example.com", ""),
            zone("svc.example.com", ""),
            zone("a.b.svc.example.com", ""),
            zone("example.com", "www A 192.0.2.1"),
        ]);
        assert_eq!(set.iter().count(), 3);
        for (name, found) in [
            ("example.com", Some(0)),
            ("x.example.com", Some(0)),
            ("svc.example.com", Some(1)),
            ("b.svc.example.com", Some(1)),
            ("c.b.svc.example.com", Some(1)),
            ("x.a.b.svc.example.com", Some(2)),
            ("xexample.com", None),
            ("com", None),
            (".", None),
        ] {
            let name: LowerName = name.parse().unwrap();
            assert_eq!(set.find(name.as_ref()), found.map(ZoneIndex), "{name}");
        }
        let parents = [0, 1, 2, 3].map(|index| set.parent(ZoneIndex(index)));
        assert_eq!(
            parents,
            [None, Some(ZoneIndex(0)), Some(ZoneIndex(1)), None]
        );
        assert!(
            set.get(ZoneIndex(0))
                .unwrap()
                .names()
                .all(|(name, _)| !name.to_string().starts_with("www"))
        );
    }

    #[test]
    fn a_child_must_be_delegated_by_its_parent() {
        let set = ZoneSet::new(vec![
            zone("z", "a NS n.y.\n"),
            zone("a.z", ""),
            zone("b.z", ""),
            zone("x.a.z", ""),
            zone("y", ""),
        ]);
        let missing: Vec<(String, String)> = set
            .missing_cuts()
            .map(|(parent, child)| (parent.apex().to_string(), child.apex().to_string()))
            .collect();
        let pair = |parent: &str, child: &str| (parent.to_owned(), child.to_owned());
        assert_eq!(missing, [pair("z", "b.z"), pair("a.z", "x.a.z")]);
    }

    /// The parent may delegate a name in between: who serves that zone is not our business.
    #[test]
    fn rfc1034_4_2_1_a_cut_above_the_child_is_enough() {
        let set = ZoneSet::new(vec![
            zone("z", "s NS n.y.\nd DNAME y.\n"),
            zone("t.s.z", ""),
            zone("u.t.s.z", ""),
            zone("v.d.z", ""),
        ]);
        let missing: Vec<(String, String)> = set
            .missing_cuts()
            .map(|(parent, child)| (parent.apex().to_string(), child.apex().to_string()))
            .collect();
        let pair = |parent: &str, child: &str| (parent.to_owned(), child.to_owned());
        assert_eq!(missing, [pair("t.s.z", "u.t.s.z"), pair("z", "v.d.z")]);
        assert!(set.has_children(ZoneIndex(0)) && set.has_children(ZoneIndex(1)));
        assert!(!set.has_children(ZoneIndex(2)));
    }

    #[test]
    fn the_root_and_no_zone_at_all() {
        let root = ZoneSet::new(vec![zone(".", "")]);
        let deep: LowerName = ["a"; 127].join(".").parse().unwrap();
        assert_eq!(root.find(deep.as_ref()), Some(ZoneIndex(0)));
        assert_eq!(root.find(NameRef::ROOT), Some(ZoneIndex(0)));
        assert_eq!(ZoneSet::default().find(deep.as_ref()), None);
    }
}
