//! All monitors of this node.
//!
//! When probes start. A new monitor's first probe is due at once, so that verdicts come soon; the second comes after a random
//! part of the interval, which spreads the fleet. From then on probes start 0.87 to 0.97 intervals apart: never later than the
//! interval, so that "interval plus two timeouts" is a bound and not a mean. What fell behind by more than an interval (a
//! pause of the machine, too few probes at once) is not made up for: it is probed once and spread anew.
//!
//! A target that may not be probed is asked for all the same, once an interval: who runs the probes answers each order, with an
//! observation or with a refusal. Nothing that was seen or remembered of it before stands then.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::BuildHasher;
use std::net::SocketAddr;
use std::time::Duration;

use super::monitor::{Monitor, Next};
use super::observation::{Flip, MonitorId, MonitorReport, Observation, ProbeOrder, Refusal};
use super::spoken_for::{Judges, Sets, SpokenFor};
use super::table::{MonitorTable, Row, Targets};
use crate::model::{Chance, EndpointIndex, Lookup, Moment, Origin, Slab, Target, Tick, Verdict};

/// The longest wait before a probe that should come at once: failures seen together are not all looked at again together.
const AT_ONCE: Duration = Duration::from_millis(50);

/// All monitors. Deterministic: equal calls give equal results. `due` and `observe` cost O(log n).
#[derive(Debug, Default)]
pub struct Fleet {
    /// What is probed, by [`MonitorId`].
    targets: Targets,
    /// By [`MonitorId`].
    slots: Slab<Watched>,
    by_target: Lookup,
    /// Endpoints of monitors that speak for several.
    sets: Sets,
    judges: Judges,
    /// Monitors that wait, the next one first. Those with a probe out are not here.
    queue: BTreeSet<(Tick, MonitorId)>,
    chance: Chance,
}

/// What is thought of a target.
#[derive(Debug)]
struct Watched {
    monitor: Monitor,
    /// Why the last order was not carried out.
    refused: Option<Refusal>,
    /// Whom it speaks for. Nobody: gone, and only here until its probe comes back.
    endpoints: SpokenFor,
    /// Its probe is out; else it waits.
    is_out: bool,
    /// Since when its probe is out, or until when it waits: the queue has this entry.
    edge: Tick,
    /// Its next interval is a random part of one.
    spread: bool,
}

/// A monitor to look at and to change.
struct Held<'f> {
    target: &'f Target,
    watched: &'f mut Watched,
    sets: &'f mut Sets,
}

/// What endpoints are judged as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Standing {
    verdict: Verdict,
    in_doubt: bool,
    refused: Option<Refusal>,
}

/// Verdicts that monitors leave behind, by address and port, and by whose word they were probed; Unknown where two disagree.
type Legacy = HashMap<(SocketAddr, Origin), Verdict>;

