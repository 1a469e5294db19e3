//! What operators say: drains and forces, as records that nodes keep and pass on (DESIGN section 4.7).
//!
//! A record never changes but in one way: it ends. So records of two nodes can be merged in any order, any number of times,
//! with one result.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use super::challenge::Token;
use super::id::{ClusterId, ServiceKey};
use super::name::LowerName;
use super::record_id::RecordId;

/// Milliseconds since 1970 on the wall clock: records outlive a process and travel between nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(pub u64);

impl WallTime {
    /// Gives the moment so many seconds later, at most the end of time.
    #[must_use]
    pub fn after_seconds(self, seconds: u32) -> Self {
        Self(self.0.saturating_add(u64::from(seconds) * 1000))
    }

    /// Gives the milliseconds since an earlier moment; 0 when that lies ahead.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// What a record is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperatorTarget {
    /// All endpoints of a cluster.
    Cluster(ClusterId),
    /// A service's endpoints.
    Service {
        /// The service.
        service: ServiceKey,
        /// In this cluster only; `None`: in all.
        cluster: Option<ClusterId>,
    },
    /// One address of a cluster.
    Endpoint {
        /// The cluster.
        cluster: ClusterId,
        /// The address.
        address: IpAddr,
        /// In this service only; `None`: in all.
        service: Option<ServiceKey>,
    },
    /// The challenge of a name, for a certificate.
    Challenge {
        /// The name: of a wildcard with its `*`.
        name: LowerName,
        /// What is to be found.
        token: Token,
    },
}

impl OperatorTarget {
    /// Gives the cluster it is limited to.
    #[must_use]
    pub fn cluster(&self) -> Option<&ClusterId> {
        match self {
            Self::Cluster(cluster) | Self::Endpoint { cluster, .. } => Some(cluster),
            Self::Service { cluster, .. } => cluster.as_ref(),
            Self::Challenge { .. } => None,
        }
    }

    /// Gives the service it is limited to.
    #[must_use]
    pub fn service(&self) -> Option<&ServiceKey> {
        match self {
            Self::Cluster(_) | Self::Challenge { .. } => None,
            Self::Service { service, .. } => Some(service),
            Self::Endpoint { service, .. } => service.as_ref(),
        }
    }

    /// Gives the address it is limited to.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Endpoint { address, .. } => Some(*address),
            _ => None,
        }
    }

    /// Tells whether it speaks of an endpoint, as far as it does not say of which service.
    #[must_use]
    pub fn is_at(&self, cluster: &ClusterId, address: IpAddr) -> bool {
        self.cluster().is_none_or(|own| own == cluster)
            && self.address().is_none_or(|own| own == address)
    }

    /// Gives the name and the token of a challenge.
    #[must_use]
    pub fn challenge(&self) -> Option<(&LowerName, &Token)> {
        match self {
            Self::Challenge { name, token } => Some((name, token)),
            _ => None,
        }
    }
}

impl fmt::Display for OperatorTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(cluster) => write!(f, "cluster {cluster}"),
            Self::Service {
                service,
                cluster: None,
            } => write!(f, "service {service}"),
            Self::Service {
                service,
                cluster: Some(cluster),
            } => write!(f, "service {service} in cluster {cluster}"),
            Self::Endpoint {
                cluster,
                address,
                service: None,
            } => write!(f, "endpoint {address} of cluster {cluster}"),
            Self::Endpoint {
                cluster,
                address,
                service: Some(service),
            } => write!(
                f,
                "endpoint {address} of cluster {cluster} in service {service}"
            ),
            Self::Challenge { name, .. } => write!(f, "name {name}"),
        }
    }
}

/// What an operator wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Intent {
    /// No new answers with it.
    Drain,
    /// Taken as Up.
    ForceUp,
    /// Taken as Down, and used after everything else.
    ForceDown,
    /// Served as the answer to a certificate's challenge.
    Challenge,
}

impl Intent {
    /// Tells whether it pins a verdict.
    #[must_use]
    pub fn is_force(self) -> bool {
        matches!(self, Self::ForceUp | Self::ForceDown)
    }

    /// Tells whether it is about endpoints, and so about who is answered; a challenge is about none.
    #[must_use]
    pub fn steers(self) -> bool {
        self != Self::Challenge
    }
}

/// Who said something, when and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Said {
    /// When.
    pub time: WallTime,
    /// Who.
    pub actor: Box<str>,
    /// Why.
    pub reason: Box<str>,
}

