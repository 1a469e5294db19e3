//! The mirror of shards, targets and places of clusters on disk. What was refused of an object, and how many endpoints stand behind it, is not kept:
//! its cluster says it again, and it changes with every Pod.

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::headless::HeadlessDto;
use crate::controller::target_key::tls_word;
use crate::geo::region;
use crate::inventory::{
    ClusterFacts, NameKeys, ObjectKind, ObjectRef, Readiness, ResolvedTarget, Shard,
};
use crate::model::{
    Carrier, Check, ClientSelector, ClusterSelector, FallbackSpec, FenceRule, HttpCheck, LowerName,
    MapEntry, MonitorSpec, NamedPort, Origin, Provider, StatusRange, Steer, TcpCheck, TlsMode, Ttl,
    Weight,
};

/// One shard.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ShardDto {
    kind: String,
    namespace: String,
    name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<IpAddr>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    targets: Vec<String>,
    weight: u16,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    clients: Vec<IpNet>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    monitor: Option<MonitorDto>,
    /// Why it is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unready: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    drained: bool,
    #[serde(default, skip_serializing_if = "KeysDto::is_empty")]
    keys: KeysDto,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ports: Vec<PortDto>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    headless: Option<HeadlessDto>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unserved: Option<String>,
}

/// Name, label of the carrier and number of a named port.
pub(super) type PortDto = (String, String, NonZeroU16);

/// What a host name of a load balancer resolves to.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TargetDto {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<IpAddr>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    old: Vec<IpAddr>,
    /// It lies in our own zones: where it goes on outside of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inside: Option<Vec<String>>,
}

/// Where a cluster is, as its own Nodes say. Its place is read from the table of regions again.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FactsDto {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    region: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    zones: Vec<Box<str>>,
}

/// What a shard says of its names.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct KeysDto {
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weights: Option<Vec<(String, u16)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weighs_endpoints: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tiers: Option<Vec<Vec<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bias: Option<Vec<(String, i8)>>,
    /// Clients and clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    maps: Option<Vec<(Vec<String>, Vec<String>)>>,
    /// Clients and clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<Vec<(Vec<String>, Vec<String>)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fence_answer: Option<AnswerDto>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback: Option<AnswerDto>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    panic: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    federation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_cluster_set: Option<bool>,
}

