//! A decision in words: the same code path as the packet's.
//!
//! A query is written and answered like any other, with a witness that takes down what was looked up and decided; then the
//! reply is read back. Nothing here decides.

mod rdata;
mod read;
mod recorder;
mod words;

use std::net::IpAddr;

use super::draws::Draws;
use super::query::Query;
use super::stages::{Client, Lookup, Outcome, PlaceFrom, Sender, Transport};
use crate::model::{ClientSubnet, LowerName, NameRef, RecordType, counted};
use crate::snapshot::{EcsTrust, Settings, Snapshot};
use crate::telemetry::Counters;

use recorder::Recorder;

/// Every step of one answer, in words and in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// One line a step, in the order taken: what was looked at and what it gave.
    pub steps: Vec<String>,
    /// The records of the answer section in presentation form; empty for negative replies.
    pub answer: Vec<String>,
    /// The RCODE's mnemonic.
    pub rcode: String,
    /// The ECS scope that the reply would carry.
    pub scope: u8,
    /// How long the reply may be kept, seconds: the lowest TTL of the answer, and of the SOA where it is negative.
    pub ttl: Option<u32>,
    /// The cluster answered with, if one.
    pub cluster: Option<String>,
}

/// Who is imagined to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A believed resolver that sends this network in ECS. The network's own address stands for the packet's source too:
    /// endpoints with `clients` are for senders in it.
    Client(ClientSubnet),
    /// A resolver, or a client itself, that sends no ECS: the packet's source is all there is.
    Resolver(IpAddr),
}

impl From<ClientSubnet> for Asker {
    fn from(client: ClientSubnet) -> Self {
        Self::Client(client)
    }
}

/// Explains what a client network would be told now: endpoint states are those of the snapshot. The reply itself is made by
/// the answering path and read back.
///
/// The client is taken at its word, as if a believed resolver had sent it; a step says so where not every resolver is
/// believed. Endpoints with `clients` see the network's own address as the sender.
#[must_use]
pub fn explain(
    snapshot: &Snapshot,
    name: &LowerName,
    qtype: RecordType,
    asker: impl Into<Asker>,
) -> Explanation {
    let recorder = Recorder::new(snapshot, qtype, true);
    explain_to(snapshot, name, qtype, asker.into(), recorder)
}

/// Explains what somebody would be told by a configuration alone: nobody probes, and the steps say so.
#[must_use]
pub fn explain_offline(
    snapshot: &Snapshot,
    name: &LowerName,
    qtype: RecordType,
    asker: Asker,
) -> Explanation {
    let recorder = Recorder::new(snapshot, qtype, false);
    explain_to(snapshot, name, qtype, asker, recorder)
}

/// Writes the query, has it answered before a recorder, and reads the reply back.
fn explain_to(
    snapshot: &Snapshot,
    name: &LowerName,
    qtype: RecordType,
    asker: Asker,
    mut recorder: Recorder<'_>,
) -> Explanation {
    let (source, network) = match asker {
        Asker::Client(client) => (client.address.to_canonical(), Some(client)),
        Asker::Resolver(address) => (address.to_canonical(), None),
    };
    let packet = write_query(name.as_ref(), qtype, network);
    recorder.say(match asker {
        Asker::Client(client) => {
            format!("Asked: {name} {qtype}, for a client in {client}")
        }
        Asker::Resolver(address) => format!(
            "Asked: {name} {qtype}, by {address}, which sends no Client Subnet: it stands for its clients"
        ),
    });
    if let Some(client) = network {
        // The reader of packets decides what the option says: IPv4 inside IPv6 is IPv4.
        recorder.client = Some(read_client(&packet, client));
        recorder.say_written(client);
        if let Some(note) = trust(snapshot.settings()) {
            recorder.say(note);
        }
    } else {
        recorder.subnet = ClientSubnet::host(source);
    }
    let sender = Sender {
        address: source,
        transport: Transport::Tcp,
    };
    let mut out = vec![0; usize::from(u16::MAX)];
    let mut draws = Draws::default();
    let mut place = None;
    let lookup = Lookup::begin(&mut place, snapshot, &packet, sender);
    let worker = (&mut draws, &Counters::default());
    let outcome = lookup.finish_before(snapshot, &mut out, worker, &mut recorder);
    let length = match outcome {
        Outcome::Reply(length) => length,
        // A whole query in a buffer of full size is always replied to.
        Outcome::Drop | Outcome::Rare => 0,
    };
    let reply = Query::parse(&packet)
        .ok()
        .and_then(|query| read::read(out.get(..length)?, query.head().len()));
    let reply = reply.unwrap_or_default();
    recorder.finish(reply)
}

/// Reads the network of a query that we wrote, as a packet's is read. A network of no bits is taken as it is given.
fn read_client(packet: &[u8], given: ClientSubnet) -> Client {
    let query = Query::parse(packet).ok();
    let ecs = query.as_ref().and_then(|query| query.edns()?.ecs);
    match ecs.and_then(|ecs| Some((ecs.subnet(packet)?, ecs.offset()))) {
        Some((subnet, offset)) => Client {
            subnet,
            from: PlaceFrom::Ecs,
            offset,
        },
        None => Client::given(given),
    }
}

/// Says whose Client Subnet is believed, where it is not everyone's.
fn trust(settings: &Settings) -> Option<String> {
    match &settings.ecs_trust {
        EcsTrust::All => None,
        EcsTrust::None => Some(
            "Client Subnet is believed from nobody (dns.ecs.trust: none): real queries are answered for the resolver's own address".to_owned(),
        ),
        EcsTrust::From(prefixes) => Some(format!(
            "Client Subnet is believed from resolvers in {} only (dns.ecs.trust): others are answered for their own address",
            counted(prefixes.len(), "prefix")
        )),
    }
}

/// Writes a query with EDNS, and with ECS where a network is given (RFC 1035 section 4.1, RFC 7871 section 6).
fn write_query(name: NameRef<'_>, qtype: RecordType, client: Option<ClientSubnet>) -> Vec<u8> {
    let option = client.map_or_else(Vec::new, write_ecs);
    let mut packet = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1];
    packet.extend_from_slice(name.as_wire());
    packet.extend_from_slice(&qtype.0.to_be_bytes());
    packet.extend_from_slice(&[0, 1]);
    let length = u8::try_from(option.len()).unwrap_or(0);
    packet.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, length]);
    packet.extend_from_slice(&option);
    packet
}

/// Writes the option Client Subnet.
fn write_ecs(client: ClientSubnet) -> Vec<u8> {
    let (family, mut network) = match client.address {
        IpAddr::V4(address) => (1_u16, address.octets().to_vec()),
        IpAddr::V6(address) => (2, address.octets().to_vec()),
    };
    let source = usize::from(client.source.0).min(network.len() * 8);
    network.truncate(source.div_ceil(8));
    // Bits beyond the prefix must be zero, whatever the caller gave.
    if let Some(last) = network.last_mut().filter(|_| !source.is_multiple_of(8)) {
        *last &= !(0xff >> (source % 8));
    }
    let length = u8::try_from(network.len()).unwrap_or(0);
    let mut option = vec![0, 8, 0, length + 4];
    option.extend_from_slice(&family.to_be_bytes());
    option.extend_from_slice(&[u8::try_from(source).unwrap_or(0), 0]);
    option.extend_from_slice(&network);
    option
}
