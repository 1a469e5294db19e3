//! One member cluster: events of its watches in, changes of its shards out.
//!
//! A [`World`] keeps the records of the cluster's objects and what it gave of them last. An event touches the objects that it
//! concerns and no others: the object itself, the Ingresses and Routes that send traffic to a Service, the Routes that ask for a
//! Gateway. What was touched is projected anew when somebody takes the changes, and what comes out as before is not given.
//!
//! Not seeing is not gone. A relist is a difference, and nothing goes before a list is complete; one that leaves objects out is not. The shards of the last good
//! state stand until their kind is listed. A kind that the server does not serve any more stays as it is until that has been so
//! for `massDeletion.for`, and most of all objects gone at once are held as long (`guard.rs` has the rule). An object that had
//! addresses, and whose status names none any more, keeps them; so does a Route its names when no Gateway accepts it any more.
//! Both are said not to be ready.
//!
//! This room knows no client, no clock, no task and no log: it is called by the watch loops of one cluster, with the wall time.

mod behind;
mod edges;
mod facts;
mod guard;
mod index;
mod kind;
mod limits;
mod objects;
mod overview;
mod project;
mod take;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

pub use overview::{HeldDeletions, KindOverview, Overview, Reading, Told};

use super::{Event, GatewayRecord, Key, Listener, Record, Rules, Watched};
use crate::inventory::{ClusterFacts, ObjectKind, ObjectRef, Refused, Shard, ShardChange};
use crate::model::Weight;
use behind::{Behind, Touched};
use edges::Edges;
use facts::Nodes;
use guard::Guard;
use index::Index;
use limits::{Asking, Names, Shared};
use objects::{Objects, ROUTES, kind_of_record, lay, object_of};

/// What is known of one member cluster.
#[derive(Debug)]
pub struct World {
    rules: Arc<Rules>,
    /// Multiplies the weights that objects say.
    weight: Weight,
    objects: Objects,
    behind: Behind,
    nodes: Nodes,
    index: Index,
    asking: Asking,
    names: Names,
    shared: Shared,
    guard: Guard,
    edges: Edges,
    /// The shards as they were given last: what is served now.
    given: BTreeMap<ObjectRef, Shard>,
    /// Objects that are there and not served, or not yet, where people should know why.
    unserved: BTreeMap<ObjectRef, Refused>,
    /// Objects to project.
    dirty: BTreeSet<ObjectRef>,
    /// Objects of kinds that are believed not to be served any more: the guard has waited for them.
    believed: BTreeSet<ObjectRef>,
    /// When changes were taken last.
    taken: Option<Timestamp>,
}

impl World {
    /// Begins with nothing read. `held`: the shards of the last good state; they stand until their kinds are listed. Of two of one
    /// object the later counts.
    #[must_use]
    pub fn new(rules: Arc<Rules>, held: Vec<Shard>) -> Self {
        let mut shared = Shared::default();
        for monitor in held.iter().filter_map(|shard| shard.monitor.as_ref()) {
            shared.adopt(monitor);
        }
        let given = held.into_iter().map(|shard| (shard.object.clone(), shard));
        Self {
            rules,
            weight: Weight::default(),
            objects: Objects::default(),
            behind: Behind::default(),
            nodes: Nodes::default(),
            index: Index::default(),
            asking: Asking::default(),
            names: Names::default(),
            shared,
            guard: Guard::default(),
            edges: Edges::default(),
            given: given.collect(),
            unserved: BTreeMap::new(),
            dirty: BTreeSet::new(),
            believed: BTreeSet::new(),
            taken: None,
        }
    }

    /// Takes new rules: everything is projected again. Removals that follow pass the guard like all others.
    pub fn set_rules(&mut self, rules: Arc<Rules>) {
        if *rules != *self.rules {
            if rules.compat != self.rules.compat {
                self.objects.lay(&rules.compat);
            }
            self.rules = rules;
            self.touch_all(&ObjectKind::ALL);
        }
    }

