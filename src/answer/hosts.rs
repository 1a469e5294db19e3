//! Names of endpoints of headless services in cluster sets: `<label>.<cluster>` below a service's own name, and the SRV of their
//! ports, one for each endpoint that the client may have (KEP-1645).
//!
//! They stand in no table: a name that is not found, or is an empty non-terminal, is taken apart here. Static records, zone cuts and
//! wildcards go first.

use std::net::IpAddr;

use super::apart;
use super::key::NameBuf;
use super::ports;
use super::reply::{ExtendedError, Section};
use super::sections::{Link, Next, Solver};
use super::steered::{Parts, Site, view_of};
use super::witness::Witness;
use crate::model::{
    Carrier, HeadlessEndpoint, NameRef, NamedPort, RecordType, ServiceIndex, Ttl, ZoneIndex,
};
use crate::snapshot::{AtHost, HostNames, HostsOf, Snapshot};
use crate::steering::{Ask, Chosen, ClientView, Decision, Family, Level};
use crate::zone::Lookup;

/// Records of one answer, at most.
const MAX_RECORDS: usize = 32;
/// The families, in the order in which they are looked at.
const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

/// Gives what stands at the name of an endpoint; `None`: it is none.
pub(super) fn at<'a>(
    snapshot: &Snapshot,
    zone: ZoneIndex,
    (name, qtype): (NameRef<'_>, RecordType),
) -> Option<Lookup<'a>> {
    Some(match snapshot.at_host(zone, name)? {
        AtHost::Endpoints {
            service, is_cname, ..
        } if apart::is_answered(is_cname, qtype) => Lookup::Host { zone, service },
        _ => apart::without(zone, qtype),
    })
}

/// A port as it is asked for.
#[derive(Clone, Copy)]
pub(super) struct AskedPort<'n> {
    /// Its name, in lower case.
    pub(super) label: &'n [u8],
    pub(super) carrier: Carrier,
    /// Its number at the service itself.
    pub(super) number: u16,
    /// The service's own name.
    pub(super) owner: NameRef<'n>,
}

/// One record of SRV.
#[derive(Clone, Copy)]
struct Srv<'a> {
    /// The endpoint that it is of; `None`: the service itself.
    target: Option<(&'a HeadlessEndpoint, &'a HostsOf)>,
    number: u16,
}

impl Srv<'_> {
    /// Tells whether another one says the same.
    fn is_same(&self, other: &Self) -> bool {
        let is_same_target = match (self.target, other.target) {
            (Some((one, hosts)), Some((another, others))) => {
                one.label == another.label && hosts.cluster == others.cluster
            }
            (None, None) => true,
            _ => false,
        };
        self.number == other.number && is_same_target
    }

    /// Makes its target.
    fn target(&self, owner: NameRef<'_>) -> Option<NameBuf> {
        let Some((endpoint, hosts)) = self.target else {
            return NameBuf::joined(&[], owner);
        };
        let mut above = NameBuf::joined(&[], owner)?;
        for label in [hosts.label.as_ref()?, &endpoint.label] {
            let text = label.as_str().as_bytes();
            let mut wire = [0; 64];
            let (length, rest) = wire.split_first_mut()?;
            *length = u8::try_from(text.len()).ok()?;
            rest.get_mut(..text.len())?.copy_from_slice(text);
            above = NameBuf::joined(wire.get(..=text.len())?, above.name())?;
        }
        Some(above)
    }
}

/// The records of one answer, each once, as far as there is room.
struct Records<'a> {
    all: [Option<Srv<'a>>; MAX_RECORDS],
    count: usize,
}

impl<'a> Records<'a> {
    /// Begins.
    fn new() -> Self {
        Self {
            all: [None; MAX_RECORDS],
            count: 0,
        }
    }

    /// Iterates over them.
    fn iter(&self) -> impl Iterator<Item = &Srv<'a>> {
        self.all.iter().flatten()
    }

    /// Adds one.
    fn add(&mut self, record: Srv<'a>) {
        if self.iter().any(|other| other.is_same(&record)) {
            return;
        }
        if let Some(slot) = self.all.get_mut(self.count) {
            *slot = Some(record);
            self.count += 1;
        }
    }
}

