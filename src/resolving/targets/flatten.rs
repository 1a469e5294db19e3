//! Which target is asked for when, and what its answers make of it. No clock, no socket: the driver has both.
//!
//! A new target is asked for at once, in both families. After an answer the next question comes between 90 and 99 % of its TTL,
//! after a denial when that no longer holds, after failures in growing steps; never sooner than 5 s (the first times after a
//! failure 1 s), never later than 5 min.
//!
//! Names may be a tenant's, and so may be the servers that are silent about them. What was answered last time waits for none of
//! those: places are kept for it, and for what was never asked (`queue.rs`).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::known::{Again, Family, KEPT, Known, Outcome, Standing, bounded};
use super::own::OwnZones;
use super::queue::{Class, Queue};
use super::table::{Resolution, Table, TargetState};
use crate::model::{LowerName, Moment};

/// Most targets. At a TTL of a minute they make some two thousand questions a second, as many as one resolver should get.
pub(super) const MAX_TARGETS: usize = 65_536;

/// Shortest pause after an answer, whatever its TTL: a tenant's TTL of 0 must not make a storm.
const LEAST_PAUSE: Duration = Duration::from_secs(5);

/// Shortest pause after a failure. Pauses grow from there.
const LEAST_FAILED_PAUSE: Duration = Duration::from_secs(1);

/// Longest pause, before its jitter of a tenth: 5 min in all.
const MOST_PAUSE: Duration = Duration::from_millis(272_700);

/// Pause after a denial that does not say how long it holds.
const DENIED_PAUSE: Duration = Duration::from_secs(30);

/// Shortest pause after a denial: two in a row remove, and should not come from one hiccup.
const LEAST_DENIED_PAUSE: Duration = Duration::from_secs(5);

/// Longest pause after failures: the first success should be noticed soon, and a dead server not be asked all the time.
const MOST_FAILED_PAUSE: Duration = Duration::from_secs(60);

/// What is to be asked: the addresses of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TargetQuestion {
    /// Of which name.
    pub(super) name: LowerName,
    /// Of which family.
    pub(super) family: Family,
    /// Tells it from an earlier question for the same, whose answer may still come.
    ticket: u64,
}

/// All targets. Deterministic: equal calls give equal results. `due` and `answered` cost O(log n).
#[derive(Debug)]
pub(super) struct Flattened {
    targets: BTreeMap<LowerName, Target>,
    /// What waits, and which questions are out, also those of targets that nobody wants any more.
    queue: Queue,
    tickets: u64,
    seed: u64,
    /// What was known before the start of names that nobody wanted so far.
    remembered: HashMap<LowerName, RememberedTarget>,
    /// The last table given out, while nothing has changed.
    table: Option<Arc<Table>>,
}

/// Where a target was before the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RememberedTarget {
    /// [`Resolution::addresses`].
    pub addresses: Box<[IpAddr]>,
    /// [`Resolution::old`].
    pub old: Box<[IpAddr]>,
}

/// A target with what is known of it.
#[derive(Debug)]
struct Target {
    /// `None`: it is refused, and never asked for.
    sides: Option<Sides>,
    resolution: Arc<Resolution>,
}

/// Both families.
#[derive(Debug)]
struct Sides {
    v4: Side,
    v6: Side,
}

/// One family.
#[derive(Debug)]
struct Side {
    known: Known,
    phase: Phase,
}

/// Where one family is between two questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It waits; the queue has this entry.
    Waits(Class, Moment),
    /// The question with this ticket is out.
    Out(u64),
}

