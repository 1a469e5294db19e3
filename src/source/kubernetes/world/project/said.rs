//! What an object says: its annotations over those of its Gateways, and whether they ask for it to be served.

use std::borrow::Cow;

use super::attached::Attached;
use super::groups;
use super::notes::{Notes, is_refused, refused, refused_key};
use crate::inventory::{NameKeys, Refused, Shard};
use crate::model::{FenceRule, Groups};
use crate::source::kubernetes::annotations::{Checks, Read, Service};
use crate::source::kubernetes::words::shown;
use crate::source::kubernetes::{Common, Record, Rules, ServiceRecord};

/// The class of objects that name none.
const DEFAULT_CLASS: &str = "meridian";

/// What an object says, and its Gateways for it.
#[derive(Debug)]
pub(super) struct Words<'a> {
    /// Its own annotations, filled up with those of its Gateways in their order. Host names and addresses are its own; so is
    /// the drain: Gateways drain what enters by them.
    pub(super) said: Cow<'a, Service>,
    /// Its own annotations.
    pub(super) own: &'a Read,
    /// A key was refused, here or at a Gateway, that says whether it is served.
    is_undecided: bool,
}

impl<'a> Words<'a> {
    /// Reads the words of an object and of the Gateways that it asks for, whether they accept it or not: an object is served,
    /// or not, by what is written, and not by how its Gateways do.
    pub(super) fn of(common: &'a Common, attached: &[Attached<'_>]) -> Self {
        let own = &common.said;
        let asks_for_itself = own.said.hostnames.is_some() || is_refused(own, "hostname");
        let is_undecided = |read: &Read| is_refused(read, "enabled") || is_refused(read, "class");
        let mut words = Self {
            said: Cow::Borrowed(&own.said),
            own,
            is_undecided: is_undecided(own),
        };
        for gateway in attached.iter().filter_map(|attached| attached.gateway) {
            let below = &gateway.common.said;
            words.is_undecided |= is_undecided(below);
            if below.said != Service::default() {
                inherit(words.said.to_mut(), &below.said, asks_for_itself);
            }
        }
        words
    }

    /// Tells whether the object is served; else why not, if people should know. `is_given`: it is served now.
    pub(super) fn serving(
        &self,
        record: &Record,
        is_given: bool,
        rules: &Rules,
    ) -> Result<(), Option<Refused>> {
        let said = &self.said;
        if said.enabled == Some(false) {
            return Err(None);
        }
        // A slip in the key that decides takes nothing away.
        if self.is_undecided && is_given {
            return Ok(());
        }
        if said.class.as_deref().unwrap_or(DEFAULT_CLASS) != &*rules.class {
            return Err(None);
        }
        let is_gateway = matches!(record, Record::Gateway(_));
        let asks = said.enabled == Some(true)
            || said.hostnames.is_some()
            || is_refused(self.own, "hostname");
        // A Gateway is there to carry Routes: what it publishes itself must be asked for.
        if !asks && (rules.opt_in || is_gateway) {
            let says = self.own.said != Service::default() || !self.own.refused.is_empty();
            let is_ours = says && !is_gateway;
            return Err(is_ours.then(|| {
                let reason = "neither this nor `meridian-dns.io/hostname` asks for it to be served";
                refused_key("enabled", reason)
            }));
        }
        if let Record::Service(service) = record
            && !service.is_load_balancer
            && said.targets.is_none()
            && !is_refused(self.own, "target")
            && self.headless(record).is_none()
        {
            return Err(asks.then(|| {
                let reason = if service.is_headless {
                    "it has no address of its own and is in no cluster set, and there is no `meridian-dns.io/target`"
                } else {
                    "it is not LoadBalancer, and there is no `meridian-dns.io/target`"
                };
                refused("spec.type", reason)
            }));
        }
        Ok(())
    }

    /// Gives the Service whose endpoints are served: one in cluster sets that has no address of its own, and names none.
    pub(super) fn headless<'r>(&self, record: &'r Record) -> Option<&'r ServiceRecord> {
        let Record::Service(service) = record else {
            return None;
        };
        let has_none = service.entries.addresses.is_empty() && service.entries.hostnames.is_empty();
        let names_none = self.said.targets.is_none() && !is_refused(self.own, "target");
        let is_in_set = self.said.name.in_cluster_set == Some(true);
        (service.is_headless && has_none && names_none && is_in_set).then_some(service)
    }

    /// Gives the one fence that holds; else why the object cannot be served. Fences of several levels would have to hold
    /// together, and a shard has room for one.
    pub(super) fn fence(
        &self,
        attached: &[Attached<'_>],
        groups: &Groups,
        notes: &mut Notes,
    ) -> Result<Option<Vec<FenceRule>>, Box<str>> {
        let mut fence = self.own.said.name.fence.as_ref();
        let missing = |fence: Option<&Vec<FenceRule>>| groups::missing(fence?, groups);
        let unknown = missing(fence);
        if let Some(why) = &unknown {
            notes.key("fence", why);
        }
        if self.own.is_fence_refused || unknown.is_some() {
            return Err("its fence was refused: whom it keeps out is not known".into());
        }
        for parent in attached {
            let Some(gateway) = parent.gateway else {
                continue;
            };
            let below = &gateway.common.said;
            if below.is_fence_refused {
                let words = parent.words();
                return Err(format!(
                    "the fence of {words} was refused: whom it keeps out is not known"
                )
                .into());
            }
            let other = below.said.name.fence.as_ref();
            if let Some(why) = missing(other) {
                let words = parent.words();
                return Err(format!(
                    "the fence of {words} was refused: whom it keeps out is not known: {why}"
                )
                .into());
            }
            match (fence, other) {
                (Some(fence), Some(other)) if fence != other => {
                    let words = parent.words();
                    return Err(format!(
                        "not supported yet: a fence beside another one of {words}"
                    )
                    .into());
                }
                (None, Some(other)) => fence = Some(other),
                _ => {}
            }
        }
        Ok(fence.cloned())
    }
}