impl<'a, W: Witness> Solver<'a, '_, W> {
    /// Writes the addresses of the endpoints of a name, as far as the client may have them.
    #[cold]
    pub(super) fn host(
        &mut self,
        link: Link<'_>,
        (zone, service): (ZoneIndex, ServiceIndex),
    ) -> Option<Next> {
        let snapshot = self.snapshot;
        let family = self.family();
        let found = snapshot.at_host(zone, link.name);
        let draw = self.draws.scattered();
        let (
            Some(AtHost::Endpoints {
                cluster, endpoints, ..
            }),
            Some((parts @ (_, _, steering), ask)),
        ) = (found, self.ask((service, family), draw))
        else {
            self.broken();
            return None;
        };
        let is_meant = |address: IpAddr| endpoints.iter().any(|one| one.address == address);
        let mut ranks = (0..=u8::MAX).zip(ask.service.pools.clusters());
        let rank = ranks.find(|(_, of)| *of == cluster).map(|(rank, _)| rank);
        let (policy, states) = (&steering.policy, snapshot.usable());
        let decision = policy.select_named(&ask, (rank, is_meant), states);
        let site = self.decided((link, zone), (parts, &ask), &decision, None)?;
        if decision.reason.level != Level::Up && self.names_endpoints(&decision) {
            self.counters.note_resort(service);
        }
        match decision.chosen {
            Chosen::Cluster { .. } if self.wants_addresses() => {
                let all = policy.named(&decision, &ask, (is_meant, states));
                self.write_endpoints(&site, all.take(MAX_RECORDS));
                None
            }
            chosen => self.write_other(&site, chosen),
        }
    }

    /// Writes the SRV of a port of a headless service: one for each endpoint that the client would be answered with, and one with the
    /// service's own name where it would be answered with anything else. Priority and weight are 0.
    #[cold]
    pub(super) fn port_of_hosts(
        &mut self,
        (link, zone): (Link<'_>, ZoneIndex),
        (service, hosts): (ServiceIndex, &'a HostNames),
        port: AskedPort<'_>,
    ) {
        let mut records = Records::new();
        let mut decided: Option<(Site<'a, '_>, bool)> = None;
        let mut ttl = Ttl::MAX;
        // One draw for both families, so that they are of one cluster; and none of two in turn, which would be every other place of a
        // wheel.
        let draw = self.draws.scattered();
        for family in FAMILIES {
            let Some((parts, ask)) = self.ask((service, family), draw) else {
                return self.broken();
            };
            let (_, _, steering) = parts;
            let decision = steering.policy.select(&ask, self.snapshot.usable());
            let before = records.count;
            self.srv_of((&parts, &ask, &decision), hosts, port, &mut records);
            let is_denied = decision.chosen == Chosen::Denied;
            // One decision is told: the first that gives something.
            if decided.is_none() || (before == 0 && records.count > 0) {
                let site = self.decided((link, zone), (parts, &ask), &decision, None);
                decided = site.map(|site| (site, is_denied));
            }
            if decision.brief {
                ttl = ttl.min(Ttl::BRIEF);
            }
        }
        let Some((site, is_denied)) = decided else {
            return;
        };
        if records.count == 0 {
            return self.nothing(&site, is_denied.then_some(ExtendedError::Prohibited));
        }
        let ttl = ttl.min(site.ttl);
        self.reply.must_add(Section::Answer, |writer| {
            let mut count = 0;
            for record in records.iter() {
                let Some(target) = record.target(port.owner) else {
                    continue;
                };
                ports::write_srv(writer, (link.owner, ttl), record.number, target.name())?;
                count += 1;
            }
            Ok((count, ()))
        });
    }

    /// Lists the SRV that come of a decision.
    fn srv_of(
        &self,
        (parts, ask, decision): (&Parts<'a>, &Ask<'a>, &Decision<'_>),
        hosts: &'a HostNames,
        port: AskedPort<'_>,
        records: &mut Records<'a>,
    ) {
        let own = Srv {
            target: None,
            number: port.number,
        };
        match decision.chosen {
            Chosen::Cluster { .. } | Chosen::Everything { .. } => {}
            Chosen::Hostname(_) | Chosen::Fallback(_) | Chosen::FenceAnswer(_) => {
                return records.add(own);
            }
            Chosen::Denied | Chosen::OtherFamily | Chosen::Nothing => return,
        }
        let (_, _, steering) = parts;
        for endpoint in steering
            .policy
            .endpoints(decision, ask, self.snapshot.usable())
        {
            let Some(hosts) = hosts.of(endpoint.cluster) else {
                records.add(own);
                continue;
            };
            let all = hosts.endpoints.iter();
            for one in all.filter(|one| one.address == endpoint.address) {
                let is_it = |of: &&NamedPort| {
                    of.carrier == port.carrier && of.name.as_str().as_bytes() == port.label
                };
                let Some(found) = one.ports.iter().find(is_it) else {
                    continue;
                };
                let record = Srv {
                    target: Some((one, hosts)),
                    number: found.number.get(),
                };
                // A cluster whose name is no label, or a name that is too long: it cannot be asked for.
                if record.target(port.owner).is_some() {
                    records.add(record);
                }
            }
        }
    }

    /// Puts a question to a service together.
    fn ask(
        &mut self,
        (service, family): (ServiceIndex, Family),
        draw: u32,
    ) -> Option<(Parts<'a>, Ask<'a>)> {
        let parts = self.parts(service)?;
        let (steered, extras, steering) = parts;
        let (id, scope) = self.locate(&steering.classes, None);
        let ask = Ask {
            service: view_of(steered, extras),
            family,
            client: ClientView {
                sender: self.sender,
                subnet: &self.client.subnet,
                class: steering.classes.get(id)?,
                scope,
                draw,
            },
        };
        Some((parts, ask))
    }
}
