//! What is looked at of a few queries only: where the client is, and the record of the query log.

use std::net::IpAddr;

use super::draws::Draws;
use super::reply::Facts;
use super::stages::{Lookup, Outcome, Transport};
use super::steered::{cluster_of, given, order};
use super::witness::{Decided, Witness};
use crate::model::NameRef;
use crate::snapshot::Snapshot;
use crate::steering::Chosen;
use crate::telemetry::{Count, Counters, LoggedVia, QueryRecord, QueryTap, ReplyCode};
use crate::zone;

impl Lookup<'_> {
    /// Counts the client of a query that was finished, `weight` times: by country, and by whether its sender has a private address.
    ///
    /// Looking a place up is dear beside answering, so a worker does it for one query of a batch, chosen at random, and gives the
    /// batch's length as weight: exact where batches are single queries, and right on average where they are not.
    pub fn count_client(&self, snapshot: &Snapshot, weight: u64, counters: &Counters) {
        let Some(client) = self.client_of_ours(snapshot) else {
            return;
        };
        let located = snapshot.geo().locate(client);
        let country = located.location.and_then(|location| location.country);
        counters.add_country(country, weight);
        let count = if is_private(self.sender().address) {
            Count::SenderPrivate
        } else {
            Count::SenderPublic
        };
        counters.add(count, weight);
    }

    /// Decides and writes the reply as [`Self::finish`] does, and puts a record of it into the query log.
    #[cold]
    pub fn finish_logged(
        &mut self,
        snapshot: &Snapshot,
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
        if let (Some(query), Some(client)) = (self.query(), self.client(snapshot)) {
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

/// Tells whether an address can only be seen from inside a network: translated on the way, or never meant to leave.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            // RFC 6598: shared by carriers for translation.
            let is_shared = first == 100 && second & 0xc0 == 64;
            address.is_private() || address.is_loopback() || address.is_link_local() || is_shared
        }
        IpAddr::V6(address) => {
            address.is_unique_local() || address.is_loopback() || address.is_unicast_link_local()
        }
    }
}

/// Notes what the log says of an answer.
struct Noted(QueryRecord);

impl Witness for Noted {
    fn looked_up(&mut self, _: NameRef<'_>, _: &zone::Lookup<'_>) {}

    fn decided(&mut self, decided: &Decided<'_>) {
        let Self(record) = self;
        let decision = decided.decision;
        let pools = &decided.slot.pools;
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
            ("127.0.0.1", true),
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