    /// Takes what multiplies the weights that objects say, where that is another one: everything is projected again.
    pub fn set_weight(&mut self, weight: Weight) {
        if self.weight != weight {
            self.weight = weight;
            self.touch_all(&ObjectKind::ALL);
        }
    }

    /// Takes what a watch saw. A record of another kind than its watch is about is passed over.
    pub fn apply(&mut self, watched: Watched, event: Event) {
        match (watched, watched.served()) {
            (_, Some(kind)) => self.apply_object(kind, event),
            (Watched::Nodes, None) => self.nodes.apply(event),
            (_, None) => {
                let objects = &self.objects;
                let is_ordinary = |service: &Key| {
                    let service = objects.service(service);
                    service.is_some_and(|service| !service.is_headless)
                };
                match self.behind.apply(event, is_ordinary) {
                    Touched::All => self.touch_all(&ObjectKind::ALL),
                    Touched::Some(services) => {
                        for service in &services {
                            self.touch_service(service);
                        }
                    }
                }
            }
        }
    }

    /// Tells whether each list that says what is served was complete once, or is none.
    #[must_use]
    pub fn is_read(&self) -> bool {
        let mut phases = ObjectKind::ALL
            .into_iter()
            .map(|kind| self.objects.phase(kind))
            .chain([self.behind.phase()]);
        phases.all(|phase| phase != kind::Phase::Awaited)
    }

    /// Gives what changed since the last call: first what is new or changed, then what is gone, each by object. `now`: wall
    /// time, for drain windows and held deletions; it may go back.
    pub fn take(&mut self, now: Timestamp) -> Vec<ShardChange> {
        take::take(self, now)
    }

