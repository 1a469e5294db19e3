//! The text of `/metrics` (Prometheus exposition format 0.0.4), made at each scrape.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use super::server::Sources;
use crate::model::Verdict;
use crate::telemetry::{Count, lost_log_lines};

/// Writes one family of one value.
fn single(text: &mut String, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
    // Writing to a String cannot fail, here and below.
    let _ = write!(
        text,
        "# HELP meridian_{name} {help}\n# TYPE meridian_{name} {kind}\nmeridian_{name} {value}\n"
    );
}

/// Makes the whole text. Labels come from closed sets and from the configuration: never a client, never a query name.
pub(super) fn render(sources: &Sources) -> String {
    let mut text = String::with_capacity(8192);
    let version = env!("CARGO_PKG_VERSION");
    let _ = write!(
        text,
        "# HELP meridian_build_info The version that runs.\n# TYPE meridian_build_info gauge\n\
         meridian_build_info{{version=\"{version}\"}} 1\n"
    );
    let totals = Count::ALL.iter().map(|&count| {
        (
            count.metric(),
            sources
                .counters
                .iter()
                .map(|counters| counters.get(count))
                .sum(),
        )
    });
    families(&mut text, "answer", totals);
    families(&mut text, "transport", (sources.streams.0)());
    by_cluster(&mut text, sources);
    state(&mut text, sources);
    events(&mut text, sources);
    log(&mut text);
    monitors(&mut text, sources);
    text
}

/// Writes counters, those of one family side by side.
fn families(text: &mut String, room: &str, totals: impl IntoIterator<Item = (&'static str, u64)>) {
    let mut family = "";
    for (metric, total) in totals {
        let name = metric.split_once('{').map_or(metric, |(name, _)| name);
        if name != family {
            let help = help(name);
            let _ = write!(
                text,
                "# HELP meridian_{room}_{name} {help}\n# TYPE meridian_{room}_{name} counter\n"
            );
            family = name;
        }
        let _ = writeln!(text, "meridian_{room}_{metric} {total}");
    }
}

/// Gives the line of help of a family of counters.
fn help(name: &str) -> &'static str {
    match name {
        "queries_total" => "Queries by transport.",
        "replies_total" => {
            "Replies by RCODE; NODATA is NOERROR without an answer, referrals not counted."
        }
        "rare_replies_total" => {
            "Replies to what is no ordinary query: other opcodes, transfers, signed messages."
        }
        "referrals_total" => "Replies that refer to the servers of a zone below.",
        "truncated_total" => "Replies with TC set: the client asks again over TCP.",
        "dropped_total" => "Packets without a reply, by reason.",
        "ecs_queries_total" => "Queries with a believed Client Subnet.",
        "steered_answers_total" => "Answers that a policy decided.",
        "steered_place_total" => {
            "Answers that depend on a place, by what the place was taken from."
        }
        "steered_place_unknown_total" => "Answers to clients whose place no database knows.",
        "fence_refusals_total" => "Clients that a fence left nothing, by what they were answered.",
        "last_resort_answers_total" => {
            "Answers where nothing was Up and undrained, by what was used."
        }
        "panic_answers_total" => "Answers with health ignored because too few endpoints were Up.",
        "tcp_connections_total" => "TCP connections accepted.",
        "tcp_refused_total" => "TCP connections closed at once, by reason.",
        "tcp_evicted_total" => "Idle TCP connections closed to make room for new ones.",
        "tcp_cut_total" => "TCP connections cut for being too slow.",
        "tcp_accept_failures_total" => "Failures to accept a TCP connection.",
        _ => "Counted since the start.",
    }
}

/// Sums answers by cluster.
fn by_cluster(text: &mut String, sources: &Sources) {
    let name = "meridian_answer_cluster_answers_total";
    let _ = write!(
        text,
        "# HELP {name} Answers with addresses of this cluster.\n# TYPE {name} counter\n"
    );
    for (index, cluster) in &sources.controller.status().world.clusters {
        let total: u64 = sources
            .counters
            .iter()
            .map(|counters| counters.cluster(*index))
            .sum();
        let _ = writeln!(text, "{name}{{cluster=\"{}\"}} {total}", cluster.id);
    }
}

