//! From what was touched to what changed.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::guard::end;
use super::kind::Phase;
use super::objects::ROUTES;
use super::project::{Outcome, Projected, View, project, refused_key};
use super::{World, given_of};
use crate::inventory::{ObjectKind, ObjectRef, Refused, Shard, ShardChange};
use crate::model::counted;

/// Addresses that a host name of a load balancer counts for.
const PROBES_OF_TARGET: usize = 4;

/// Projects what was touched, and gives what changed.
pub(super) fn take(world: &mut World, now: Timestamp) -> Vec<ShardChange> {
    let is_back = world.taken.is_some_and(|taken| now < taken);
    world.taken = Some(now);
    if is_back {
        // The clock went back: any drain may look as it did then.
        world.touch_all(&ObjectKind::ALL);
    }
    let mut changed = Vec::new();
    loop {
        let removed = step(world, now, &mut changed);
        // With what was served a reason may be gone to hold what a server serves no more.
        if removed == 0 || !is_leaving(world) {
            return changed;
        }
    }
}

/// Tells whether a kind is held that the server serves no more.
fn is_leaving(world: &World) -> bool {
    let mut kinds = ObjectKind::ALL.into_iter();
    kinds.any(|kind| matches!(world.objects.phase(kind), Phase::Leaving(_)))
}

/// Projects what was touched, adds what changed, and counts what was removed.
fn step(world: &mut World, now: Timestamp, changed: &mut Vec<ShardChange>) -> usize {
    believe(world, now);
    world.dirty.extend(world.edges.take(now));
    let outcomes = project_all(world, now);
    let mut gone = BTreeSet::new();
    for (object, outcome) in outcomes {
        match outcome {
            Outcome::Stands(why) => {
                tell(world, &object, why);
                world.guard.welcome(&object);
            }
            Outcome::Nothing(why) => {
                tell(world, &object, why);
                world.edges.set(&object, None);
                if world.given.contains_key(&object) {
                    gone.insert(object);
                }
            }
            Outcome::Serves(projected) => {
                world.unserved.remove(&object);
                world.guard.welcome(&object);
                world.edges.set(&object, projected.edge);
                let shard = finish(world, *projected);
                if world.given.get(&object) != Some(&shard) {
                    changed.push(ShardChange::Upsert(Box::new(shard.clone())));
                    world.given.insert(object, shard);
                }
            }
        }
    }
    let removed = remove(world, gone, now);
    let count = removed.len();
    changed.extend(removed);
    count
}

/// Projects all that was touched; who gets a monitor, and who has which of its names, is known when all of it is through.
fn project_all(world: &mut World, now: Timestamp) -> BTreeMap<ObjectRef, Outcome> {
    let mut outcomes = BTreeMap::new();
    loop {
        project_dirty(world, now, &mut outcomes);
        // Those that are through are asked again at the end.
        let turned = world.names.level().into_iter();
        let turned = turned.filter(|object| !outcomes.contains_key(object));
        world.dirty.extend(turned);
        if world.dirty.is_empty() {
            return outcomes;
        }
    }
}

/// Projects what was touched, and what that touches.
fn project_dirty(world: &mut World, now: Timestamp, outcomes: &mut BTreeMap<ObjectRef, Outcome>) {
    let limit = world.rules.monitors_per_namespace;
    while let Some(object) = world.dirty.pop_first() {
        if outcomes.contains_key(&object) {
            continue;
        }
        let outcome = outcome(world, &object, now);
        let names = match &outcome {
            // It has what it had.
            Outcome::Stands(_) => None,
            Outcome::Nothing(_) => Some(0),
            Outcome::Serves(projected) => Some(projected.shard.hosts.len()),
        };
        let turned = names.map(|names| world.names.set(&object, names));
        world.dirty.extend(turned.into_iter().flatten());
        let addresses = match &outcome {
            Outcome::Serves(projected) if projected.monitor.is_some() => {
                Some(probes(&projected.shard))
            }
            _ => None,
        };
        let turned = world.asking.set(&object, addresses, limit);
        world.dirty.extend(turned);
        outcomes.insert(object, outcome);
    }
}

/// Counts the addresses that an object is probed at. Those behind its host names are not known here, and change.
fn probes(shard: &Shard) -> usize {
    shard.addresses.len() + shard.targets.len() * PROBES_OF_TARGET
}

/// Tells what one object comes to.
fn outcome(world: &World, object: &ObjectRef, now: Timestamp) -> Outcome {
    let view = View {
        rules: &world.rules,
        weight: world.weight,
        objects: &world.objects,
        behind: &world.behind,
        given: world.given.get(object),
        now,
    };
    if let Some(record) = world.objects.get(object) {
        return project(&view, object, record);
    }
    if !world.objects.has(object) && world.objects.is_gone(object) {
        return Outcome::Nothing(None);
    }
    // It was never readable, or nobody has looked yet.
    Outcome::Stands(None)
}

