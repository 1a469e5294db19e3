//! What operators said of one service: by its own key, and by others that mean it.

use std::collections::{BTreeMap, BTreeSet};

use super::View;
use crate::admin::dto::{DrainDto, ForceDto, TargetDto};
use crate::inventory::{Inventory, Meant, Service};
use crate::model::ServiceKey;
use crate::telemetry::wall_time;

/// The keys that operators speak by and that mean a service, with how much of it.
pub(super) type Spoken = BTreeMap<ServiceKey, Meant>;

/// Picks the keys that mean a service.
pub(super) fn spoken_of(
    keys: BTreeSet<ServiceKey>,
    service: &Service,
    inventory: &Inventory,
) -> Spoken {
    let keys = keys.into_iter();
    let meant = keys.filter_map(|key| Some((inventory.meant(&key, service)?, key)));
    meant.map(|(meant, key)| (key, meant)).collect()
}

impl View {
    /// Lists the drains that touch a service and are not over.
    pub(super) fn drains_of(&self, service: &Service, spoken: &Spoken) -> Vec<DrainDto> {
        let clusters = self.clusters_of(service);
        let all = self.standing_drains();
        let touches = |drain: &DrainDto| is_about(&drain.target, (service, spoken), &clusters);
        all.into_iter().filter(touches).collect()
    }

    /// Lists the forces that touch a service and are not over.
    pub(super) fn forces_of(&self, service: &Service, spoken: &Spoken) -> Vec<ForceDto> {
        let clusters = self.clusters_of(service);
        let all = self.standing_forces();
        let touches = |force: &ForceDto| is_about(&force.target, (service, spoken), &clusters);
        all.into_iter().filter(touches).collect()
    }

    /// Lists the keys by which records speak that are not over.
    pub(super) fn spoken_keys(&self) -> BTreeSet<ServiceKey> {
        let records = self.vantage().book().records();
        let standing = records.standing(wall_time());
        let keys = standing.filter_map(|record| record.target.service().cloned());
        keys.collect()
    }

    /// Names the clusters of a service.
    fn clusters_of(&self, service: &Service) -> Vec<String> {
        let snapshot = self.snapshot();
        let names = service
            .pools
            .clusters()
            .filter_map(|index| snapshot.cluster(index));
        names.map(|cluster| cluster.id.to_string()).collect()
    }
}

/// Tells whether a target is part of a service.
fn is_about(
    target: &TargetDto,
    (service, spoken): (&Service, &Spoken),
    clusters: &[String],
) -> bool {
    let means = |own: &str| spoken.keys().any(|key| key.as_str() == own);
    let of_service = target.service.as_deref().is_none_or(means);
    let of_cluster = target
        .cluster
        .as_ref()
        .is_none_or(|own| clusters.contains(own));
    let of_address = target.address.as_deref().is_none_or(|own| {
        let mut pools = service.pools.iter();
        pools.any(|pool| {
            let mut all = pool.v4().chain(pool.v6());
            all.any(|endpoint| endpoint.address.to_string() == own)
        })
    });
    of_service && of_cluster && of_address
}