impl Fleet {
    /// Makes an empty fleet; `seed` spreads first probes and jitter.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            chance: Chance::new(seed),
            ..Self::default()
        }
    }

    /// Adds and takes away endpoints, `unwatch` first. Equal targets share one monitor, whose verdict the newcomer takes over
    /// at once (such flips are returned). An endpoint added again moves to its new target; named twice, to the last. A new
    /// check of an address and port that lost another check in the same change begins with that one's verdict: editing a check
    /// brings no dead cluster back.
    pub fn change(
        &mut self,
        mut watch: Vec<(EndpointIndex, Target)>,
        unwatch: &[EndpointIndex],
        now: Moment,
    ) -> Vec<Flip> {
        keep_last(&mut watch);
        let mut legacy = Legacy::new();
        let mut left = Vec::new();
        for &endpoint in unwatch {
            left.extend(self.detach(endpoint, &mut legacy));
        }
        let mut before = Vec::with_capacity(watch.len());
        for (endpoint, target) in &watch {
            before.push(self.leave(*endpoint, target, &mut legacy, &mut left));
        }
        let mut flips = Vec::new();
        for ((endpoint, target), before) in watch.into_iter().zip(before) {
            let id = self.monitor_of(target, &legacy, now);
            flips.extend(self.attach(endpoint, id, before));
        }
        for id in left {
            self.retire(id);
        }
        flips
    }

    /// Sets verdicts remembered from before a restart, for targets without a verdict yet. Unknown targets are ignored (add
    /// endpoints first), and so are refused ones.
    pub fn restore(&mut self, verdicts: &[(Target, Verdict)]) -> Vec<Flip> {
        let mut flips = Vec::new();
        for (target, verdict) in verdicts {
            let Some(id) = self.find(target) else {
                continue;
            };
            let Some(held) = self.held(id) else {
                continue;
            };
            if held.watched.refused.is_some() {
                continue;
            }
            let before = held.watched.standing();
            held.watched.monitor.restore(*verdict);
            let taken_over = held.flip(id, before);
            flips.extend(taken_over.map(|flip| Flip {
                observed: false,
                ..flip
            }));
        }
        flips
    }

    /// Gives at most `limit` probes that are due, the longest due first; each stays out until observed.
    pub fn due(&mut self, now: Moment, limit: usize) -> Vec<ProbeOrder> {
        let mut orders = Vec::new();
        while orders.len() < limit {
            let is_due = |(moment, _): &&(Tick, MonitorId)| *moment <= Tick::from(now);
            let Some(&(moment, id)) = self.queue.first().filter(is_due) else {
                break;
            };
            self.queue.pop_first();
            let Some(held) = self.held(id) else {
                continue;
            };
            let (target, watched) = (held.target, held.watched);
            (watched.is_out, watched.edge) = (true, now.into());
            watched.spread |= now.since(moment.into()) > target.spec.interval;
            orders.push(ProbeOrder {
                monitor: id,
                target: target.clone(),
            });
        }
        orders
    }

    /// Tells when the next probe is due; `None`: nothing waits.
    #[must_use]
    pub fn next_due(&self) -> Option<Moment> {
        self.queue.first().map(|(moment, _)| (*moment).into())
    }

    /// Takes the result of a probe. A first failure has the target probed again at once. What was not ordered, or whose
    /// monitor is gone by now, changes nothing.
    pub fn observe(&mut self, observation: Observation, now: Moment) -> Option<Flip> {
        let Observation { monitor, result } = observation;
        self.answer(monitor, now, |target, watched| {
            watched.refused = None;
            watched.monitor.observe(result, &target.spec, now)
        })
    }

    /// Takes the word that the target of an order may not be probed: from now on its verdict is Unknown, without doubt and
    /// without a last result. It is asked for again an interval later.
    pub fn refuse(&mut self, monitor: MonitorId, why: Refusal, now: Moment) -> Option<Flip> {
        let flip = self.answer(monitor, now, |_, watched| {
            watched.monitor = Monitor::default();
            watched.refused = Some(why);
            Next::Interval
        });
        flip.map(|flip| Flip {
            observed: false,
            ..flip
        })
    }

    /// Has targets due at once: of those that wait the ones that `wants` picks by what they were refused for, if they were.
    /// For when other targets may be probed than before.
    pub fn hurry(&mut self, now: Moment, wants: impl Fn(&Target, Option<Refusal>) -> bool) {
        for id in (0..self.slots.end()).map(MonitorId) {
            let (targets, slots) = (&self.targets, &mut self.slots);
            let (Some(watched), Some(target)) = (slots.get_mut(id.0), targets.get(id)) else {
                continue;
            };
            if !watched.is_out && wants(target, watched.refused) {
                self.queue.remove(&(watched.edge, id));
                watched.edge = now.into();
                self.queue.insert((watched.edge, id));
            }
        }
    }

    /// Reports on every monitor.
    #[must_use]
    pub fn table(&self) -> MonitorTable {
        let all = (0..self.slots.end()).map(MonitorId);
        let rows = all.map(|id| {
            let watched = self.slots.get(id.0)?;
            watched.row(self.targets.get(id)?, &self.sets)
        });
        MonitorTable::new(self.targets.clone(), rows.collect())
    }

    /// Reports on one monitor; `None` when it is gone.
    #[must_use]
    pub fn report(&self, id: MonitorId) -> Option<MonitorReport<'_>> {
        let watched = self.slots.get(id.0)?;
        let target = self.targets.get(id)?;
        let row = watched.row(target, &self.sets);
        row.map(|row| row.report(target))
    }

    /// Ends an order: `judge` takes what came of it and says when the next is due.
    fn answer(
        &mut self,
        id: MonitorId,
        now: Moment,
        judge: impl FnOnce(&Target, &mut Watched) -> Next,
    ) -> Option<Flip> {
        let watched = self.slots.get_mut(id.0)?;
        if !watched.is_out {
            return None;
        }
        if watched.endpoints.is_empty() {
            self.release(id);
            return None;
        }
        let target = self.targets.get(id)?;
        let before = watched.standing();
        let next = judge(target, watched);
        let interval = target.spec.interval;
        let moment = watched.next_moment((next, interval), now, &mut self.chance);
        (watched.is_out, watched.edge) = (false, moment.into());
        self.queue.insert((watched.edge, id));
        self.held(id)?.flip(id, before)
    }

    /// Finds the monitor of a target.
    fn find(&self, target: &Target) -> Option<MonitorId> {
        let is_it = |number| self.targets.get(MonitorId(number)) == Some(target);
        let found = self.by_target.find(self.by_target.hash(target), is_it);
        found.map(MonitorId)
    }

    /// Gives a monitor.
    fn held(&mut self, id: MonitorId) -> Option<Held<'_>> {
        Some(Held {
            target: self.targets.get(id)?,
            watched: self.slots.get_mut(id.0)?,
            sets: &mut self.sets,
        })
    }

    /// Takes an endpoint from its monitor, leaving the monitor's verdict in `legacy`. `None` when it had none.
    fn detach(&mut self, endpoint: EndpointIndex, legacy: &mut Legacy) -> Option<MonitorId> {
        let id = self.judges.set(endpoint, None)?;
        let held = self.held(id)?;
        held.sets.remove(&mut held.watched.endpoints, endpoint);
        let verdict = held.watched.monitor.verdict();
        legacy
            .entry(heritage(held.target))
            .and_modify(|other| {
                if *other != verdict {
                    *other = Verdict::Unknown;
                }
            })
            .or_insert(verdict);
        Some(id)
    }

    /// Takes an endpoint that moves to `target` from its former monitor, noted in `left`. Gives what stood for it until now.
    fn leave(
        &mut self,
        endpoint: EndpointIndex,
        target: &Target,
        legacy: &mut Legacy,
        left: &mut Vec<MonitorId>,
    ) -> Standing {
        let former = self.judges.get(endpoint);
        let Some((id, held)) = former.and_then(|id| Some((id, self.held(id)?))) else {
            return Standing::default();
        };
        let standing = held.watched.standing();
        if held.target != target {
            self.detach(endpoint, legacy);
            left.push(id);
        }
        standing
    }

    /// Finds the monitor of a target, or makes one that is due at once.
    fn monitor_of(&mut self, target: Target, legacy: &Legacy, now: Moment) -> MonitorId {
        if let Some(id) = self.find(&target) {
            return id;
        }
        let mut monitor = Monitor::default();
        monitor.inherit(legacy.get(&heritage(&target)).copied().unwrap_or_default());
        let id = MonitorId(self.slots.insert(Watched {
            monitor,
            refused: None,
            endpoints: SpokenFor::default(),
            is_out: false,
            edge: now.into(),
            spread: true,
        }));
        let (hash, hasher) = (self.by_target.hash(&target), self.by_target.hasher());
        self.targets.set(id, Some(target));
        let targets = &self.targets;
        self.by_target.insert(hash, id.0, |number| {
            let target = targets.get(MonitorId(number));
            target.map_or(0, |target| hasher.hash_one(target))
        });
        self.queue.insert((now.into(), id));
        id
    }

    /// Gives an endpoint to a monitor; a flip when what stands for it now differs from `before`.
    fn attach(&mut self, endpoint: EndpointIndex, id: MonitorId, before: Standing) -> Option<Flip> {
        self.judges.set(endpoint, Some(id));
        let held = self.held(id)?;
        held.sets.insert(&mut held.watched.endpoints, endpoint);
        let standing = held.watched.standing();
        (standing != before).then(|| Flip {
            monitor: id,
            verdict: standing.verdict,
            before: before.verdict,
            in_doubt: standing.in_doubt,
            refused: standing.refused,
            endpoints: vec![endpoint],
            target: held.target.clone(),
            observed: false,
            reason: None,
        })
    }

    /// Ends a monitor that speaks for nobody any more; with a probe out, it stays until that comes back.
    fn retire(&mut self, id: MonitorId) {
        let Some(watched) = self.slots.get(id.0) else {
            return;
        };
        if !watched.endpoints.is_empty() {
            return;
        }
        let (is_out, edge) = (watched.is_out, watched.edge);
        // It takes nobody else's entry along: a successor of the same target has a number of its own.
        if let Some(target) = self.targets.get(id) {
            self.by_target.remove(self.by_target.hash(target), id.0);
        }
        if !is_out {
            self.queue.remove(&(edge, id));
            self.release(id);
        }
    }

    fn release(&mut self, id: MonitorId) {
        self.targets.set(id, None);
        if self.slots.take(id.0).is_some() {
            self.slots.give_back(id.0);
        }
    }
}