    /// Gives the next moment at which [`World::take`] gives something though nothing happens: a drain begins or ends, a held
    /// deletion runs out. As of the last call of it; perhaps it has passed.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        take::due(self)
    }

    /// Says where the cluster is, by its Nodes; `None`: no Node is known, or their first list is not complete.
    #[must_use]
    pub fn facts(&self) -> Option<ClusterFacts> {
        self.nodes.facts()
    }

    /// Says what people may know, as of the last call of [`World::take`]. Costs a walk over the shards.
    #[must_use]
    pub fn overview(&self) -> Overview {
        overview::overview(self)
    }

    // === Events of objects ===

    /// Takes what the watch of a kind that may be served saw.
    fn apply_object(&mut self, kind: ObjectKind, event: Event) {
        let before = self.objects.phase(kind);
        let known = self.objects.kind_mut(kind);
        match event {
            Event::Listing => known.begin(),
            Event::Applied(key, mut record) => {
                if kind_of_record(&record) == Some(kind) {
                    lay(&mut record, &self.rules.compat);
                    self.put(kind, key, record);
                }
            }
            Event::Unreadable(key, why) => {
                let is_new = !known.has(&key);
                known.put_unreadable(key.clone(), why);
                if is_new {
                    self.dirty.insert(object_of(kind, &key));
                    self.touch_dependents(kind, &key);
                }
            }
            Event::Gone(key) => {
                let former = known.remove(&key);
                if self.given.contains_key(&object_of(kind, &key)) {
                    known.say_gone(&key);
                }
                self.forget(kind, &key, former.as_deref());
            }
            Event::Listed => {
                for (key, former) in known.end() {
                    self.forget(kind, &key, former.as_deref());
                }
            }
            Event::LeftOut => known.leave_out(),
            Event::Unserved => known.leave(),
        }
        if self.objects.phase(kind) != before {
            self.touch_given(kind);
            // Whether a Gateway that nobody sees is gone, or only not read, turned.
            if kind == ObjectKind::Gateway {
                self.touch_all(&ROUTES);
            }
        }
    }

    /// Keeps an object, and touches who depends on what changed of it.
    fn put(&mut self, kind: ObjectKind, key: Key, record: Box<Record>) {
        let object = object_of(kind, &key);
        if matches!(&*record, Record::Service(service) if !service.is_headless) {
            self.behind.shed(&key);
        }
        let known = self.objects.kind_mut(kind);
        let former = known.put(key.clone(), record);
        let record = known.get(&key);
        if former.as_ref() == record {
            return;
        }
        if let Some(former) = &former {
            self.index.unlink(&object, former);
        }
        if let Some(record) = record {
            self.index.link(&object, record);
        }
        let is_other = reads_otherwise(former.as_deref(), record.map(|record| &**record));
        self.dirty.insert(object);
        if is_other {
            self.touch_dependents(kind, &key);
        }
    }

    /// Takes an object away, and touches who depends on it.
    fn forget(&mut self, kind: ObjectKind, key: &Key, former: Option<&Record>) {
        let object = object_of(kind, key);
        if let Some(former) = former {
            self.index.unlink(&object, former);
        }
        // One that could never be read was something to wait for.
        if former.is_none() || reads_otherwise(former, None) {
            self.touch_dependents(kind, key);
        }
        self.dirty.insert(object);
    }

    // === Who is touched ===

    /// Touches all objects of some kinds.
    fn touch_all(&mut self, kinds: &[ObjectKind]) {
        self.dirty.extend(self.objects.all(kinds));
    }

    /// Touches all shards of a kind, those without an object too.
    fn touch_given(&mut self, kind: ObjectKind) {
        self.dirty.extend(given_of(&self.given, kind).cloned());
    }

    /// Touches a Service and who sends traffic there.
    fn touch_service(&mut self, service: &Key) {
        self.dirty.insert(object_of(ObjectKind::Service, service));
        self.touch_dependents(ObjectKind::Service, service);
    }

    /// Touches who reads an object.
    fn touch_dependents(&mut self, kind: ObjectKind, key: &Key) {
        match kind {
            ObjectKind::Service => self.dirty.extend(self.index.of_service(key).cloned()),
            ObjectKind::Gateway => self.dirty.extend(self.index.of_gateway(key).cloned()),
            _ => {}
        }
    }
}

/// Lists the shards of a kind.
fn given_of(
    given: &BTreeMap<ObjectRef, Shard>,
    kind: ObjectKind,
) -> impl Iterator<Item = &ObjectRef> {
    let first = ObjectRef {
        kind,
        namespace: "".into(),
        name: "".into(),
    };
    let objects = given.range(first..).map(|(object, _)| object);
    objects.take_while(move |object| object.kind == kind)
}

/// Tells whether those that depend on an object read something else of it. Of a Service they read whether unready endpoints
/// count; of a Gateway all but how many Routes are attached, which changes with each of them.
fn reads_otherwise(former: Option<&Record>, record: Option<&Record>) -> bool {
    match (former, record) {
        (Some(Record::Gateway(former)), Some(Record::Gateway(record))) => {
            !is_same_gateway(former, record)
        }
        (None | Some(Record::Service(_)), None | Some(Record::Service(_))) => {
            counts_all(former) != counts_all(record)
        }
        _ => true,
    }
}

/// Tells whether a Service counts unready endpoints too.
fn counts_all(record: Option<&Record>) -> bool {
    matches!(record, Some(Record::Service(service)) if service.publishes_not_ready)
}

/// Compares all that Routes read of a Gateway.
fn is_same_gateway(former: &GatewayRecord, record: &GatewayRecord) -> bool {
    let is_same = |(former, record): (&Listener, &Listener)| {
        (&former.name, &former.host, &former.port) == (&record.name, &record.host, &record.port)
    };
    former.listeners.len() == record.listeners.len()
        && former.listeners.iter().zip(&record.listeners).all(is_same)
        && former.common == record.common
        && former.unready == record.unready
        && former.entries == record.entries
}
