//! A table for each kind of thing.

use jiff::Timestamp;

use super::members;
use crate::admin::dto::{
    AuditDto, ClusterDto, DrainDto, EndpointDto, EventDto, ForceDto, HealthState, MonitorDto,
    OriginDto, Page, PeerDto, ProbeDto, ServiceRowDto, ShareDto, SourceDto, SourceKind,
    SourceState, ZoneDto,
};
use crate::app::table::{Cell, Column, Screen, Table};
use crate::app::words::{
    self, Tone, count, decimal, join, measure, or_dash, span, up_of, when, when_if, word, yes,
};

use Column::{Left, Right};

/// Clusters.
pub(super) fn clusters(page: &Page<ClusterDto>, screen: &Screen) -> String {
    let mut table = Table::new(
        screen,
        &[
            Left("CLUSTER"),
            Left("STATE"),
            Right("UP"),
            Right("SERVICES"),
            Right("ANSWERS/S"),
            Right("PROBE"),
            Left("API SERVER"),
            Left("OPERATOR"),
        ],
        &[
            Left("COUNTRY"),
            Left("PROVIDER"),
            Left("REGION"),
            Left("LOCATION"),
            Right("COST"),
            Left("VERSION"),
            Right("REFUSED"),
        ],
    );
    for cluster in &page.items {
        let place = cluster.location.as_ref();
        let kubernetes = cluster.kubernetes.as_ref();
        table.row(
            [
                (&cluster.name).into(),
                state(cluster.state),
                up_of(&cluster.endpoints).into(),
                count(cluster.services).into(),
                decimal(cluster.answers_per_second).into(),
                measure(cluster.probe_ms, "ms").into(),
                kubernetes.map_or_else(|| "-".into(), members::link),
                operator(cluster, screen.now).into(),
            ],
            || {
                [
                    or_dash(cluster.country.as_deref()).into(),
                    or_dash(cluster.provider.as_deref()).into(),
                    or_dash(cluster.region.as_deref()).into(),
                    place
                        .map_or_else(
                            || "-".to_owned(),
                            |place| format!("{:.2}, {:.2}", place.latitude, place.longitude),
                        )
                        .into(),
                    format!("{} km", count(cluster.cost_km.into())).into(),
                    or_dash(kubernetes.and_then(|member| member.version.as_deref())).into(),
                    kubernetes
                        .map_or_else(|| "-".to_owned(), |member| count(member.refused_objects))
                        .into(),
                ]
            },
        );
    }
    table.draw("no clusters")
}

/// Says what operators did to a cluster.
fn operator(cluster: &ClusterDto, now: Timestamp) -> String {
    let drain = cluster.drain.as_ref();
    let drain = drain.map(|drain| words::drain_state(now, drain));
    let force = cluster.force.as_ref();
    let force = force.map(|force| format!("forced {}", words::verdict(force.verdict)));
    let leaving = cluster.leaving.as_ref().map(words::leaving);
    let observed = (!cluster.admitted).then(|| "observed".to_owned());
    let leaving = observed.into_iter().chain(leaving);
    let all: Vec<String> = leaving.chain(drain).chain(force).collect();
    join(&all)
}

/// Services.
pub(super) fn services(page: &Page<ServiceRowDto>, screen: &Screen) -> String {
    let mut table = Table::new(
        screen,
        &[
            Left("SERVICE"),
            Left("STATE"),
            Left("STEER"),
            Right("UP"),
            Left("CLUSTERS"),
        ],
        &[Left("HOSTNAMES"), Left("ORIGIN")],
    );
    for service in &page.items {
        table.row(
            [
                (&service.key).into(),
                state(service.state),
                (&service.steer).into(),
                up_of(&service.endpoints).into(),
                shares(&service.clusters).into(),
            ],
            || {
                [
                    join(&service.hostnames).into(),
                    service.origin.as_str().into(),
                ]
            },
        );
    }
    table.draw("no services")
}

/// Lists a service's clusters, with the state of those that are not used as up.
fn shares(clusters: &[ShareDto]) -> String {
    let each = clusters.iter().map(|share| match share.state {
        HealthState::Up | HealthState::Unknown => share.cluster.clone(),
        state => format!("{} ({})", share.cluster, state.as_str()),
    });
    join(&each.collect::<Vec<_>>())
}