/// Gives the fence that was in force last, where the present one cannot be: a slip in one cluster's object does not open the name
/// in the others. And says why the object itself is not served.
pub(super) fn last_fence(
    given: Option<&Shard>,
    why: &str,
) -> (Option<Vec<FenceRule>>, Option<Box<str>>) {
    let last = given.and_then(|given| given.keys.fence.clone());
    let why = shown(why);
    let why = match &last {
        Some(_) => format!("{why}; the last one that could be read stays in force for its names"),
        None => why,
    };
    (last, Some(why.into()))
}

/// Fills what an object does not say. `asks_for_itself`: it has a `hostname`, which says that it is served.
fn inherit(said: &mut Service, below: &Service, asks_for_itself: bool) {
    // All keys are named, so that none is forgotten.
    let Service {
        enabled,
        class,
        hostnames: _,
        name,
        needs_tiers,
        weight,
        targets: _,
        clients,
        drain: _,
        min_ready,
        checks,
    } = below;
    if !asks_for_itself {
        fill(&mut said.enabled, enabled);
    }
    if said.name.steer.is_none() {
        said.needs_tiers = *needs_tiers;
    }
    inherit_name(&mut said.name, name);
    fill(&mut said.class, class);
    fill(&mut said.weight, weight);
    fill(&mut said.clients, clients);
    fill(&mut said.min_ready, min_ready);
    let Checks {
        kind,
        port,
        path,
        host,
        head,
        expect,
        interval,
        timeout,
        fall,
        rise,
        tls,
    } = checks;
    fill(&mut said.checks.kind, kind);
    fill(&mut said.checks.port, port);
    fill(&mut said.checks.path, path);
    fill(&mut said.checks.host, host);
    fill(&mut said.checks.head, head);
    fill(&mut said.checks.expect, expect);
    fill(&mut said.checks.interval, interval);
    fill(&mut said.checks.timeout, timeout);
    fill(&mut said.checks.fall, fall);
    fill(&mut said.checks.rise, rise);
    fill(&mut said.checks.tls, tls);
}

/// Fills what an object does not say of its names; fences add up elsewhere.
fn inherit_name(said: &mut NameKeys, below: &NameKeys) {
    let NameKeys {
        ttl,
        steer,
        weights,
        weighs_endpoints,
        tiers,
        bias,
        maps,
        fence: _,
        fence_answer,
        fallback,
        answers,
        panic,
        federation,
        in_cluster_set,
    } = below;
    fill(&mut said.ttl, ttl);
    fill(&mut said.steer, steer);
    fill(&mut said.weights, weights);
    fill(&mut said.weighs_endpoints, weighs_endpoints);
    fill(&mut said.tiers, tiers);
    fill(&mut said.bias, bias);
    fill(&mut said.maps, maps);
    fill(&mut said.fence_answer, fence_answer);
    fill(&mut said.fallback, fallback);
    fill(&mut said.answers, answers);
    fill(&mut said.panic, panic);
    fill(&mut said.federation, federation);
    fill(&mut said.in_cluster_set, in_cluster_set);
}

/// Takes what stands below where nothing is said.
fn fill<T: Clone>(own: &mut Option<T>, below: &Option<T>) {
    if own.is_none() {
        own.clone_from(below);
    }
}

/// Makes the keys of the object's names.
pub(super) fn name_keys(
    said: &Service,
    fence: Option<Vec<FenceRule>>,
    rules: &Rules,
    notes: &mut Notes,
) -> NameKeys {
    let mut keys = NameKeys {
        fence,
        ..said.name.clone()
    };
    groups::without_missing(&mut keys, &rules.groups, notes);
    if said.needs_tiers && keys.tiers.is_none() {
        notes.key("steer", "`failover` needs `meridian-dns.io/tiers`");
        keys.steer = None;
    }
    if keys.weighs_endpoints == Some(true) && keys.weights.is_some() {
        notes.key(
            "weights-from",
            "`meridian-dns.io/weights` lists the weights",
        );
        keys.weighs_endpoints = None;
    }
    if let Some(ttl) = &mut keys.ttl {
        let least = rules.min_ttl;
        if *ttl < least {
            notes.key("ttl", format_args!("raised to {least}s, the least allowed"));
        }
        *ttl = least.max(*ttl);
    }
    keys
}
