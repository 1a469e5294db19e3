//! Counters of one worker, summed at scrape.
//!
//! One writer each: a bump is a plain load and store, no read-modify-write. Labels are closed sets. A reply and a decision are one
//! bump each, in a cell for all that is counted of them together; the scrape adds the cells up along each label.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::histogram::Histogram;
use super::labels::{Given, Order, PlaceOf, QueryType, ReplyCode};
use super::senders::SenderRing;
use crate::model::{ClusterIndex, CountryCode, ServiceIndex, ZoneSlot};

/// Clusters counted one by one, by index: a node's series are bounded. Those beyond share the last cell.
pub const CLUSTERS: usize = 150;
/// Pairs of letters, and behind them the unknown country.
const COUNTRIES: usize = 26 * 26 + 1;
/// Replies by zone, type and code.
const REPLIES: usize = ZoneSlot::COUNT * QueryType::ALL.len() * ReplyCode::ALL.len();
/// Decisions by what the place was taken from, order and what was given.
const DECISIONS: usize = PlaceOf::ALL.len() * Order::ALL.len() * Given::ALL.len();

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
    /// Answers out of a tier behind the first.
    LaterTier = "later_tier_answers_total";
    /// Answers for a region or zone of a federation, out of it.
    LevelOwn = "level_answers_total{answered=\"own\"}";
    /// Answers for a region or zone of a federation that has nothing usable, out of a wider level.
    LevelWider = "level_answers_total{answered=\"wider\"}";
    /// Queries sampled for their senders: the sender is the machine itself.
    SenderLoopback = "senders_total{address=\"loopback\"}";
    /// Queries sampled for their senders: the sender's address is one of a private network.
    SenderPrivate = "senders_total{address=\"private\"}";
    /// Queries sampled for their senders: any other address.
    SenderPublic = "senders_total{address=\"public\"}";
    /// Records of the query log that found its queue full.
    LogDropped = "query_log_dropped_total";
}

/// A cell that one worker writes.
type Cell = AtomicU64;

/// Adds with a plain load and store: there is one writer.
#[inline(always)]
fn add(cell: Option<&Cell>, more: u64) {
    if let Some(cell) = cell {
        cell.store(
            cell.load(Ordering::Relaxed).wrapping_add(more),
            Ordering::Relaxed,
        );
    }
}

/// Reads a cell.
fn read(cell: Option<&Cell>) -> u64 {
    cell.map_or(0, |cell| cell.load(Ordering::Relaxed))
}

/// Makes cells.
fn zeros(count: usize) -> Box<[Cell]> {
    (0..count).map(|_| Cell::new(0)).collect()
}

/// Gives the cell of a reply.
#[inline(always)]
fn reply_cell(zone: ZoneSlot, qtype: QueryType, code: ReplyCode) -> usize {
    (zone.get() * QueryType::ALL.len() + qtype as usize) * ReplyCode::ALL.len() + code as usize
}

/// Gives the cell of a decision.
#[inline(always)]
fn decision_cell(place: PlaceOf, order: Order, given: Given) -> usize {
    (place as usize * Order::ALL.len() + order as usize) * Given::ALL.len() + given as usize
}

/// The positions of a label that are asked for, and how many it has.
type Label = (std::ops::Range<usize>, usize);

/// Takes one position of a label, or all.
fn of(position: Option<usize>, count: usize) -> Label {
    (position.map_or(0..count, |at| at..at + 1), count)
}

/// Adds joint cells up over three labels.
fn sum(cells: &[Cell], [(first, _), (second, seconds), (third, thirds)]: [Label; 3]) -> u64 {
    let mut total = 0;
    for major in first {
        for middle in second.clone() {
            for minor in third.clone() {
                total += read(cells.get((major * seconds + middle) * thirds + minor));
            }
        }
    }
    total
}

/// Cells of the count of last resorts: services share them by their index.
pub const RESORT_CELLS: usize = 4096;