impl KeysDto {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What is answered in place of endpoints.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum AnswerDto {
    Addresses(Vec<IpAddr>),
    Hostname(String),
}

/// A monitor.
#[derive(Debug, Serialize, Deserialize)]
struct MonitorDto {
    port: u16,
    /// `None`: a connection over TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    http: Option<HttpDto>,
    /// What is said over that connection.
    #[serde(default, skip_serializing_if = "<[u8]>::is_empty")]
    send: Box<[u8]>,
    /// What must come back.
    #[serde(default, skip_serializing_if = "<[u8]>::is_empty")]
    expect: Box<[u8]>,
    /// Milliseconds.
    interval: u64,
    /// Milliseconds.
    timeout: u64,
    rise: u8,
    fall: u8,
}

/// A check over HTTP.
#[derive(Debug, Serialize, Deserialize)]
struct HttpDto {
    /// `off`, `verify`, `skip`, or the digest that is pinned.
    tls: String,
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    head: bool,
    expect: Vec<(u16, u16)>,
}

/// Gives what is known of a target that nobody has confirmed since the start.
pub(super) fn unconfirmed(target: &ResolvedTarget) -> ResolvedTarget {
    ResolvedTarget {
        // It is asked for again soon.
        ttl: Ttl::BRIEF,
        fault: None,
        ..target.clone()
    }
}

/// Gives where a cluster is, as nobody has said it since the start. How many Nodes did say so is not kept: it changes all the time.
pub(super) fn former(facts: &ClusterFacts) -> ClusterFacts {
    FactsDto::from(facts).read()
}

// === Out ===

fn texts<T: ToString>(all: &[T]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

impl From<&Shard> for ShardDto {
    fn from(shard: &Shard) -> Self {
        Self {
            kind: shard.object.kind.to_string(),
            namespace: shard.object.namespace.to_string(),
            name: shard.object.name.to_string(),
            hosts: texts(&shard.hosts),
            addresses: shard.addresses.to_vec(),
            targets: texts(&shard.targets),
            weight: shard.weight.0,
            clients: shard.clients.to_vec(),
            monitor: shard.monitor.as_deref().map(MonitorDto::from),
            unready: match &shard.readiness {
                Readiness::Ready => None,
                Readiness::NotReady(reason) => Some(reason.to_string()),
            },
            drained: shard.is_drained,
            keys: KeysDto::from(&*shard.keys),
            ports: shard.ports.iter().map(written_port).collect(),
            headless: shard.headless.as_deref().map(HeadlessDto::from),
            unserved: shard.unserved.as_ref().map(ToString::to_string),
        }
    }
}

/// Writes a port.
pub(super) fn written_port(port: &NamedPort) -> PortDto {
    let carrier = port.carrier.label().to_owned();
    (port.name.to_string(), carrier, port.number)
}

impl From<&ResolvedTarget> for TargetDto {
    fn from(target: &ResolvedTarget) -> Self {
        Self {
            addresses: target.addresses.to_vec(),
            old: target.old.to_vec(),
            inside: target.inside.as_deref().map(texts),
        }
    }
}

impl From<&ClusterFacts> for FactsDto {
    fn from(facts: &ClusterFacts) -> Self {
        Self {
            provider: facts.provider.clone(),
            region: facts.region.clone(),
            zones: facts.zones.clone(),
        }
    }
}

impl From<&NameKeys> for KeysDto {
    fn from(keys: &NameKeys) -> Self {
        let rule = |rule: &FenceRule| (texts(&rule.clients), texts(&rule.clusters));
        let entry = |entry: &MapEntry| (texts(&entry.clients), texts(&entry.clusters));
        Self {
            ttl: keys.ttl.map(Ttl::seconds),
            steer: keys.steer.map(|steer| steer.as_str().to_owned()),
            weights: keys.weights.as_ref().map(|all| {
                let pairs = all.iter();
                pairs
                    .map(|(selector, weight)| (selector.to_string(), weight.0))
                    .collect()
            }),
            weighs_endpoints: keys.weighs_endpoints,
            tiers: keys
                .tiers
                .as_ref()
                .map(|tiers| tiers.iter().map(|tier| texts(tier)).collect()),
            bias: keys.bias.as_ref().map(|all| {
                let pairs = all.iter();
                pairs
                    .map(|(selector, bias)| (selector.to_string(), *bias))
                    .collect()
            }),
            maps: keys
                .maps
                .as_ref()
                .map(|all| all.iter().map(entry).collect()),
            fence: keys
                .fence
                .as_ref()
                .map(|all| all.iter().map(rule).collect()),
            fence_answer: keys.fence_answer.as_ref().map(AnswerDto::from),
            fallback: keys.fallback.as_ref().map(AnswerDto::from),
            answers: keys.answers,
            panic: keys.panic,
            federation: keys.federation.as_ref().map(ToString::to_string),
            in_cluster_set: keys.in_cluster_set,
        }
    }
}

impl From<&FallbackSpec> for AnswerDto {
    fn from(answer: &FallbackSpec) -> Self {
        match answer {
            FallbackSpec::Addresses(addresses) => Self::Addresses(addresses.clone()),
            FallbackSpec::Hostname(name) => Self::Hostname(name.to_string()),
        }
    }
}

impl From<&MonitorSpec> for MonitorDto {
    fn from(spec: &MonitorSpec) -> Self {
        let (send, expect) = match &spec.check {
            Check::Tcp(check) => (check.send.clone(), check.expect.clone()),
            Check::Http(_) => (Box::default(), Box::default()),
        };
        let http = match &spec.check {
            Check::Tcp(_) => None,
            Check::Http(check) => Some(HttpDto {
                tls: tls_word(check.tls.as_ref()),
                path: check.path.to_string(),
                host: check.host.as_ref().map(ToString::to_string),
                head: check.head,
                expect: check
                    .expect
                    .iter()
                    .map(|range| (range.first, range.last))
                    .collect(),
            }),
        };
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            port: spec.check.port(),
            http,
            send,
            expect,
            interval: milliseconds(spec.interval),
            timeout: milliseconds(spec.timeout),
            rise: spec.rise,
            fall: spec.fall,
        }
    }
}

// === In ===

/// Reads all of a list, or nothing: half a fence is another fence.
fn parsed<T: std::str::FromStr>(texts: &[String]) -> Option<Vec<T>> {
    texts.iter().map(|text| text.parse().ok()).collect()
}

impl ShardDto {
    /// Reads it back; `None` where a part is not what we write.
    pub(super) fn read(self) -> Option<Shard> {
        let kind = ObjectKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == self.kind)?;
        Some(Shard {
            object: ObjectRef {
                kind,
                namespace: self.namespace.into(),
                name: self.name.into(),
            },
            hosts: parsed::<LowerName>(&self.hosts)?.into(),
            addresses: self.addresses.into(),
            targets: parsed::<LowerName>(&self.targets)?.into(),
            weight: Weight(self.weight),
            clients: self.clients.into(),
            monitor: match self.monitor {
                Some(monitor) => Some(Arc::new(monitor.read()?)),
                None => None,
            },
            readiness: match self.unready {
                Some(reason) => Readiness::NotReady(reason.into()),
                None => Readiness::Ready,
            },
            is_drained: self.drained,
            backing: None,
            keys: Arc::new(self.keys.read()?),
            ports: self.ports.iter().map(read_port).collect::<Option<_>>()?,
            headless: match self.headless {
                Some(headless) => Some(headless.read()?),
                None => None,
            },
            unserved: self.unserved.map(Into::into),
            refused: Box::default(),
        })
    }
}

