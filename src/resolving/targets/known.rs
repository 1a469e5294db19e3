//! One family of one target's addresses, as the answers so far have it.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use crate::model::{Moment, Ttl, not_reachable};

/// Most addresses kept of one family.
pub(super) const MAX_ADDRESSES: usize = 64;

/// Addresses that nobody confirms stay in use for so long (DESIGN section 4.4).
pub(super) const KEPT: Duration = Duration::from_secs(3600);

/// Denials in a row that remove.
const DENIALS: u8 = 2;

/// An answer whose TTL ends at most so much later than the period is of the same period, out of a cache: caches count whole
/// seconds.
const SLACK: Duration = Duration::from_secs(1);

/// A TTL counts at least so much: 0 would mean to ask without a pause.
const LEAST_TTL: Duration = Duration::from_secs(1);

/// A TTL counts at most so much: what one answer says must not last for years.
const MOST_TTL: Duration = Duration::from_secs(86_400);

/// Longest reason, characters.
const MAX_REASON: usize = 200;

/// One of the two families of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Family {
    /// Type A.
    V4,
    /// Type AAAA.
    V6,
}

impl Family {
    /// Gives the record type's mnemonic.
    pub(super) fn record_type(self) -> &'static str {
        match self {
            Self::V4 => "A",
            Self::V6 => "AAAA",
        }
    }

    /// Tells why nobody can be sent to an address of an answer; `None`: one can.
    fn refuse(self, address: IpAddr) -> Option<String> {
        if address.is_ipv4() != (self == Self::V4) {
            return Some("is of the other family".to_owned());
        }
        not_reachable(address)
    }
}

/// What became of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Addresses.
    Addresses {
        /// Which, in any order; not checked.
        addresses: Vec<IpAddr>,
        /// The lowest TTL on the way to them.
        ttl: Ttl,
    },
    /// The name has none of this family (RFC 2308 section 2.2).
    NoData {
        /// How long that holds (RFC 2308 section 5); `None`: not said.
        ttl: Option<Ttl>,
    },
    /// There is no such name (RFC 2308 section 2.1).
    NxDomain {
        /// How long that holds; `None`: not said.
        ttl: Option<Ttl>,
    },
    /// Nobody knows: why, in a few words.
    Failed(Box<str>),
    /// Its aliases lead in a circle, back into our own zones, or too far: the same to its addresses as a failure, and told.
    Circle(Box<str>),
}

/// How well a family is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// No address is held.
    Nothing,
    /// Confirmed by the last answer.
    Fresh,
    /// Not confirmed since.
    Failing(Moment),
    /// Not confirmed since, for too long.
    Expired(Moment),
}

/// What follows from an outcome for the next question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// Before the TTL ends.
    Before(Duration),
    /// When the denial no longer holds.
    After(Option<Duration>),
    /// Soon, and later with each failure in a row: this many.
    Failed(u32),
}

/// What is known of one family of a target.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Addresses of this TTL period.
    current: BTreeSet<IpAddr>,
    /// Addresses of the period before.
    previous: BTreeSet<IpAddr>,
    /// When this period ends.
    ends: Moment,
    /// When the TTL of the last answer ends.
    expires: Moment,
    /// Denials since the last answer. A failure between two of them says nothing and changes nothing.
    denials: u8,
    /// The first failure or denial since the last answer.
    failing: Option<Moment>,
    /// Failures in a row.
    failures: u32,
    /// What went wrong last.
    error: Option<Box<str>>,
    /// That was a circle of aliases.
    is_circular: bool,
    /// Addresses refused of the last answer.
    refused: u32,
    /// Nothing was answered yet: what is held is from before the start.
    remembered: Option<Remembered>,
}

/// How well addresses were known before the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remembered {
    /// They were in use.
    InUse,
    /// They were not confirmed for too long already.
    Expired,
}

impl Known {
    /// Begins with what was known before the start: of this family's addresses those in use, else the old ones. They stand as if
    /// a question had failed now; the first answer takes their place.
    pub(super) fn remember(
        family: Family,
        addresses: &[IpAddr],
        old: &[IpAddr],
        now: Moment,
    ) -> Self {
        let usable = |all: &[IpAddr]| -> BTreeSet<IpAddr> {
            let all = all.iter().filter(|one| family.refuse(**one).is_none());
            all.copied().take(MAX_ADDRESSES).collect()
        };
        let (mut current, mut remembered) = (usable(addresses), Remembered::InUse);
        if current.is_empty() {
            (current, remembered) = (usable(old), Remembered::Expired);
        }
        if current.is_empty() {
            return Self::default();
        }
        Self {
            current,
            ends: now,
            expires: now,
            failing: Some(now),
            remembered: Some(remembered),
            ..Self::default()
        }
    }