/// Where a record stands at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It begins later.
    Announced,
    /// It is in force.
    Active,
    /// It was ended or ran out.
    Over,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperatorRecord {
    /// Its id.
    pub id: RecordId,
    /// What it is about.
    pub target: OperatorTarget,
    /// What is wanted.
    pub intent: Intent,
    /// Who made it.
    pub created: Said,
    /// The moment it was announced for: see [`Self::takes_hold`].
    pub starts: WallTime,
    /// When it ends by itself.
    pub expires: Option<WallTime>,
    /// Who ended it.
    pub ended: Option<Said>,
}

impl OperatorRecord {
    /// Gives when it takes hold. A drain that is announced for a moment takes hold a little before it: at the moment itself no
    /// cache has an answer with what is drained any more. Never before it was made.
    #[must_use]
    pub fn takes_hold(&self) -> WallTime {
        match self.intent {
            Intent::Drain => {
                let early = WallTime(self.starts.0.saturating_sub(LEAD));
                early.max(self.created.time).min(self.starts)
            }
            Intent::ForceUp | Intent::ForceDown | Intent::Challenge => self.starts,
        }
    }

    /// Tells where it stands.
    #[must_use]
    pub fn phase(&self, now: WallTime) -> Phase {
        if self.ended.is_some() || self.expires.is_some_and(|end| end <= now) {
            Phase::Over
        } else if self.takes_hold() <= now {
            Phase::Active
        } else {
            Phase::Announced
        }
    }

    /// Gives the next moment after `now` at which it stands elsewhere by itself.
    #[must_use]
    pub fn next_change(&self, now: WallTime) -> Option<WallTime> {
        match self.phase(now) {
            Phase::Over => None,
            Phase::Announced => {
                let begin = self.takes_hold();
                Some(self.expires.map_or(begin, |end| end.min(begin)))
            }
            Phase::Active => self.expires,
        }
    }

    /// Tells whether it has been over for so long that nobody keeps it any more.
    #[must_use]
    pub fn is_forgotten(&self, now: WallTime) -> bool {
        let over = self.over_since(now);
        let kept = if self.intent.steers() {
            KEPT_OVER
        } else {
            CHALLENGE_KEPT_OVER
        };
        over.is_some_and(|over| now.since(over) > kept)
    }

    /// Says what no operator can have asked for; `None` when its times are sound. Clocks of nodes may differ: what was said may
    /// lie ahead of `now`, by a year at most.
    #[must_use]
    pub fn absurdity(&self, now: WallTime) -> Option<&'static str> {
        let latest = now.after_seconds(MAX_STANDING);
        let ended = self.ended.as_ref();
        if self.created.time > latest || ended.is_some_and(|said| said.time > latest) {
            Some("what was said lies more than a year ahead")
        } else if self.starts < self.created.time {
            Some("it begins before it was made")
        } else if !self.intent.steers() && !self.is_short() {
            Some("a challenge stands for an hour, from its beginning")
        } else if self.starts > self.created.time.after_seconds(MAX_AHEAD) {
            Some("it begins more than 30 days after it was made")
        } else if self.expires.is_some_and(|end| end <= self.starts) {
            Some("it ends before it begins")
        } else if self
            .expires
            .is_some_and(|end| end > self.starts.after_seconds(MAX_STANDING))
        {
            Some("it stands for more than a year")
        } else {
            None
        }
    }

    /// Tells whether it begins when it was made, and ends by itself within an hour.
    fn is_short(&self) -> bool {
        let last = self.created.time.after_seconds(CHALLENGE_SECONDS);
        self.starts == self.created.time && self.expires.is_some_and(|end| end <= last)
    }

    /// Gives when it was over; `None` while it is not.
    #[must_use]
    pub fn over_since(&self, now: WallTime) -> Option<WallTime> {
        let expired = self.expires.filter(|&end| end <= now);
        match (&self.ended, expired) {
            (Some(said), Some(end)) => Some(said.time.min(end)),
            (Some(said), None) => Some(said.time),
            (None, expired) => expired,
        }
    }
}

/// Milliseconds from when an announced drain takes hold to the moment it is announced for: the TTL of answers meanwhile (5 s),
/// a second that resolvers round up, and one for clocks that differ.
const LEAD: u64 = 7000;

/// Longest time until a record begins, seconds: 30 days.
pub const MAX_AHEAD: u32 = 30 * 86_400;
/// Longest time that a record stands which ends by itself, seconds: a year.
pub const MAX_STANDING: u32 = 365 * 86_400;