/// Reads a port back.
pub(super) fn read_port((name, carrier, number): &PortDto) -> Option<NamedPort> {
    Some(NamedPort {
        name: name.parse().ok()?,
        carrier: Carrier::from_label(carrier.as_bytes())?,
        number: *number,
    })
}

impl TargetDto {
    /// Takes what was read. Names that are none are left out: where it goes on is found anew.
    pub(super) fn read(self) -> ResolvedTarget {
        let names =
            |names: Vec<String>| names.iter().filter_map(|name| name.parse().ok()).collect();
        ResolvedTarget {
            addresses: self.addresses.into(),
            old: self.old.into(),
            ttl: Ttl::BRIEF,
            inside: self.inside.map(names),
            is_gone: false,
            fault: None,
        }
    }
}

impl FactsDto {
    /// Takes what was read.
    pub(super) fn read(self) -> ClusterFacts {
        let named = self.provider.as_deref().zip(self.region.as_deref());
        let known = named.and_then(|(provider, name)| {
            let provider: Provider = provider.parse().ok()?;
            region(provider, name)
        });
        ClusterFacts {
            location: known
                .map(|region| region.location.clone())
                .unwrap_or_default(),
            provider: self.provider,
            region: self.region,
            zones: self.zones,
            evidence: "labels of its nodes before the start".into(),
        }
    }
}

/// Reads what may be there.
fn all<T, U>(list: Option<Vec<T>>, read: impl FnMut(T) -> Option<U>) -> Option<Option<Vec<U>>> {
    match list {
        None => Some(None),
        Some(list) => list
            .into_iter()
            .map(read)
            .collect::<Option<Vec<U>>>()
            .map(Some),
    }
}

impl KeysDto {
    fn read(self) -> Option<NameKeys> {
        let answer = |answer: Option<AnswerDto>| match answer {
            None => Some(None),
            Some(answer) => answer.read().map(Some),
        };
        Some(NameKeys {
            ttl: match self.ttl {
                None => None,
                Some(seconds) => Some(Ttl::new(seconds)?),
            },
            steer: match self.steer {
                None => None,
                Some(word) => Some(Steer::from_word(&word)?),
            },
            weighs_endpoints: self.weighs_endpoints,
            weights: all(self.weights, |(selector, weight)| {
                Some((selector.parse::<ClusterSelector>().ok()?, Weight(weight)))
            })?,
            tiers: all(self.tiers, |tier| parsed::<ClusterSelector>(&tier))?,
            bias: all(self.bias, |(selector, bias)| {
                Some((selector.parse::<ClusterSelector>().ok()?, bias))
            })?,
            maps: all(self.maps, |(clients, clusters)| {
                Some(MapEntry {
                    clients: parsed::<ClientSelector>(&clients)?,
                    clusters: parsed::<ClusterSelector>(&clusters)?,
                })
            })?,
            fence: all(self.fence, |(clients, clusters)| {
                Some(FenceRule {
                    clients: parsed::<ClientSelector>(&clients)?,
                    clusters: parsed::<ClusterSelector>(&clusters)?,
                })
            })?,
            fence_answer: answer(self.fence_answer)?,
            fallback: answer(self.fallback)?,
            answers: self.answers,
            panic: self.panic,
            federation: match self.federation {
                None => None,
                Some(label) => Some(label.parse().ok()?),
            },
            in_cluster_set: self.in_cluster_set,
        })
    }
}

impl AnswerDto {
    fn read(self) -> Option<FallbackSpec> {
        Some(match self {
            Self::Addresses(addresses) => FallbackSpec::Addresses(addresses),
            Self::Hostname(name) => FallbackSpec::Hostname(name.parse().ok()?),
        })
    }
}

impl MonitorDto {
    fn read(self) -> Option<MonitorSpec> {
        let check = match self.http {
            None => Check::Tcp(TcpCheck {
                port: self.port,
                send: self.send,
                expect: self.expect,
            }),
            Some(http) => Check::Http(HttpCheck {
                tls: match http.tls.as_str() {
                    "off" => None,
                    "verify" => Some(TlsMode::Verify),
                    "skip" => Some(TlsMode::Skip),
                    digest => Some(TlsMode::Pin(digest_of(digest)?)),
                },
                port: self.port,
                path: http.path.into(),
                host: http.host.map(Into::into),
                head: http.head,
                expect: http
                    .expect
                    .into_iter()
                    .map(|(first, last)| StatusRange { first, last })
                    .collect(),
            }),
        };
        Some(MonitorSpec {
            check,
            interval: Duration::from_millis(self.interval),
            timeout: Duration::from_millis(self.timeout),
            rise: self.rise,
            fall: self.fall,
            // Whatever stands in the file: what comes from objects is a tenant's.
            origin: Origin::Tenant,
        })
    }
}

/// Reads 32 octets in hexadecimal digits.
fn digest_of(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (octet, at) in digest.iter_mut().zip((0..64).step_by(2)) {
        *octet = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(digest)
}
