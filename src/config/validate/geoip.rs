//! `geoip`.

use std::collections::HashSet;

use super::atlas::Atlas;
use super::clusters::{self, Clusters};
use super::{Files, groups, read};
use crate::config::checked::Geoip;
use crate::config::faults::Report;
use crate::config::spec::{Fields, Node, fields, v1};
use crate::geo::{Override, OverridePlace};
use crate::model::{Location, Subdivision};

/// Checks `geoip`.
pub(super) fn read(
    node: Option<Node<'_, '_>>,
    files: &Files,
    atlas: &Atlas,
    clusters: &Clusters<'_, '_>,
    report: &mut Report,
) -> Geoip {
    let mut config = Geoip::default();
    let Some(fields) = node.and_then(|node| fields(node, &v1::GEOIP, report)) else {
        return config;
    };
    if let Some(node) = fields.get("databases") {
        let mut seen = HashSet::new();
        config.databases = read::list(node, report, |item, report| {
            let path = files.path(item, report)?;
            if !seen.insert(path.clone()) {
                report.fault(item, "this file is listed twice");
            }
            Some(path)
        });
    }
    if let Some(node) = fields.get("overrides") {
        let mut seen = HashSet::new();
        config.overrides = read::list(node, report, |item, report| {
            let fields = crate::config::spec::fields(item, &v1::OVERRIDE, report)?;
            let place = place(fields, atlas, clusters, report);
            let node = fields.get("prefix")?;
            let prefix = read::prefix(node, report)?;
            if !seen.insert(prefix) {
                report.fault(node, format_args!("`{prefix}` has two overrides"));
            }
            Some(Override {
                prefix,
                place: place?,
            })
        });
    }
    config
}

/// Keys that name a place.
const PLACE_KEYS: [&str; 5] = [
    "country",
    "continent",
    "subdivision",
    "latitude",
    "longitude",
];

/// Checks what an override says: a cluster, or a place.
fn place(
    fields: Fields<'_, '_>,
    atlas: &Atlas,
    clusters: &Clusters<'_, '_>,
    report: &mut Report,
) -> Option<OverridePlace> {
    let has_place = PLACE_KEYS.iter().any(|key| fields.get(key).is_some());
    let Some(node) = fields.get("cluster") else {
        if !has_place {
            let keys = PLACE_KEYS.join(", ");
            report.fault(
                fields.node,
                format_args!("an override needs `cluster`, or a place: {keys}"),
            );
            return None;
        }
        return location(fields, atlas, report).map(OverridePlace::Place);
    };
    if has_place {
        report.fault(
            fields.node,
            "an override has `cluster` or a place, not both: the place is the cluster's",
        );
        return None;
    }
    let name = read::text(node, report)?;
    let (_, cluster) = clusters.find(node, name, report)?;
    let location = Location {
        cluster: Some(cluster.id.clone()),
        ..cluster.location.clone()
    };
    Some(OverridePlace::Cluster(cluster.id.clone(), location))
}

/// Checks the place of an override: what is left out follows from the subdivision and the country.
fn location(fields: Fields<'_, '_>, atlas: &Atlas, report: &mut Report) -> Option<Location> {
    let before = report.count();
    let country = fields
        .get("country")
        .and_then(|node| groups::country(node, atlas, report));
    let continent = fields
        .get("continent")
        .and_then(|node| clusters::continent(node, report));
    let subdivision = fields.get("subdivision").and_then(|node| {
        let subdivision = subdivision(node, atlas, report)?;
        if country.is_some_and(|country| country != subdivision.country()) {
            report.fault(
                node,
                format_args!("`{subdivision}` lies in another country"),
            );
        }
        Some(subdivision)
    });
    let coordinates = clusters::coordinates(fields, report);
    let country = country.or_else(|| subdivision.map(Subdivision::country));
    let known = country.and_then(atlas.country);
    clusters::check_continent(fields, country.zip(known), report);
    let location = Location {
        coordinates: coordinates.or_else(|| known.map(|(_, center)| center)),
        continent: continent.or_else(|| known.map(|(continent, _)| continent)),
        country,
        subdivision,
        ..Location::default()
    };
    (report.count() == before).then_some(location)
}

/// Reads a subdivision of a country that exists.
pub(super) fn subdivision(
    node: Node<'_, '_>,
    atlas: &Atlas,
    report: &mut Report,
) -> Option<Subdivision> {
    let text = read::text(node, report)?;
    let found = text
        .parse::<Subdivision>()
        .map_err(|error| error.to_string());
    let found = found.and_then(|subdivision| {
        groups::unknown_country(subdivision.country(), atlas).map_or(Ok(subdivision), Err)
    });
    found.map_err(|why| report.fault(node, why)).ok()
}