/// Monitors.
pub(super) fn monitors(page: &Page<MonitorDto>, screen: &Screen) -> String {
    let mut table = Table::new(
        screen,
        &[
            Left("TARGET"),
            Left("CHECK"),
            Left("VERDICT"),
            Left("LAST PROBE"),
            Right("ENDPOINTS"),
            Left("CLUSTERS"),
        ],
        &[
            Right("INTERVAL"),
            Right("TIMEOUT"),
            Right("RISE"),
            Right("FALL"),
            Left("ORIGIN"),
            Left("ID"),
        ],
    );
    for monitor in &page.items {
        let doubt = match (&monitor.refused, monitor.never_succeeded, monitor.in_doubt) {
            (Some(why), _, _) => format!(", not probed: {why}"),
            (None, true, _) => ", never succeeded".to_owned(),
            (None, false, true) => ", in doubt".to_owned(),
            (None, false, false) => String::new(),
        };
        let tone = match (Tone::of_verdict(&monitor.verdict), monitor.in_doubt) {
            _ if monitor.refused.is_some() => Tone::Doubtful,
            (Tone::Good, true) => Tone::Doubtful,
            (tone, _) => tone,
        };
        let origin = match monitor.origin {
            OriginDto::Operator => "operator",
            OriginDto::Tenant => "tenant",
        };
        table.row(
            [
                (&monitor.target).into(),
                (&monitor.check).into(),
                Cell::toned(format!("{}{doubt}", monitor.verdict), tone),
                probe(monitor.last.as_ref()),
                count(monitor.endpoints).into(),
                join(&monitor.clusters).into(),
            ],
            || {
                [
                    milliseconds(monitor.interval_ms).into(),
                    milliseconds(monitor.timeout_ms).into(),
                    count(monitor.rise.into()).into(),
                    count(monitor.fall.into()).into(),
                    origin.into(),
                    (&monitor.id).into(),
                ]
            },
        );
    }
    table.draw("no monitors")
}

/// Writes milliseconds in the unit that people use.
pub(super) fn milliseconds(ms: u64) -> String {
    if ms < 1_000 {
        format!("{ms} ms")
    } else {
        // Far below 2^52.
        #[expect(
            clippy::cast_precision_loss,
            reason = "milliseconds of a configuration"
        )]
        let seconds = ms as f64 / 1_000.0;
        format!("{} s", decimal(seconds))
    }
}

/// Says how the last probe went.
fn probe(last: Option<&ProbeDto>) -> Cell {
    match last {
        None => "-".into(),
        Some(probe) if probe.ok => Cell::toned(measure(probe.milliseconds, "ms"), Tone::Plain),
        Some(probe) => {
            let error = probe.error.as_deref().unwrap_or("failed");
            Cell::toned(error, Tone::Bad)
        }
    }
}

/// Events.
pub(super) fn events(page: &Page<EventDto>, screen: &Screen) -> String {
    let mut table = Table::new(
        screen,
        &[Left("WHEN"), Left("SEVERITY"), Left("KIND"), Left("EVENT")],
        &[
            Left("TIME"),
            Left("CLUSTER"),
            Left("SERVICES"),
            Left("TARGET"),
            Right("ID"),
        ],
    );
    for event in &page.items {
        table.row(
            [
                when(screen.now, &event.time).into(),
                Cell::toned(words::severity(event.severity), event.severity),
                word(event.kind).into(),
                (&event.text).into(),
            ],
            || {
                [
                    (&event.time).into(),
                    or_dash(event.cluster.as_deref()).into(),
                    touched(event).into(),
                    or_dash(event.target.as_deref()).into(),
                    event.id.to_string().into(),
                ]
            },
        );
    }
    table.draw("no events")
}

/// Names the services that an event is about.
fn touched(event: &EventDto) -> String {
    let named = join(&event.services);
    let more = event
        .service_count
        .unwrap_or(0)
        .saturating_sub(event.services.len() as u64);
    if more > 0 {
        format!("{named} and {} more", count(more))
    } else {
        named
    }
}

