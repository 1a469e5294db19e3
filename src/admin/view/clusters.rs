//! Clusters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{View, ViewError, catalog, words};
use crate::admin::dto::{
    AnnotationDto, ClusterDto, CountsDto, DrainDto, EvidenceDto, ForceDto, HealthState,
    LocationDto, TargetKind,
};
use crate::admin::sources::JoinedCluster;
use crate::geo::region;
use crate::inventory::ClusterFacts;
use crate::model::{Cluster, ClusterIndex};
use crate::source::kubernetes::annotations::ClusterSaid;
use crate::telemetry::wall_time;

impl View {
    /// Shows all clusters, by name.
    pub async fn clusters(&self) -> Vec<ClusterDto> {
        let Some(look) = self.look().await else {
            return Vec::new();
        };
        let world = Arc::clone(&self.controller().status().world);
        let members = self.members();
        let ((said, observed), now) = (self.said_by_inventory().await, wall_time());
        let (drains, forces) = (self.standing_drains(), self.standing_forces());
        let leaving = self.sources_of_node().events.leaving();
        let aged = self.sources_of_node().events.aged();
        let joined = self.sources_of_node().events.joined();
        let probes = self.probe_times();
        let rates = self.cluster_rates();
        let mut all: Vec<ClusterDto> =
            world
                .clusters
                .iter()
                .map(|(index, cluster)| {
                    let name = cluster.id.as_str();
                    let counts = look.standing.endpoints.get(index).copied();
                    let joiner = joined.iter().find(|one| one.id == cluster.id);
                    let words = (said.get(index), joiner.map(|one| &one.read.said));
                    let mut dto = describe(cluster, counts.unwrap_or_default(), words);
                    if let Some(joiner) = joiner {
                        dto.from.clone_from(&joiner.from);
                        dto.annotations = annotations(joiner);
                    }
                    let member = members.iter().find(|member| member.cluster == *index);
                    dto.kubernetes = member.map(|member| super::members::show(member, &aged, now));
                    let services = look.standing.per_cluster.get(index);
                    dto.services = services.copied().unwrap_or_default();
                    dto.answers_per_second = rates.get(index).copied().unwrap_or_default();
                    dto.probe_ms = probes.get(index).copied();
                    dto.drain = drains.iter().find(|drain| is_whole(drain, name)).cloned();
                    dto.force = forces.iter().find(|force| is_pinned(force, name)).cloned();
                    dto.admitted = !observed.contains(index);
                    let leaves = leaving.iter().find(|leaves| leaves.id == cluster.id);
                    dto.leaving = leaves.map(super::leaving::show);
                    if let Some(leaves) = leaves {
                        let from = leaves.from.as_deref();
                        dto.from = from.unwrap_or("`clustersFrom`").to_owned();
                    }
                    let is_drained = joiner.is_some_and(|one| one.is_drained);
                    if (dto.leaving.is_some() || is_drained) && dto.state != HealthState::Down {
                        dto.state = HealthState::Drained;
                    }
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
        let missing = || ViewError::NotFound(format!("cluster {}", words::shorten(name)));
        let mut found = found.ok_or_else(missing)?;
        let world = Arc::clone(&self.controller().status().world);
        let index = super::find_cluster(&world, Some(name))?;
        if let (Some(member), Some(index)) = (&mut found.kubernetes, index) {
            member.refused = self.refused_of(index);
        }
        Ok(found)
    }

    /// Gives what clusters say of their own places, where the configuration is silent; and which of them are only observed.
    async fn said_by_inventory(&self) -> (BTreeMap<ClusterIndex, Said>, BTreeSet<ClusterIndex>) {
        let read = self.controller().read(|inventory| {
            let clusters = inventory.clusters();
            let said = clusters.filter_map(|(index, _)| {
                let facts = inventory.facts(index)?;
                Some((index, said(inventory.configured(index)?, facts)))
            });
            let observed = inventory.clusters().map(|(index, _)| index);
            let observed = observed.filter(|index| inventory.observes(*index));
            (said.collect(), observed.collect())
        });
        read.await.unwrap_or_default()
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

/// Lists the annotations that count.
fn annotations(joiner: &JoinedCluster) -> Vec<AnnotationDto> {
    let counted = joiner.read.counted.iter();
    counted
        .map(|(key, value)| AnnotationDto {
            key: key.to_string(),
            value: words::shorten(value),
        })
        .collect()
}

/// Tells whether a drain is of the whole cluster.
fn is_whole(drain: &DrainDto, cluster: &str) -> bool {
    drain.target.kind == TargetKind::Cluster && drain.target.cluster.as_deref() == Some(cluster)
}

/// Tells whether a force is of the whole cluster.
fn is_pinned(force: &ForceDto, cluster: &str) -> bool {
    force.target.kind == TargetKind::Cluster && force.target.cluster.as_deref() == Some(cluster)
}

/// What a cluster says of its own place, as far as it counts.
#[derive(Debug, PartialEq)]
struct Said {
    /// What it was read from.
    evidence: String,
    /// Its coordinates are taken from there.
    coordinates: bool,
    /// Its country is.
    country: bool,
    /// Its continent is.
    continent: bool,
    /// Its region is.
    region: bool,
    /// Its zones are.
    zones: bool,
}

/// Tells which of a cluster's own words count: where configuration and annotations are silent.
fn said(configured: &Cluster, facts: &ClusterFacts) -> Said {
    let is_open = configured.region.is_none();
    let place = &configured.location;
    let is_there = is_open || configured.region == facts.region;
    let filled = place.clone().or(&facts.location);
    Said {
        evidence: facts.evidence.to_string(),
        coordinates: is_there && place.coordinates != filled.coordinates,
        country: is_there && place.country != filled.country,
        continent: is_there && place.continent != filled.continent,
        region: is_open && facts.region.is_some(),
        zones: configured.zones.is_empty() && !facts.zones.is_empty(),
    }
}

/// Shows what is known of a cluster's place.
fn describe(cluster: &Cluster, endpoints: CountsDto, words: Words<'_>) -> ClusterDto {
    let location = &cluster.location;
    let place = location.coordinates.map(|point| LocationDto {
        latitude: point.latitude(),
        longitude: point.longitude(),
    });
    ClusterDto {
        name: cluster.id.to_string(),
        from: "configuration".to_owned(),
        state: catalog::sum_up(&endpoints),
        location: place,
        country: location.country.map(|code| code.to_string()),
        continent: location.continent.map(|code| code.to_string()),
        provider: cluster.provider.as_deref().map(ToOwned::to_owned),
        region: cluster.region.as_deref().map(ToOwned::to_owned),
        zones: cluster.zones.iter().map(ToString::to_string).collect(),
        tags: cluster.tags.iter().map(ToString::to_string).collect(),
        cost_km: kilometers(cluster.cost_km),
        evidence: evidence(cluster, words),
        annotations: Vec::new(),
        services: 0,
        endpoints,
        answers_per_second: 0.0,
        probe_ms: None,
        drain: None,
        force: None,
        admitted: true,
        leaving: None,
        kubernetes: None,
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

/// What a cluster's nodes say of its place, and what annotations do.
type Words<'w> = (Option<&'w Said>, Option<&'w ClusterSaid>);

/// Says where each part of a location comes from: annotations, the configuration, the built-in table of cloud regions, or the
/// cluster's own nodes.
fn evidence(cluster: &Cluster, (said, annotated): Words<'_>) -> Vec<EvidenceDto> {
    let location = &cluster.location;
    let table = cluster
        .provider
        .as_deref()
        .and_then(|provider| provider.parse().ok())
        .zip(cluster.region.as_deref())
        .and_then(|(provider, name)| region(provider, name));
    let of_annotation = |what: &str| annotated.map_or_else(String::new, |said| said.evidence(what));
    let mut all = Vec::new();
    let mut say = |what: &str, value: Option<String>, (is_own, same): (bool, bool)| {
        let own = said.filter(|_| is_own).map(|said| said.evidence.as_str());
        let key = of_annotation(what);
        let first = own.or_else(|| (!key.is_empty()).then_some(key.as_str()));
        let from = match (&cluster.provider, &cluster.region, first) {
            (Some(provider), Some(region), first) if same => {
                let before = first.map_or_else(String::new, |first| format!("{first}, and the "));
                format!("{before}built-in table of cloud regions: {provider} {region}")
            }
            (_, _, Some(first)) => first.to_owned(),
            _ => "clusters[].location in the configuration".to_owned(),
        };
        all.extend(value.map(|value| EvidenceDto {
            what: what.to_owned(),
            value,
            from,
        }));
    };
    let is_own = |is_its: fn(&Said) -> bool| said.is_some_and(is_its);
    let held = location.coordinates;
    let same = held.is_some() && held == table.and_then(|region| region.location.coordinates);
    let point = held.map(|point| format!("{:.2}, {:.2}", point.latitude(), point.longitude()));
    say(
        "coordinates",
        point,
        (is_own(|said| said.coordinates), same),
    );
    let same = location.country == table.and_then(|region| region.location.country);
    let code = location.country.map(|code| code.to_string());
    say("country", code, (is_own(|said| said.country), same));
    let code = location.continent.map(|code| code.to_string());
    say("continent", code, (is_own(|said| said.continent), same));
    for what in ["region", "zones"] {
        let value = match what {
            "region" => cluster.region.as_deref().map(ToOwned::to_owned),
            _ => Some(cluster.zones.join(", ")),
        };
        let from = of_annotation(what);
        all.extend(value.filter(|_| !from.is_empty()).map(|value| EvidenceDto {
            what: what.to_owned(),
            value,
            from,
        }));
    }
    all.extend(said.into_iter().flat_map(|said| nodes_say(cluster, said)));
    all
}

/// Says what is taken from the labels of a cluster's nodes beside its location.
fn nodes_say(cluster: &Cluster, said: &Said) -> impl Iterator<Item = EvidenceDto> {
    let region = cluster.region.as_deref().filter(|_| said.region);
    let zones = said.zones.then(|| cluster.zones.join(", "));
    let named = [("region", region.map(ToOwned::to_owned)), ("zones", zones)];
    named.into_iter().filter_map(|(what, value)| {
        Some(EvidenceDto {
            what: what.to_owned(),
            value: value?,
            from: said.evidence.clone(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Location;
    use crate::source::kubernetes::annotations::read_cluster;

    fn cluster(region: Option<&str>, location: Location) -> Cluster {
        Cluster {
            id: "aws".parse().unwrap(),
            location,
            region: region.map(Into::into),
            provider: region.map(|_| "aws".into()),
            zones: Vec::new(),
            tags: Vec::new(),
            cost_km: 0.0,
        }
    }

    /// What 12 nodes say.
    fn facts() -> ClusterFacts {
        let table = region(crate::model::Provider::Aws, "us-east-1").unwrap();
        ClusterFacts {
            provider: Some("aws".into()),
            region: Some("us-east-1".into()),
            zones: vec!["us-east-1a".into()],
            location: table.location.clone(),
            evidence: "labels of 12 of 12 nodes".into(),
        }
    }

    #[test]
    fn nodes_are_evidence_where_the_configuration_is_silent() {
        let facts = facts();
        let silent = said(&cluster(None, Location::default()), &facts);
        assert!(silent.coordinates && silent.country && silent.region && silent.zones);
        let mut whole = cluster(Some("us-east-1"), facts.location.clone());
        whole.zones.clone_from(&facts.zones);
        let all = evidence(&whole, (Some(&silent), None));
        let from = |what: &str| {
            let mut all = all.iter();
            all.find(|one| one.what == what)
                .map(|one| one.from.as_str())
        };
        assert_eq!(
            from("coordinates"),
            Some(
                "labels of 12 of 12 nodes, and the built-in table of cloud regions: aws us-east-1"
            )
        );
        assert_eq!(from("region"), Some("labels of 12 of 12 nodes"));
        assert_eq!(from("zones"), Some("labels of 12 of 12 nodes"));
        // The operator's word comes first.
        let configured = cluster(Some("us-east-1"), facts.location.clone());
        let overruled = said(&configured, &facts);
        assert!(!overruled.coordinates && !overruled.region && overruled.zones);
        let all = evidence(&configured, (Some(&overruled), None));
        assert_eq!(
            all[0].from,
            "built-in table of cloud regions: aws us-east-1"
        );
        // That of an annotation before both.
        let read = read_cluster([
            ("meridian-dns.io/region", "us-east-1"),
            ("meridian-dns.io/country", "US"),
        ]);
        let all = evidence(&configured, (Some(&overruled), Some(&read.said)));
        let from = |what: &str| {
            let found = all.iter().find(|one| one.what == what);
            found.map(|one| one.from.as_str())
        };
        assert_eq!(from("region"), Some("annotation meridian-dns.io/region"));
        assert_eq!(
            from("country"),
            Some(
                "annotation meridian-dns.io/country, and the built-in table of cloud regions: aws us-east-1"
            )
        );
    }
}
