//! What people may know of a member cluster's objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::kind::{Kind, Phase};
use super::objects::{key_of, kind_of, object_of, watched_of};
use super::project::refused_key;
use super::{World, given_of, guard};
use crate::inventory::{ObjectKind, Refused};
use crate::model::fair;
use crate::source::kubernetes::{Key, Watched};

/// Objects that an overview lists, at most.
const MAX_TOLD: usize = 1_000;

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
    /// Shards given: what is served, held ones included.
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
    let namespace = |told: &Told| Arc::clone(&told.key.namespace);
    let (told, count) = fair(told(world).into_iter(), MAX_TOLD, namespace);
    let told: Vec<Told> = told.into_iter().map(|(_, told)| told).collect();
    let untold = count - told.len();
    Overview {
        kinds: Watched::ALL.map(|watched| kind(world, watched)).into(),
        shards: world.given.len(),
        held: held(world),
        told,
        untold,
    }
}

/// Counts one kind.
fn kind(world: &World, watched: Watched) -> KindOverview {
    let (phase, objects) = match (watched, kind_of(watched)) {
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

/// Lists the objects of which something was refused.
fn told(world: &World) -> Vec<Told> {
    let mut told: BTreeMap<(Watched, Key), (bool, Vec<Refused>)> = BTreeMap::new();
    for (object, shard) in &world.given {
        let mut refused = shard.refused.to_vec();
        if let Some(why) = &shard.unserved {
            refused.push(refused_key("fence", why));
        }
        if !refused.is_empty() {
            let at = (watched_of(object.kind), key_of(object));
            told.insert(at, (shard.unserved.is_none(), refused));
        }
    }
    for (object, why) in &world.unserved {
        let at = (watched_of(object.kind), key_of(object));
        let is_given = world.given.contains_key(object);
        let (_, refused) = told.entry(at).or_insert((is_given, Vec::new()));
        refused.push(why.clone());
    }
    for watched in Watched::ALL {
        let unreadable = match (watched, kind_of(watched)) {
            (_, Some(kind)) => world.objects.kind(kind).map(Kind::unreadable),
            (Watched::Nodes, None) => Some(world.nodes.unreadable()),
            (_, None) => Some(world.behind.unreadable()),
        };
        for (key, why) in unreadable.into_iter().flatten() {
            let is_served =
                kind_of(watched).is_none_or(|kind| world.given.contains_key(&object_of(kind, key)));
            let (_, refused) = told
                .entry((watched, key.clone()))
                .or_insert((is_served, Vec::new()));
            refused.push(why.clone());
        }
    }
    let told = told.into_iter();
    told.map(|((watched, key), (is_served, refused))| Told {
        watched,
        key,
        is_served,
        refused,
    })
    .collect()
}
