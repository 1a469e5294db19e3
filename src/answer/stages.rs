//! A lookup in stages, so that a batch's cache misses overlap.

use std::net::IpAddr;

use super::draws::Draws;
use super::edns::Keepalive;
use super::key::Key;
use super::query::{Query, QueryError, Remains};
use super::reply::{self, ExtendedError, Facts, Rcode, Reply};
use super::sections::Solver;
use super::tsig::bad_key;
use super::witness::Witness;
use crate::model::{ClientSubnet, PrefixLen, RecordType};
use crate::prefix::prefetch;
use crate::snapshot::{Candidate, NameHash, ServiceSlot, Snapshot, Steering};
use crate::steering::{Class, ClassId};
use crate::telemetry::{Count, Counters};
use crate::zone::Found;

/// How a query came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Datagrams: replies are bounded and may be truncated.
    Udp,
    /// A stream: up to 65535 octets.
    Tcp,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The source address, canonical (IPv4-mapped is IPv4); from the PROXY header where one was accepted.
    pub address: IpAddr,
    /// How.
    pub transport: Transport,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A reply of this many octets stands in the buffer.
    Reply(usize),
    /// No reply.
    Drop,
    /// Not for us: an opcode other than QUERY goes to the rare lane.
    Rare,
}

/// Where the client's place comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaceFrom {
    /// The sender's address.
    Sender,
    /// The option Client Subnet.
    Ecs,
}

/// Whom the answer is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    /// The network.
    pub(super) subnet: ClientSubnet,
    /// Where it comes from.
    pub(super) from: PlaceFrom,
    /// Bits that the option's network has before ours: 96 where it wrote IPv4 inside IPv6.
    pub(super) offset: u8,
}

impl Client {
    /// Takes a network at its word: what `explain` was asked about.
    pub(super) fn given(subnet: ClientSubnet) -> Self {
        Self {
            subnet,
            from: PlaceFrom::Ecs,
            offset: 0,
        }
    }

    /// Takes the network of a believed option, else the sender's address (RFC 7871 section 7.1.2).
    #[inline]
    fn of(query: &Query<'_>, sender: Sender, snapshot: &Snapshot) -> Self {
        let ecs = query.edns().and_then(|edns| edns.ecs.as_ref());
        match ecs {
            Some(ecs) if snapshot.settings().ecs_trust.allows(sender.address) => {
                let offset = ecs.offset();
                match ecs.subnet() {
                    Some(subnet) => Self {
                        subnet,
                        from: PlaceFrom::Ecs,
                        offset,
                    },
                    None => Self {
                        offset,
                        ..Self::host(sender.address)
                    },
                }
            }
            _ => Self::host(sender.address),
        }
    }

    /// Takes the sender itself.
    fn host(address: IpAddr) -> Self {
        Self {
            subnet: ClientSubnet::host(address),
            from: PlaceFrom::Sender,
            offset: 0,
        }
    }
}

/// How far a lookup has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The slot of the name's hash was hinted at.
    Hashed,
    /// The record was hinted at.
    Probed,
    /// The name is confirmed, its service hinted at.
    Found,
    /// The index of places is hinted at.
    Indexed,
    /// The client's place is hinted at.
    Placed,
    /// Nothing left to fetch.
    Ready,
}

/// One query between its stages. A batch calls `begin` for all, then `advance` for all [`Self::ROUNDS`] times, then `finish`
/// for each. Fewer rounds give the same replies, only later.
///
/// Small, so that a batch stays in the nearest cache: what is cheap to make again (a name in lower case, the client's
/// network) is made again where it is needed.
#[derive(Clone, Copy, Debug)]
pub struct Lookup<'p> {
    /// The query, or what is wrong and the packet.
    query: Result<Query<'p>, (QueryError, &'p [u8])>,
    sender: Sender,
    /// The name has no upper-case letter: the packet's octets are the key.
    lower: bool,
    hash: NameHash,
    candidate: Option<Candidate>,
    found: Option<Found>,
    /// The client's class under the service's policy, once it was looked up.
    class: Option<(ClassId, PrefixLen)>,
    step: Step,
}

impl<'p> Lookup<'p> {
    /// Rounds of [`Self::advance`] that pay: record, service, the index of places, the client's place, the endpoints. Each is one
    /// cache miss.
    pub const ROUNDS: usize = 5;

