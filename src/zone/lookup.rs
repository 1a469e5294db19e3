//! The algorithm of RFC 1034 section 4.3.2 with RFC 4592 (wildcards), RFC 6672 (DNAME) and RFC 8020 (NXDOMAIN).

use super::rrset::Rrset;
use super::set::{Cut, Node, ZoneSet};
use crate::model::{NameRef, NodeIndex, RecordType, ServiceIndex, ZoneIndex};

/// What the table of names has at one owner name. Neither node nor service: an empty non-terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The zone it belongs to: the longest that holds it.
    pub zone: ZoneIndex,
    /// Static records or a cut.
    pub node: Option<NodeIndex>,
    /// A steered service; its types are A and AAAA, or every type when it is a CNAME.
    pub service: Option<ServiceIndex>,
    /// Tells whether the service is answered as a CNAME (a host name endpoint).
    pub is_cname: bool,
}

/// All owner names of all zones: static, steered and empty non-terminals. Implemented by the snapshot's table and by the
/// slow reference of the tests.
pub trait NameTree {
    /// Finds exactly this name, in lower case.
    fn find(&self, name: NameRef<'_>) -> Option<Found>;
}

/// What a zone has to say of a question.
#[derive(Clone, Copy, Debug)]
pub enum Lookup<'a> {
    /// No zone of ours: REFUSED.
    NotOurs,
    /// The RRset asked for. `wildcard`: synthesized, the owner is the question's name.
    Rrset {
        /// Where.
        zone: ZoneIndex,
        /// What.
        rrset: &'a Rrset,
        /// Synthesized from `*` (RFC 4592).
        wildcard: bool,
    },
    /// A static CNAME that the type asked for does not match: goes on at its target.
    Cname {
        /// Where.
        zone: ZoneIndex,
        /// The CNAME.
        rrset: &'a Rrset,
    },
    /// The name lies below a DNAME: a CNAME is synthesized (RFC 6672 section 3.1).
    Dname {
        /// Where.
        zone: ZoneIndex,
        /// The DNAME.
        rrset: &'a Rrset,
        /// Labels of the DNAME's owner, the root not counted: the owner is that many last labels of the question's name.
        owner_labels: usize,
    },
    /// Below or at a zone cut: the reply is a referral.
    Referral {
        /// Where.
        zone: ZoneIndex,
        /// The delegation.
        cut: &'a Cut,
        /// Labels of the cut's owner: that many last labels of the question's name.
        owner_labels: usize,
    },
    /// DS at a cut, which the parent answers with authority; `None` is NODATA.
    Ds {
        /// The parent zone.
        zone: ZoneIndex,
        /// The DS RRset.
        rrset: Option<&'a Rrset>,
    },
    /// A steered name and a steered type: `steering` decides.
    Steered {
        /// Where.
        zone: ZoneIndex,
        /// Who.
        service: ServiceIndex,
        /// Synthesized from `*`.
        wildcard: bool,
    },
    /// QTYPE ANY at an existing name: HINFO (RFC 8482).
    Any {
        /// Where.
        zone: ZoneIndex,
        /// The static records, if any.
        node: Option<&'a Node>,
    },
    /// The name exists, the type does not.
    NoData {
        /// Where.
        zone: ZoneIndex,
    },
    /// Nothing exists here or below.
    NxDomain {
        /// Where.
        zone: ZoneIndex,
    },
}

/// Looks up one name and type. `name` is in lower case. `exact` is what `tree.find(name)` gave: the caller looked already.
#[must_use]
pub fn lookup<'a>(
    tree: &impl NameTree,
    zones: &'a ZoneSet,
    name: NameRef<'_>,
    qtype: RecordType,
    exact: Option<Found>,
) -> Lookup<'a> {
    let _ = (tree, zones, name, qtype, exact);
    todo!()
}