/// How long a challenge stands, seconds: an hour.
pub const CHALLENGE_SECONDS: u32 = 3600;
/// Challenges of one name that stand at most.
pub const MAX_CHALLENGES_OF_ONE: usize = 8;
/// Challenges that stand at most: drains and forces find room beside them.
pub const MAX_CHALLENGES: usize = 2000;

/// Records kept at most: more are refused, the oldest that are over make room.
pub const MAX_RECORDS: usize = 10_000;

/// How long a record that is over is kept, milliseconds: 30 days. A node that was away for longer may bring it back.
const KEPT_OVER: u64 = 30 * 24 * 3600 * 1000;

/// How long a challenge that is over is kept, milliseconds: two hours, so that one that was ended does not come back from a node that
/// missed it. After an hour it is over by itself.
const CHALLENGE_KEPT_OVER: u64 = 2 * 3600 * 1000;

/// All records, by id. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorRecords(Arc<BTreeMap<RecordId, Arc<OperatorRecord>>>);

impl OperatorRecords {
    /// Gives one.
    #[must_use]
    pub fn get(&self, id: &RecordId) -> Option<&Arc<OperatorRecord>> {
        self.0.get(id)
    }

    /// Iterates over all, by id.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<OperatorRecord>> {
        self.0.values()
    }

    /// Counts them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Tells whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over those that are not over.
    pub fn standing(&self, now: WallTime) -> impl Iterator<Item = &Arc<OperatorRecord>> {
        self.iter()
            .filter(move |record| record.phase(now) != Phase::Over)
    }

    /// Finds the record not yet over that wants the same of the same target.
    #[must_use]
    pub fn same(
        &self,
        target: &OperatorTarget,
        intent: Intent,
        now: WallTime,
    ) -> Option<&Arc<OperatorRecord>> {
        self.standing(now)
            .find(|record| record.intent == intent && record.target == *target)
    }

    /// Gives the next moment after `now` at which any of them stands elsewhere by itself.
    #[must_use]
    pub fn next_change(&self, now: WallTime) -> Option<WallTime> {
        self.iter()
            .filter_map(|record| record.next_change(now))
            .min()
    }

    /// Takes one record in. Tells whether anything changed.
    ///
    /// Of two with one id the smaller body wins, and the earlier end: on every node the same. Where there is no room, the
    /// record that has been over for longest goes; if none is over, the new one is not taken.
    pub fn merge(&mut self, record: OperatorRecord, now: WallTime) -> bool {
        let merged = if let Some(held) = self.0.get(&record.id) {
            let merged = join(held, record);
            if **held == merged {
                return false;
            }
            merged
        } else if self.len() < MAX_RECORDS || self.make_room(now) {
            record
        } else {
            return false;
        };
        Arc::make_mut(&mut self.0).insert(merged.id.clone(), Arc::new(merged));
        true
    }

    /// Forgets what has been over for 30 days. Tells whether anything was.
    pub fn prune(&mut self, now: WallTime) -> bool {
        let is_old = |record: &Arc<OperatorRecord>| record.is_forgotten(now);
        if !self.iter().any(is_old) {
            return false;
        }
        Arc::make_mut(&mut self.0).retain(|_, record| !is_old(record));
        true
    }

    /// Forgets the one that has been over for longest.
    fn make_room(&mut self, now: WallTime) -> bool {
        let oldest = self
            .iter()
            .filter_map(|record| Some((record.over_since(now)?, record.id.clone())))
            .min();
        let Some((_, id)) = oldest else {
            return false;
        };
        Arc::make_mut(&mut self.0).remove(&id);
        true
    }
}

