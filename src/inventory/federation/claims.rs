//! What each object of each cluster has of what it asks for, and why not the rest.

use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

use super::{Federation, OUTSIDE, Object, ObjectRef, Shard};
use crate::model::{ClusterIndex, LowerName, ServiceKey};

/// One object of one cluster.
#[derive(Clone, Debug)]
pub struct Claim<'f> {
    /// The object.
    pub object: &'f ObjectRef,
    /// Its cluster.
    pub cluster: ClusterIndex,
    /// What it offers there.
    pub shard: &'f Arc<Shard>,
    /// The names that it has, each with the service that answers it, by name.
    pub names: Vec<(&'f LowerName, &'f ServiceKey)>,
    /// The names that it does not have, with the reason: lower-case, no period. Those outside our zones are not among them.
    pub refused: Vec<(&'f LowerName, Cow<'static, str>)>,
}

impl Federation {
    /// Lists all objects behind one, in their order, with what they claim in each cluster.
    pub fn claims(
        &self,
        after: Option<&ObjectRef>,
    ) -> impl Iterator<Item = (&ObjectRef, Vec<Claim<'_>>)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let objects = self.objects.range::<ObjectRef, _>((from, Bound::Unbounded));
        objects.map(|(object, held)| {
            let shards = held.shards.iter();
            let claims =
                shards.map(|(cluster, shard)| self.claim_of((object, held), (*cluster, shard)));
            (object, claims.collect())
        })
    }

    /// Lists the names that an object asks for in a cluster and does not have, with the reason.
    #[must_use]
    pub fn refused_names(
        &self,
        object: &ObjectRef,
        cluster: ClusterIndex,
    ) -> Vec<(LowerName, String)> {
        let Some((object, held)) = self.objects.get_key_value(object) else {
            return Vec::new();
        };
        let Some(shard) = held.shards.get(&cluster) else {
            return Vec::new();
        };
        let refused = self.claim_of((object, held), (cluster, shard)).refused;
        let refused = refused.into_iter();
        refused
            .map(|(name, reason)| (name.clone(), reason.into_owned()))
            .collect()
    }

    /// Says what an object claims in a cluster.
    fn claim_of<'f>(
        &'f self,
        (object, held): (&'f ObjectRef, &'f Object),
        (cluster, shard): (ClusterIndex, &'f Arc<Shard>),
    ) -> Claim<'f> {
        let mut claim = Claim {
            object,
            cluster,
            shard,
            names: Vec::new(),
            refused: Vec::new(),
        };
        self.judge_all(held, &mut claim);
        claim
    }

    /// Says of each name that an object asks for in a cluster whether it has it.
    fn judge_all<'f>(&'f self, held: &'f Object, claim: &mut Claim<'f>) {
        for (name, cluster, reason) in &held.refused {
            if *cluster == claim.cluster && *reason != OUTSIDE {
                claim.refused.push((name, Cow::Borrowed(reason)));
            }
        }
        let claims = held.claims.iter();
        for (name, _) in claims.filter(|(_, cluster)| *cluster == claim.cluster) {
            let Some(entry) = self.book.entries.get(name) else {
                continue;
            };
            let owner = entry.owner.as_ref().map_or("", |owner| &owner.namespace);
            if *owner != *claim.object.namespace {
                let reason = format!("namespace {owner} has this name");
                claim.refused.push((name, Cow::Owned(reason)));
            } else if let Some(service) = &entry.service {
                claim.names.push((name, service));
            } else if let Some((wildcard, owner)) = self.hides(name) {
                let owner = &owner.namespace;
                let reason = format!("it would hide {wildcard}, which namespace {owner} has");
                claim.refused.push((name, Cow::Owned(reason)));
            }
        }
    }
}