/// Counters that one worker writes and the scrape reads. Made once; nothing is allocated later.
#[derive(Debug)]
pub struct Counters {
    counts: [Cell; Count::ALL.len()],
    by_cluster: Box<[Cell]>,
    replies: Box<[Cell]>,
    decisions: Box<[Cell]>,
    by_country: Box<[Cell]>,
    batches: Histogram,
    senders: SenderRing,
    /// Answers with endpoints that are not both up and undrained, by service: what a drain waits for.
    resorts: Box<[AtomicU32]>,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            counts: std::array::from_fn(|_| Cell::new(0)),
            by_cluster: zeros(CLUSTERS + 1),
            replies: zeros(REPLIES),
            decisions: zeros(DECISIONS),
            by_country: zeros(COUNTRIES),
            batches: Histogram::default(),
            senders: SenderRing::default(),
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
        add(self.counts.get(count as usize), more);
    }

    /// Adds one answer with this cluster.
    #[inline]
    pub fn bump_cluster(&self, cluster: ClusterIndex) {
        add(self.by_cluster.get(cluster.get().min(CLUSTERS)), 1);
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

    /// Adds one reply.
    #[inline]
    pub fn bump_reply(&self, zone: ZoneSlot, qtype: QueryType, code: ReplyCode) {
        add(self.replies.get(reply_cell(zone, qtype, code)), 1);
    }

    /// Adds one decision.
    #[inline]
    pub fn bump_decision(&self, place: PlaceOf, order: Order, given: Given) {
        add(self.decisions.get(decision_cell(place, order, given)), 1);
    }

    /// Adds queries of clients in this country; `None`: nobody knows where they are.
    #[inline]
    pub fn add_country(&self, country: Option<CountryCode>, more: u64) {
        let at = country.map_or(COUNTRIES - 1, CountryCode::ordinal);
        add(self.by_country.get(at), more);
    }

    /// Gives the histogram of how long batches took, by query.
    #[inline]
    #[must_use]
    pub fn batches(&self) -> &Histogram {
        &self.batches
    }

    /// Gives the last senders that were sampled.
    #[inline]
    #[must_use]
    pub fn senders(&self) -> &SenderRing {
        &self.senders
    }

    /// Gives one count.
    #[must_use]
    pub fn get(&self, count: Count) -> u64 {
        read(self.counts.get(count as usize)) + self.joint(count)
    }

    /// Gives what the joint cells hold of a count.
    fn joint(&self, count: Count) -> u64 {
        let code = |code| self.replies_with(None, None, Some(code));
        let given = |given| self.decisions_with(None, None, Some(given));
        let place = |place| self.decisions_with(Some(place), None, None);
        match count {
            Count::NoError => code(ReplyCode::NoError),
            Count::NoData => code(ReplyCode::NoData),
            Count::Referral => code(ReplyCode::Referral),
            Count::FormErr => code(ReplyCode::FormErr),
            Count::NxDomain => code(ReplyCode::NxDomain),
            Count::Refused => code(ReplyCode::Refused),
            Count::ServFail => code(ReplyCode::ServFail),
            Count::YxDomain => code(ReplyCode::YxDomain),
            Count::NotImp => code(ReplyCode::NotImp),
            Count::NotAuth => code(ReplyCode::NotAuth),
            Count::BadVers => code(ReplyCode::BadVers),
            Count::Steered => self.decisions_with(None, None, None),
            Count::PlaceFromSender => place(PlaceOf::Sender),
            Count::PlaceFromEcs => place(PlaceOf::Ecs),
            Count::PlaceUnknown => self.decisions_with(None, Some(Order::UnknownPlace), None),
            Count::FenceAnswer => given(Given::FenceAnswer),
            Count::FenceDenied => given(Given::FenceDenied),
            Count::LastResortDrained => given(Given::Drained),
            Count::LastResortFallback => given(Given::Fallback),
            Count::LastResortAsIfUp => given(Given::AsIfUp),
            Count::LastResortForcedDown => given(Given::ForcedDown),
            Count::Panic => given(Given::Panic),
            _ => 0,
        }
    }

    /// Counts replies; `None` takes all of a label.
    #[must_use]
    pub fn replies_with(
        &self,
        zone: Option<ZoneSlot>,
        qtype: Option<QueryType>,
        code: Option<ReplyCode>,
    ) -> u64 {
        let zones = of(zone.map(ZoneSlot::get), ZoneSlot::COUNT);
        let types = of(qtype.map(|qtype| qtype as usize), QueryType::ALL.len());
        let codes = of(code.map(|code| code as usize), ReplyCode::ALL.len());
        sum(&self.replies, [zones, types, codes])
    }

    /// Counts decisions; `None` takes all of a label.
    #[must_use]
    pub fn decisions_with(
        &self,
        place: Option<PlaceOf>,
        order: Option<Order>,
        given: Option<Given>,
    ) -> u64 {
        let places = of(place.map(|place| place as usize), PlaceOf::ALL.len());
        let orders = of(order.map(|order| order as usize), Order::ALL.len());
        let givens = of(given.map(|given| given as usize), Given::ALL.len());
        sum(&self.decisions, [places, orders, givens])
    }

    /// Gives the answers with one cluster; those beyond [`CLUSTERS`] have one number together.
    #[must_use]
    pub fn cluster(&self, cluster: ClusterIndex) -> u64 {
        read(self.by_cluster.get(cluster.get().min(CLUSTERS)))
    }

    /// Gives the queries of clients in one country.
    #[must_use]
    pub fn country(&self, country: Option<CountryCode>) -> u64 {
        let at = country.map_or(COUNTRIES - 1, CountryCode::ordinal);
        read(self.by_country.get(at))
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
        counters.add_country("FR".parse().ok(), 5);
        counters.add_country(None, 2);
        let of = |code: &str| counters.country(code.parse().ok());
        assert_eq!((of("FR"), of("FS"), counters.country(None)), (5, 0, 2));
    }

    #[test]
    fn joint_cells_add_up_along_each_label() {
        let counters = Counters::default();
        let mut total = 0;
        for zone in [ZoneSlot::NONE, ZoneSlot::OTHER, ZoneSlot::named(23)] {
            for &qtype in QueryType::ALL {
                for &code in ReplyCode::ALL {
                    counters.bump_reply(zone, qtype, code);
                    total += 1;
                }
            }
        }
        let codes = ReplyCode::ALL.len() as u64;
        assert_eq!(counters.replies_with(None, None, None), total);
        let one = counters.replies_with(Some(ZoneSlot::named(23)), Some(QueryType::Any), None);
        assert_eq!(one, codes);
        assert_eq!(counters.get(Count::NotAuth), total / codes);
        for (times, &given) in (1..).zip(Given::ALL) {
            for _ in 0..times {
                counters.bump_decision(PlaceOf::Ecs, Order::Map, given);
            }
        }
        assert_eq!(counters.get(Count::Steered), 55);
        assert_eq!(counters.get(Count::PlaceFromEcs), 55);
        assert_eq!(counters.get(Count::FenceDenied), 8);
        assert_eq!(counters.decisions_with(None, Some(Order::Weight), None), 0);
    }
}
