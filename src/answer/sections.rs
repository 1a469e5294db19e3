//! Which section holds what: the answer with its chain of names, then authority.

use std::net::IpAddr;

use super::apart;
use super::challenges;
use super::draws::Draws;
use super::encode::{Full, Owner, Place, Writer};
use super::key::NameBuf;
use super::reply::{ExtendedError, Rcode, Reply, Section};
use super::stages::{Ahead, Client};
use super::wire::QUESTION_NAME;
use super::witness::Witness;
use crate::model::{NameRef, RecordType, Ttl, ZoneIndex};
use crate::snapshot::Snapshot;
use crate::telemetry::Counters;
use crate::zone::{Cut, Found, Lookup, Rrset, Zone, lookup};

/// The longest chain of CNAME and DNAME that is followed.
const MAX_LINKS: usize = 16;
/// RDATA of the HINFO that answers ANY (RFC 8482 section 4.2): CPU `RFC8482`, OS empty.
const ANY_HINFO: &[u8] = b"\x07RFC8482\x00";

/// Solves one query into a reply.
pub(super) struct Solver<'a, 'b, W> {
    /// Everything that may be read.
    pub(super) snapshot: &'a Snapshot,
    /// The type asked for.
    pub(super) qtype: RecordType,
    /// The packet's source.
    pub(super) sender: &'a IpAddr,
    /// Whom it is for.
    pub(super) client: &'a Client,
    /// What was read ahead for the question's own name.
    pub(super) ahead: Option<&'a Ahead<'a>>,
    /// The worker's counters of draws.
    pub(super) draws: &'a mut Draws,
    /// The worker's counters.
    pub(super) counters: &'a Counters,
    /// Who watches.
    pub(super) witness: &'a mut W,
    /// What is being written.
    pub(super) reply: &'a mut Reply<'b>,
    /// Links of the chain behind us.
    pub(super) links: usize,
}

/// A name of the chain.
#[derive(Clone, Copy)]
pub(super) struct Link<'n> {
    /// In lower case.
    pub(super) name: NameRef<'n>,
    /// As an owner name.
    pub(super) owner: Owner<'n>,
}

/// The next name of the chain.
pub(super) struct Next {
    name: NameBuf,
    place: Place,
}

impl Next {
    /// Makes the next link of the target of a CNAME and the place where it was written.
    pub(super) fn new(name: NameRef<'_>, place: Place) -> Self {
        Self {
            name: NameBuf::lowered(name),
            place,
        }
    }
}

