//! What is served, and how healthy it is.

use super::super::sources::Sources;
use super::OTHERS;
use super::text::{Kind, Text};
use crate::controller::World;
use crate::health::{MonitorTable, Refusal};
use crate::model::{ClusterIndex, Verdict, ZoneSlot};
use crate::telemetry::{CLUSTERS, Times};

/// Databases shown one by one.
pub(super) const DATABASES: usize = 16;
/// Buckets of the time of a publish: from 64 microseconds to 16 seconds.
const PUBLISH_BUCKETS: std::ops::RangeInclusive<usize> = 6..=24;
/// The verdicts, in the order of the rows of a cluster.
const VERDICTS: [Verdict; 3] = [Verdict::Up, Verdict::Down, Verdict::Unknown];

/// Writes all of it.
pub(super) fn write(text: &mut Text, sources: &Sources) {
    state(text, sources);
    monitors(text, sources);
}

/// Lists the clusters shown one by one, and behind them the rest under one name, if there is any.
pub(super) fn clusters(world: &World) -> impl Iterator<Item = (ClusterIndex, &str)> {
    let is_shown = |index: ClusterIndex| index.get() < CLUSTERS;
    let all = world.clusters.iter();
    let rest = all.clone().find(|(index, _)| !is_shown(*index));
    all.filter(move |(index, _)| is_shown(*index))
        .map(|(index, cluster)| (*index, cluster.id.as_str()))
        .chain(rest.map(|(index, _)| (*index, OTHERS)))
}

/// Shows what is served.
fn state(text: &mut Text, sources: &Sources) {
    let status = sources.controller.status();
    let world = &status.world;
    text.gauge(
        "snapshot_generation",
        "Publishes since the start.",
        status.generation,
    );
    text.gauge(
        "snapshot_build_seconds",
        "Time the last build and publish took.",
        status.build_time.as_secs_f64(),
    );
    let publishes = Times::of([&*status.publish_times]);
    text.family(
        "snapshot_publish_duration_seconds",
        Kind::Histogram,
        "Time that builds and publishes took.",
    )
    .times(&publishes, PUBLISH_BUCKETS);
    text.gauge(
        "snapshot_names",
        "Owner names served, empty non-terminals included.",
        status.names,
    );
    text.gauge("inventory_services", "Services held.", world.services);
    text.gauge(
        "inventory_rejections",
        "Claims and parts of objects refused.",
        world.rejected,
    );
    text.counter("health_flips_total", "Flips of verdicts.", status.flips);
    text.gauge(
        "ready",
        "1 when readyz says yes.",
        u8::from(sources.ready.is_ready()),
    );
    text.gauge("zones", "Zones served.", world.zones.len());
    let mut family = text.family(
        "zone_serial",
        Kind::Gauge,
        "SOA serial served, of the zones counted one by one.",
    );
    let is_named = |zone| world.counted_zones.contains(zone);
    let zones = world.zones.iter().filter(|(apex, _)| is_named(apex));
    for (apex, serial) in zones.take(ZoneSlot::NAMED) {
        family.value(&[("zone", &apex.to_string())], serial);
    }
    let mut family = text.family(
        "geo_database_build_timestamp_seconds",
        Kind::Gauge,
        "When the database in force was built; 0: it does not say.",
    );
    for database in world.databases.iter().take(DATABASES) {
        family.value(
            &[("name", &database.name), ("type", &database.database_type)],
            database.build_epoch,
        );
    }
}

/// Counts monitors by verdict, and by cluster.
fn monitors(text: &mut Text, sources: &Sources) {
    let status = sources.controller.status();
    let reports = sources.reports.borrow().clone();
    let tally = Tally::of(&reports, &status.world);
    let mut family = text.family("health_monitors", Kind::Gauge, "Monitors by verdict.");
    for (verdict, count) in VERDICTS.iter().zip(tally.all) {
        family.value(&[("verdict", &verdict.to_string())], count);
    }
    text.gauge(
        "health_monitors_in_doubt",
        "Monitors with results against their verdict.",
        tally.in_doubt,
    );
    text.gauge(
        "health_monitors_never_succeeded",
        "Monitors that never succeeded: is the check right?",
        tally.never_succeeded,
    );
    let mut family = text.family(
        "health_monitors_refused",
        Kind::Gauge,
        "Monitors of tenants whose targets may not be probed.",
    );
    for (why, count) in Refusal::ALL.iter().zip(tally.refused) {
        family.value(&[("reason", why.as_str())], count);
    }
    let mut family = text.family(
        "health_cluster_monitors",
        Kind::Gauge,
        "Monitors of a cluster's endpoints by verdict.",
    );
    for (index, name) in clusters(&status.world) {
        let row = index.get().min(CLUSTERS);
        let counts = tally.by_cluster.get(row).copied().unwrap_or_default();
        for (verdict, count) in VERDICTS.iter().zip(counts) {
            family.value(
                &[("cluster", name), ("verdict", &verdict.to_string())],
                count,
            );
        }
    }
}

/// Monitors counted in one walk.
struct Tally {
    /// By verdict, as in [`VERDICTS`].
    all: [u64; 3],
    in_doubt: u64,
    never_succeeded: u64,
    /// By reason, as in [`Refusal::ALL`].
    refused: [u64; Refusal::ALL.len()],
    /// By cluster and verdict; behind those shown one by one all others.
    by_cluster: Vec<[u64; 3]>,
}

impl Tally {
    fn of(reports: &MonitorTable, world: &World) -> Self {
        let mut tally = Self {
            all: [0; 3],
            in_doubt: 0,
            never_succeeded: 0,
            refused: [0; Refusal::ALL.len()],
            by_cluster: vec![[0; 3]; CLUSTERS + 1],
        };
        for report in reports.iter() {
            tally.in_doubt += u64::from(report.in_doubt);
            tally.never_succeeded += u64::from(report.never_succeeded);
            let why = Refusal::ALL
                .iter()
                .position(|it| Some(*it) == report.refused);
            if let Some(count) = why.and_then(|at| tally.refused.get_mut(at)) {
                *count += 1;
            }
            let at = VERDICTS.iter().position(|it| *it == report.verdict);
            let cluster = world.cluster_of(report.endpoint);
            let row = cluster.and_then(|cluster| {
                let row = cluster.get().min(CLUSTERS);
                tally.by_cluster.get_mut(row)
            });
            for counts in row.into_iter().chain([&mut tally.all]) {
                if let Some(count) = at.and_then(|at| counts.get_mut(at)) {
                    *count += 1;
                }
            }
        }
        tally
    }
}
