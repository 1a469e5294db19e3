//! A lookup in stages, so that a batch's cache misses overlap.

use std::net::{IpAddr, Ipv4Addr};

use super::draws::Draws;
use super::edns::Keepalive;
use super::key::{NameBuf, has_upper};
use super::query::{Query, QueryError, Remains};
use super::reply::{self, ExtendedError, Facts, Rcode, Reply};
use super::sections::Solver;
use super::tsig::bad_key;
use super::witness::Witness;
use crate::model::{ClientSubnet, NameRef, PrefixLen, RecordType, ZoneSlot};
use crate::prefix::{prefetch, prefetch_pointer};
use crate::snapshot::{Candidate, Extras, NameHash, NameTable, Snapshot, Steered, Steering};
use crate::steering::{Class, ClassId};
use crate::telemetry::{Count, Counters, QueryType, ReplyCode};
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
    #[inline(always)]
    fn of(query: &Query<'_>, sender: Sender, snapshot: &Snapshot) -> Self {
        let ecs = query.edns().and_then(|edns| edns.ecs.as_ref());
        match ecs {
            Some(ecs) if snapshot.settings().ecs_trust.allows(&sender.address) => {
                let offset = ecs.offset();
                match ecs.subnet(query.packet()) {
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
    #[inline]
    fn host(address: IpAddr) -> Self {
        Self {
            subnet: ClientSubnet::host(address),
            from: PlaceFrom::Sender,
            offset: 0,
        }
    }
}

/// What was read ahead of a steered service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead<'a> {
    pub(super) steered: &'a Steered,
    pub(super) extras: Option<&'a Extras>,
    pub(super) steering: &'a Steering,
    /// Whom the answer is for.
    client: Client,
    /// The client's class, and its scope; `None` while it is only hinted at.
    pub(super) class: Option<(ClassId, PrefixLen)>,
}

/// One query between its stages. A batch calls `begin` for all, then [`Self::advance`] with all of them, then `finish` for each.
/// Without `advance` the replies are the same, only later.
///
/// Small, so that a batch stays in the nearest cache: a name in lower case is made again where it is needed.
#[derive(Clone, Copy, Debug)]
pub struct Lookup<'a> {
    /// The query; of a packet that is none, what could not be taken.
    query: Result<Query<'a>, (QueryError, &'a [u8])>,
    sender: Sender,
    /// The name has no upper-case letter: the packet's octets are the key.
    lower: bool,
    /// It was answered by a zone of ours.
    ours: bool,
    hash: NameHash,
    candidate: Option<Candidate>,
    /// What stands at the name; the outer `None`: nobody looked yet.
    found: Option<Option<Found>>,
    ahead: Option<Ahead<'a>>,
}

impl<'a> Lookup<'a> {
    /// Nothing yet.
    const IDLE: Self = Self {
        query: Err((QueryError::Drop, &[])),
        sender: Sender {
            address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            transport: Transport::Udp,
        },
        lower: true,
        ours: false,
        hash: NameHash(0),
        candidate: None,
        found: None,
        ahead: None,
    };

