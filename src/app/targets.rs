//! Host names of endpoints: those outside of our zones go to the resolver, those inside are followed through our own data, and what
//! comes of both goes to the controller.
//!
//! Nobody is ever asked for a name of ours: the answer would be our own, by way of the world. Each publish may change where such a
//! name leads, so each is looked at, a few times a second at most.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::admin::Events;
use crate::controller::{Command, ControllerHandle, Offers};
use crate::inventory::{Change, Inventory, ResolvedTarget};
use crate::model::{LowerName, Moment, Ttl};
use crate::resolving::{Resolution, Table, TargetState, TargetsHandle};
use crate::snapshot::{Inside, Snapshot, SnapshotReader};

/// How often what is published is looked at, at most.
const LOOK: Duration = Duration::from_millis(200);
/// A look takes at most one part of so many of the time.
const SHARE: u32 = 20;
/// A name of ours that has no address any more keeps its last ones for so long: it must be seen twice, as outside.
const DOUBT: Duration = Duration::from_secs(5);
/// Most that one look at names of ours costs, in services: those of the configuration are followed first, then those that cost least.
const MAX_COST: usize = 200_000;

/// Follows the host names of endpoints.
pub(super) struct Following {
    controller: ControllerHandle,
    targets: TargetsHandle,
    reader: SnapshotReader,
    events: Arc<Events>,
    /// The host names, as the inventory has them.
    names: Wanted,
    resolved: Resolved,
    /// What the names of ours led to last, and since when they lead nowhere.
    held: BTreeMap<LowerName, Held>,
    costs: Costs,
    /// What the last look found, and in which table.
    last: (Found, Arc<Table>),
    /// What the controller was told last.
    sent: Arc<HashMap<LowerName, ResolvedTarget>>,
}

/// Host names of endpoints.
#[derive(Debug, Default)]
struct Wanted {
    /// Those of services of the configuration.
    configured: BTreeSet<LowerName>,
    /// All, these too.
    all: BTreeSet<LowerName>,
}

impl Wanted {
    /// Reads them out of the inventory.
    fn of(inventory: &Inventory) -> Self {
        Self {
            configured: inventory.configured_targets(),
            all: inventory.targets(),
        }
    }
}

/// What names of ours cost when they were followed last.
type Costs = HashMap<LowerName, usize>;

/// What a name of ours led to.
#[derive(Clone, Debug)]
struct Held {
    target: ResolvedTarget,
    gone: Option<Instant>,
}

/// What one look found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    inside: BTreeMap<LowerName, Inside>,
    /// Names to be resolved.
    outside: BTreeSet<LowerName>,
    /// Cuts of our zones above some of these.
    cuts: BTreeSet<LowerName>,
    /// Names of ours that are too many.
    beyond: BTreeSet<LowerName>,
}

impl Following {
    /// Makes one that begins with what was known before the start.
    pub(super) fn new(
        (controller, targets): (ControllerHandle, TargetsHandle),
        reader: SnapshotReader,
        events: Arc<Events>,
        offers: &Offers,
    ) -> Self {
        let held = offers.targets.iter();
        let held = held.filter(|(_, target)| target.inside.is_some());
        let held = held.map(|(name, target)| {
            let target = target.clone();
            (name.clone(), Held { target, gone: None })
        });
        let held = held.collect();
        let sent = offers.targets.iter();
        let sent = sent.map(|(name, target)| (name.clone(), target.clone()));
        let sent = Arc::new(sent.collect());
        Self {
            controller,
            targets,
            reader,
            events,
            names: Wanted::default(),
            resolved: Resolved::default(),
            held,
            costs: Costs::default(),
            last: <_>::default(),
            sent,
        }
    }

