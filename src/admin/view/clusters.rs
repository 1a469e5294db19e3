//! Clusters.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{View, ViewError, catalog, words};
use crate::admin::dto::{
    ClusterDto, CountsDto, DrainDto, EvidenceDto, ForceDto, HealthState, LocationDto, TargetKind,
};
use crate::geo::region;
use crate::model::{Cluster, ClusterIndex};

impl View {
    /// Shows all clusters, by name.
    pub async fn clusters(&self) -> Vec<ClusterDto> {
        let Some(look) = self.look().await else {
            return Vec::new();
        };
        let world = Arc::clone(&self.controller().status().world);
        let (drains, forces) = (self.standing_drains(), self.standing_forces());
        let probes = self.probe_times();
        let rates = self.cluster_rates();
        let mut all: Vec<ClusterDto> =
            world
                .clusters
                .iter()
                .map(|(index, cluster)| {
                    let name = cluster.id.as_str();
                    let counts = look.standing.endpoints.get(index).copied();
                    let mut dto = describe(cluster, counts.unwrap_or_default());
                    let services = look.standing.per_cluster.get(index);
                    dto.services = services.copied().unwrap_or_default();
                    dto.answers_per_second = rates.get(index).copied().unwrap_or_default();
                    dto.probe_ms = probes.get(index).copied();
                    dto.drain = drains.iter().find(|drain| is_whole(drain, name)).cloned();
                    dto.force = forces.iter().find(|force| is_pinned(force, name)).cloned();
                    if dto.drain.as_ref().is_some_and(|drain| {
                        drain.state != crate::admin::dto::DrainState::Announced
                    }) && dto.state != HealthState::Down
                    {
                        dto.state = HealthState::Drained;
                    }
                    dto
                })
                .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Shows one cluster.
    ///
    /// # Errors
    /// When there is none of this name.
    pub async fn cluster(&self, name: &str) -> Result<ClusterDto, ViewError> {
        let all = self.clusters().await;
        let found = all.into_iter().find(|cluster| cluster.name == name);
        found.ok_or_else(|| ViewError::NotFound(format!("cluster {}", words::shorten(name))))
    }

    /// Gives the median duration of the last successful probes of each cluster, milliseconds.
    fn probe_times(&self) -> BTreeMap<ClusterIndex, f64> {
        let history = self.history();
        let Some(step) = history.steps.last() else {
            return BTreeMap::new();
        };
        let timed = step.clusters.iter().filter(|one| one.probe_tenths_ms > 0);
        timed
            .map(|one| (one.cluster, f64::from(one.probe_tenths_ms) / 10.0))
            .collect()
    }

    /// Gives the answers a second of each cluster.
    fn cluster_rates(&self) -> BTreeMap<ClusterIndex, f64> {
        let history = self.history();
        let Some(step) = history.steps.last() else {
            return BTreeMap::new();
        };
        let rates = step.clusters.iter();
        rates
            .map(|one| (one.cluster, super::rounded(one.answers)))
            .collect()
    }
}

/// Tells whether a drain is of the whole cluster.
fn is_whole(drain: &DrainDto, cluster: &str) -> bool {
    drain.target.kind == TargetKind::Cluster && drain.target.cluster.as_deref() == Some(cluster)
}

/// Tells whether a force is of the whole cluster.
fn is_pinned(force: &ForceDto, cluster: &str) -> bool {
    force.target.kind == TargetKind::Cluster && force.target.cluster.as_deref() == Some(cluster)
}

/// Shows what is configured of a cluster.
fn describe(cluster: &Cluster, endpoints: CountsDto) -> ClusterDto {
    let location = &cluster.location;
    let place = location.coordinates.map(|point| LocationDto {
        latitude: point.latitude(),
        longitude: point.longitude(),
    });
    ClusterDto {
        name: cluster.id.to_string(),
        state: catalog::sum_up(&endpoints),
        location: place,
        country: location.country.map(|code| code.to_string()),
        continent: location.continent.map(|code| code.to_string()),
        provider: cluster.provider.as_deref().map(ToOwned::to_owned),
        region: cluster.region.as_deref().map(ToOwned::to_owned),
        zones: cluster.zones.iter().map(ToString::to_string).collect(),
        cost_km: kilometers(cluster.cost_km),
        evidence: evidence(cluster),
        services: 0,
        endpoints,
        answers_per_second: 0.0,
        probe_ms: None,
        drain: None,
        force: None,
    }
}

/// Rounds a cost, 0..=40,000.
fn kilometers(cost: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "configuration bounds it to 0..=40,000"
    )]
    let whole = cost.round().clamp(0.0, 40_000.0) as u32;
    whole
}

/// Says where each part of a location comes from: the built-in table of cloud regions, or the configuration.
fn evidence(cluster: &Cluster) -> Vec<EvidenceDto> {
    let location = &cluster.location;
    let table = cluster
        .provider
        .as_deref()
        .and_then(|provider| provider.parse().ok())
        .zip(cluster.region.as_deref())
        .and_then(|(provider, name)| region(provider, name));
    let from = |same: bool| match (&cluster.provider, &cluster.region) {
        (Some(provider), Some(region)) if same => {
            format!("built-in table of cloud regions: {provider} {region}")
        }
        _ => "clusters[].location in the configuration".to_owned(),
    };
    let mut all = Vec::new();
    let mut say = |what: &str, value: Option<String>, same: bool| {
        all.extend(value.map(|value| EvidenceDto {
            what: what.to_owned(),
            value,
            from: from(same),
        }));
    };
    let held = location.coordinates;
    let same = held.is_some() && held == table.and_then(|region| region.location.coordinates);
    let point = held.map(|point| format!("{:.2}, {:.2}", point.latitude(), point.longitude()));
    say("coordinates", point, same);
    let same = location.country == table.and_then(|region| region.location.country);
    say(
        "country",
        location.country.map(|code| code.to_string()),
        same,
    );
    say(
        "continent",
        location.continent.map(|code| code.to_string()),
        same,
    );
    all
}