    /// Parses, hashes the name, hints at the slot.
    #[must_use]
    #[inline]
    pub fn begin(snapshot: &Snapshot, packet: &'p [u8], sender: Sender) -> Self {
        let mut lookup = Self {
            query: Query::parse(packet).map_err(|error| (error, packet)),
            sender,
            lower: true,
            hash: NameHash(0),
            candidate: None,
            found: None,
            class: None,
            step: Step::Ready,
        };
        if let Ok(query) = &lookup.query {
            let key = Key::new(query.name());
            lookup.lower = matches!(key, Key::AsAsked(_));
            lookup.hash = snapshot.names().hash(key.name());
            lookup.step = Step::Hashed;
            snapshot.names().prefetch(lookup.hash);
        }
        lookup
    }

    /// Begins with a message that was cut off on its way: FORMERR, whatever is left of it says.
    #[must_use]
    #[cold]
    pub fn begin_cut(packet: &'p [u8], sender: Sender) -> Self {
        let error = Query::parse(packet).err();
        Self {
            query: Err((error.unwrap_or(QueryError::Malformed), packet)),
            sender,
            lower: true,
            hash: NameHash(0),
            candidate: None,
            found: None,
            class: None,
            step: Step::Ready,
        }
    }

    /// Takes one step: reads what the last one hinted at, hints at what comes next.
    #[inline]
    pub fn advance(&mut self, snapshot: &Snapshot) {
        match self.step {
            Step::Hashed => {
                self.candidate = snapshot.names().candidate(self.hash);
                self.step = Step::Probed;
            }
            Step::Probed => {
                self.step = Step::Ready;
                if let Ok(query) = &self.query {
                    let key = Key::known(query.name(), self.lower);
                    let names = snapshot.names();
                    self.found = names.confirm(self.hash, self.candidate, key.name());
                }
                if let Some(service) = self.found.and_then(|found| found.service) {
                    snapshot.prefetch_service(service);
                    self.step = Step::Found;
                }
            }
            Step::Found => {
                self.step = Step::Indexed;
                if let Some((_, steering, client)) = self.service(snapshot) {
                    steering.classes.prefetch(client.subnet.address);
                }
            }
            Step::Indexed => {
                self.step = Step::Placed;
                if let Some((_, steering, client)) = self.service(snapshot) {
                    steering.classes.prefetch_runs(client.subnet.address);
                }
            }
            Step::Placed => {
                self.step = Step::Ready;
                self.place(snapshot);
            }
            Step::Ready => {}
        }
    }

    /// Looks up the client's class, and hints at the endpoints of the cluster that comes first for it.
    #[inline]
    fn place(&mut self, snapshot: &Snapshot) {
        if let Some((slot, steering, client)) = self.service(snapshot) {
            let (class, scope) = steering.classes.locate(client.subnet.address);
            self.class = Some((class, scope));
            let first = steering.classes.get(class).and_then(Class::first);
            let octets = slot.pools.as_bytes();
            prefetch(octets, slot.pools.start(first.unwrap_or(0).into()));
        }
    }

    /// Gives the service found, its policy, and whom the answer is for.
    #[inline]
    fn service<'s>(
        &self,
        snapshot: &'s Snapshot,
    ) -> Option<(&'s ServiceSlot, &'s Steering, Client)> {
        let slot = snapshot.service(self.found?.service?)?;
        let steering = snapshot.steering(slot.policy)?;
        let query = self.query.as_ref().ok()?;
        Some((slot, steering, Client::of(query, self.sender, snapshot)))
    }

    /// Decides and writes the reply into `out`. `counters` and `draws` are the worker's own.
    #[inline]
    pub fn finish(
        &mut self,
        snapshot: &Snapshot,
        out: &mut [u8],
        draws: &mut Draws,
        counters: &Counters,
    ) -> Outcome {
        self.finish_before(snapshot, out, (draws, counters), &mut ())
    }

    /// Finishes before a witness.
    #[inline]
    pub(super) fn finish_before<W: Witness>(
        &mut self,
        snapshot: &Snapshot,
        out: &mut [u8],
        (draws, counters): (&mut Draws, &Counters),
        witness: &mut W,
    ) -> Outcome {
        // What is left to find; hints would come too late now.
        while matches!(self.step, Step::Hashed | Step::Probed) {
            self.advance(snapshot);
        }
        let query = match &self.query {
            Ok(query) => query,
            Err(error) => return self.unanswerable(*error, snapshot, out, counters),
        };
        let (client, class) = match witness.client() {
            Some(client) => (client, None),
            None => (Client::of(query, self.sender, snapshot), self.class),
        };
        self.count_query(counters);
        if client.from == PlaceFrom::Ecs {
            counters.bump(Count::Ecs);
        }
        let settings = snapshot.settings();
        let transport = self.sender.transport;
        let Ok(mut reply) = Reply::begin(query, transport, settings, out) else {
            return Outcome::Drop;
        };
        if let Some((rcode, error)) = refusal(query, transport) {
            reply.facts.rcode = rcode;
            reply.facts.error = error;
        } else {
            let solver = Solver {
                snapshot,
                qtype: query.qtype(),
                sender: self.sender.address,
                client,
                class,
                draws,
                counters,
                witness,
                reply: &mut reply,
                links: 0,
            };
            solver.solve(Key::known(query.name(), self.lower).name(), self.found);
        }
        count_reply(reply.facts, reply.answers(), counters);
        Outcome::Reply(reply.end(query, transport, settings))
    }

    /// Handles what is no query.
    #[cold]
    fn unanswerable(
        &self,
        (error, packet): (QueryError, &[u8]),
        snapshot: &Snapshot,
        out: &mut [u8],
        counters: &Counters,
    ) -> Outcome {
        match error {
            QueryError::Drop => {
                counters.bump(Count::DroppedPacket);
                Outcome::Drop
            }
            QueryError::Rare => {
                self.count_query(counters);
                Outcome::Rare
            }
            QueryError::Malformed => {
                self.count_query(counters);
                counters.bump(Count::FormErr);
                let remains = Remains::read(packet);
                let length =
                    reply::form_error(remains.head, remains.edns, snapshot.settings(), out);
                length.map_or(Outcome::Drop, Outcome::Reply)
            }
        }
    }

    /// Counts a query.
    #[inline]
    fn count_query(&self, counters: &Counters) {
        counters.bump(match self.sender.transport {
            Transport::Udp => Count::QueriesUdp,
            Transport::Tcp => Count::QueriesTcp,
        });
    }
}

