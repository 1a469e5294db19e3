//! Counters of one worker, summed at scrape.
//!
//! One writer each: a bump is a plain load and store, no read-modify-write. Labels are closed sets.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::model::{ClusterIndex, ServiceIndex};

/// Clusters counted one by one; those beyond share the last cell.
pub const CLUSTERS: usize = 256;

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident = $label:literal;)*) => {
        /// What is counted. The label is what `/metrics` shows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Count { $($(#[$doc])* $name,)* }

        impl Count {
            /// Every count, in the order of the cells.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Gives `name{label="…"}` without the common prefix, such as `replies_total{rcode="NOERROR"}`.
            #[must_use]
            pub fn metric(self) -> &'static str {
                match self { $(Self::$name => $label,)* }
            }
        }
    };
}

counts! {
    /// Queries over UDP.
    QueriesUdp = "queries_total{transport=\"udp\"}";
    /// Queries over TCP.
    QueriesTcp = "queries_total{transport=\"tcp\"}";
    /// Replies with NOERROR and an answer.
    NoError = "replies_total{rcode=\"NOERROR\"}";
    /// Replies with NOERROR and no answer, referrals not counted.
    NoData = "replies_total{rcode=\"NODATA\"}";
    /// Replies with FORMERR.
    FormErr = "replies_total{rcode=\"FORMERR\"}";
    /// Replies with NXDOMAIN.
    NxDomain = "replies_total{rcode=\"NXDOMAIN\"}";
    /// Replies with REFUSED.
    Refused = "replies_total{rcode=\"REFUSED\"}";
    /// Replies with SERVFAIL.
    ServFail = "replies_total{rcode=\"SERVFAIL\"}";
    /// Replies with YXDOMAIN.
    YxDomain = "replies_total{rcode=\"YXDOMAIN\"}";
    /// Replies with NOTIMP.
    NotImp = "replies_total{rcode=\"NOTIMP\"}";
    /// Replies with NOTAUTH: queries signed with a key that nobody here knows.
    NotAuth = "replies_total{rcode=\"NOTAUTH\"}";
    /// Replies with BADVERS.
    BadVers = "replies_total{rcode=\"BADVERS\"}";
    /// Replies of the rare lane, whatever their code.
    Rare = "rare_replies_total";
    /// Referrals.
    Referral = "referrals_total";
    /// Replies with TC set.
    Truncated = "truncated_total";
    /// Packets that got no reply: too short, or replies themselves.
    DroppedPacket = "dropped_total{reason=\"not_a_query\"}";
    /// Packets of the rare lane that found its queue full.
    DroppedRare = "dropped_total{reason=\"rare_lane_full\"}";
    /// Packets with a PROXY header that was malformed, or without one where one is due.
    DroppedProxy = "dropped_total{reason=\"proxy_header\"}";
    /// Replies that the socket did not take.
    DroppedSend = "dropped_total{reason=\"send\"}";
    /// Queries with a trusted ECS option with a source prefix above 0.
    Ecs = "ecs_queries_total";
    /// Steered answers.
    Steered = "steered_answers_total";
    /// Steered answers whose place came from the sender's address.
    PlaceFromSender = "steered_place_total{from=\"sender\"}";
    /// Steered answers whose place came from ECS.
    PlaceFromEcs = "steered_place_total{from=\"ecs\"}";
    /// Steered answers to clients in an unknown place.
    PlaceUnknown = "steered_place_unknown_total";
    /// Clients that a fence left nothing, answered with `fenceAnswer`.
    FenceAnswer = "fence_refusals_total{answer=\"fence_answer\"}";
    /// Clients that a fence left nothing, answered with NODATA.
    FenceDenied = "fence_refusals_total{answer=\"nodata\"}";
    /// Answers out of drained endpoints, because nothing else was up.
    LastResortDrained = "last_resort_answers_total{level=\"drained\"}";
    /// Answers with `fallback`.
    LastResortFallback = "last_resort_answers_total{level=\"fallback\"}";
    /// Answers with endpoints that are down, as if up.
    LastResortAsIfUp = "last_resort_answers_total{level=\"as_if_up\"}";
    /// Answers with endpoints that are forced down.
    LastResortForcedDown = "last_resort_answers_total{level=\"forced_down\"}";
    /// Answers with health ignored because of `panic`.
    Panic = "panic_answers_total";
}

