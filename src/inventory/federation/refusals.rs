//! What is refused of objects and claims, and why.

use std::net::IpAddr;

use super::{Federation, ObjectRef, PrivateAddresses, Refused, Shard, is_private};
use crate::model::{ClusterId, ClusterIndex, LowerName, Rejection, ServiceKey};

/// Addresses of one object that are told, at most.
const MAX_TOLD: usize = 8;
/// Why a private address is not answered, where the zones of the object's names answer it to `clients`.
const TO_CLIENTS: &str = "private address, answered only to `clients`";
/// And where one of them answers none.
const TO_NOBODY: &str = "private address, and a zone of its names answers none";

impl Federation {
    /// Lists everything that is refused, with its reason.
    pub fn refusals(&self) -> impl Iterator<Item = Rejection> {
        let by_objects = self.objects.iter().flat_map(move |(object, held)| {
            let hosts = held.refused.iter();
            let hosts = hosts.map(move |(name, cluster, reason)| {
                self.refusal((object, *cluster), &name.to_string(), (*reason).to_owned())
            });
            let shards = held.shards.iter().flat_map(move |(cluster, shard)| {
                let said = shard.refused.iter();
                let said = said.map(move |refused| {
                    self.refusal(
                        (object, *cluster),
                        &refused.what,
                        refused.reason.to_string(),
                    )
                });
                let whole = shard.unserved.iter().map(move |reason| {
                    self.refusal(
                        (object, *cluster),
                        "",
                        format!("it is not served: {reason}"),
                    )
                });
                let targets = shard.targets.iter().filter_map(move |name| {
                    let fault = self.resolved(name)?.fault.as_ref()?;
                    Some(self.refusal((object, *cluster), &name.to_string(), fault.to_string()))
                });
                let unanswered = self.unanswered(*cluster, shard).into_iter();
                let unanswered = unanswered.map(move |refused| {
                    let reason = refused.reason.to_string();
                    self.refusal((object, *cluster), &refused.what, reason)
                });
                said.chain(whole).chain(targets).chain(unanswered)
            });
            hosts.chain(shards)
        });
        let crowded = self.crowded.iter().map(|(key, left_out)| Rejection {
            source: format!("service {key}"),
            place: String::new(),
            reason: format!("too many objects for one service: {left_out} are left out"),
        });
        by_objects
            .chain(self.lost())
            .chain(self.disputed())
            .chain(crowded)
    }

    /// Lists where the traffic of an object of a cluster enters that is private and not answered at some name of it, and why: the first
    /// addresses and host names.
    #[must_use]
    pub fn unanswered(&self, cluster: ClusterIndex, shard: &Shard) -> Vec<Refused> {
        // Most objects have none.
        if shard.targets.is_empty() && !shard.addresses.iter().copied().any(is_private) {
            return Vec::new();
        }
        // The strictest zone.
        let zone = self.private_zones(cluster, shard).min();
        zone.map_or_else(Vec::new, |zone| self.unanswered_in(zone, shard))
    }

