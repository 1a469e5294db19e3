//! The algorithm of RFC 1034 section 4.3.2 with RFC 4592 (wildcards), RFC 6672 (DNAME) and RFC 8020 (NXDOMAIN).

use std::num::NonZeroU16;

use super::rrset::Rrset;
use super::set::{Cut, Node, ZoneSet};
use crate::model::{AreaIndex, NameRef, NodeIndex, RecordType, ServiceIndex, ZoneIndex};

/// Ancestors looked up one by one, from the name upwards, before the rest is searched by halves.
const NEAR: usize = 3;
/// Octets of the longest name, and of `*` before a name that is at least two octets shorter than another.
const MAX_NAME: usize = 255;

/// What the table of names has at one owner name. Neither node nor service: an empty non-terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The zone it belongs to: the longest that holds it.
    pub zone: ZoneIndex,
    /// Static records or a cut.
    pub node: Option<NodeIndex>,
    /// A steered service; its types are A and AAAA, or every type when it may be a CNAME.
    pub service: Option<ServiceIndex>,
    /// Tells whether the service may be answered as a CNAME: an endpoint, `fallback` or `fenceAnswer` is a host name.
    pub is_cname: bool,
}

impl Found {
    /// Tells whether nothing stands at the name itself.
    #[must_use]
    #[inline]
    pub fn is_empty_non_terminal(&self) -> bool {
        self.node.is_none() && self.service.is_none()
    }
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
    /// A static CNAME that the type asked for does not match: goes on at its target. Its owner is the question's name, also
    /// when it was synthesized.
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
    /// QTYPE ANY at an existing name: HINFO (RFC 8482 section 4.2). At a CNAME it is `Rrset` with the CNAME instead, which
    /// HINFO cannot stand beside and ANY does not follow; at a steered CNAME it is `Steered`.
    Any {
        /// Where.
        zone: ZoneIndex,
        /// The static records, if any.
        node: Option<&'a Node>,
    },
    /// The challenge of a steered name that a certificate authority looks for. [`lookup`] never says so: whoever knows the challenges
    /// does, where no static record stands.
    Challenge {
        /// Where.
        zone: ZoneIndex,
        /// The challenge, TXT; `None`: a CNAME to where the zone has it.
        rrset: Option<&'a Rrset>,
    },
    /// A name of a level of a federated service, and a steered type: `steering` decides among the clusters of the level first.
    /// [`lookup`] never says so: whoever knows regions and zones does, where nothing stands in the table of names.
    Level {
        /// Where.
        zone: ZoneIndex,
        /// Who.
        service: ServiceIndex,
        /// Which level.
        area: AreaIndex,
    },
    /// The name of a port of a service in a cluster set, and the type SRV. [`lookup`] never says so: whoever knows the ports does,
    /// where nothing stands in the table of names.
    Port {
        /// Where.
        zone: ZoneIndex,
        /// Whose: the name without its first two labels is one of the service's.
        service: ServiceIndex,
        /// Its number.
        number: NonZeroU16,
    },
    /// The name of an endpoint of a headless service in a cluster set, and a steered type: `steering` says whether the client may have
    /// it. [`lookup`] never says so: whoever knows the endpoints does, where nothing stands in the table of names.
    Host {
        /// Where.
        zone: ZoneIndex,
        /// Whose: the name without its first two labels is one of the service's.
        service: ServiceIndex,
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

impl Lookup<'_> {
    /// Gives the zone that speaks.
    #[must_use]
    #[inline]
    pub fn zone(&self) -> Option<ZoneIndex> {
        match *self {
            Self::NotOurs => None,
            Self::Rrset { zone, .. }
            | Self::Cname { zone, .. }
            | Self::Dname { zone, .. }
            | Self::Referral { zone, .. }
            | Self::Ds { zone, .. }
            | Self::Steered { zone, .. }
            | Self::Any { zone, .. }
            | Self::Challenge { zone, .. }
            | Self::Level { zone, .. }
            | Self::Port { zone, .. }
            | Self::Host { zone, .. }
            | Self::NoData { zone }
            | Self::NxDomain { zone } => Some(zone),
        }
    }
}

/// Looks up one name and type. `name` is in lower case. `exact` is what `tree.find(name)` gave: the caller looked already.
///
/// Costs nothing beyond `exact` for a steered name and type. For a name that does not exist: a lookup of its zone, a few of
/// its ancestors (their number grows with the logarithm of its labels), and one of the wildcard. QTYPEs that stand for no
/// data but ANY (AXFR, OPT …) are the caller's.
#[must_use]
#[inline(always)]
pub fn lookup<'a>(
    tree: &impl NameTree,
    zones: &'a ZoneSet,
    name: NameRef<'_>,
    qtype: RecordType,
    exact: Option<Found>,
) -> Lookup<'a> {
    match exact {
        Some(found) => match steered(found, qtype, false) {
            Some(steered) => steered,
            None => at_name(zones, name, qtype, found),
        },
        None => above_name(tree, zones, name, qtype),
    }
}

/// Answers what steering decides: addresses, and all of a service that may be a CNAME, so that its types agree.
#[inline]
fn steered<'a>(found: Found, qtype: RecordType, wildcard: bool) -> Option<Lookup<'a>> {
    let service = found.service?;
    let is_steered = found.is_cname || qtype == RecordType::A || qtype == RecordType::AAAA;
    is_steered.then_some(Lookup::Steered {
        zone: found.zone,
        service,
        wildcard,
    })
}

