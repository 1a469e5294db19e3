//! What is refused of objects and claims, and why.

use super::{Federation, ObjectRef};
use crate::model::{ClusterId, ClusterIndex, Rejection, ServiceKey};

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
                said.chain(whole).chain(targets)
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

    /// Says what of the objects behind a service is not answered, and why: one sentence each, without its period.
    #[must_use]
    pub fn left_out(&self, key: &ServiceKey) -> Vec<String> {
        let voices = self.voices(key).into_iter();
        let whole = voices.filter_map(|voice| {
            let (object, id) = (&voice.shard.object, voice.id);
            let why = voice.shard.unserved.as_ref()?;
            Some(format!("{object} in {id} is not served: {why}"))
        });
        whole.collect()
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