    /// Runs until the token falls.
    pub(super) async fn run(mut self, token: CancellationToken) {
        let mut status = self.controller.watch_status();
        let mut table = self.targets.watch();
        let mut seen = None;
        loop {
            let mut took = Duration::ZERO;
            let inventory = status.borrow_and_update().inventory;
            if seen != Some(inventory) {
                seen = Some(inventory);
                let names = self.controller.read(|inventory| {
                    let begun = Instant::now();
                    (Wanted::of(inventory), begun.elapsed())
                });
                let Some((names, asking)) = names.await else {
                    return;
                };
                self.names = names;
                took += asking;
            }
            let now = Arc::clone(&table.borrow_and_update());
            let begun = Instant::now();
            let (change, due) = tokio::task::block_in_place(|| self.look(&now));
            took += begun.elapsed();
            if let Some(change) = change
                && !self.controller.send(Command::Change(change)).await
            {
                return;
            }
            let due = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            // Cancel-safe: all arms only wait.
            let (is_on, least) = tokio::select! {
                () = token.cancelled() => return,
                () = due => (true, Duration::ZERO),
                changed = table.changed() => (changed.is_ok(), Duration::ZERO),
                changed = status.changed() => (changed.is_ok(), LOOK),
            };
            if !is_on {
                return;
            }
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(rest(took, least)) => {}
            }
        }
    }

    /// Looks where all names lead. Gives what changed for the controller, and when to look again in any case.
    fn look(&mut self, table: &Arc<Table>) -> (Option<Change>, Option<Instant>) {
        let snapshot = self.reader.load_owned();
        let found = find(&snapshot, &self.names, (MAX_COST, &mut self.costs));
        // Most publishes change none of it.
        let is_in_doubt = self.held.values().any(|held| held.gone.is_some());
        if !is_in_doubt && self.last.0 == found && Arc::ptr_eq(&self.last.1, table) {
            return (None, None);
        }
        self.targets.want(found.outside.clone(), found.cuts.clone());
        let mut all = self.resolved.renew(table, &self.targets);
        all.retain(|name, _| found.outside.contains(name));
        // What the resolver has not looked at yet stays as it was: so does what was known before the start.
        for name in &found.outside {
            if let (false, Some(before)) = (all.contains_key(name), self.sent.get(name)) {
                all.insert(name.clone(), before.clone());
            }
        }
        let (now, mut due) = (Instant::now(), None);
        let mut held = BTreeMap::new();
        for (name, inside) in &found.inside {
            let before = self.held.get(name);
            let (after, again) = settle(inside, &all, before, now);
            due = due.into_iter().chain(again).min();
            held.insert(name.clone(), after);
        }
        for name in &found.beyond {
            held.insert(name.clone(), not_followed(self.held.get(name)));
        }
        let followed = held.iter();
        all.extend(followed.map(|(name, held)| (name.clone(), held.target.clone())));
        self.held = held;
        self.count(table, &found);
        self.last = (found, Arc::clone(table));
        if *self.sent == all {
            return (None, due);
        }
        self.sent = Arc::new(all);
        (Some(Change::Targets(Arc::clone(&self.sent))), due)
    }

    /// Counts the names by how well they are known.
    fn count(&self, table: &Table, found: &Found) {
        let counts = &self.events.targets;
        let (mut fresh, mut failing, mut expired) = (0, 0, 0);
        let (mut unresolved, mut gone, mut refused) = (0, 0, 0);
        let outside = table.iter();
        for (_, known) in outside.filter(|(name, _)| found.outside.contains(name)) {
            *match known.state {
                _ if known.is_circular => &mut refused,
                TargetState::Fresh => &mut fresh,
                TargetState::Failing { .. } => &mut failing,
                TargetState::Expired { .. } => &mut expired,
                TargetState::Unresolved | TargetState::Own => &mut unresolved,
                TargetState::Gone => &mut gone,
            } += 1;
        }
        let mut inside = 0;
        for held in self.held.values() {
            *match (&held.target.fault, held.target.has_any()) {
                (Some(_), _) => &mut refused,
                (None, true) => &mut inside,
                (None, false) => &mut gone,
            } += 1;
        }
        for (count, value) in [
            (&counts.fresh, fresh),
            (&counts.failing, failing),
            (&counts.expired, expired),
            (&counts.unresolved, unresolved),
            (&counts.gone, gone),
            (&counts.inside, inside),
            (&counts.refused, refused),
        ] {
            count.store(value, Ordering::Relaxed);
        }
    }
}

/// Gives the pause after a look that took so long: there may be many names, and a table that is renewed all the time.
fn rest(took: Duration, least: Duration) -> Duration {
    least.max(took * SHARE)
}