/// Tells what a query gets that no zone needs to be asked for; `None`: it is ordinary.
///
/// A signed query gets NOTAUTH: we know no key (RFC 8945 section 5.2.1); FORMERR where its TSIG cannot be read. Classes but IN are REFUSED, and so are transfers.
/// Meta types that nobody may ask for are FORMERR, the obsolete mail queries NOTIMP (RFC 8906 section 3.1.4, RFC 9824
/// section 3.5).
#[inline]
fn refusal(query: &Query<'_>, transport: Transport) -> Option<(Rcode, Option<ExtendedError>)> {
    if let Some(edns) = query.edns() {
        if edns.version > 0 {
            return Some((Rcode::BadVers, None));
        }
        // RFC 7828 section 3.2.1: over UDP the option means nothing.
        if transport == Transport::Tcp && edns.keepalive == Keepalive::Malformed {
            return Some((Rcode::FormErr, None));
        }
    }
    if query.is_signed() {
        let is_sound = bad_key(query.packet()).is_some();
        let rcode = if is_sound {
            Rcode::NotAuth
        } else {
            Rcode::FormErr
        };
        return Some((rcode, None));
    }
    if !query.is_internet() {
        return Some((Rcode::Refused, None));
    }
    match query.qtype() {
        qtype if !qtype.is_meta() => None,
        RecordType::ANY => None,
        RecordType::AXFR | RecordType::IXFR => Some((Rcode::Refused, None)),
        RecordType::MAILA | RecordType::MAILB => Some((Rcode::NotImp, None)),
        RecordType::NXNAME => Some((Rcode::FormErr, Some(ExtendedError::InvalidQueryType))),
        _ => Some((Rcode::FormErr, None)),
    }
}

/// Counts a reply.
#[inline]
fn count_reply(facts: Facts, answers: u16, counters: &Counters) {
    counters.bump(match facts.rcode {
        Rcode::NoError if facts.referral => Count::Referral,
        Rcode::NoError if answers == 0 && !facts.truncated => Count::NoData,
        Rcode::NoError => Count::NoError,
        Rcode::FormErr => Count::FormErr,
        Rcode::ServFail => Count::ServFail,
        Rcode::NxDomain => Count::NxDomain,
        Rcode::NotImp => Count::NotImp,
        Rcode::Refused => Count::Refused,
        Rcode::YxDomain => Count::YxDomain,
        Rcode::NotAuth => Count::NotAuth,
        Rcode::BadVers => Count::BadVers,
    });
    if facts.truncated {
        counters.bump(Count::Truncated);
    }
}

/// Answers one packet: the stages in a row.
pub fn answer(
    snapshot: &Snapshot,
    packet: &[u8],
    sender: Sender,
    out: &mut [u8],
    worker: (&mut Draws, &Counters),
) -> Outcome {
    worker.0.fit(snapshot);
    let mut lookup = Lookup::begin(snapshot, packet, sender);
    lookup.finish(snapshot, out, worker.0, worker.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_takes_few_cache_lines() {
        assert!(
            size_of::<Lookup<'_>>() <= 160,
            "{}",
            size_of::<Lookup<'_>>()
        );
    }
}
