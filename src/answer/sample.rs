//! What is looked at of a few queries only: where the client is, and the record of the query log.

use std::net::IpAddr;

use super::draws::Draws;
use super::reply::Facts;
use super::stages::{Lookup, Outcome, PlaceFrom, Transport};
use super::steered::{cluster_of, given, order};
use super::witness::{Decided, Witness};
use crate::model::{ClientSubnet, NameRef};
use crate::snapshot::Snapshot;
use crate::steering::Chosen;
use crate::telemetry::{
    Count, Counters, LoggedVia, QueryRecord, QueryTap, ReplyCode, SampledSender, SenderKind,
};
use crate::zone;

impl<'a> Lookup<'a> {
    /// Counts the client of a query that was finished, `weight` times: by country, and by the kind of its sender's address; and
    /// keeps the sender for a while, to be told from others.
    ///
    /// Looking a place up is dear beside answering, so a worker does it for one query of a batch, chosen at random, and gives the
    /// batch's length as weight: exact where batches are single queries, and right on average where they are not.
    pub fn count_client(&self, snapshot: &Snapshot, weight: u64, counters: &Counters) {
        let Some(client) = self.client_of_ours(snapshot) else {
            return;
        };
        let geo = snapshot.geo();
        let located = geo.locate(client.subnet);
        let country = located.location.and_then(|location| location.country);
        counters.add_country(country, weight);
        let address = self.sender().address;
        if address.is_loopback() {
            // The machine itself: it says nothing of the way that others come.
            counters.add(Count::SenderLoopback, weight);
            return;
        }
        let with_subnet = client.from == PlaceFrom::Ecs;
        let (count, kind) = if is_private(address) {
            let own = if with_subnet {
                geo.locate(ClientSubnet::host(address))
            } else {
                located
            };
            let kind = match own.location {
                Some(_) => SenderKind::Placed,
                None => SenderKind::Private,
            };
            (Count::SenderPrivate, kind)
        } else {
            (Count::SenderPublic, SenderKind::Public)
        };
        counters.add(count, weight);
        let sender = SampledSender::new(address, kind, with_subnet);
        counters.senders().put(sender);
    }

    /// Decides and writes the reply as [`Self::finish`] does, and puts a record of it into the query log.
    #[cold]
    pub fn finish_logged(
        &mut self,
        snapshot: &'a Snapshot,
        out: &mut [u8],
        worker: (&mut Draws, &Counters),
        (tap, time_ms): (&QueryTap, u64),
    ) -> Outcome {
        let via = match self.sender().transport {
            Transport::Udp => LoggedVia::Udp,
            Transport::Tcp => LoggedVia::Tcp,
        };
        let mut noted = Noted(QueryRecord::begin(time_ms, via));
        let counters = worker.1;
        let outcome = self.finish_before(snapshot, out, worker, &mut noted);
        let Noted(mut record) = noted;
        // What is no query has no name to be logged.
        if let (Some(query), Some(client)) = (
            self.query(),
            self.client(snapshot).map(|client| client.subnet),
        ) {
            record.set_name(query.name());
            record.qtype = query.qtype();
            record.client = tap.cut(client);
            if !tap.put(&record) {
                counters.bump(Count::LogDropped);
            }
        }
        outcome
    }
}

/// Tells whether an address can only be seen from inside a network: translated on the way, or never meant to leave. Those of the
/// machine itself are not meant.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            // RFC 6598: shared by carriers for translation.
            let is_shared = first == 100 && second & 0xc0 == 64;
            address.is_private() || address.is_link_local() || is_shared
        }
        IpAddr::V6(address) => address.is_unique_local() || address.is_unicast_link_local(),
    }
}

/// Notes what the log says of an answer.
struct Noted(QueryRecord);

impl Witness for Noted {
    fn looked_up(&mut self, _: NameRef<'_>, _: &zone::Lookup<'_>) {}

    fn decided(&mut self, decided: &Decided<'_>) {
        let Self(record) = self;
        let decision = decided.decision;
        let pools = &decided.steered.pools;
        record.decided = Some((order(decision.reason.basis), given(decision)));
        record.ttl = Some(decided.ttl.seconds());
        record.cluster = match decision.chosen {
            Chosen::Cluster { rank, .. } => pools.cluster(usize::from(rank)),
            Chosen::Hostname(position) => cluster_of(pools, position),
            _ => None,
        };
    }

    fn replied(&mut self, code: ReplyCode, facts: &Facts) {
        self.0.code = code;
        self.0.scope = facts.scope;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_behind_translation_are_private() {
        for (address, private) in [
            ("10.1.2.3", true),
            ("172.31.0.1", true),
            ("172.32.0.1", false),
            ("100.64.0.1", true),
            ("100.128.0.1", false),
            ("127.0.0.1", false),
            ("169.254.1.1", true),
            ("192.0.2.1", false),
            ("fd00::1", true),
            ("fe80::1", true),
            ("2001:db8::1", false),
        ] {
            assert_eq!(is_private(address.parse().unwrap()), private, "{address}");
        }
    }
}