/// Drains.
pub(super) fn drains(page: &Page<DrainDto>, screen: &Screen) -> String {
    let mut table = Table::new(
        screen,
        &[
            Left("DRAINED"),
            Left("STATE"),
            Right("NODES"),
            Left("BY"),
            Left("SINCE"),
            Left("REASON"),
        ],
        &[Left("ENDS"), Left("WAITING FOR"), Left("HELD"), Left("ID")],
    );
    for drain in &page.items {
        table.row(
            [
                words::target(&drain.target).into(),
                Cell::toned(words::drain_state(screen.now, drain), drain.state),
                format!("{}/{}", drain.acknowledged, drain.expected).into(),
                (&drain.created.actor).into(),
                when(screen.now, &drain.created.time).into(),
                (&drain.created.reason).into(),
            ],
            || {
                [
                    ends(screen.now, drain.expires.as_deref()).into(),
                    drain.waiting_for.join("; ").into(),
                    join(&drain.held_services).into(),
                    (&drain.id).into(),
                ]
            },
        );
    }
    table.draw("no drains")
}

/// Says when a record ends by itself.
pub(super) fn ends(now: Timestamp, expires: Option<&str>) -> String {
    expires.map_or_else(|| "by hand".to_owned(), |time| when(now, time))
}

/// Forces.
pub(super) fn forces(page: &Page<ForceDto>, screen: &Screen) -> String {
    let mut table = Table::new(
        screen,
        &[
            Left("FORCED"),
            Left("TO"),
            Left("ACTIVE"),
            Right("NODES"),
            Left("BY"),
            Left("SINCE"),
            Left("ENDS"),
            Left("REASON"),
        ],
        &[Left("MISSING"), Left("ID")],
    );
    for force in &page.items {
        let verdict = words::verdict(force.verdict);
        table.row(
            [
                words::target(&force.target).into(),
                Cell::toned(verdict, Tone::of_verdict(verdict)),
                yes(force.active).into(),
                format!("{}/{}", force.acknowledged, force.expected).into(),
                (&force.created.actor).into(),
                when(screen.now, &force.created.time).into(),
                ends(screen.now, force.expires.as_deref()).into(),
                (&force.created.reason).into(),
            ],
            || [join(&force.missing).into(), (&force.id).into()],
        );
    }
    table.draw("no forces")
}

/// The other nodes.
pub(super) fn peers(peers: &[PeerDto], screen: &Screen) -> String {
    let mut table = Table::new(
        screen,
        &[
            Left("PEER"),
            Left("REACHABLE"),
            Left("HEARD"),
            Left("IN STEP"),
            Left("URL"),
            Left("ERROR"),
        ],
        &[],
    );
    for peer in peers {
        let heard = peer
            .heard_ms_ago
            .map(|ms| format!("{} ago", span(ms / 1_000)));
        table.row(
            [
                or_dash(peer.name.as_deref()).into(),
                Cell::toned(yes(peer.reachable), Tone::of_truth(peer.reachable)),
                heard.unwrap_or_else(|| "never".to_owned()).into(),
                Cell::toned(yes(peer.in_step), Tone::of_truth(peer.in_step)),
                (&peer.url).into(),
                or_dash(peer.error.as_deref()).into(),
            ],
            || [],
        );
    }
    table.draw("no peers")
}

/// Zones.
pub(super) fn zones(page: &Page<ZoneDto>, screen: &Screen) -> String {
    let mut table = Table::new(
        screen,
        &[
            Left("ZONE"),
            Right("SERIAL"),
            Right("NAMES"),
            Right("TTL"),
            Left("NAME SERVERS"),
        ],
        &[Right("NEGATIVE TTL"), Left("NAMES MADE")],
    );
    for zone in &page.items {
        table.row(
            [
                (&zone.name).into(),
                zone.serial.to_string().into(),
                count(zone.names).into(),
                format!("{} s", zone.ttl).into(),
                join(&zone.nameservers).into(),
            ],
            || {
                [
                    format!("{} s", zone.negative_ttl).into(),
                    join(&zone.name_forms).into(),
                ]
            },
        );
    }
    table.draw("no zones")
}

