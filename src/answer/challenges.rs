//! `_acme-challenge.<steered name>`: the challenge that a certificate authority looks for (RFC 8555 section 8.4).
//!
//! These owner names stand in no table: a name that is not found, or is an empty non-terminal, is looked at once more here. So they
//! cost nothing where something stands, hide nobody's wildcard, and come and go with the steered name. Static records go first.

use super::apart::synthesized_service;
use super::key::NameBuf;
use super::sections::{Link, Next, Solver};
use super::witness::Witness;
use crate::model::{LowerName, NameRef, RecordType, ZoneIndex};
use crate::snapshot::Snapshot;
use crate::zone::{CHALLENGE_LABEL, Found, Lookup, NameTree, lookup};

/// Looks once more at a name where nothing stands: `found` is what was said of it, made up by a wildcard at most.
#[inline]
pub(super) fn amend<'a>(
    snapshot: &'a Snapshot,
    (name, qtype): (NameRef<'_>, RecordType),
    found: Lookup<'a>,
) -> Lookup<'a> {
    let has_label = || name.labels().any(|label| label == CHALLENGE_LABEL);
    if snapshot.has_challenges() && has_label() {
        amended(snapshot, (name, qtype), found)
    } else {
        found
    }
}

/// Looks at a name that has the label somewhere.
#[cold]
fn amended<'a>(
    snapshot: &'a Snapshot,
    (name, qtype): (NameRef<'_>, RecordType),
    found: Lookup<'a>,
) -> Lookup<'a> {
    // Elsewhere, below a cut or a DNAME: that goes first (DESIGN section 7).
    let zone = match found {
        Lookup::NotOurs | Lookup::Referral { .. } | Lookup::Dname { .. } | Lookup::Ds { .. } => {
            return found;
        }
        _ => found.zone(),
    };
    let Some(zone) = zone else {
        return found;
    };
    if name.first_label() == Some(CHALLENGE_LABEL)
        && let Some(challenge) = at_owner(snapshot, (zone, name), qtype)
    {
        return challenge;
    }
    // RFC 4592 section 2.2.1: below a name that exists, no wildcard above it says anything.
    let above = std::iter::successors(name.parent(), |name| name.parent());
    let mut owners = above.filter(|name| name.first_label() == Some(CHALLENGE_LABEL));
    let is_below = owners.any(|owner| {
        snapshot.names().find(owner).is_none()
            && at_owner(snapshot, (zone, owner), RecordType::TXT).is_some()
    });
    if is_below {
        Lookup::NxDomain { zone }
    } else {
        found
    }
}

/// Says what stands at a challenge's owner name; `None` where nothing does.
fn at_owner<'a>(
    snapshot: &'a Snapshot,
    (zone, owner): (ZoneIndex, NameRef<'_>),
    qtype: RecordType,
) -> Option<Lookup<'a>> {
    if let Some(challenges) = snapshot.challenges().get(owner) {
        // A CNAME stands alone (RFC 1034 section 3.6.2), so there is none while there is a challenge.
        return Some(match qtype {
            RecordType::TXT => Lookup::Challenge {
                zone,
                rrset: Some(challenges),
            },
            RecordType::ANY => Lookup::Any { zone, node: None },
            _ => Lookup::NoData { zone },
        });
    }
    target(snapshot, zone, owner)?;
    Some(Lookup::Challenge { zone, rrset: None })
}

/// Makes the target of the CNAME of a steered name's challenge; `None` where the zone has none, the name is not steered, or the
/// target would have more than 255 octets.
fn target(snapshot: &Snapshot, index: ZoneIndex, owner: NameRef<'_>) -> Option<NameBuf> {
    let zone = snapshot.zones().get(index)?;
    let acme = zone.acme()?;
    let name = owner.parent()?;
    let is_ours = |found: Found| found.zone == index && found.service.is_some();
    let is_steered = |name: NameRef<'_>| snapshot.names().find(name).is_some_and(is_ours);
    let has_wildcard = || {
        let star = NameBuf::joined(b"\x01*", name);
        star.is_some_and(|star| is_steered(star.name()))
    };
    if is_steered(name)
        || has_wildcard()
        || synthesized_service(snapshot, name, RecordType::A).is_some()
    {
        NameBuf::joined(acme.labels(name, zone.apex().as_ref())?, acme.below())
    } else {
        None
    }
}

impl<W: Witness> Solver<'_, '_, W> {
    /// Writes the CNAME of a steered name's challenge, whatever type is asked for, and goes on at its target. It is the same for
    /// every client (RFC 7871 section 7.4: scope 0).
    #[cold]
    pub(super) fn challenge(&mut self, link: Link<'_>, zone: ZoneIndex) -> Option<Next> {
        let target = target(self.snapshot, zone, link.name);
        let Some((target, zone)) = target.zip(self.zone(zone)) else {
            self.broken();
            return None;
        };
        self.alias(link, target.name(), zone.ttl())
    }
}

/// Tells whether a node that has this snapshot answers a question for the challenge of a name with this token. `owner` is where it is
/// looked for.
#[must_use]
pub fn has_challenge(snapshot: &Snapshot, owner: &LowerName, token: &str) -> bool {
    let (name, qtype) = (owner.as_ref(), RecordType::TXT);
    let exact = snapshot.names().find(name);
    let found = lookup(snapshot.names(), snapshot.zones(), name, qtype, exact);
    let is_free = exact.is_none_or(|exact| exact.is_empty_non_terminal());
    let challenges = match amend(snapshot, (name, qtype), found) {
        Lookup::Challenge { rrset, .. } if is_free => rrset,
        _ => None,
    };
    let mut challenges = challenges.into_iter().flat_map(|rrset| rrset.iter());
    challenges.any(|rdata| rdata.wire().get(1..) == Some(token.as_bytes()))
}
