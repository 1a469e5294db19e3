//! What people may know of a member cluster's objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::kind::{Kind, Phase};
use super::objects::object_of;
use super::project::{refused, refused_key};
use super::{World, given_of, guard};
use crate::inventory::{ObjectKind, ObjectRef, Refused};
use crate::model::fair;
use crate::source::kubernetes::{Key, Watched};

/// Objects that an overview lists, at most.
const MAX_TOLD: usize = 1_000;

/// Refusals of one of them, at most. The last one says how many more there are.
const MAX_REFUSED: usize = 8;

/// How far a kind is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Its first list is not complete.
    Awaited,
    /// It was listed.
    Listed,
    /// The server does not serve it.
    Unserved,
}

/// One kind of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindOverview {
    /// The kind.
    pub watched: Watched,
    /// How far it is read.
    pub reading: Reading,
    /// Objects known, unreadable ones and those that are not served included.
    pub objects: usize,
}

/// Deletions that are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldDeletions {
    /// Since when the first of them is held.
    pub since: Timestamp,
    /// When the last of them is let go.
    pub until: Timestamp,
    /// How many shards are served though their objects are gone.
    pub count: usize,
}

/// An object of ours of which something was refused, or that is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Its kind.
    pub watched: Watched,
    /// Its namespace and name.
    pub key: Key,
    /// It is served, or counted, as far as it was not refused.
    pub is_served: bool,
    /// What was refused, and why. Never empty.
    pub refused: Vec<Refused>,
}

/// What people may know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overview {
    /// The kinds that are watched.
    pub kinds: Vec<KindOverview>,
    /// Shards that are served, held ones included.
    pub shards: usize,
    /// Deletions that are held.
    pub held: Option<HeldDeletions>,
    /// Objects of which something was refused, by kind, namespace and name; at most 1,000, the first of each namespace before
    /// the others.
    pub told: Vec<Told>,
    /// Such objects beyond these.
    pub untold: usize,
}

/// Says what people may know.
pub(super) fn overview(world: &World) -> Overview {
    let (told, untold) = told(world);
    let given = world.given.values();
    let served = given.filter(|shard| shard.unserved.is_none());
    Overview {
        kinds: Watched::ALL.map(|watched| kind(world, watched)).into(),
        shards: served.count(),
        held: held(world),
        told,
        untold,
    }
}

/// Counts one kind.
fn kind(world: &World, watched: Watched) -> KindOverview {
    let (phase, objects) = match (watched, watched.served()) {
        (_, Some(kind)) => {
            let known = world.objects.kind(kind);
            (world.objects.phase(kind), known.map_or(0, Kind::len))
        }
        (Watched::Nodes, None) => (world.nodes.phase(), world.nodes.len()),
        (_, None) => (world.behind.phase(), world.behind.len()),
    };
    KindOverview {
        watched,
        reading: match phase {
            Phase::Awaited => Reading::Awaited,
            Phase::Listed => Reading::Listed,
            Phase::Leaving(_) | Phase::Absent => Reading::Unserved,
        },
        objects,
    }
}

/// Counts the deletions that are held, shards of kinds that are not served any more included.
fn held(world: &World) -> Option<HeldDeletions> {
    let rules = &world.rules.mass_deletion;
    let leaving = ObjectKind::ALL.into_iter().filter_map(|kind| {
        let Phase::Leaving(Some(since)) = world.objects.phase(kind) else {
            return None;
        };
        let count = given_of(&world.given, kind).count();
        Some((since, guard::end(since, rules), count))
    });
    let all = leaving.chain(world.guard.held(rules));
    let all = all.filter(|(_, _, count)| *count > 0);
    let sum = all.reduce(|(since, until, count), (other, end, more)| {
        (since.min(other), until.max(end), count + more)
    });
    let (since, until, count) = sum?;
    Some(HeldDeletions {
        since,
        until,
        count,
    })
}

/// Where an object stands in the order of all that are told of.
type Place<'w> = (Watched, &'w Arc<str>, &'w Arc<str>);

/// Lists the objects of which something was refused, and counts those beyond. Refusals are copied of the listed ones alone.
fn told(world: &World) -> (Vec<Told>, usize) {
    let given = world.given.values();
    let given = given.filter(|shard| shard.unserved.is_some() || !shard.refused.is_empty());
    let mut places: Vec<Place<'_>> = given.map(|shard| place(&shard.object)).collect();
    places.extend(world.unserved.keys().map(place));
    for watched in Watched::ALL {
        let unreadable = unreadable(world, watched).into_iter().flatten();
        places.extend(unreadable.map(|(key, _)| (watched, &key.namespace, &key.name)));
    }
    places.sort_unstable();
    places.dedup();
    let namespace = |place: &Place<'_>| Arc::clone(place.1);
    let (told, count) = fair(places.into_iter(), MAX_TOLD, namespace);
    let told: Vec<Told> = told
        .into_iter()
        .map(|(_, place)| tell(world, place))
        .collect();
    let untold = count - told.len();
    (told, untold)
}

/// Gives the place of an object that may be served.
fn place(object: &ObjectRef) -> Place<'_> {
    (Watched::of(object.kind), &object.namespace, &object.name)
}

/// Lists the objects of a kind that cannot be read.
fn unreadable(world: &World, watched: Watched) -> Option<&BTreeMap<Key, Refused>> {
    match (watched, watched.served()) {
        (_, Some(kind)) => world.objects.kind(kind).map(Kind::unreadable),
        (Watched::Nodes, None) => Some(world.nodes.unreadable()),
        (_, None) => Some(world.behind.unreadable()),
    }
}

/// Tells what was refused of one object.
fn tell(world: &World, (watched, namespace, name): Place<'_>) -> Told {
    let key = Key {
        namespace: Arc::clone(namespace),
        name: Arc::clone(name),
    };
    let object = watched.served().map(|kind| object_of(kind, &key));
    let given = object.as_ref().and_then(|object| world.given.get(object));
    let fence = given.and_then(|shard| {
        let fence = refused_key("fence", shard.unserved.as_ref()?);
        // What is wrong with its own fence says it better.
        let is_said = shard.refused.iter().any(|part| part.what == fence.what);
        (!is_said).then_some(fence)
    });
    let unserved = object
        .as_ref()
        .and_then(|object| world.unserved.get(object));
    let unreadable = unreadable(world, watched).and_then(|unreadable| unreadable.get(&key));
    let refused = given.into_iter().flat_map(|shard| &shard.refused);
    let all = refused.chain(&fence).chain(unserved).chain(unreadable);
    let count = all.clone().count();
    let mut refused: Vec<Refused> = all.take(MAX_REFUSED).cloned().collect();
    if let Some(more) = count.checked_sub(MAX_REFUSED).filter(|more| *more > 0) {
        // The last one makes room for how many there are.
        refused.pop();
        let reason = format!("{} more were refused", more + 1);
        refused.push(self::refused("others", reason));
    }
    Told {
        is_served: match given {
            Some(shard) => shard.unserved.is_none(),
            None => object.is_none(),
        },
        watched,
        key,
        refused,
    }
}