impl Held<'_> {
    /// Gives the flip since `before`, if any.
    fn flip(&self, id: MonitorId, before: Standing) -> Option<Flip> {
        let standing = self.watched.standing();
        (standing != before).then(|| Flip {
            monitor: id,
            verdict: standing.verdict,
            before: before.verdict,
            in_doubt: standing.in_doubt,
            refused: standing.refused,
            endpoints: self.sets.list(self.watched.endpoints),
            target: self.target.clone(),
            observed: true,
            reason: self.watched.monitor.reason(),
        })
    }
}

impl Watched {
    /// Gives what its endpoints are judged as.
    fn standing(&self) -> Standing {
        Standing {
            verdict: self.monitor.verdict(),
            in_doubt: self.monitor.in_doubt(),
            refused: self.refused,
        }
    }

    /// Draws when the next probe starts, after one that is out: never before `now`.
    fn next_moment(
        &mut self,
        (next, interval): (Next, Duration),
        now: Moment,
        chance: &mut Chance,
    ) -> Moment {
        let bound = match next {
            Next::AtOnce => return now.after(chance.part(AT_ONCE.min(interval / 40))),
            Next::Interval => None,
            Next::NotAfter(moment) => Some(moment),
        };
        let delay = if self.spread {
            chance.part(interval)
        } else {
            interval * 87 / 100 + chance.part(interval / 10)
        };
        self.spread = false;
        let regular = Moment::from(self.edge).after(delay);
        bound.map_or(regular, |bound| bound.min(regular)).max(now)
    }

    /// Gives what is known of it; `None`: it speaks for nobody.
    fn row(&self, target: &Target, sets: &Sets) -> Option<Row> {
        let endpoints = (sets.first(self.endpoints)?, sets.len(self.endpoints));
        Some(Row::of((&self.monitor, target), self.refused, endpoints))
    }
}

/// Keeps the last entry of each endpoint.
fn keep_last(watch: &mut Vec<(EndpointIndex, Target)>) {
    let mut seen = HashSet::with_capacity(watch.len());
    watch.reverse();
    watch.retain(|(endpoint, _)| seen.insert(*endpoint));
    watch.reverse();
}

/// Tells whose verdict a new check of a target begins with.
fn heritage(target: &Target) -> (SocketAddr, Origin) {
    (target.address, target.spec.origin)
}
