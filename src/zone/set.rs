//! Nodes, cuts and the set of zones.

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
    todo: (),
}

impl ZoneSet {
    /// Makes a set. Of two zones with the same apex the later one is ignored: configuration refuses such a pair before.
    #[must_use]
    pub fn new(zones: Vec<Arc<Zone>>) -> Self {
        let _ = zones;
        todo!()
    }

    /// Finds the longest zone that `name` lies in.
    #[must_use]
    pub fn find(&self, name: NameRef<'_>) -> Option<ZoneIndex> {
        let _ = name;
        todo!()
    }

    /// Gives a zone.
    #[must_use]
    pub fn get(&self, index: ZoneIndex) -> Option<&Arc<Zone>> {
        let _ = index;
        todo!()
    }

    /// Finds the zone that a zone's apex lies in, if we serve it too.
    #[must_use]
    pub fn parent(&self, index: ZoneIndex) -> Option<ZoneIndex> {
        let _ = index;
        todo!()
    }

    /// Iterates over all zones.
    pub fn iter(&self) -> impl Iterator<Item = (ZoneIndex, &Arc<Zone>)> {
        std::iter::empty()
    }
}
