//! What objects of member clusters offer, kept on disk: a restart answers their names before any API server does.
//!
//! One file beside the last good state, `offers.json`, with a checksum in its first line, written whole: shards by cluster, who
//! has which name, where load balancers are that are host names, and where the clusters are by their own Nodes. `keeper` writes it after
//! changes.

mod dto;
mod headless;
mod keeper;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use keeper::OffersKeeper;
use serde::{Deserialize, Serialize};

use self::dto::{FactsDto, ShardDto, TargetDto};
use super::folder::{LastGood, LastGoodError, NamedFile};
use crate::inventory::{ClusterFacts, Inventory, ResolvedTarget, Shard};
use crate::model::{ClusterId, LowerName};

/// The file: about half a million shards at most.
const FILE: NamedFile = NamedFile {
    name: "offers.json",
    version: 1,
    max: 256 << 20,
};

/// What is offered, who has which name, where load balancers are that are host names, and where the clusters are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offers {
    /// Who has which name, in the order in which they were given.
    pub owners: Vec<(LowerName, Arc<str>)>,
    /// Shards by cluster.
    pub shards: BTreeMap<ClusterId, Vec<Arc<Shard>>>,
    /// Where load balancers are that are host names, as far as that is known.
    pub targets: BTreeMap<LowerName, ResolvedTarget>,
    /// Where clusters are, as their own Nodes say.
    pub facts: BTreeMap<ClusterId, ClusterFacts>,
}

/// The mirror of [`Offers`] on disk.
#[derive(Debug, Default, Serialize, Deserialize)]
struct OffersDto {
    version: u32,
    owners: Vec<(String, String)>,
    shards: BTreeMap<String, Vec<ShardDto>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    targets: BTreeMap<String, TargetDto>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    facts: BTreeMap<String, FactsDto>,
}

impl Offers {
    /// Takes what an inventory has.
    #[must_use]
    pub fn of(inventory: &Inventory) -> Self {
        let mut shards: BTreeMap<ClusterId, Vec<Arc<Shard>>> = BTreeMap::new();
        for (index, shard) in inventory.federation().all() {
            if let Some(cluster) = inventory.cluster(index) {
                let of_cluster = shards.entry(cluster.id.clone()).or_default();
                of_cluster.push(Arc::clone(shard));
            }
        }
        let known = |name: &LowerName| inventory.resolved(name).filter(|known| known.has_any());
        let mut targets = BTreeMap::new();
        for name in inventory.targets() {
            let Some(target) = known(&name) else {
                continue;
            };
            // Where a name of ours goes on outside must be known again too.
            for end in target.inside.iter().flatten() {
                if let Some(target) = known(end) {
                    targets.insert(end.clone(), dto::unconfirmed(target));
                }
            }
            targets.insert(name, dto::unconfirmed(target));
        }
        let facts = inventory.clusters().filter_map(|(index, cluster)| {
            let facts = inventory.facts(index)?;
            Some((cluster.id.clone(), dto::former(facts)))
        });
        Self {
            owners: inventory.federation().owners(),
            shards,
            targets,
            facts: facts.collect(),
        }
    }

    /// Reads what was written last; nothing when nothing ever was. What cannot be read of it is left out and counted.
    ///
    /// # Errors
    /// When the file cannot be read or is torn: go on without it, and say so.
    pub fn read(last_good: &LastGood) -> Result<(Self, usize), LastGoodError> {
        let dto: Option<OffersDto> = last_good.read_named(&FILE)?;
        let (offers, lost) = dto.map(Self::from_dto).unwrap_or_default();
        if lost > 0 {
            last_good.note(&FILE, &format!("{lost} of its entries cannot be read"));
        }
        Ok((offers, lost))
    }

    /// Tells whether there is more on disk than could be read.
    #[must_use]
    pub fn are_unread(last_good: &LastGood) -> bool {
        last_good.has_unread(&FILE)
    }

    /// Takes what was read. What is not what we write is left out and counted.
    fn from_dto(dto: OffersDto) -> (Self, usize) {
        let mut offers = Self::default();
        let mut lost = 0;
        for (name, namespace) in dto.owners {
            match name.parse() {
                Ok(name) => offers.owners.push((name, namespace.into())),
                Err(_) => lost += 1,
            }
        }
        for (cluster, shards) in dto.shards {
            let Ok(cluster) = cluster.parse::<ClusterId>() else {
                lost += shards.len();
                continue;
            };
            let count = shards.len();
            let read = shards.into_iter().filter_map(ShardDto::read).map(Arc::new);
            let read: Vec<Arc<Shard>> = read.collect();
            lost += count - read.len();
            offers.shards.insert(cluster, read);
        }
        for (name, target) in dto.targets {
            match name.parse() {
                Ok(name) => {
                    offers.targets.insert(name, target.read());
                }
                Err(_) => lost += 1,
            }
        }
        for (cluster, facts) in dto.facts {
            match cluster.parse() {
                Ok(cluster) => {
                    offers.facts.insert(cluster, facts.read());
                }
                Err(_) => lost += 1,
            }
        }
        (offers, lost)
    }

    /// Writes them as octets.
    fn to_body(&self) -> Result<Vec<u8>, serde_json::Error> {
        let owners = self.owners.iter();
        let shards = self.shards.iter();
        let targets = self.targets.iter();
        let facts = self.facts.iter();
        serde_json::to_vec(&OffersDto {
            version: FILE.version,
            owners: owners
                .map(|(name, namespace)| (name.to_string(), namespace.to_string()))
                .collect(),
            shards: shards
                .map(|(cluster, shards)| {
                    let shards = shards.iter().map(|shard| ShardDto::from(&**shard));
                    (cluster.to_string(), shards.collect())
                })
                .collect(),
            targets: targets
                .map(|(name, target)| (name.to_string(), TargetDto::from(target)))
                .collect(),
            facts: facts
                .map(|(cluster, facts)| (cluster.to_string(), FactsDto::from(facts)))
                .collect(),
        })
    }
}
