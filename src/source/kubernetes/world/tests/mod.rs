//! The world of one cluster, played: small builders, and a mirror that takes the changes as the inventory does.

mod deletions;
mod drains;
mod fences;
mod headless;
mod hosts;
mod lists;
mod monitors;
mod overview;
mod ports;
mod random;
mod readiness;
mod served;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::World;
use super::objects::{kind_of_record, object_of};
use crate::inventory::{Backing, ObjectKind, ObjectRef, Refused, Shard, ShardChange};
use crate::model::LowerName;
use crate::source::kubernetes::annotations;
use crate::source::kubernetes::{
    Backend, Common, Event, GatewayRecord, IngressRecord, Ingresses, Key, Listener, Parent, Port,
    Protocol, Record, RouteRecord, Rules, ServiceRecord, SliceEndpoint, SliceRecord, Watched,
};

/// Gives all kinds but Nodes.
fn kinds() -> impl Iterator<Item = Watched> {
    let kinds = Watched::ALL.into_iter();
    kinds.filter(|watched| *watched != Watched::Nodes)
}

// === Builders ===

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn name(text: &str) -> LowerName {
    text.parse().unwrap()
}

fn names(texts: &[&str]) -> Vec<LowerName> {
    texts.iter().map(|text| name(text)).collect()
}

/// A key in the namespace `shop`, or `namespace/name`.
fn key(text: &str) -> Key {
    let (namespace, name) = text.split_once('/').unwrap_or(("shop", text));
    Key {
        namespace: namespace.into(),
        name: name.into(),
    }
}

fn object(kind: ObjectKind, text: &str) -> ObjectRef {
    object_of(kind, &key(text))
}

/// Annotations, their keys without the prefix.
fn said(pairs: &[(&str, &str)]) -> Common {
    let pairs: Vec<(String, &str)> = pairs
        .iter()
        .map(|(key, value)| (format!("{}{key}", annotations::PREFIX), *value))
        .collect();
    Common {
        said: annotations::read(pairs.iter().map(|(key, value)| (key.as_str(), *value))),
        ..Common::default()
    }
}

/// `enabled`, and more.
fn enabled(more: &[(&str, &str)]) -> Common {
    let mut pairs = vec![("enabled", "true")];
    pairs.extend_from_slice(more);
    said(&pairs)
}

fn entries(texts: &[&str]) -> Ingresses {
    let mut entries = Ingresses::default();
    for text in texts {
        match text.parse() {
            Ok(address) => entries.addresses.push(address),
            Err(_) => entries.hostnames.push(name(text)),
        }
    }
    entries
}

fn port(name: &str, number: u16, protocol: Protocol) -> Port {
    Port {
        name: name.into(),
        number,
        protocol,
    }
}

/// A LoadBalancer at 192.0.2.1 with one port, 80.
fn service(common: Common) -> ServiceRecord {
    ServiceRecord {
        common,
        is_load_balancer: true,
        is_headless: false,
        ports: vec![port("web", 80, Protocol::Tcp)],
        entries: entries(&["192.0.2.1"]),
        publishes_not_ready: false,
    }
}

/// An Ingress at 192.0.2.2.
fn ingress(common: Common, hosts: &[&str], backends: &[(&str, bool)]) -> IngressRecord {
    IngressRecord {
        common,
        hosts: names(hosts),
        has_tls: false,
        backends: backs(backends),
        entries: entries(&["192.0.2.2"]),
    }
}

fn backs(backends: &[(&str, bool)]) -> Vec<Backend> {
    let backends = backends.iter().map(|(service, is_used)| Backend {
        service: key(service),
        is_used: *is_used,
    });
    backends.collect()
}

/// A programmed Gateway at 192.0.2.3.
fn gateway(common: Common, listeners: Vec<Listener>) -> GatewayRecord {
    GatewayRecord {
        common,
        listeners,
        unready: None,
        entries: entries(&["192.0.2.3"]),
    }
}

/// A listener for HTTPS on 443; host "": all.
fn listener(label: &str, host: &str) -> Listener {
    Listener {
        name: label.into(),
        host: (!host.is_empty()).then(|| name(host)),
        port: port("", 443, Protocol::Tls),
        attached: 0,
    }
}

/// An accepted parent: `gateway` or `gateway#section`.
fn parent(text: &str) -> Parent {
    let (gateway, section) = match text.split_once('#') {
        Some((gateway, section)) => (gateway, Some(section.into())),
        None => (text, None),
    };
    Parent {
        gateway: key(gateway),
        section,
        port: None,
        unaccepted: None,
    }
}

fn unaccepted(text: &str, why: &str) -> Parent {
    Parent {
        unaccepted: Some(why.into()),
        ..parent(text)
    }
}

fn route(common: Common, hosts: &[&str], parents: Vec<Parent>) -> RouteRecord {
    RouteRecord {
        common,
        kind: ObjectKind::HttpRoute,
        hosts: names(hosts),
        parents,
        backends: Vec::new(),
    }
}

fn slice(service: &str, ready: u32, endpoints: u32) -> SliceRecord {
    SliceRecord {
        service: service.into(),
        backing: Backing {
            ready,
            serving: ready,
            terminating: 0,
            ..Backing::default()
        },
        endpoints,
        ..SliceRecord::default()
    }
}

