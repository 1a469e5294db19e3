//! A lookup in stages, so that a batch's cache misses overlap.

use std::net::IpAddr;

use super::query::Query;
use crate::snapshot::Snapshot;
use crate::telemetry::Counters;

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

/// Counters of draws: one per worker. Grows when a snapshot has more services that draw, never per packet.
#[derive(Clone, Debug, Default)]
pub struct Draws {
    todo: (),
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

/// One query between its stages. A batch calls `begin` for all, then `advance` for all, then `finish` for each.
#[derive(Clone, Copy, Debug)]
pub struct Lookup<'p> {
    query: Option<Query<'p>>,
}

impl<'p> Lookup<'p> {
    /// Parses, hashes the name, hints at the slot and the place.
    #[must_use]
    pub fn begin(snapshot: &Snapshot, packet: &'p [u8], sender: Sender) -> Self {
        let _ = (snapshot, packet, sender);
        todo!()
    }

    /// Reads the slot, hints at the record.
    pub fn advance(&mut self, snapshot: &Snapshot) {
        let _ = snapshot;
        todo!()
    }

    /// Decides and writes the reply into `out`. `counters` and `draws` are the worker's own.
    pub fn finish(
        self,
        snapshot: &Snapshot,
        out: &mut [u8],
        draws: &mut Draws,
        counters: &Counters,
    ) -> Outcome {
        let _ = (snapshot, out, draws, counters, self.query);
        todo!()
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
    let mut lookup = Lookup::begin(snapshot, packet, sender);
    lookup.advance(snapshot);
    lookup.finish(snapshot, out, worker.0, worker.1)
}