/// Shows what is served.
fn state(text: &mut String, sources: &Sources) {
    let status = sources.controller.status();
    let world = &status.world;
    single(
        text,
        "snapshot_generation",
        "gauge",
        "Publishes since the start.",
        status.generation,
    );
    single(
        text,
        "snapshot_build_seconds",
        "gauge",
        "Time the last build and publish took.",
        status.build_time.as_secs_f64(),
    );
    single(
        text,
        "snapshot_names",
        "gauge",
        "Owner names served, empty non-terminals included.",
        status.names,
    );
    single(
        text,
        "inventory_services",
        "gauge",
        "Services held.",
        world.services,
    );
    single(
        text,
        "inventory_rejections",
        "gauge",
        "Claims refused.",
        world.rejected,
    );
    single(
        text,
        "health_flips_total",
        "counter",
        "Flips of verdicts.",
        status.flips,
    );
    single(
        text,
        "ready",
        "gauge",
        "1 when readyz says yes.",
        u8::from(sources.ready.is_ready()),
    );
    let name = "meridian_zone_serial";
    let _ = write!(
        text,
        "# HELP {name} SOA serial served.\n# TYPE {name} gauge\n"
    );
    for (apex, serial) in &world.zones {
        let _ = writeln!(
            text,
            "{name}{{zone=\"{}\"}} {serial}",
            escape(&apex.to_string())
        );
    }
    let name = "meridian_geo_database_build_timestamp_seconds";
    let _ = write!(
        text,
        "# HELP {name} When the database in force was built; 0: it does not say.\n# TYPE {name} gauge\n"
    );
    for database in &world.databases {
        let labels = format!(
            "name=\"{}\",type=\"{}\"",
            escape(&database.name),
            escape(&database.database_type)
        );
        let _ = writeln!(text, "{name}{{{labels}}} {}", database.build_epoch);
    }
}

/// Shows what happened outside the answering path.
fn events(text: &mut String, sources: &Sources) {
    let events = &sources.events;
    for (name, help, value) in [
        (
            "config_reloads_total",
            "Reloads put in force.",
            &events.reloads,
        ),
        (
            "config_reload_failures_total",
            "Reloads refused; the former configuration stays.",
            &events.reload_failures,
        ),
        (
            "config_reload_failing",
            "1 while the newest configuration file is refused or gone.",
            &events.reload_failing,
        ),
        (
            "start_time_seconds",
            "Unix time of the start.",
            &events.started,
        ),
        (
            "config_last_load_timestamp_seconds",
            "Unix time at which the configuration in force was put there.",
            &events.last_load,
        ),
        (
            "controller_last_good_failures",
            "Writes of the last good state that failed in a row.",
            &events.last_good_failures,
        ),
    ] {
        let kind = if name.ends_with("_total") {
            "counter"
        } else {
            "gauge"
        };
        single(text, name, kind, help, value.load(Ordering::Relaxed));
    }
    let name = "meridian_source_refused_files";
    let _ = write!(
        text,
        "# HELP {name} Files that are not what is served: refused at their last reading.\n# TYPE {name} gauge\n"
    );
    for (kind, value) in [
        ("configuration", &events.reload_failing),
        ("database", &events.refused_databases),
        ("zone", &events.refused_zones),
    ] {
        let value = value.load(Ordering::Relaxed);
        let _ = writeln!(text, "{name}{{kind=\"{kind}\"}} {value}");
    }
}

/// Shows what the log could not take.
fn log(text: &mut String) {
    single(
        text,
        "telemetry_log_lines_lost_total",
        "counter",
        "Log lines that could not be written: is the disk full, or does nobody read the log?",
        lost_log_lines(),
    );
}

/// Counts monitors by verdict.
fn monitors(text: &mut String, sources: &Sources) {
    let reports = sources.reports.borrow();
    let name = "meridian_health_monitors";
    let _ = write!(
        text,
        "# HELP {name} Monitors by verdict.\n# TYPE {name} gauge\n"
    );
    for verdict in [Verdict::Up, Verdict::Down, Verdict::Unknown] {
        let count = reports
            .iter()
            .filter(|report| report.verdict == verdict)
            .count();
        let _ = writeln!(text, "{name}{{verdict=\"{verdict}\"}} {count}");
    }
    let in_doubt = reports.iter().filter(|report| report.in_doubt).count();
    single(
        text,
        "health_monitors_in_doubt",
        "gauge",
        "Monitors with results against their verdict.",
        in_doubt,
    );
    let never = reports
        .iter()
        .filter(|report| report.never_succeeded)
        .count();
    single(
        text,
        "health_monitors_never_succeeded",
        "gauge",
        "Monitors that never succeeded: is the check right?",
        never,
    );
}

/// Escapes a label's value.
fn escape(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_of_the_workers_has_help_of_its_own() {
        let mut seen = std::collections::BTreeMap::new();
        for count in Count::ALL {
            let metric = count.metric();
            let name = metric.split_once('{').map_or(metric, |(name, _)| name);
            assert_ne!(help(name), help(""), "{name}");
            assert!(*seen.entry(help(name)).or_insert(name) == name, "{name}");
        }
    }
}