    /// Parses, hashes the name, hints at the slot. Field by field into its place: made elsewhere and moved, it would cost as much
    /// again.
    #[inline(always)]
    pub fn begin<'p>(
        place: &'p mut Option<Self>,
        snapshot: &Snapshot,
        packet: &'a [u8],
        sender: Sender,
    ) -> &'p mut Self {
        let lookup = place.insert(Self::IDLE);
        lookup.sender = sender;
        match Query::parse(packet) {
            Ok(query) => {
                let (names, name) = (snapshot.names(), query.name());
                let lower = !has_upper(name);
                let hash = if lower {
                    names.hash(name)
                } else {
                    hash_lowered(names, name)
                };
                names.prefetch(hash);
                lookup.query = Ok(query);
                lookup.lower = lower;
                lookup.hash = hash;
            }
            Err(error) => lookup.query = Err((error, packet)),
        }
        lookup
    }

    /// Begins with a message that was cut off on its way: FORMERR, whatever is left of it says.
    #[must_use]
    #[cold]
    pub fn begin_cut(packet: &'a [u8], sender: Sender) -> Self {
        let error = Query::parse(packet).err();
        Self {
            query: Err((error.unwrap_or(QueryError::Malformed), packet)),
            sender,
            ..Self::IDLE
        }
    }

    /// Takes a whole batch through the stages: each reads what the last one hinted at, and hints at what comes next, so that the
    /// cache misses of all queries overlap. Each stage is one miss: the slot, the entry with the service, the index of places and
    /// the endpoints, the client's place, the endpoints of the cluster that comes first.
    #[inline]
    pub fn advance(batch: &mut [Option<Self>], snapshot: &'a Snapshot) {
        for lookup in batch.iter_mut().flatten() {
            lookup.probe(snapshot);
        }
        for lookup in batch.iter_mut().flatten() {
            lookup.confirm(snapshot);
        }
        for lookup in batch.iter_mut().flatten() {
            if let Some(ahead) = &lookup.ahead {
                let classes = &ahead.steering.classes;
                classes.prefetch_runs(ahead.client.subnet.address);
            }
        }
        for lookup in batch.iter_mut().flatten() {
            lookup.place();
        }
    }

    /// Reads the slot, hints at the entry.
    #[inline]
    fn probe(&mut self, snapshot: &Snapshot) {
        if let Ok(query) = &self.query {
            let octets = query.name().as_wire().len();
            self.candidate = snapshot.names().candidate(self.hash, octets);
        }
    }

    /// Reads the entry, hints at the index of places and at the head of the endpoints.
    #[inline]
    fn confirm(&mut self, snapshot: &'a Snapshot) {
        let Ok(query) = &self.query else {
            return;
        };
        let names = snapshot.names();
        let found = if self.lower {
            names.confirm(self.hash, self.candidate, query.name())
        } else {
            let key = NameBuf::lowered(query.name());
            names.confirm(self.hash, self.candidate, key.name())
        };
        self.found = Some(found.map(|(found, _)| found));
        let Some((found, steered)) = found else {
            return;
        };
        let (steered, extras) = match (steered, found.service) {
            (Some(steered), _) => (steered, None),
            (None, Some(service)) => match snapshot.service(service) {
                Some(slot) => (&slot.steered, slot.extras.as_deref()),
                None => return,
            },
            (None, None) => return,
        };
        let Some(steering) = snapshot.steering(steered.policy) else {
            return;
        };
        let client = Client::of(query, self.sender, snapshot);
        steering.classes.prefetch(client.subnet.address);
        // Where each cluster's endpoints begin.
        prefetch_pointer(steered.pools.place());
        self.ahead = Some(Ahead {
            steered,
            extras,
            steering,
            client,
            class: None,
        });
    }

    /// Looks up the client's class, and hints at the endpoints of the cluster that comes first for it.
    #[inline]
    fn place(&mut self) {
        if let Some(ahead) = &mut self.ahead {
            let classes = &ahead.steering.classes;
            let (class, scope) = classes.locate(ahead.client.subnet.address);
            ahead.class = Some((class, scope));
            let first = classes.get(class).and_then(Class::first).unwrap_or(0);
            let pools = &ahead.steered.pools;
            let (octets, start) = (pools.as_bytes(), pools.start(first.into()));
            prefetch(octets, start);
            // An address of each family may reach into the next line.
            prefetch(octets, start + 24);
        }
    }

    /// Decides and writes the reply into `out`. `counters` and `draws` are the worker's own.
    #[inline]
    pub fn finish(
        &mut self,
        snapshot: &'a Snapshot,
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
        snapshot: &'a Snapshot,
        out: &mut [u8],
        (draws, counters): (&mut Draws, &Counters),
        witness: &mut W,
    ) -> Outcome {
        if self.found.is_none() {
            self.probe(snapshot);
            self.confirm(snapshot);
        }
        let query = match &self.query {
            Ok(query) => query,
            Err(error) => return self.unanswerable(*error, snapshot, out, counters),
        };
        let given;
        let (client, ahead) = match (witness.client(), &self.ahead) {
            (None, Some(ahead)) => (&ahead.client, Some(ahead)),
            (client, _) => {
                given = client.unwrap_or_else(|| Client::of(query, self.sender, snapshot));
                (&given, None)
            }
        };
        self.count_query(counters);
        if client.from == PlaceFrom::Ecs {
            counters.bump(Count::Ecs);
        }
        let settings = snapshot.settings();
        let transport = self.sender.transport;
        let Ok(limit) = reply::put_question(query, transport, settings, out) else {
            return Outcome::Drop;
        };
        let mut reply = Reply::begin(query, transport, (out, limit));
        if let Some((rcode, error)) = refusal(query, transport) {
            reply.facts.rcode = rcode;
            reply.facts.error = error;
        } else {
            let solver = Solver {
                snapshot,
                qtype: query.qtype(),
                sender: &self.sender.address,
                client,
                ahead,
                draws,
                counters,
                witness,
                reply: &mut reply,
                links: 0,
            };
            let found = self.found.flatten();
            if self.lower {
                solver.solve(query.name(), found);
            } else {
                solver.solve(NameBuf::lowered(query.name()).name(), found);
            }
        }
        let facts = reply.facts;
        self.ours = facts.zone != ZoneSlot::NONE;
        let code = count_reply(facts, reply.answers(), query.qtype(), counters);
        witness.replied(code, &facts);
        Outcome::Reply(reply.end(query, transport, settings))
    }

    /// Gives the query; `None` of what is none.
    pub(super) fn query(&self) -> Option<&Query<'a>> {
        self.query.as_ref().ok()
    }

    /// Gives the network that a query was answered for; `None` unless it was finished and its name lies in a zone of ours.
    pub(super) fn client_of_ours(&self, snapshot: &Snapshot) -> Option<Client> {
        self.client(snapshot).filter(|_| self.ours)
    }

    /// Gives the network that a query is answered for.
    pub(super) fn client(&self, snapshot: &Snapshot) -> Option<Client> {
        let query = self.query()?;
        Some(Client::of(query, self.sender, snapshot))
    }

    /// Gives who sent it.
    pub(super) fn sender(&self) -> Sender {
        self.sender
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
                counters.bump_reply(ZoneSlot::NONE, QueryType::Other, ReplyCode::FormErr);
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

/// Hashes a name that has upper-case letters.
#[cold]
fn hash_lowered(names: &NameTable, name: NameRef<'_>) -> NameHash {
    names.hash(NameBuf::lowered(name).name())
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
        if transport == Transport::Tcp && edns.keepalive() == Keepalive::Malformed {
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

/// Counts a reply; gives what it was counted as.
#[inline]
fn count_reply(facts: Facts, answers: u16, qtype: RecordType, counters: &Counters) -> ReplyCode {
    let code = match facts.rcode {
        Rcode::NoError if facts.referral => ReplyCode::Referral,
        Rcode::NoError if answers == 0 && !facts.truncated => ReplyCode::NoData,
        Rcode::NoError => ReplyCode::NoError,
        Rcode::FormErr => ReplyCode::FormErr,
        Rcode::ServFail => ReplyCode::ServFail,
        Rcode::NxDomain => ReplyCode::NxDomain,
        Rcode::NotImp => ReplyCode::NotImp,
        Rcode::Refused => ReplyCode::Refused,
        Rcode::YxDomain => ReplyCode::YxDomain,
        Rcode::NotAuth => ReplyCode::NotAuth,
        Rcode::BadVers => ReplyCode::BadVers,
    };
    counters.bump_reply(facts.zone, QueryType::of(qtype), code);
    if facts.truncated {
        counters.bump(Count::Truncated);
    }
    code
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
    let mut place = None;
    let lookup = Lookup::begin(&mut place, snapshot, packet, sender);
    lookup.finish(snapshot, out, worker.0, worker.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_takes_few_cache_lines() {
        assert!(
            size_of::<Lookup<'_>>() <= 192,
            "{}",
            size_of::<Lookup<'_>>()
        );
    }
}