fn refusal(what: &str) -> Refused {
    Refused {
        what: what.into(),
        reason: "it is odd".into(),
    }
}

impl From<ServiceRecord> for Record {
    fn from(record: ServiceRecord) -> Self {
        Self::Service(record)
    }
}

impl From<IngressRecord> for Record {
    fn from(record: IngressRecord) -> Self {
        Self::Ingress(record)
    }
}

impl From<GatewayRecord> for Record {
    fn from(record: GatewayRecord) -> Self {
        Self::Gateway(record)
    }
}

impl From<RouteRecord> for Record {
    fn from(record: RouteRecord) -> Self {
        Self::Route(record)
    }
}

impl From<SliceRecord> for Record {
    fn from(record: SliceRecord) -> Self {
        Self::Slice(record)
    }
}

// === The play ===

/// A world, and what the inventory knows of it.
struct Play {
    world: World,
    shards: BTreeMap<ObjectRef, Shard>,
    second: i64,
}

impl Play {
    /// Nothing is read, nothing is held.
    fn new() -> Self {
        Self::with(Rules::default(), Vec::new())
    }

    fn with(rules: Rules, held: Vec<Shard>) -> Self {
        let shards = held
            .iter()
            .map(|shard| (shard.object.clone(), shard.clone()))
            .collect();
        Self {
            world: World::new(Arc::new(rules), held),
            shards,
            second: 0,
        }
    }

    /// Every kind is listed, and empty.
    fn listed() -> Self {
        Self::listed_with(Rules::default())
    }

    fn listed_with(rules: Rules) -> Self {
        let mut play = Self::with(rules, Vec::new());
        for watched in kinds() {
            play.list(watched, Vec::new());
        }
        play
    }

    fn event(&mut self, watched: Watched, event: Event) {
        self.world.apply(watched, event);
    }

    /// Applies one object: the watch follows from the record.
    fn put(&mut self, text: &str, record: impl Into<Record>) {
        let record = record.into();
        let watched = kind_of_record(&record).map_or(Watched::EndpointSlices, Watched::of);
        self.event(watched, Event::Applied(key(text), Box::new(record)));
    }

    fn gone(&mut self, watched: Watched, text: &str) {
        self.event(watched, Event::Gone(key(text)));
    }

    fn list(&mut self, watched: Watched, objects: Vec<(&str, Record)>) {
        self.event(watched, Event::Listing);
        for (text, record) in objects {
            self.event(watched, Event::Applied(key(text), Box::new(record)));
        }
        self.event(watched, Event::Listed);
    }

    /// Takes the changes as the inventory does, and holds them to what is promised of them.
    fn take(&mut self) -> Vec<ShardChange> {
        let changes = self.world.take(at(self.second));
        for change in &changes {
            match change {
                ShardChange::Upsert(shard) => {
                    let former = self.shards.insert(shard.object.clone(), (**shard).clone());
                    assert_ne!(former.as_ref(), Some(&**shard), "given twice");
                }
                ShardChange::Remove(object) => {
                    assert!(self.shards.remove(object).is_some(), "{object} never was");
                }
                ShardChange::Clear => panic!("a world is never cleared"),
            }
        }
        assert_eq!(self.shards, self.world.given);
        assert_eq!(self.world.take(at(self.second)), []);
        if let Some(due) = self.world.due() {
            assert!(due > at(self.second), "it is due at {due}");
        }
        changes
    }

    /// Takes the changes at a later second.
    fn take_at(&mut self, second: i64) -> Vec<ShardChange> {
        self.second = second;
        self.take()
    }

    /// Takes the changes, and gives one shard.
    fn shard(&mut self, kind: ObjectKind, text: &str) -> Option<Shard> {
        self.take();
        self.shards.get(&object(kind, text)).cloned()
    }

    fn service(&mut self, text: &str) -> Shard {
        self.shard(ObjectKind::Service, text).unwrap()
    }

    fn ingress(&mut self, text: &str) -> Shard {
        self.shard(ObjectKind::Ingress, text).unwrap()
    }

    fn route(&mut self, text: &str) -> Shard {
        self.shard(ObjectKind::HttpRoute, text).unwrap()
    }
}

/// Shows the hosts of a shard.
fn hosts(shard: &Shard) -> Vec<String> {
    shard.hosts.iter().map(LowerName::to_string).collect()
}

/// Shows where a shard's traffic enters.
fn enters(shard: &Shard) -> Vec<String> {
    let addresses = shard.addresses.iter().map(ToString::to_string);
    let targets = shard.targets.iter().map(ToString::to_string);
    addresses.chain(targets).collect()
}

/// Shows why a shard is not ready; "": it is.
fn unready(shard: &Shard) -> &str {
    match &shard.readiness {
        crate::inventory::Readiness::Ready => "",
        crate::inventory::Readiness::NotReady(why) => why,
    }
}

/// Shows what was refused, without the prefix of annotations.
fn refused(shard: &Shard) -> Vec<(&str, &str)> {
    let refused = shard.refused.iter().map(|refused| {
        let what = refused.what.strip_prefix(annotations::PREFIX);
        (what.unwrap_or(&refused.what), &*refused.reason)
    });
    refused.collect()
}