/// Takes down why an object is not served.
fn tell(world: &mut World, object: &ObjectRef, why: Option<Refused>) {
    match why {
        Some(why) => world.unserved.insert(object.clone(), why),
        None => world.unserved.remove(object),
    };
}

/// Makes a shard of what was projected: with its names and its monitor, as far as its namespace has some left, and with what it
/// shares.
fn finish(world: &mut World, projected: Projected) -> Shard {
    let Projected {
        mut shard,
        keys,
        monitor,
        ..
    } = projected;
    let limit = world.rules.monitors_per_namespace;
    let former = world.given.get(&shard.object).map(|given| &given.keys);
    shard.keys = world.shared.keys(keys, former);
    cut_names(&mut shard, world);
    let Some(monitor) = monitor else {
        return shard;
    };
    if world.asking.allows(&shard.object) {
        shard.monitor = Some(world.shared.monitor(monitor));
        return shard;
    }
    let namespace = &shard.object.namespace;
    let reason = format!(
        "namespace {namespace} has its {} already: its readiness alone counts",
        counted(limit, "probed address")
    );
    refuse(&mut shard, refused_key("health-check", reason));
    shard
}

/// Takes the names away that its namespace may not have.
fn cut_names(shard: &mut Shard, world: &World) {
    let allowance = world.names.allowance(&shard.object);
    let beyond = shard.hosts.len().saturating_sub(allowance);
    if beyond == 0 {
        return;
    }
    let mut hosts = std::mem::take(&mut shard.hosts).into_vec();
    hosts.truncate(allowance);
    shard.hosts = hosts.into();
    let (namespace, limit) = (&shard.object.namespace, world.names.limit());
    let reason = format!(
        "namespace {namespace} has its {} in this cluster already: {beyond} of this object's are beyond them",
        counted(limit, "host name")
    );
    refuse(shard, refused_key("hostname", reason));
}

/// Adds what is refused of a shard.
fn refuse(shard: &mut Shard, why: Refused) {
    let mut refused = std::mem::take(&mut shard.refused).into_vec();
    refused.push(why);
    shard.refused = refused.into();
}

/// Removes what the guard lets go.
fn remove(world: &mut World, gone: BTreeSet<ObjectRef>, now: Timestamp) -> Vec<ShardChange> {
    let believed = std::mem::take(&mut world.believed);
    let (mut free, gone): (BTreeSet<_>, BTreeSet<_>) = gone
        .into_iter()
        .partition(|object| believed.contains(object));
    let rules = &world.rules.mass_deletion;
    let served = world.given.len().saturating_sub(free.len());
    for object in &free {
        world.guard.welcome(object);
    }
    free.extend(world.guard.judge(gone, served, rules, now));
    let mut removed = Vec::new();
    for object in free {
        world.given.remove(&object);
        removed.push(ShardChange::Remove(object));
    }
    removed
}

/// Takes away the kinds that the server has not served for as long as a mass deletion is held.
fn believe(world: &mut World, now: Timestamp) {
    let rules = world.rules.mass_deletion.clone();
    for kind in ObjectKind::ALL {
        let Some(since) = world.objects.kind_mut(kind).leaves_since(now) else {
            continue;
        };
        let shards: Vec<ObjectRef> = given_of(&world.given, kind).cloned().collect();
        // Routes stand and fall with their Gateways.
        let has_routes = kind == ObjectKind::Gateway
            && ROUTES
                .iter()
                .any(|route| given_of(&world.given, *route).next().is_some());
        let is_served = has_routes || !shards.is_empty();
        if rules.hold && is_served && end(since, &rules) > now {
            continue;
        }
        for (key, former) in world.objects.kind_mut(kind).clear() {
            world.forget(kind, &key, former.as_deref());
        }
        world.dirty.extend(shards.iter().cloned());
        world.believed.extend(shards);
        if kind == ObjectKind::Gateway {
            world.touch_all(&ROUTES);
        }
    }
}

/// Gives the next moment at which something changes by itself.
pub(super) fn due(world: &World) -> Option<Timestamp> {
    let rules = &world.rules.mass_deletion;
    let leaving = ObjectKind::ALL
        .into_iter()
        .filter_map(|kind| match world.objects.phase(kind) {
            Phase::Leaving(since) => Some(end(since?, rules)),
            _ => None,
        });
    leaving
        .chain(world.edges.first())
        .chain(world.guard.due(rules))
        .min()
}