/// Sources.
pub(super) fn sources(page: &Page<SourceDto>, screen: &Screen) -> String {
    let mut table = Table::new(
        screen,
        &[
            Left("SOURCE"),
            Left("KIND"),
            Left("STATE"),
            Right("AGE"),
            Left("IN FORCE SINCE"),
            Right("REFUSED"),
            Left("WHY"),
        ],
        &[Left("DETAILS")],
    );
    for source in &page.items {
        let refused = source.refused.first();
        let refused = refused.map(|refusal| format!("{}: {}", refusal.place, refusal.reason));
        // Of a member cluster that is not seen, why comes before what is refused of its objects.
        let unseen = source.kind == SourceKind::Kubernetes && source.state != SourceState::Ok;
        let why = source.details.first().filter(|_| unseen);
        let why = why.cloned().or(refused);
        let tone = match source.state {
            SourceState::Ok => Tone::Good,
            SourceState::Stale => Tone::Doubtful,
            SourceState::Refused => Tone::Bad,
        };
        table.row(
            [
                (&source.name).into(),
                word(source.kind).into(),
                Cell::toned(word(source.state), tone),
                source
                    .age_seconds
                    .map_or_else(|| "-".to_owned(), span)
                    .into(),
                when_if(screen.now, source.loaded.as_deref()).into(),
                count(source.refused_count).into(),
                or_dash(why.as_deref()).into(),
            ],
            || [source.details.join("; ").into()],
        );
    }
    table.draw("no sources")
}

/// The audit log.
pub(super) fn audit(page: &Page<AuditDto>, screen: &Screen) -> String {
    let mut table = Table::new(
        screen,
        &[
            Left("WHEN"),
            Left("WHO"),
            Left("ACTION"),
            Left("TARGET"),
            Left("OUTCOME"),
            Left("REASON"),
        ],
        &[Left("TIME"), Left("ROLE"), Left("FROM")],
    );
    for entry in &page.items {
        let tone = match entry.outcome.as_str() {
            "refused" => Tone::Bad,
            _ => Tone::Plain,
        };
        table.row(
            [
                when(screen.now, &entry.time).into(),
                (&entry.actor).into(),
                (&entry.action).into(),
                (&entry.target).into(),
                Cell::toned(&entry.outcome, tone),
                (&entry.reason).into(),
            ],
            || {
                [
                    (&entry.time).into(),
                    (&entry.role).into(),
                    (&entry.from).into(),
                ]
            },
        );
    }
    table.draw("nothing was done yet")
}

/// Endpoints of a service.
pub(super) fn endpoints(endpoints: &[EndpointDto], screen: &Screen) -> String {
    let mut table = Table::new(
        screen,
        &[
            Left("CLUSTER"),
            Left("ADDRESS"),
            Left("STATE"),
            Left("VERDICT"),
            Left("LAST PROBE"),
            Left("LAST FLIP"),
            Right("WEIGHT"),
            Left("FROM"),
        ],
        &[
            Left("FOR"),
            Left("FORCED"),
            Left("MONITOR"),
            Left("UNCONFIRMED"),
        ],
    );
    for endpoint in endpoints {
        let doubt = if endpoint.in_doubt { ", in doubt" } else { "" };
        table.row(
            [
                (&endpoint.cluster).into(),
                (&endpoint.address).into(),
                why(endpoint),
                Cell::toned(
                    format!("{}{doubt}", endpoint.verdict),
                    Tone::of_verdict(&endpoint.verdict),
                ),
                probe(endpoint.last.as_ref()),
                when_if(screen.now, endpoint.last_flip.as_deref()).into(),
                endpoint.weight.to_string().into(),
                (&endpoint.from).into(),
            ],
            || {
                let everyone = endpoint.clients.is_empty();
                [
                    if everyone {
                        "everyone".into()
                    } else {
                        join(&endpoint.clients).into()
                    },
                    or_dash(endpoint.forced.map(words::verdict)).into(),
                    or_dash(endpoint.monitor.as_deref()).into(),
                    when_if(screen.now, endpoint.unconfirmed_since.as_deref()).into(),
                ]
            },
        );
    }
    table.draw("no endpoints")
}

/// An endpoint's state in its color, with the reason where its cluster gives one.
fn why(endpoint: &EndpointDto) -> Cell {
    let word = endpoint.state.as_str();
    let text = match &endpoint.reason {
        Some(reason) => format!("{word}: {reason}"),
        None => word.to_owned(),
    };
    Cell::toned(text, endpoint.state)
}

/// A state in its color.
pub(super) fn state(state: HealthState) -> Cell {
    Cell::toned(state.as_str(), state)
}
