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
use std::net::SocketAddr;
use std::time::Duration;

use super::monitor::{Monitor, Next};
use super::observation::{Flip, MonitorId, MonitorReport, Observation, ProbeOrder, Refusal};
use crate::model::{Chance, EndpointIndex, Moment, Origin, Target, Verdict};

/// The longest wait before a probe that should come at once: failures seen together are not all looked at again together.
const AT_ONCE: Duration = Duration::from_millis(50);

/// All monitors. Deterministic: equal calls give equal results. `due` and `observe` cost O(log n).
#[derive(Debug, Default)]
pub struct Fleet {
    /// By [`MonitorId`]; `None` is free.
    slots: Vec<Option<Watched>>,
    /// Free slots.
    free: Vec<MonitorId>,
    by_target: HashMap<Target, MonitorId>,
    by_endpoint: HashMap<EndpointIndex, MonitorId>,
    /// Monitors that wait, the next one first. Those with a probe out are not here.
    queue: BTreeSet<(Moment, MonitorId)>,
    chance: Chance,
}

/// A target with what is thought of it.
#[derive(Debug)]
struct Watched {
    target: Target,
    monitor: Monitor,
    /// Why the last order was not carried out.
    refused: Option<Refusal>,
    /// Whom it speaks for. Empty: gone, and only here until its probe comes back.
    endpoints: BTreeSet<EndpointIndex>,
    phase: Phase,
    /// Its next interval is a random part of one.
    spread: bool,
}