impl<'a, W: Witness> Solver<'a, '_, W> {
    /// Looks up the question's name and follows the chain that begins there.
    #[inline]
    pub(super) fn solve(mut self, name: NameRef<'_>, exact: Option<Found>) {
        let owner = Owner::QUESTION;
        let next = self.look_up(Link { name, owner }, exact);
        if let Some(next) = next {
            self.follow(name, next);
        }
    }

    /// Follows a chain to its end: data, a negative, a name outside our zones, a name met before, or too many links.
    #[cold]
    fn follow(&mut self, asked: NameRef<'_>, first: Next) {
        let names = self.snapshot.names();
        // Hashes of the chain's names, and where they stand: names that share their first hundred labels are told apart at
        // once. Slots not filled name the question, which is one of them.
        let mut seen = [(names.hash(asked), QUESTION_NAME); MAX_LINKS + 1];
        let mut next = first;
        for count in 1..=MAX_LINKS {
            let name = next.name.name();
            let hash = names.hash(name);
            let writer = self.reply.writer();
            let mut met = seen.iter().take(count);
            if met.any(|&(other, offset)| other == hash && writer.is_name_at(offset, name)) {
                return;
            }
            if let (Some(slot), Some(place)) = (seen.get_mut(count), next.place) {
                *slot = (hash, place);
            }
            self.links = count;
            let candidate = names.candidate(hash, name.as_wire().len());
            let exact = names.confirm(hash, candidate, name);
            let exact = exact.map(|(found, _)| found);
            let owner = next.place.map_or(Owner::Name(name), Owner::At);
            match self.look_up(Link { name, owner }, exact) {
                Some(link) => next = link,
                None => return,
            }
        }
    }

    /// Looks up one name and writes what is there; gives the next name of the chain.
    #[inline]
    fn look_up(&mut self, link: Link<'_>, exact: Option<Found>) -> Option<Next> {
        let snapshot = self.snapshot;
        let found = lookup(
            snapshot.names(),
            snapshot.zones(),
            link.name,
            self.qtype,
            exact,
        );
        // Of what stands at a name itself nothing is amended: that is the way of nearly all queries.
        let found = if exact.is_none_or(|exact| exact.is_empty_non_terminal()) {
            let found = challenges::amend(snapshot, (link.name, self.qtype), found);
            apart::amend(snapshot, (link.name, self.qtype), exact, found)
        } else {
            found
        };
        self.witness.looked_up(link.name, &found);
        // AA speaks for the first name of the chain (RFC 1035 section 4.1.1).
        if self.links == 0 {
            let ours = !matches!(found, Lookup::NotOurs | Lookup::Referral { .. });
            self.reply.facts.authoritative = ours;
            if let Some(zone) = found.zone() {
                self.reply.facts.zone = snapshot.zone_slot(zone);
            }
        }
        if let Lookup::Steered { zone, service, .. } = found {
            return self.steered(link, zone, service);
        }
        self.static_data(link, found)
    }

    /// Writes static data, a referral or a negative.
    fn static_data(&mut self, link: Link<'_>, found: Lookup<'a>) -> Option<Next> {
        match found {
            Lookup::NotOurs if self.links == 0 => {
                self.reply.facts.rcode = Rcode::Refused;
                self.reply.facts.error = Some(ExtendedError::NotAuthoritative);
            }
            // A chain may leave our zones: the resolver goes on by itself. Steered names are handled before.
            Lookup::NotOurs | Lookup::Steered { .. } => {}
            Lookup::Rrset { rrset, .. } => self.answer(link, rrset),
            Lookup::Cname { rrset, .. } => return self.cname(link, rrset),
            Lookup::Dname {
                rrset,
                owner_labels,
                ..
            } => return self.dname(link, rrset, owner_labels),
            Lookup::Referral {
                cut, owner_labels, ..
            } => self.referral(cut, last_labels(link.name, owner_labels)),
            Lookup::Ds {
                rrset: Some(ds), ..
            } => self.answer(link, ds),
            Lookup::Any { zone, .. } => self.any(link, zone),
            Lookup::Challenge {
                rrset: Some(challenge),
                ..
            } => self.answer(link, challenge),
            Lookup::Level {
                zone,
                service,
                area,
            } => return self.leveled(link, (zone, service), area),
            Lookup::Port {
                zone,
                service,
                number,
            } => self.port(link, (zone, service), number),
            Lookup::Host { zone, service } => return self.host(link, (zone, service)),
            Lookup::Challenge { zone, rrset: None } => return self.challenge(link, zone),
            Lookup::Ds { zone, rrset: None } | Lookup::NoData { zone } => {
                self.negative(zone, Rcode::NoError, Ttl::MAX);
            }
            Lookup::NxDomain { zone } => self.negative(zone, Rcode::NxDomain, Ttl::MAX),
        }
        None
    }

    /// Writes the RRset asked for, and addresses of the names in it where they fit.
    fn answer(&mut self, link: Link<'_>, rrset: &'a Rrset) {
        // A chain may have come here by way of the DNAME that was asked for.
        if self.links > 0 && self.qtype == RecordType::DNAME && self.has_dname(link.name) {
            return;
        }
        let written = self.must_add_rrset(Section::Answer, link.owner, rrset);
        if written {
            self.additional(link.name, rrset);
        }
    }

    /// Adds an RRset that belongs here, with its own TTL; tells whether it fitted.
    pub(super) fn must_add_rrset(
        &mut self,
        section: Section,
        owner: Owner<'_>,
        rrset: &Rrset,
    ) -> bool {
        let written = self.reply.must_add(section, |writer| {
            Ok((writer.rrset(owner, rrset, rrset.ttl())?, ()))
        });
        written.is_some()
    }

    /// Writes a static CNAME and goes on at its target (RFC 1034 section 4.3.2).
    fn cname(&mut self, link: Link<'_>, rrset: &Rrset) -> Option<Next> {
        let rdata = rrset.iter().next()?;
        let target = NameRef::from_wire(rdata.wire()).ok()?;
        self.alias(link, target, rrset.ttl())
    }

    /// Writes a CNAME record and gives the next link, unless the CNAME itself was asked for, by its type or by ANY.
    pub(super) fn alias(&mut self, link: Link<'_>, target: NameRef<'_>, ttl: Ttl) -> Option<Next> {
        let place = self.reply.must_add(Section::Answer, |writer| {
            Ok((1, writer.cname(link.owner, target, ttl)?))
        })?;
        let is_asked_for = matches!(self.qtype, RecordType::CNAME | RecordType::ANY);
        (!is_asked_for).then(|| Next::new(target, place))
    }

    /// Tells whether a DNAME is written already: an RRset stands in an answer once (RFC 2181 section 5).
    #[cold]
    fn has_dname(&mut self, owner: NameRef<'_>) -> bool {
        self.reply.writer().has_record(owner, RecordType::DNAME)
    }

    /// Writes a DNAME and the CNAME made of it, with the DNAME's TTL (RFC 6672 section 3.1). A name that grows above 255 octets
    /// is YXDOMAIN (section 2.2).
    fn dname(&mut self, link: Link<'_>, rrset: &Rrset, owner_labels: usize) -> Option<Next> {
        let owner = last_labels(link.name, owner_labels);
        let rdata = rrset.iter().next()?;
        let target = NameRef::from_wire(rdata.wire()).ok()?;
        // A chain may pass the same DNAME again.
        let is_written = self.links > 0 && self.has_dname(owner);
        if !is_written && !self.must_add_rrset(Section::Answer, Owner::Name(owner), rrset) {
            return None;
        }
        let front = link.name.as_wire().len() - owner.as_wire().len();
        let labels = link.name.as_wire().get(..front)?;
        match NameBuf::joined(labels, target) {
            Some(name) => self.alias(link, name.name(), rrset.ttl()),
            None => {
                self.reply.facts.rcode = Rcode::YxDomain;
                None
            }
        }
    }

    /// Writes a referral: NS in authority without AA, and glue. Glue of name servers below the cut belongs there (RFC 9471
    /// section 3.1); that of their siblings goes in where it fits.
    fn referral(&mut self, cut: &Cut, owner: NameRef<'_>) {
        self.reply.facts.referral = self.links == 0;
        if !self.must_add_rrset(Section::Authority, Owner::Name(owner), &cut.ns) {
            return;
        }
        let below = |name: NameRef<'_>| name.is_at_or_below(owner);
        for (name, glue) in cut.glue.iter().filter(|(name, _)| below(name.as_ref())) {
            let owner = Owner::Name(name.as_ref());
            if !self.must_add_rrset(Section::Additional, owner, glue) {
                return;
            }
        }
        for (name, glue) in cut.glue.iter().filter(|(name, _)| !below(name.as_ref())) {
            self.may_add_rrset(name.as_ref(), glue);
        }
    }

    /// Adds an RRset to the additional section if it fits; tells whether it did.
    pub(super) fn may_add_rrset(&mut self, owner: NameRef<'_>, rrset: &Rrset) -> bool {
        let write = |writer: &mut Writer<'_>| -> Result<(u16, ()), Full> {
            let count = writer.rrset(Owner::Name(owner), rrset, rrset.ttl())?;
            Ok((count, ()))
        };
        self.reply.add(Section::Additional, write).is_ok()
    }

    /// Answers ANY at a name that exists with one HINFO, over every transport (RFC 8482 section 4.2). Where a CNAME stands, that
    /// is the answer instead, and not followed: the same section leaves HINFO to owners without one.
    pub(super) fn any(&mut self, link: Link<'_>, zone: ZoneIndex) {
        let Some(zone) = self.zone(zone) else {
            return self.broken();
        };
        let ttl = zone.negative_ttl();
        self.reply.must_add(Section::Answer, |writer| {
            writer.plain_record(link.owner, RecordType::HINFO, ttl, ANY_HINFO)?;
            Ok((1, ()))
        });
    }

    /// Writes a negative: the SOA in authority with the zone's negative TTL (RFC 2308 sections 3 and 5), at most `cap`.
    pub(super) fn negative(&mut self, zone: ZoneIndex, rcode: Rcode, cap: Ttl) {
        self.reply.facts.rcode = rcode;
        let Some(zone) = self.zone(zone) else {
            return self.broken();
        };
        let ttl = zone.negative_ttl().min(cap);
        let owner = Owner::Name(zone.apex().as_ref());
        self.reply.must_add(Section::Authority, |writer| {
            Ok((writer.rrset(owner, zone.soa(), ttl)?, ()))
        });
    }

    /// Gives a zone.
    pub(super) fn zone(&self, index: ZoneIndex) -> Option<&'a Zone> {
        self.snapshot.zones().get(index).map(AsRef::as_ref)
    }

    /// Says SERVFAIL: the snapshot names something that it does not have, which its builder rules out.
    #[cold]
    pub(super) fn broken(&mut self) {
        self.reply.facts.rcode = Rcode::ServFail;
    }
}

/// Gives the name made of the last `count` labels.
fn last_labels(name: NameRef<'_>, count: usize) -> NameRef<'_> {
    let surplus = name.label_count().saturating_sub(count);
    let mut suffixes = std::iter::successors(Some(name), |name| name.parent());
    suffixes.nth(surplus).unwrap_or(NameRef::ROOT)
}