/// Finds the static node of what was found.
fn node_of(zones: &ZoneSet, found: Found) -> Option<&Node> {
    zones.get(found.zone)?.node(found.node?)
}

/// Answers at a name that exists.
#[inline(never)]
fn at_name<'a>(
    zones: &'a ZoneSet,
    name: NameRef<'_>,
    qtype: RecordType,
    found: Found,
) -> Lookup<'a> {
    if qtype == RecordType::DS
        && let Some(answer) = ds_of_child(zones, name, found.zone)
    {
        return answer;
    }
    let node = node_of(zones, found);
    match node.and_then(|node| node.cut.as_deref()) {
        Some(cut) if qtype == RecordType::DS => Lookup::Ds {
            zone: found.zone,
            rrset: cut.ds.as_ref(),
        },
        Some(cut) => Lookup::Referral {
            zone: found.zone,
            cut,
            owner_labels: name.label_count(),
        },
        None => data(node, qtype, found.zone, false),
    }
}

/// Answers DS at the apex of a zone whose parent we serve too (RFC 4035 section 3.1.4.1).
fn ds_of_child<'a>(zones: &'a ZoneSet, name: NameRef<'_>, zone: ZoneIndex) -> Option<Lookup<'a>> {
    if zones.get(zone)?.apex().as_wire() != name.as_wire() {
        return None;
    }
    let parent = zones.parent(zone)?;
    let cut = zones.get(parent)?.cut(name)?;
    Some(Lookup::Ds {
        zone: parent,
        rrset: cut.ds.as_ref(),
    })
}

/// Answers out of static records; `None` is an empty non-terminal, or a name with a service only.
fn data(node: Option<&Node>, qtype: RecordType, zone: ZoneIndex, wildcard: bool) -> Lookup<'_> {
    let cname = node.and_then(|node| node.rrset(RecordType::CNAME));
    if qtype == RecordType::ANY {
        return match cname {
            Some(rrset) => Lookup::Rrset {
                zone,
                rrset,
                wildcard,
            },
            None => Lookup::Any { zone, node },
        };
    }
    match node.and_then(|node| node.rrset(qtype)) {
        Some(rrset) => Lookup::Rrset {
            zone,
            rrset,
            wildcard,
        },
        None => cname.map_or(Lookup::NoData { zone }, |rrset| Lookup::Cname {
            zone,
            rrset,
        }),
    }
}

/// Answers for a name that does not exist, from its closest encloser (RFC 4592 section 3.3.1).
fn above_name<'a>(
    tree: &impl NameTree,
    zones: &'a ZoneSet,
    name: NameRef<'_>,
    qtype: RecordType,
) -> Lookup<'a> {
    let Some((encloser, labels, found)) = closest_encloser(tree, zones, name) else {
        return Lookup::NotOurs;
    };
    let zone = found.zone;
    let node = node_of(zones, found);
    if let Some(cut) = node.and_then(|node| node.cut.as_deref()) {
        return Lookup::Referral {
            zone,
            cut,
            owner_labels: labels,
        };
    }
    // RFC 6672 section 3.2: before the wildcard.
    if let Some(rrset) = node.and_then(|node| node.rrset(RecordType::DNAME)) {
        return Lookup::Dname {
            zone,
            rrset,
            owner_labels: labels,
        };
    }
    let Some(source) = source_of_synthesis(tree, encloser).filter(|source| source.zone == zone)
    else {
        return Lookup::NxDomain { zone };
    };
    steered(source, qtype, true).unwrap_or_else(|| data(node_of(zones, source), qtype, zone, true))
}

/// Finds the longest ancestor that exists, with its labels; `None` outside of our zones. Inside a zone every ancestor of a
/// name that exists exists too, so that far ones are found by halves: a name of 127 labels costs ten lookups, not 127.
fn closest_encloser<'n>(
    tree: &impl NameTree,
    zones: &ZoneSet,
    name: NameRef<'n>,
) -> Option<(NameRef<'n>, usize, Found)> {
    let zone = zones.find(name)?;
    let apex_labels = zones.get(zone)?.apex().as_ref().label_count();
    let labels = name.label_count();
    let ancestor =
        |of: usize| std::iter::successors(Some(name), |name| name.parent()).nth(labels - of);
    let look = |of: usize| {
        let ancestor = ancestor(of)?;
        Some((ancestor, of, tree.find(ancestor)?))
    };
    // The longest that may exist; the apex does.
    let mut high = labels.checked_sub(1).filter(|high| *high >= apex_labels)?;
    for _ in 0..NEAR {
        if let Some(found) = look(high) {
            return Some(found);
        }
        high = high.checked_sub(1).filter(|high| *high >= apex_labels)?;
    }
    let mut best = look(apex_labels)?;
    while best.1 < high {
        let middle = (best.1 + high).div_ceil(2);
        match look(middle) {
            Some(found) => best = found,
            None => high = middle - 1,
        }
    }
    Some(best)
}

/// Finds `*` right below the closest encloser.
fn source_of_synthesis(tree: &impl NameTree, encloser: NameRef<'_>) -> Option<Found> {
    let wire = encloser.as_wire();
    let mut buffer = [0; MAX_NAME];
    let name = buffer.get_mut(..wire.len() + 2)?;
    let (star, rest) = name.split_at_mut_checked(2)?;
    star.copy_from_slice(b"\x01*");
    rest.copy_from_slice(wire);
    tree.find(NameRef::from_checked(name))
}