/// Cells of the count of last resorts: services share them by their index.
pub const RESORT_CELLS: usize = 4096;

/// Counters that one worker writes and the scrape reads.
#[derive(Debug)]
pub struct Counters {
    counts: [AtomicU64; Count::ALL.len()],
    by_cluster: Box<[AtomicU64]>,
    /// Answers with endpoints that are not both up and undrained, by service: what a drain waits for.
    resorts: Box<[AtomicU32]>,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            by_cluster: (0..CLUSTERS).map(|_| AtomicU64::new(0)).collect(),
            resorts: (0..RESORT_CELLS).map(|_| AtomicU32::new(0)).collect(),
        }
    }
}

impl Counters {
    /// Adds one.
    #[inline]
    pub fn bump(&self, count: Count) {
        self.add(count, 1);
    }

    /// Adds several.
    #[inline]
    pub fn add(&self, count: Count, more: u64) {
        if let Some(cell) = self.counts.get(count as usize) {
            cell.store(
                cell.load(Ordering::Relaxed).wrapping_add(more),
                Ordering::Relaxed,
            );
        }
    }

    /// Adds one answer with this cluster.
    #[inline]
    pub fn bump_cluster(&self, cluster: ClusterIndex) {
        if let Some(cell) = self.by_cluster.get(cluster.get().min(CLUSTERS - 1)) {
            cell.store(
                cell.load(Ordering::Relaxed).wrapping_add(1),
                Ordering::Relaxed,
            );
        }
    }

    /// Notes that a service was answered with a last resort: perhaps with a drained endpoint.
    #[cold]
    pub fn note_resort(&self, service: ServiceIndex) {
        if let Some(cell) = self.resorts.get(Self::resort_cell(service)) {
            // Release: who sees the count sees that the answer was still to come, never that it is long over.
            let next = cell.load(Ordering::Relaxed).wrapping_add(1);
            cell.store(next, Ordering::Release);
        }
    }

    /// Gives the cell that a service's last resorts are counted in.
    #[must_use]
    pub fn resort_cell(service: ServiceIndex) -> usize {
        service.get() % RESORT_CELLS
    }

    /// Gives the count of one cell. It wraps: only whether it changed means something.
    #[must_use]
    pub fn resorts(&self, cell: usize) -> u32 {
        self.resorts
            .get(cell)
            .map_or(0, |cell| cell.load(Ordering::Acquire))
    }

    /// Gives one count.
    #[must_use]
    pub fn get(&self, count: Count) -> u64 {
        self.counts
            .get(count as usize)
            .map_or(0, |cell| cell.load(Ordering::Relaxed))
    }

    /// Gives the answers with one cluster.
    #[must_use]
    pub fn cluster(&self, cluster: ClusterIndex) -> u64 {
        self.by_cluster
            .get(cluster.get().min(CLUSTERS - 1))
            .map_or(0, |cell| cell.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_apart() {
        let counters = Counters::default();
        for (times, &count) in Count::ALL.iter().enumerate() {
            counters.add(count, times as u64);
        }
        for (times, &count) in Count::ALL.iter().enumerate() {
            assert_eq!(counters.get(count), times as u64, "{count:?}");
        }
        counters.bump_cluster(ClusterIndex(3));
        counters.bump_cluster(ClusterIndex(u16::MAX));
        assert_eq!(
            (
                counters.cluster(ClusterIndex(3)),
                counters.cluster(ClusterIndex(255))
            ),
            (1, 1)
        );
    }
}
