//! A decision in words: the same code path as the packet's.
//!
//! A query is written and answered like any other, with a witness that takes down what was looked up and decided; then the
//! reply is read back. Nothing here decides.

mod read;
mod recorder;
mod words;

use std::net::IpAddr;

use super::draws::Draws;
use super::query::Query;
use super::stages::{Lookup, Outcome, Sender, Transport};
use crate::model::{ClientSubnet, LowerName, NameRef, RecordType};
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
    /// The TTL of the answer, seconds; of a negative reply that of its SOA.
    pub ttl: Option<u32>,
    /// The cluster answered with, if one.
    pub cluster: Option<String>,
}

/// Explains what a client network would be told. The reply itself is made by the answering path and read back.
///
/// The client is taken at its word, as if a believed resolver had sent it; a step says so where not every resolver is
/// believed. Endpoints with `clients` see the network's own address as the sender.
#[must_use]
pub fn explain(
    snapshot: &Snapshot,
    name: &LowerName,
    qtype: RecordType,
    client: ClientSubnet,
) -> Explanation {
    let packet = write_query(name.as_ref(), qtype, client);
    let sender = Sender {
        address: client.address,
        transport: Transport::Tcp,
    };
    let mut recorder = Recorder::new(snapshot, client);
    let (source, of) = (client.source.0, client.address);
    recorder.say(format!(
        "Asked: {name} {qtype}, for a client in {of}/{source}"
    ));
    if let Some(note) = trust(snapshot.settings()) {
        recorder.say(note);
    }
    let mut out = vec![0; usize::from(u16::MAX)];
    let mut draws = Draws::default();
    let mut lookup = Lookup::begin(snapshot, &packet, sender);
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

/// Says whose Client Subnet is believed, where it is not everyone's.
fn trust(settings: &Settings) -> Option<String> {
    match &settings.ecs_trust {
        EcsTrust::All => None,
        EcsTrust::None => Some(
            "Client Subnet is believed from nobody (dns.ecs.trust: none): real queries are answered for the resolver's own address".to_owned(),
        ),
        EcsTrust::From(prefixes) => Some(format!(
            "Client Subnet is believed from {} prefixes of resolvers only (dns.ecs.trust): others are answered for their own address",
            prefixes.len()
        )),
    }
}

/// Writes a query with ECS (RFC 1035 section 4.1, RFC 7871 section 6).
fn write_query(name: NameRef<'_>, qtype: RecordType, client: ClientSubnet) -> Vec<u8> {
    let (family, octets) = match client.address {
        IpAddr::V4(address) => (1_u16, address.octets().to_vec()),
        IpAddr::V6(address) => (2, address.octets().to_vec()),
    };
    let longest = octets.len() * 8;
    let source = usize::from(client.source.0).min(longest);
    let mut network = octets;
    network.truncate(source.div_ceil(8));
    // Bits beyond the prefix must be zero, whatever the caller gave.
    if let Some(last) = network.last_mut().filter(|_| !source.is_multiple_of(8)) {
        *last &= !(0xff >> (source % 8));
    }
    let mut packet = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1];
    packet.extend_from_slice(name.as_wire());
    packet.extend_from_slice(&qtype.0.to_be_bytes());
    packet.extend_from_slice(&[0, 1]);
    let length = u8::try_from(network.len()).unwrap_or(0);
    packet.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, length + 8]);
    packet.extend_from_slice(&[0, 8, 0, length + 4]);
    packet.extend_from_slice(&family.to_be_bytes());
    packet.extend_from_slice(&[u8::try_from(source).unwrap_or(0), 0]);
    packet.extend_from_slice(&network);
    packet
}