/// Says for each name whether it is followed, and what is to be resolved. Those of the configuration are followed first, and those
/// that cost much last: whoever makes long ways takes no one else's turn.
fn find(snapshot: &Snapshot, names: &Wanted, (most, costs): (usize, &mut Costs)) -> Found {
    let (mut found, mut cost) = (Found::default(), 0);
    costs.retain(|name, _| names.all.contains(name));
    let mut others: Vec<_> = names.all.difference(&names.configured).collect();
    // Stable: of equals by name.
    others.sort_by_key(|name| costs.get(*name).copied());
    for name in names.configured.iter().chain(others) {
        if snapshot.zones().find(name.as_ref()).is_none() {
            found.outside.insert(name.clone());
            continue;
        }
        if cost >= most {
            found.beyond.insert(name.clone());
            continue;
        }
        let Some(inside) = snapshot.follow(name) else {
            continue;
        };
        cost += inside.cost;
        costs.insert(name.clone(), inside.cost);
        found.outside.extend(inside.outside.iter().cloned());
        found.cuts.extend(inside.cuts.iter().cloned());
        // Below a cut it is somebody else's, as if it lay outside.
        if !inside.outside.contains(name) {
            found.inside.insert(name.clone(), inside);
        }
    }
    found
}

/// Gives what is held of a name of ours that is one too many to be followed: what it led to last, as long as nobody looks.
fn not_followed(before: Option<&Held>) -> Held {
    let fault = Some("there are too many targets in our own zones to follow".into());
    let target = match before {
        Some(before) => ResolvedTarget {
            fault,
            ..before.target.clone()
        },
        None => nowhere(&[], fault),
    };
    Held { target, gone: None }
}

/// Puts together what a name of ours leads to. One that leads nowhere keeps what it had until that is seen again after a while,
/// or while nobody knows yet where it goes on outside. Gives when to look again in any case.
fn settle(
    inside: &Inside,
    resolved: &HashMap<LowerName, ResolvedTarget>,
    before: Option<&Held>,
    now: Instant,
) -> (Held, Option<Instant>) {
    let (mut all, mut ttl) = (inside.addresses.clone(), inside.ttl);
    let mut is_unknown = false;
    let mut fault: Option<Box<str>> = inside.fault.as_deref().map(Into::into);
    for name in &inside.outside {
        let Some(target) = resolved.get(name) else {
            is_unknown = true;
            continue;
        };
        fault = fault.or_else(|| target.fault.clone());
        for address in &target.addresses {
            all.insert(*address, true);
        }
        for address in &target.old {
            all.entry(*address).or_insert(false);
        }
        if target.has_any() {
            ttl = ttl.into_iter().chain([target.ttl]).min();
        } else {
            is_unknown |= !target.is_gone;
        }
    }
    let ends: Vec<LowerName> = inside.outside.iter().cloned().collect();
    if !all.is_empty() {
        let pick = |is_usable: bool| -> Box<[IpAddr]> {
            let picked = all.iter().filter(|(_, usable)| **usable == is_usable);
            picked.map(|(address, _)| *address).collect()
        };
        let target = ResolvedTarget {
            addresses: pick(true),
            old: pick(false),
            ttl: ttl.unwrap_or(Ttl::BRIEF),
            ..nowhere(&ends, fault)
        };
        return (Held { target, gone: None }, None);
    }
    let nothing = Held {
        target: nowhere(&ends, fault.clone()),
        gone: None,
    };
    let Some(before) = before.filter(|before| before.target.has_any() && fault.is_none()) else {
        return (nothing, None);
    };
    // Why it was not followed is not so any more.
    let target = ResolvedTarget {
        fault: None,
        ..before.target.clone()
    };
    if is_unknown {
        return (Held { target, gone: None }, None);
    }
    let since = before.gone.unwrap_or(now);
    if now >= since + DOUBT {
        return (nothing, None);
    }
    let held = Held {
        target,
        gone: Some(since),
    };
    (held, Some(since + DOUBT))
}

/// Makes the target of ours that leads nowhere; `ends` are the names outside.
fn nowhere(ends: &[LowerName], fault: Option<Box<str>>) -> ResolvedTarget {
    ResolvedTarget {
        addresses: Box::default(),
        old: Box::default(),
        ttl: Ttl::BRIEF,
        inside: Some(ends.into()),
        is_gone: true,
        fault,
    }
}

/// The resolver's table as the inventory takes it. What did not change is handed on as it was: the rest of its TTL too, so that no
/// service is made anew because a second has passed.
#[derive(Debug, Default)]
struct Resolved(HashMap<LowerName, (Arc<Resolution>, ResolvedTarget)>);

