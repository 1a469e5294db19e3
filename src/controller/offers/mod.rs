//! What objects of member clusters offer, kept on disk: a restart answers their names before any API server does.
//!
//! One file beside the last good state, `offers.json`, with a checksum in its first line, written whole: shards by cluster and
//! who has which name. A task of its own writes it after changes.

mod dto;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::dto::ShardDto;
use super::command::ControllerHandle;
use super::last_good::{LastGood, LastGoodError, content_hash};
use crate::inventory::{Inventory, Shard};
use crate::model::{ClusterId, LowerName};

/// Version of the layout; another one is ignored.
const VERSION: u32 = 1;
/// The file.
const FILE: &str = "offers.json";
/// Largest file read: about half a million shards.
const MAX: u64 = 256 << 20;
/// Shortest time between two writes.
const PAUSE: Duration = Duration::from_secs(2);
/// And that after a write which failed.
const RETRY: Duration = Duration::from_secs(5);

/// What is offered, and who has which name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offers {
    /// Who has which name, in the order in which they were given.
    pub owners: Vec<(LowerName, Arc<str>)>,
    /// Shards by cluster.
    pub shards: BTreeMap<ClusterId, Vec<Arc<Shard>>>,
}

/// The mirror of [`Offers`] on disk.
#[derive(Debug, Default, Serialize, Deserialize)]
struct OffersDto {
    version: u32,
    owners: Vec<(String, String)>,
    shards: BTreeMap<String, Vec<ShardDto>>,
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
        Self {
            owners: inventory.federation().owners(),
            shards,
        }
    }

    /// Reads what was written last; nothing when nothing ever was. A shard that cannot be read is left out and counted.
    ///
    /// # Errors
    /// When the file cannot be read or is torn: go on without it, and say so.
    pub fn read(last_good: &LastGood) -> Result<(Self, usize), LastGoodError> {
        let Some(body) = last_good.read_named(FILE, MAX)? else {
            return Ok((Self::default(), 0));
        };
        let dto: OffersDto = serde_json::from_slice(&body)
            .map_err(|error| last_good.unusable(FILE, error.to_string()))?;
        if dto.version != VERSION {
            let reason = format!("version {} is not ours ({VERSION})", dto.version);
            return Err(last_good.unusable(FILE, reason));
        }
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
        Ok((offers, lost))
    }

    /// Writes them as octets.
    fn to_body(&self) -> Result<Vec<u8>, serde_json::Error> {
        let owners = self.owners.iter();
        let shards = self.shards.iter();
        serde_json::to_vec(&OffersDto {
            version: VERSION,
            owners: owners
                .map(|(name, namespace)| (name.to_string(), namespace.to_string()))
                .collect(),
            shards: shards
                .map(|(cluster, shards)| {
                    let shards = shards.iter().map(|shard| ShardDto::from(&**shard));
                    (cluster.to_string(), shards.collect())
                })
                .collect(),
        })
    }
}

/// Keeps the offers on disk.
#[derive(Debug)]
pub struct OffersKeeper {
    /// Where.
    pub last_good: LastGood,
    /// Whose.
    pub controller: ControllerHandle,
}

impl OffersKeeper {
    /// Runs until the token falls, then writes once more.
    pub async fn run(self, token: CancellationToken) {
        let mut status = self.controller.watch_status();
        let (mut written, mut failures) = (None, 0_u64);
        let mut seen = None;
        loop {
            // What changes only states of endpoints is not ours.
            let inventory = status.borrow_and_update().inventory;
            let is_due = seen != Some(inventory) || failures > 0;
            if is_due {
                seen = Some(inventory);
                match self.write(&mut written).await {
                    Ok(()) => {
                        if std::mem::take(&mut failures) > 0 {
                            info!("Offers of member clusters are written again");
                        }
                    }
                    Err(error) => {
                        failures += 1;
                        if failures == 1 {
                            warn!(%error, "Offers of member clusters could not be written; serving goes on");
                        }
                    }
                }
            }
            if token.is_cancelled() {
                return;
            }
            let pause = if failures > 0 { RETRY } else { PAUSE };
            tokio::select! {
                () = token.cancelled() => {}
                () = tokio::time::sleep(pause) => tokio::select! {
                    () = token.cancelled() => {}
                    () = std::future::ready(()), if failures > 0 => {}
                    changed = status.changed() => if changed.is_err() {
                        return;
                    },
                },
            }
        }
    }

    /// Writes what is offered now, unless it is what was written last.
    async fn write(&self, written: &mut Option<String>) -> Result<(), LastGoodError> {
        let Some(offers) = self.controller.read(Offers::of).await else {
            return Ok(());
        };
        // A node without member clusters needs no file.
        if written.is_none() && offers == Offers::default() && !self.last_good.has_named(FILE) {
            return Ok(());
        }
        let (last_good, last) = (self.last_good.clone(), written.clone());
        let writing = tokio::task::spawn_blocking(move || {
            let body = offers
                .to_body()
                .map_err(|error| last_good.unusable(FILE, error.to_string()))?;
            let hash = content_hash(&body);
            if last.as_ref() != Some(&hash) {
                last_good.write_named(FILE, &body)?;
            }
            Ok(hash)
        });
        // It can only fail by a panic, which ends the process.
        if let Ok(result) = writing.await {
            *written = Some(result?);
        }
        Ok(())
    }
}