/// Merges two records of one id.
fn join(held: &OperatorRecord, other: OperatorRecord) -> OperatorRecord {
    let ended = match (held.ended.clone(), other.ended.clone()) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    };
    let body = |record: &OperatorRecord| OperatorRecord {
        ended: None,
        ..record.clone()
    };
    OperatorRecord {
        ended,
        ..body(held).min(body(&other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn said(time: u64, actor: &str) -> Said {
        Said {
            time: WallTime(time),
            actor: actor.into(),
            reason: "because".into(),
        }
    }

    fn record(id: &str, created: u64, ended: Option<u64>) -> OperatorRecord {
        OperatorRecord {
            id: id.parse().unwrap(),
            target: OperatorTarget::Cluster("a".parse().unwrap()),
            intent: Intent::Drain,
            created: said(created, "ann"),
            starts: WallTime(created),
            expires: None,
            ended: ended.map(|time| said(time, "bob")),
        }
    }

    #[test]
    fn a_record_is_announced_then_active_then_over() {
        let mut one = record("x", 10, None);
        one.intent = Intent::ForceDown;
        one.starts = WallTime(20);
        one.expires = Some(WallTime(30));
        for (now, phase, next) in [
            (10, Phase::Announced, Some(20)),
            (19, Phase::Announced, Some(20)),
            (20, Phase::Active, Some(30)),
            (30, Phase::Over, None),
        ] {
            let now = WallTime(now);
            assert_eq!(one.phase(now), phase);
            assert_eq!(one.next_change(now), next.map(WallTime));
        }
        let mut early = record("y", 1000, None);
        for (starts, holds) in [(1000, 1000), (1500, 1000), (8000, 1000), (20_000, 13_000)] {
            early.starts = WallTime(starts);
            assert_eq!(early.takes_hold(), WallTime(holds));
        }
        early.intent = Intent::ForceUp;
        assert_eq!(early.takes_hold(), WallTime(20_000));
        one.ended = Some(said(15, "bob"));
        assert_eq!(one.phase(WallTime(16)), Phase::Over);
        assert_eq!(one.over_since(WallTime(40)), Some(WallTime(15)));
    }

    #[test]
    fn absurd_times_are_named() {
        let now = WallTime(1_000);
        let year = u64::from(MAX_STANDING) * 1000;
        let month = u64::from(MAX_AHEAD) * 1000;
        let sound = record("x", 500, Some(600));
        assert_eq!(sound.absurdity(now), None);
        let of = |created: u64, starts: u64, expires: Option<u64>, ended: Option<u64>| {
            let mut one = record("x", created, ended);
            one.starts = WallTime(starts);
            one.expires = expires.map(WallTime);
            one.absurdity(now)
        };
        for (created, starts, expires, ended) in [
            (1_000 + year, 1_000 + year, None, None),
            (0, month, Some(month + year), None),
            (900, 900, Some(901), Some(100)),
            (900, 900, None, Some(1_000 + year)),
        ] {
            assert_eq!(of(created, starts, expires, ended), None);
        }
        for (created, starts, expires, ended, word) in [
            (1_001 + year, 1_001 + year, None, None, "ahead"),
            (u64::MAX, u64::MAX, None, None, "ahead"),
            (0, 0, None, Some(u64::MAX), "ahead"),
            (2, 1, None, None, "before it was made"),
            (0, month + 1, None, None, "30 days"),
            (0, u64::MAX, None, None, "30 days"),
            (0, 5, Some(5), None, "before it begins"),
            (0, 0, Some(year + 1), None, "than a year"),
            (0, 0, Some(u64::MAX), None, "than a year"),
        ] {
            let found = of(created, starts, expires, ended).unwrap();
            assert!(found.contains(word), "{found}");
        }
    }

    #[test]
    fn what_is_over_for_long_is_forgotten_and_makes_room() {
        let mut records = OperatorRecords::default();
        let now = WallTime(KEPT_OVER + 100);
        assert!(records.merge(record("old", 1, Some(50)), now));
        assert!(records.merge(record("young", 1, Some(150)), now));
        assert!(records.merge(record("open", 1, None), now));
        assert!(records.prune(now));
        assert!(!records.prune(now));
        let left: Vec<&str> = records.iter().map(|record| record.id.as_str()).collect();
        assert_eq!(left, ["open", "young"]);
        for number in records.len()..MAX_RECORDS {
            assert!(records.merge(record(&format!("n-{number}"), 1, None), now));
        }
        assert!(records.merge(record("next", 1, None), now), "young goes");
        assert!(!records.merge(record("none", 1, None), now), "all stand");
        assert_eq!(records.len(), MAX_RECORDS);
    }

    proptest! {
        #[test]
        fn merging_is_the_same_in_any_order(
            all in prop::collection::vec((0..4_u8, 0..3_u64, prop::option::of(0..5_u64)), 0..12),
            seed in any::<u64>(),
        ) {
            let now = WallTime(10);
            let made: Vec<OperatorRecord> = all
                .iter()
                .map(|(id, created, ended)| record(&format!("r-{id}"), *created, *ended))
                .collect();
            let mut shuffled = made.clone();
            let mut state = seed | 1;
            for at in (1..shuffled.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                shuffled.swap(at, usize::try_from(state >> 33).unwrap() % (at + 1));
            }
            let gather = |records: Vec<OperatorRecord>| {
                let mut all = OperatorRecords::default();
                for record in records.iter().chain(&records) {
                    all.merge(record.clone(), now);
                }
                all
            };
            prop_assert_eq!(gather(made), gather(shuffled));
        }
    }
}