impl Flattened {
    /// Makes an empty one; `seed` spreads the questions.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            targets: BTreeMap::new(),
            queue: Queue::default(),
            tickets: 0,
            seed,
            remembered: HashMap::new(),
            table: None,
        }
    }

    /// Takes what was known before the start: a name begins with it when it is wanted within an hour.
    pub(super) fn remember(&mut self, remembered: HashMap<LowerName, RememberedTarget>) {
        self.remembered = remembered;
    }

    /// Sets which names are wanted and which zones are our own. New names are due at once, names left out are forgotten; names
    /// in one of `own`, and those beyond 65,536, are refused and never asked for. Tells whether the table changed.
    pub(super) fn want(
        &mut self,
        names: &BTreeSet<LowerName>,
        own: &OwnZones,
        now: Moment,
    ) -> bool {
        let mut changed = false;
        if now.0 >= KEPT {
            self.remembered = HashMap::new();
        }
        let is_ours = |name: &LowerName| own.zone_of(name).is_some();
        let left: Vec<LowerName> = self
            .targets
            .iter()
            .filter(|(name, target)| {
                !names.contains(*name) || target.sides.is_none() || is_ours(name)
            })
            .map(|(name, _)| name.clone())
            .collect();
        // What was refused is looked at anew.
        let mut former = BTreeMap::new();
        for name in left {
            if let Some(target) = self.forget(&name) {
                former.insert(name, target.resolution);
            }
        }
        for name in names {
            if self.targets.contains_key(name) {
                continue;
            }
            let target = match own.zone_of(name) {
                Some(zone) => Target::refused(
                    TargetState::Own,
                    &format!("lies in our own zone {zone}, so nobody else is asked"),
                ),
                None if self.targets.len() >= MAX_TARGETS => Target::refused(
                    TargetState::Unresolved,
                    &format!("is not asked for: more than {MAX_TARGETS} targets"),
                ),
                None => {
                    self.queue
                        .enter(Class::New, (now, name.clone(), Family::V4));
                    self.queue
                        .enter(Class::New, (now, name.clone(), Family::V6));
                    let remembered = self.remembered.remove(name).unwrap_or_default();
                    Target::new(&remembered, now)
                }
            };
            changed |= former.remove(name).as_ref() != Some(&target.resolution);
            self.targets.insert(name.clone(), target);
        }
        changed |= !former.is_empty();
        if changed {
            self.table = None;
        }
        changed
    }

    /// Takes a target away.
    fn forget(&mut self, name: &LowerName) -> Option<Target> {
        let target = self.targets.remove(name)?;
        for (family, side) in target.sides.iter().flat_map(Sides::both) {
            if let Phase::Waits(class, moment) = side.phase {
                self.queue.remove(class, &(moment, name.clone(), family));
            }
        }
        Some(target)
    }

    /// Gives the questions that are due, the longest due first, as far as there are places. Each stays out until answered.
    pub(super) fn due(&mut self, now: Moment) -> Vec<TargetQuestion> {
        let mut questions = Vec::new();
        while let Some((class, (_, name, family))) = self.queue.take_due(now) {
            let Some(side) = side_of(&mut self.targets, &name, family) else {
                continue;
            };
            self.tickets += 1;
            side.phase = Phase::Out(self.tickets);
            self.queue.go_out(class, self.tickets);
            questions.push(TargetQuestion {
                name,
                family,
                ticket: self.tickets,
            });
        }
        questions
    }

    /// Tells when a question is due; `None`: nothing waits, or an answer must come first.
    pub(super) fn next_due(&self) -> Option<Moment> {
        self.queue.next_due()
    }

    /// Takes what became of a question. Tells whether the table changed. What was not asked, or whose target was forgotten
    /// meanwhile, changes nothing.
    pub(super) fn answered(
        &mut self,
        question: &TargetQuestion,
        outcome: Outcome,
        now: Moment,
    ) -> bool {
        let TargetQuestion {
            name,
            family,
            ticket,
        } = question;
        if !self.queue.come_back(*ticket) {
            return false;
        }
        let side = side_of(&mut self.targets, name, *family);
        let Some(side) = side.filter(|side| side.phase == Phase::Out(*ticket)) else {
            return false;
        };
        let again = side.known.take(*family, outcome, now);
        let next = now.after(pause(again, share_of((self.seed, ticket))));
        let class = match again {
            Again::Failed(_) => Class::Failed,
            Again::Before(_) | Again::After(_) => Class::Answered,
        };
        side.phase = Phase::Waits(class, next);
        self.queue.enter(class, (next, name.clone(), *family));
        let changed = self
            .targets
            .get_mut(name)
            .is_some_and(|target| target.renew(now));
        if changed {
            self.table = None;
        }
        changed
    }

    /// Gives what is known of one target.
    pub(super) fn resolution(&self, name: &LowerName) -> Option<&Arc<Resolution>> {
        self.targets.get(name).map(|target| &target.resolution)
    }

    /// Gives what is known of all. Free while nothing changes.
    pub(super) fn table(&mut self) -> Arc<Table> {
        let targets = &self.targets;
        let entry =
            |(name, target): (&LowerName, &Target)| (name.clone(), Arc::clone(&target.resolution));
        let table = self
            .table
            .get_or_insert_with(|| Arc::new(targets.iter().map(entry).collect()));
        Arc::clone(table)
    }
}

impl Target {
    /// Makes one that is to be asked for.
    fn new(remembered: &RememberedTarget, now: Moment) -> Self {
        let RememberedTarget { addresses, old } = remembered;
        let side = |family| Side {
            known: Known::remember(family, addresses, old, now),
            phase: Phase::Waits(Class::New, now),
        };
        let sides = Sides {
            v4: side(Family::V4),
            v6: side(Family::V6),
        };
        Self {
            resolution: Arc::new(sides.resolution(now)),
            sides: Some(sides),
        }
    }

    /// Makes one that is not.
    fn refused(state: TargetState, why: &str) -> Self {
        Self {
            sides: None,
            resolution: Arc::new(Resolution::empty(state, Some(bounded(why)))),
        }
    }

    /// Puts together anew what is known. Tells whether that changed.
    fn renew(&mut self, now: Moment) -> bool {
        let Some(sides) = &self.sides else {
            return false;
        };
        let resolution = sides.resolution(now);
        if resolution == *self.resolution {
            return false;
        }
        self.resolution = Arc::new(resolution);
        true
    }
}

impl Sides {
    fn both(&self) -> [(Family, &Side); 2] {
        [(Family::V4, &self.v4), (Family::V6, &self.v6)]
    }