impl Resolved {
    /// Takes a new table.
    fn renew(
        &mut self,
        table: &Table,
        targets: &TargetsHandle,
    ) -> HashMap<LowerName, ResolvedTarget> {
        let now = targets.now();
        // One that was ours until a moment ago is looked at next.
        let outside = table.iter();
        let outside = outside.filter(|(_, known)| known.state != TargetState::Own);
        let entries = outside.map(|(name, resolution)| {
            let held = self.0.get(name);
            let held = held.filter(|(held, _)| Arc::ptr_eq(held, resolution));
            let resolved = held.map_or_else(|| resolved(resolution, now), |(_, same)| same.clone());
            (name.clone(), (Arc::clone(resolution), resolved))
        });
        self.0 = entries.collect();
        let entries = self.0.iter();
        let entries = entries.map(|(name, (_, resolved))| (name.clone(), resolved.clone()));
        entries.collect()
    }
}

/// Gives what is known of one target.
fn resolved(known: &Resolution, now: Moment) -> ResolvedTarget {
    let rest = known.expires.map_or(Duration::ZERO, |end| end.since(now));
    let seconds = u32::try_from(rest.as_secs()).unwrap_or(u32::MAX);
    // What nobody confirmed in time is asked for again soon.
    let ttl = if rest.is_zero() {
        Ttl::BRIEF
    } else {
        Ttl::new(seconds.max(1)).unwrap_or(Ttl::MAX)
    };
    ResolvedTarget {
        addresses: known.addresses.clone(),
        old: known.old.clone(),
        ttl,
        inside: None,
        is_gone: known.state == TargetState::Gone,
        fault: known.error.clone().filter(|_| known.is_circular),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::Dirty;
    use crate::snapshot::{Inputs, build};
    use crate::zone::ZoneSet;
    use crate::zone::testing::zone;

    fn name(text: &str) -> LowerName {
        text.parse().unwrap()
    }

    fn target(addresses: &[u8], old: &[u8], ttl: u32) -> ResolvedTarget {
        let all = |all: &[u8]| all.iter().map(|at| [192, 0, 2, *at].into()).collect();
        ResolvedTarget {
            addresses: all(addresses),
            old: all(old),
            ttl: Ttl::new(ttl).unwrap(),
            inside: None,
            is_gone: addresses.is_empty() && old.is_empty(),
            fault: None,
        }
    }

    /// A name of ours with these addresses that goes on at `lb.other`.
    fn inside(addresses: &[(u8, bool)]) -> Inside {
        let all = addresses.iter();
        Inside {
            addresses: all
                .map(|(at, usable)| ([192, 0, 2, *at].into(), *usable))
                .collect(),
            ttl: Ttl::new(40),
            outside: [name("lb.other")].into(),
            ..Inside::default()
        }
    }

    fn at_lb(target: ResolvedTarget) -> HashMap<LowerName, ResolvedTarget> {
        HashMap::from([(name("lb.other"), target)])
    }

    /// One zone of ours, `ours`.
    fn snapshot() -> Snapshot {
        let inputs = Inputs {
            inventory: &Inventory::default(),
            zones: &Arc::new(ZoneSet::new(vec![zone("ours", "")])),
            geo: &Arc::default(),
            groups: &Arc::default(),
            settings: &Arc::default(),
            challenges: &Arc::default(),
            states: &[],
        };
        build(&inputs, &Dirty::default(), &Snapshot::default()).snapshot
    }

    #[tokio::test]
    async fn what_is_inside_and_outside_is_put_together() {
        let now = Instant::now();
        let all = at_lb(target(&[2, 3], &[4, 5], 20));
        let (held, again) = settle(
            &inside(&[(1, true), (2, false), (5, true)]),
            &all,
            None,
            now,
        );
        let found = held.target;
        assert_eq!(found.addresses, target(&[1, 2, 3, 5], &[], 1).addresses);
        assert_eq!(found.old, target(&[], &[4], 1).old);
        assert_eq!((found.ttl, again), (Ttl::new(20).unwrap(), None));
        assert_eq!(found.inside.as_deref(), Some(&[name("lb.other")][..]));
        // A circle outside is told here too.
        let mut circle = target(&[], &[], 5);
        circle.fault = Some("a circle".into());
        let (held, _) = settle(&inside(&[(1, true)]), &at_lb(circle), None, now);
        assert_eq!(held.target.fault.as_deref(), Some("a circle"));
        assert!(held.target.has_any());
    }

    #[tokio::test]
    async fn what_leads_nowhere_is_seen_twice_before_it_goes() {
        let now = Instant::now();
        let (before, _) = settle(&inside(&[]), &at_lb(target(&[2], &[], 20)), None, now);
        // Nobody knows yet where it goes on: nothing changes, however long that takes.
        let mut unknown = target(&[], &[], 5);
        unknown.is_gone = false;
        for all in [at_lb(unknown), HashMap::new()] {
            let later = now + DOUBT * 100;
            let (held, again) = settle(&inside(&[]), &all, Some(&before), later);
            assert_eq!((&held.target, again), (&before.target, None));
        }
        // It is gone outside.
        let gone = at_lb(target(&[], &[], 5));
        let (held, again) = settle(&inside(&[]), &gone, Some(&before), now);
        assert_eq!((&held.target, again), (&before.target, Some(now + DOUBT)));
        let (after, again) = settle(&inside(&[]), &gone, Some(&held), now + DOUBT);
        assert_eq!((after.target.has_any(), again), (false, None));
        // One that came back begins to be doubted anew.
        let (back, _) = settle(&inside(&[(1, true)]), &gone, Some(&held), now + DOUBT);
        assert_eq!(back.gone, None);
        // What is refused goes at once.
        let mut refused = inside(&[]);
        refused.fault = Some("in a circle".into());
        let (held, _) = settle(&refused, &gone, Some(&before), now);
        assert!(!held.target.has_any());
        assert_eq!(held.target.fault.as_deref(), Some("in a circle"));
    }

    #[tokio::test]
    async fn what_is_too_much_to_follow_keeps_what_it_had_and_says_so() {
        let now = Instant::now();
        let gone = at_lb(target(&[], &[], 5));
        let (before, _) = settle(&inside(&[(1, true), (2, false)]), &gone, None, now);
        let mut held = before.clone();
        for _ in 0..3 {
            held = not_followed(Some(&held));
            assert_eq!(held.target.addresses, before.target.addresses);
            assert_eq!(held.target.old, before.target.old);
            assert!(held.target.fault.as_deref().unwrap().contains("too many"));
        }
        // Followed again, and nowhere for a moment: the reason goes, the address does not.
        let (after, _) = settle(&inside(&[]), &gone, Some(&held), now);
        assert_eq!(after.target, before.target);
        let none = not_followed(None).target;
        assert!(!none.has_any() && none.fault.is_some());
    }

    #[test]
    fn a_look_is_a_small_part_of_the_time_whatever_woke_it() {
        let millis = Duration::from_millis;
        for (took, least, wanted) in [(1, LOOK, 200), (1, millis(0), 20), (500, LOOK, 10_000)] {
            assert_eq!(rest(millis(took), least), millis(wanted));
        }
    }

    #[test]
    fn names_of_the_configuration_are_followed_first() {
        let snapshot = snapshot();
        let names = |all: &[&str]| all.iter().map(|text| name(text)).collect();
        let wanted = Wanted {
            configured: names(&["z.ours"]),
            all: names(&["a.ours", "b.ours", "lb.other", "z.ours"]),
        };
        let mut costs = Costs::new();
        let mut followed = |most: usize, known: &[(&str, usize)]| {
            costs.extend(known.iter().map(|(text, cost)| (name(text), *cost)));
            let found = find(&snapshot, &wanted, (most, &mut costs));
            assert_eq!(found.outside, [name("lb.other")].into());
            let followed: Vec<String> = found.inside.keys().map(ToString::to_string).collect();
            let beyond: Vec<String> = found.beyond.iter().map(ToString::to_string).collect();
            (followed.join(" "), beyond.join(" "))
        };
        for (most, known, first, rest) in [
            (1, &[][..], "z.ours", "a.ours b.ours"),
            (2, &[("b.ours", 1)], "a.ours z.ours", "b.ours"),
            // One that cost more than others comes behind them, for as long as it does.
            (2, &[("a.ours", 2)], "b.ours z.ours", "a.ours"),
            (2, &[("gone.ours", 1)], "b.ours z.ours", "a.ours"),
            (3, &[], "a.ours b.ours z.ours", ""),
            (2, &[], "a.ours z.ours", "b.ours"),
        ] {
            let wanted = (first.to_owned(), rest.to_owned());
            assert_eq!(followed(most, known), wanted);
        }
        assert!(!costs.contains_key(&name("gone.ours")) && costs.len() == 3);
    }
}