/// Where a monitor is between two probes.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// It waits; the queue has this entry.
    Waits(Moment),
    /// Its probe is out since.
    Out(Moment),
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
            let Some(&id) = self.by_target.get(target) else {
                continue;
            };
            let Some(watched) = self.watched_mut(id) else {
                continue;
            };
            if watched.refused.is_some() {
                continue;
            }
            let before = watched.standing();
            watched.monitor.restore(*verdict);
            let taken_over = watched.flip(id, before);
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
            let Some(&(moment, id)) = self.queue.first().filter(|(moment, _)| *moment <= now)
            else {
                break;
            };
            self.queue.pop_first();
            let Some(watched) = self.watched_mut(id) else {
                continue;
            };
            watched.phase = Phase::Out(now);
            watched.spread |= now.since(moment) > watched.target.spec.interval;
            orders.push(ProbeOrder {
                monitor: id,
                target: watched.target.clone(),
            });
        }
        orders
    }

    /// Tells when the next probe is due; `None`: nothing waits.
    #[must_use]
    pub fn next_due(&self) -> Option<Moment> {
        self.queue.first().map(|(moment, _)| *moment)
    }

    /// Takes the result of a probe. A first failure has the target probed again at once. What was not ordered, or whose
    /// monitor is gone by now, changes nothing.
    pub fn observe(&mut self, observation: Observation, now: Moment) -> Option<Flip> {
        let Observation { monitor, result } = observation;
        self.answer(monitor, now, |watched| {
            watched.refused = None;
            watched.monitor.observe(result, &watched.target.spec, now)
        })
    }

    /// Takes the word that the target of an order may not be probed: from now on its verdict is Unknown, without doubt and
    /// without a last result. It is asked for again an interval later.
    pub fn refuse(&mut self, monitor: MonitorId, why: Refusal, now: Moment) -> Option<Flip> {
        let flip = self.answer(monitor, now, |watched| {
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
        for (id, place) in (0..).map(MonitorId).zip(&mut self.slots) {
            let Some(watched) = place else {
                continue;
            };
            if let Phase::Waits(moment) = watched.phase
                && wants(&watched.target, watched.refused)
            {
                self.queue.remove(&(moment, id));
                self.queue.insert((now, id));
                watched.phase = Phase::Waits(now);
            }
        }
    }

    /// Reports on every monitor, in the order of their numbers.
    pub fn table(&self) -> impl Iterator<Item = MonitorReport> {
        self.slots
            .iter()
            .flatten()
            .filter(|watched| !watched.endpoints.is_empty())
            .map(Watched::report)
    }

    /// Reports on one monitor; `None` when it is gone.
    #[must_use]
    pub fn report(&self, id: MonitorId) -> Option<MonitorReport> {
        let watched = self.slots.get(slot(id))?.as_ref()?;
        (!watched.endpoints.is_empty()).then(|| watched.report())
    }

    /// Ends an order: `judge` takes what came of it and says when the next is due.
    fn answer(
        &mut self,
        id: MonitorId,
        now: Moment,
        judge: impl FnOnce(&mut Watched) -> Next,
    ) -> Option<Flip> {
        let watched = self.slots.get_mut(slot(id))?.as_mut()?;
        let Phase::Out(since) = watched.phase else {
            return None;
        };
        if watched.endpoints.is_empty() {
            self.release(id);
            return None;
        }
        let before = watched.standing();
        let next = judge(watched);
        let moment = watched.next_moment(next, since, now, &mut self.chance);
        watched.phase = Phase::Waits(moment);
        let flip = watched.flip(id, before);
        self.queue.insert((moment, id));
        flip
    }

    fn watched_mut(&mut self, id: MonitorId) -> Option<&mut Watched> {
        self.slots.get_mut(slot(id))?.as_mut()
    }

    /// Takes an endpoint from its monitor, leaving the monitor's verdict in `legacy`. `None` when it had none.
    fn detach(&mut self, endpoint: EndpointIndex, legacy: &mut Legacy) -> Option<MonitorId> {
        let id = self.by_endpoint.remove(&endpoint)?;
        let watched = self.watched_mut(id)?;
        watched.endpoints.remove(&endpoint);
        let verdict = watched.monitor.verdict();
        legacy
            .entry(heritage(&watched.target))
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
        let former = self.by_endpoint.get(&endpoint).copied();
        let Some((id, watched)) = former.and_then(|id| Some((id, self.watched_mut(id)?))) else {
            return Standing::default();
        };
        let standing = watched.standing();
        if watched.target != *target {
            self.detach(endpoint, legacy);
            left.push(id);
        }
        standing
    }

    /// Finds the monitor of a target, or makes one that is due at once.
    fn monitor_of(&mut self, target: Target, legacy: &Legacy, now: Moment) -> MonitorId {
        if let Some(&id) = self.by_target.get(&target) {
            return id;
        }
        let mut monitor = Monitor::default();
        monitor.inherit(legacy.get(&heritage(&target)).copied().unwrap_or_default());
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            let last = self.slots.len() - 1;
            MonitorId(
                u32::try_from(last).expect("endpoints are numbered by u32, monitors are no more"),
            )
        });
        self.by_target.insert(target.clone(), id);
        if let Some(place) = self.slots.get_mut(slot(id)) {
            *place = Some(Watched {
                target,
                monitor,
                refused: None,
                endpoints: BTreeSet::new(),
                phase: Phase::Waits(now),
                spread: true,
            });
        }
        self.queue.insert((now, id));
        id
    }

    /// Gives an endpoint to a monitor; a flip when what stands for it now differs from `before`.
    fn attach(&mut self, endpoint: EndpointIndex, id: MonitorId, before: Standing) -> Option<Flip> {
        self.by_endpoint.insert(endpoint, id);
        let watched = self.watched_mut(id)?;
        watched.endpoints.insert(endpoint);
        let standing = watched.standing();
        (standing != before).then(|| Flip {
            monitor: id,
            verdict: standing.verdict,
            before: before.verdict,
            in_doubt: standing.in_doubt,
            refused: standing.refused,
            endpoints: vec![endpoint],
            target: watched.target.clone(),
            observed: false,
            reason: None,
        })
    }

    /// Ends a monitor that speaks for nobody any more; with a probe out, it stays until that comes back.
    fn retire(&mut self, id: MonitorId) {
        let Some(watched) = self.slots.get(slot(id)).and_then(Option::as_ref) else {
            return;
        };
        if !watched.endpoints.is_empty() {
            return;
        }
        // An older monitor that waits for its last probe must not take its successor's entry along.
        if self.by_target.get(&watched.target) == Some(&id) {
            self.by_target.remove(&watched.target);
        }
        if let Phase::Waits(moment) = watched.phase {
            self.queue.remove(&(moment, id));
            self.release(id);
        }
    }

    fn release(&mut self, id: MonitorId) {
        if let Some(place) = self.slots.get_mut(slot(id)) {
            *place = None;
            self.free.push(id);
        }
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

    /// Gives the flip since `before`, if any.
    fn flip(&self, id: MonitorId, before: Standing) -> Option<Flip> {
        let standing = self.standing();
        (standing != before).then(|| Flip {
            monitor: id,
            verdict: standing.verdict,
            before: before.verdict,
            in_doubt: standing.in_doubt,
            refused: standing.refused,
            endpoints: self.endpoints.iter().copied().collect(),
            target: self.target.clone(),
            observed: true,
            reason: self.monitor.last().and_then(Result::err),
        })
    }

    /// Draws when the next probe starts: never before `now`.
    fn next_moment(
        &mut self,
        next: Next,
        since: Moment,
        now: Moment,
        chance: &mut Chance,
    ) -> Moment {
        let interval = self.target.spec.interval;
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
        let regular = since.after(delay);
        bound.map_or(regular, |bound| bound.min(regular)).max(now)
    }

    fn report(&self) -> MonitorReport {
        let standing = self.standing();
        MonitorReport {
            target: self.target.clone(),
            verdict: standing.verdict,
            in_doubt: standing.in_doubt,
            refused: standing.refused,
            last: self.monitor.last(),
            never_succeeded: self.monitor.never_succeeded(&self.target.spec),
            // A watch without endpoints is gone.
            endpoint: self
                .endpoints
                .first()
                .copied()
                .unwrap_or(EndpointIndex(u32::MAX)),
            endpoints: self.endpoints.len(),
        }
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

/// Gives a monitor's position.
fn slot(id: MonitorId) -> usize {
    id.0 as usize
}
