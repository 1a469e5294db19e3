//! What the workers counted.

use super::super::sources::Sources;
use super::text::{Kind, Text};
use super::{OTHERS, world};
use crate::admin::senders::SendersView;
use crate::geo::countries;
use crate::model::ZoneSlot;
use crate::telemetry::{Count, Counters, Given, Order, QueryType, ReplyCode, Times};

/// Buckets of the time of a batch: from a microsecond to a second.
const BATCH_BUCKETS: std::ops::RangeInclusive<usize> = 0..=20;

/// Writes all that the workers counted.
pub(super) fn write(text: &mut Text, sources: &Sources) {
    let total = |count: &dyn Fn(&Counters) -> u64| -> u64 {
        sources
            .counters
            .iter()
            .map(|counters| count(counters))
            .sum()
    };
    let totals = Count::ALL.iter().map(|&count| {
        let sum = total(&|counters| counters.get(count));
        (count.metric(), sum)
    });
    families(text, "answer", totals);
    families(text, "transport", (sources.streams.0)());
    decisions(text, &total);
    zones(text, sources, &total);
    clusters(text, sources, &total);
    origins(text, &total);
    senders(text, &sources.senders.view());
    let times = Times::of(sources.counters.iter().map(|counters| counters.batches()));
    text.family(
        "transport_batch_duration_seconds",
        Kind::Histogram,
        "Time from taking a batch of datagrams from the socket to handing its replies back, counted once a datagram.",
    )
    .times(&times, BATCH_BUCKETS);
}

/// Sums a count over all workers.
type Total<'t> = dyn Fn(&dyn Fn(&Counters) -> u64) -> u64 + 't;

/// Writes counters, those of one family side by side.
fn families(text: &mut Text, room: &str, totals: impl IntoIterator<Item = (&'static str, u64)>) {
    let mut totals = totals.into_iter().peekable();
    while let Some((metric, _)) = totals.peek() {
        let (name, _) = split(metric);
        let mut family = text.family(&format!("{room}_{name}"), Kind::Counter, help(name));
        while let Some((metric, total)) = totals.next_if(|(metric, _)| split(metric).0 == name) {
            family.value_of(split(metric).1, total);
        }
    }
}

/// Splits a metric into its family and its labels.
fn split(metric: &'static str) -> (&'static str, &'static str) {
    metric.split_at(metric.find('{').unwrap_or(metric.len()))
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
        "later_tier_answers_total" => "Answers out of a tier behind the first.",
        "level_answers_total" => {
            "Answers for names of a federation's regions and zones, by the level that answered: own, or wider as that has nothing usable."
        }
        "senders_total" => {
            "Queries for names of ours by the kind of the sender's address, estimated from one query of each batch."
        }
        "query_log_dropped_total" => "Records of the query log that found their queue full.",
        "tcp_connections_total" => "TCP connections accepted.",
        "tcp_refused_total" => "TCP connections closed at once, by reason.",
        "tcp_evicted_total" => "Idle TCP connections closed to make room for new ones.",
        "tcp_cut_total" => "TCP connections cut for being too slow.",
        "tcp_accept_failures_total" => "Failures to accept a TCP connection.",
        _ => "Counted since the start.",
    }
}

/// Writes what policies decided.
fn decisions(text: &mut Text, total: &Total<'_>) {
    let mut family = text.family(
        "answer_decisions_total",
        Kind::Counter,
        "Decisions of policies by what they gave.",
    );
    for &given in Given::ALL {
        let count = total(&|counters| counters.decisions_with(None, None, Some(given)));
        family.value(&[("reason", given.as_str())], count);
    }
    let mut family = text.family(
        "answer_decision_orders_total",
        Kind::Counter,
        "Decisions of policies by what ordered the clusters.",
    );
    for &order in Order::ALL {
        let count = total(&|counters| counters.decisions_with(None, Some(order), None));
        family.value(&[("order", order.as_str())], count);
    }
}

/// Writes queries and replies by zone.
fn zones(text: &mut Text, sources: &Sources, total: &Total<'_>) {
    let status = sources.controller.status();
    let named = status.world.counted_zones.iter().enumerate();
    let mut rows: Vec<(ZoneSlot, String)> = named
        .map(|(at, apex)| (ZoneSlot::named(at), apex.to_string()))
        .collect();
    rows.push((ZoneSlot::OTHER, OTHERS.to_owned()));
    let mut family = text.family(
        "answer_zone_queries_total",
        Kind::Counter,
        "Queries for names of a zone by type.",
    );
    for (slot, zone) in &rows {
        for &qtype in QueryType::ALL {
            let count = total(&|counters| counters.replies_with(Some(*slot), Some(qtype), None));
            family.value(&[("zone", zone), ("type", qtype.as_str())], count);
        }
    }
    let mut family = text.family(
        "answer_zone_replies_total",
        Kind::Counter,
        "Replies to queries for names of a zone by RCODE; NODATA and REFERRAL are NOERROR on the wire.",
    );
    for (slot, zone) in &rows {
        for &code in ReplyCode::ALL.iter().take(ReplyCode::OF_ZONES) {
            let count = total(&|counters| counters.replies_with(Some(*slot), None, Some(code)));
            family.value(&[("zone", zone), ("rcode", code.as_str())], count);
        }
    }
}

/// Writes answers by cluster.
fn clusters(text: &mut Text, sources: &Sources, total: &Total<'_>) {
    let status = sources.controller.status();
    let mut family = text.family(
        "answer_cluster_answers_total",
        Kind::Counter,
        "Answers with addresses of this cluster.",
    );
    for (index, name) in world::clusters(&status.world) {
        let count = total(&|counters| counters.cluster(index));
        family.value(&[("cluster", name)], count);
    }
}

/// Writes queries by the client's country: those that asked, and the unknown.
fn origins(text: &mut Text, total: &Total<'_>) {
    let mut family = text.family(
        "answer_country_queries_total",
        Kind::Counter,
        "Queries for names of ours by the client's country, estimated from one query of each batch.",
    );
    for country in countries() {
        let count = total(&|counters| counters.country(Some(country.code)));
        if count > 0 {
            family.value(&[("country", country.code.as_str())], count);
        }
    }
    let unknown = total(&|counters| counters.country(None));
    family.value(&[("country", "unknown")], unknown);
}

/// Writes what is known of the senders of the last minutes.
fn senders(text: &mut Text, view: &SendersView) {
    text.gauge(
        "answer_senders_sampled",
        "Queries of the last 5 minutes whose senders were compared, those from the machine itself left out.",
        view.sampled,
    );
    let mut family = text.family(
        "answer_senders_ratio",
        Kind::Gauge,
        "Shares of these: of the address that sends most, of private addresses, of those with a believed Client Subnet.",
    );
    for (of, count) in [
        ("busiest", view.busiest),
        ("private", view.private),
        ("subnet", view.with_subnet),
    ] {
        family.value(&[("of", of)], view.share(count));
    }
    text.gauge(
        "answer_senders_translated",
        "1 while most senders look translated: one address, or a few private ones, send nearly everything.",
        u8::from(view.translated.is_some()),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_of_the_workers_has_help_of_its_own() {
        let mut seen = std::collections::BTreeMap::new();
        for count in Count::ALL {
            let (name, _) = split(count.metric());
            assert_ne!(help(name), help(""), "{name}");
            assert!(*seen.entry(help(name)).or_insert(name) == name, "{name}");
        }
    }
}