    /// Puts both families together.
    fn resolution(&self, now: Moment) -> Resolution {
        let (v4, v6) = (&self.v4.known, &self.v6.known);
        if v4.is_denied() && v6.is_denied() {
            return Resolution::empty(TargetState::Gone, self.error(|_| true));
        }
        // A family that was denied goes while the other has addresses. The last addresses go only when both are denied.
        let holds = |known: &Known| known.standing(now) != Standing::Nothing;
        let stays =
            |this: &Known, other: &Known| holds(this) && !(this.is_denied() && holds(other));
        let (stays_v4, stays_v6) = (stays(v4, v6), stays(v6, v4));
        let mut gathered = Gathered::default();
        if stays_v4 {
            gathered.take(v4, now);
        }
        if stays_v6 {
            gathered.take(v6, now);
        }
        let has_any = stays_v4 || stays_v6;
        // That one family has no address is nothing wrong.
        let counts = |family: Family| match family {
            Family::V4 => stays_v4 || !has_any || !v4.is_doubted(),
            Family::V6 => stays_v6 || !has_any || !v6.is_doubted(),
        };
        Resolution {
            addresses: gathered.addresses.into_iter().collect(),
            old: gathered.old.into_iter().collect(),
            expires: gathered.expires,
            state: match (gathered.failing, gathered.is_current) {
                _ if !has_any => TargetState::Unresolved,
                (None, _) => TargetState::Fresh,
                (Some(since), true) => TargetState::Failing { since },
                (Some(since), false) => TargetState::Expired { since },
            },
            error: self.error(counts),
            is_circular: v4.is_circular() || v6.is_circular(),
            refused: v4.refused().saturating_add(v6.refused()),
        }
    }

    /// Says what is wrong with the families that count.
    fn error(&self, counts: impl Fn(Family) -> bool) -> Option<Box<str>> {
        let reasons: Vec<(Family, &str)> = self
            .both()
            .into_iter()
            .filter(|(family, _)| counts(*family))
            .filter_map(|(family, side)| Some((family, side.known.error()?)))
            .collect();
        let text = match &*reasons {
            [] => return None,
            [(_, one), (_, other)] if one == other => format!("A and AAAA: {one}"),
            reasons => {
                let texts = reasons
                    .iter()
                    .map(|(family, reason)| format!("{}: {reason}", family.record_type()));
                texts.collect::<Vec<_>>().join("; ")
            }
        };
        Some(text.into())
    }
}

/// What both families give together.
#[derive(Debug, Default)]
struct Gathered {
    addresses: BTreeSet<IpAddr>,
    old: BTreeSet<IpAddr>,
    expires: Option<Moment>,
    /// The earlier of both families' failures.
    failing: Option<Moment>,
    /// A family has addresses that are not too old.
    is_current: bool,
}

impl Gathered {
    fn take(&mut self, known: &Known, now: Moment) {
        let (is_current, failing) = match known.standing(now) {
            Standing::Nothing => return,
            Standing::Fresh => (true, None),
            Standing::Failing(since) => (true, Some(since)),
            Standing::Expired(since) => (false, Some(since)),
        };
        if is_current {
            self.is_current = true;
            self.addresses.extend(known.held());
            self.expires = earlier(self.expires, Some(known.expires()));
        } else {
            self.old.extend(known.held());
        }
        self.failing = earlier(self.failing, failing);
    }
}

/// Gives the earlier of two moments, as far as there are any.
fn earlier(one: Option<Moment>, other: Option<Moment>) -> Option<Moment> {
    one.into_iter().chain(other).min()
}

/// Finds one family of a target.
fn side_of<'t>(
    targets: &'t mut BTreeMap<LowerName, Target>,
    name: &LowerName,
    family: Family,
) -> Option<&'t mut Side> {
    let sides = targets.get_mut(name)?.sides.as_mut()?;
    Some(match family {
        Family::V4 => &mut sides.v4,
        Family::V6 => &mut sides.v6,
    })
}

/// Gives the pause until the next question. `share`, 0..=255, is the part of its jitter: together less than a tenth more.
fn pause(again: Again, share: u8) -> Duration {
    let pause = match again {
        Again::Before(ttl) => ttl / 10 * 9,
        Again::After(ttl) => ttl.unwrap_or(DENIED_PAUSE).max(LEAST_DENIED_PAUSE),
        Again::Failed(failures) => {
            let doubled = 1_u32.checked_shl(failures.saturating_sub(1));
            let seconds = doubled.unwrap_or(u32::MAX);
            Duration::from_secs(seconds.into()).min(MOST_FAILED_PAUSE)
        }
    };
    let least = match again {
        Again::Failed(_) => LEAST_FAILED_PAUSE,
        Again::Before(_) | Again::After(_) => LEAST_PAUSE,
    };
    let pause = pause.clamp(least, MOST_PAUSE);
    pause + pause / 2560 * u32::from(share)
}

/// Draws a number that equal seeds draw again; nothing here guards a secret.
fn share_of(drawn: impl Hash) -> u8 {
    let mut hasher = DefaultHasher::new();
    drawn.hash(&mut hasher);
    let [share, ..] = hasher.finish().to_be_bytes();
    share
}