    /// Lists the addresses of an object of a cluster that are answered at one of its names at least.
    pub fn answered<'s>(
        &self,
        cluster: ClusterIndex,
        shard: &'s Shard,
    ) -> impl Iterator<Item = IpAddr> + use<'s> {
        let addresses = shard.addresses.iter().copied();
        let has_private = addresses.clone().any(is_private);
        // The loosest zone.
        let zone = has_private.then(|| self.private_zones(cluster, shard).max());
        let zone = zone.flatten();
        let are_private_told = zone.is_none_or(|zone| why_private(zone, shard).is_none());
        addresses.filter(move |address| are_private_told || !is_private(*address))
    }

    /// Lists what is not answered in a zone that has private addresses so.
    fn unanswered_in(&self, zone: PrivateAddresses, shard: &Shard) -> Vec<Refused> {
        let own = shard.addresses.iter();
        let own = own.filter(|address| is_private(**address));
        let leads_there = |name: &&LowerName| {
            let target = self.resolved(name);
            target.is_some_and(|target| target.all().any(|(address, _)| is_private(address)))
        };
        let names = shard.targets.iter().filter(leads_there);
        let own = own.map(|address| (address.to_string(), ""));
        // Which address it is changes by itself.
        let names = names.map(|name| (name.to_string(), "it leads to a "));
        let private = own.chain(names).take(MAX_TOLD);
        let why = why_private(zone, shard).filter(|_| shard.unserved.is_none());
        why.map_or_else(Vec::new, |why| {
            let refused = private.map(|(what, how)| Refused {
                what: what.into(),
                reason: format!("{how}{why}").into(),
            });
            refused.collect()
        })
    }

    /// Lists how the zones of an object's names in a cluster have private addresses.
    fn private_zones(
        &self,
        cluster: ClusterIndex,
        shard: &Shard,
    ) -> impl Iterator<Item = PrivateAddresses> {
        let held = self.objects.get(&shard.object).into_iter();
        let claims = held.flat_map(|held| &held.claims);
        let names = claims.filter(move |(_, of)| *of == cluster);
        names.filter_map(|(name, _)| Some(self.rules.zone_of(name.as_ref())?.private))
    }

    /// Says what of the objects behind a service is not answered, and why: one sentence each, without its period.
    #[must_use]
    pub fn left_out(&self, key: &ServiceKey) -> Vec<String> {
        let voices = self.voices(key).into_iter();
        let all = voices.flat_map(|voice| {
            let (object, id) = (&voice.shard.object, voice.id);
            let whole = voice.shard.unserved.iter();
            let whole = whole.map(move |why| format!("{object} in {id} is not served: {why}"));
            let parts = self
                .unanswered_in(self.private_of(key), voice.shard)
                .into_iter();
            let parts = parts.map(move |Refused { what, reason }| {
                format!("{what} of {object} in {id} is not answered: {reason}")
            });
            whole.chain(parts)
        });
        all.collect()
    }

    /// Lists the claims that others have.
    fn lost(&self) -> impl Iterator<Item = Rejection> {
        self.book.entries.iter().flat_map(move |(name, entry)| {
            let owner = entry.owner.as_ref().map_or("", |owner| &owner.namespace);
            let lost = entry.lost().map(move |(object, cluster)| {
                let reason = format!("HostnameConflict: namespace {owner} has this name");
                self.refusal((object, *cluster), &name.to_string(), reason)
            });
            let hidden = self.hides(name);
            let hidden = hidden.into_iter().flat_map(move |(wildcard, owner)| {
                let reason = format!(
                    "HostnameConflict: it would hide {wildcard}, which namespace {} has",
                    owner.namespace
                );
                entry.granted().map(move |(object, cluster)| {
                    self.refusal((object, *cluster), &name.to_string(), reason.clone())
                })
            });
            lost.chain(hidden)
        })
    }

    /// Lists the words of members that most others overrule.
    fn disputed(&self) -> impl Iterator<Item = Rejection> {
        self.services.keys().flat_map(move |key| {
            self.conflicts(key).into_iter().map(move |conflict| {
                let clusters: Vec<&str> =
                    conflict.overruled.iter().map(ClusterId::as_str).collect();
                Rejection {
                    source: format!("service {key}"),
                    place: conflict.key.to_owned(),
                    reason: format!(
                        "PolicyConflict: {} {}",
                        conflict.why.as_str(),
                        clusters.join(", ")
                    ),
                }
            })
        })
    }

    fn refusal(
        &self,
        (object, cluster): (&ObjectRef, ClusterIndex),
        place: &str,
        reason: String,
    ) -> Rejection {
        let cluster = self.clusters.get(&cluster).map_or("", ClusterId::as_str);
        Rejection {
            source: format!("{object} in {cluster}"),
            place: place.to_owned(),
            reason,
        }
    }
}

/// Says why private addresses of an object are not answered in a zone that has them so; `None`: they are.
fn why_private(zone: PrivateAddresses, shard: &Shard) -> Option<&'static str> {
    match zone {
        PrivateAddresses::None => Some(TO_NOBODY),
        PrivateAddresses::Clients if shard.clients.is_empty() => Some(TO_CLIENTS),
        PrivateAddresses::Clients | PrivateAddresses::All => None,
    }
}