    /// Takes an outcome.
    pub(super) fn take(&mut self, family: Family, outcome: Outcome, now: Moment) -> Again {
        self.is_circular = matches!(outcome, Outcome::Circle(_));
        match outcome {
            Outcome::Addresses { addresses, ttl } if addresses.is_empty() => {
                self.deny("has no address", now);
                Again::After(Some(counted(ttl)))
            }
            Outcome::Addresses { addresses, ttl } => {
                let (usable, error) = self.sift(family, addresses);
                if usable.is_empty() {
                    return self.fail(error.as_deref().unwrap_or_default(), now);
                }
                self.renew(usable, counted(ttl), now);
                self.error = error;
                Again::Before(counted(ttl))
            }
            Outcome::NoData { ttl } => {
                self.deny("has no address", now);
                Again::After(ttl.map(counted))
            }
            Outcome::NxDomain { ttl } => {
                self.deny("does not exist (NXDOMAIN)", now);
                Again::After(ttl.map(counted))
            }
            Outcome::Failed(reason) | Outcome::Circle(reason) => self.fail(&reason, now),
        }
    }

    /// Sorts out what nobody can be sent to, and counts it. Says what it was.
    fn sift(
        &mut self,
        family: Family,
        addresses: Vec<IpAddr>,
    ) -> (BTreeSet<IpAddr>, Option<Box<str>>) {
        let (mut usable, mut refused, mut first) = (BTreeSet::new(), 0_u32, None);
        for address in addresses.into_iter().collect::<BTreeSet<_>>() {
            let why = match family.refuse(address) {
                None if usable.len() < MAX_ADDRESSES => {
                    usable.insert(address);
                    continue;
                }
                None => format!("is beyond the first {MAX_ADDRESSES}"),
                Some(why) => why,
            };
            refused = refused.saturating_add(1);
            first.get_or_insert_with(|| format!("{address} {why}"));
        }
        self.refused = refused;
        let error = first.map(|first| {
            bounded(&match refused {
                1 => format!("an address is refused: {first}"),
                count => format!("{count} addresses are refused, one of them: {first}"),
            })
        });
        (usable, error)
    }

    /// Takes the addresses of an answer.
    fn renew(&mut self, usable: BTreeSet<IpAddr>, ttl: Duration, now: Moment) {
        let expires = now.after(ttl);
        let begins_anew = self.is_denied()
            || self.remembered.take().is_some()
            || matches!(self.standing(now), Standing::Nothing | Standing::Expired(_));
        if begins_anew {
            // What was removed, or is too old, does not come back beside what is new.
            self.previous.clear();
            self.current = usable;
            self.ends = expires;
        } else if expires > self.ends.after(SLACK) {
            self.previous = std::mem::replace(&mut self.current, usable);
            self.ends = expires;
        } else {
            self.current = union(&usable, &self.current);
        }
        self.expires = expires;
        (self.denials, self.failures, self.failing) = (0, 0, None);
    }

    /// Takes a denial.
    fn deny(&mut self, why: &str, now: Moment) {
        self.denials = self.denials.saturating_add(1);
        (self.failures, self.refused) = (0, 0);
        self.failing.get_or_insert(now);
        self.error = Some(bounded(why));
    }

    /// Takes a failure.
    fn fail(&mut self, reason: &str, now: Moment) -> Again {
        self.failures = self.failures.saturating_add(1);
        self.failing.get_or_insert(now);
        self.error = Some(bounded(reason));
        Again::Failed(self.failures)
    }

    /// Tells whether name servers said often enough in a row that there is no address.
    pub(super) fn is_denied(&self) -> bool {
        self.denials >= DENIALS
    }

    /// Tells whether the last that name servers said is that there is no address.
    pub(super) fn is_doubted(&self) -> bool {
        self.denials > 0
    }

    /// Tells how well it is known.
    pub(super) fn standing(&self, now: Moment) -> Standing {
        match self.failing {
            _ if self.current.is_empty() && self.previous.is_empty() => Standing::Nothing,
            None => Standing::Fresh,
            Some(since) if self.remembered == Some(Remembered::Expired) => Standing::Expired(since),
            Some(since) if now.since(since) >= KEPT && now >= self.expires => {
                Standing::Expired(since)
            }
            Some(since) => Standing::Failing(since),
        }
    }

    /// Gives the addresses of this period and the one before, at most 64: those of this period first of all.
    pub(super) fn held(&self) -> BTreeSet<IpAddr> {
        union(&self.current, &self.previous)
    }

    /// Gives the end of the TTL.
    pub(super) fn expires(&self) -> Moment {
        self.expires
    }

    /// Gives what went wrong last; `None` when nothing did since the last answer.
    pub(super) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Tells whether its aliases lead in a circle.
    pub(super) fn is_circular(&self) -> bool {
        self.is_circular
    }

    /// Counts the addresses refused of the last answer.
    pub(super) fn refused(&self) -> u32 {
        self.refused
    }
}

/// Gives all of the first and, as far as there is room, of the second.
fn union(first: &BTreeSet<IpAddr>, second: &BTreeSet<IpAddr>) -> BTreeSet<IpAddr> {
    let room = MAX_ADDRESSES.saturating_sub(first.len());
    let others = second.difference(first).take(room);
    first.iter().chain(others).copied().collect()
}

/// Gives the time that a TTL counts for.
fn counted(ttl: Ttl) -> Duration {
    Duration::from_secs(ttl.seconds().into()).clamp(LEAST_TTL, MOST_TTL)
}

/// Cuts a reason that others had a word in: one line, and not long.
pub(super) fn bounded(reason: &str) -> Box<str> {
    let plain = |c: char| if c.is_control() { '?' } else { c };
    reason.chars().take(MAX_REASON).map(plain).collect()
}
