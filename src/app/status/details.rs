//! Everything about one thing.

use jiff::Timestamp;

use super::{lists, members};
use crate::admin::dto::{
    AnnotationDto, BudgetDto, ClusterDto, DelegationDto, DrainDto, EventDto, ForceDto,
    NodeDrainDto, Page, ServiceDto, ZoneDto,
};
use crate::app::table::{Cell, Column, Screen, Table};
use crate::app::words::{
    self, Tone, by_state, clean, count, decimal, join, measure, or_dash, span, when, yes,
};

use Column::{Left, Right};

/// A cluster.
pub(super) fn cluster(cluster: &ClusterDto, screen: &Screen) -> String {
    let mut pairs = vec![
        ("Cluster", clean(&cluster.name)),
        ("From", clean(&cluster.from)),
        (
            "State",
            screen.paint(cluster.state.as_str(), cluster.state.into()),
        ),
        ("Services", count(cluster.services)),
        ("Endpoints", by_state(&cluster.endpoints)),
        (
            "Answers",
            format!("{}/s", decimal(cluster.answers_per_second)),
        ),
        ("Probe", measure(cluster.probe_ms, "ms")),
        ("Country", or_dash(cluster.country.as_deref())),
        ("Continent", or_dash(cluster.continent.as_deref())),
    ];
    if let Some(place) = &cluster.location {
        pairs.push((
            "Location",
            format!("{:.2}, {:.2}", place.latitude, place.longitude),
        ));
    }
    if let Some(provider) = &cluster.provider {
        pairs.push(("Provider", clean(provider)));
    }
    if let Some(region) = &cluster.region {
        pairs.push(("Region", clean(region)));
    }
    if !cluster.zones.is_empty() {
        pairs.push(("Zones", join(&cluster.zones)));
    }
    if !cluster.tags.is_empty() {
        pairs.push(("Tags", join(&cluster.tags)));
    }
    if cluster.cost_km > 0 {
        pairs.push(("Cost", format!("{} km", count(cluster.cost_km.into()))));
    }
    for evidence in &cluster.evidence {
        let how = format!("{} {}: {}", evidence.what, evidence.value, evidence.from);
        pairs.push(("Known", clean(&how)));
    }
    for AnnotationDto { key, value } in &cluster.annotations {
        pairs.push(("Annotation", clean(&format!("{key}: {value}"))));
    }
    if !cluster.admitted {
        let line = "no: it is watched and probed, and no answer has it".to_owned();
        pairs.push(("Admitted", line));
    }
    if let Some(leaving) = &cluster.leaving {
        let mut line = format!(
            "{}, {} since {}",
            words::leaving(leaving),
            clean(&leaving.why),
            clean(&leaving.since)
        );
        if leaving.held > 0 {
            line.push_str(&format!(
                "; nothing else has {}",
                join(&leaving.held_services)
            ));
        }
        pairs.push(("Leaving", line));
    }
    if let Some(drain) = &cluster.drain {
        pairs.push(("Drain", drain_line(drain, screen)));
    }
    if let Some(force) = &cluster.force {
        pairs.push(("Force", force_line(force, screen.now)));
    }
    let Some(member) = &cluster.kubernetes else {
        return screen.pairs(&pairs);
    };
    pairs.extend(members::connection(member, screen));
    let mut text = screen.pairs(&pairs);
    text.push('\n');
    text.push_str(&members::kinds(member, screen));
    text
}

/// A service.
pub(super) fn service(service: &ServiceDto, screen: &Screen) -> String {
    let ttl = &service.ttl;
    let shorter = match &ttl.reason {
        Some(reason) => format!(", {} s as configured: {}", ttl.configured, clean(reason)),
        None => String::new(),
    };
    let mut pairs = vec![
        ("Service", clean(&service.key)),
        (
            "State",
            screen.paint(service.state.as_str(), service.state.into()),
        ),
        ("Origin", service.origin.as_str().to_owned()),
        ("Names", join(&service.hostnames)),
        ("Endpoints", by_state(&service.counts)),
        ("Monitor", or_dash(service.monitor.as_deref())),
        ("TTL", format!("{} s{shorter}", ttl.now)),
        (
            "Failover",
            service
                .budget
                .as_ref()
                .map_or_else(|| "-".to_owned(), budget),
        ),
    ];
    pairs.extend(service.policy.iter().map(|step| ("Policy", clean(step))));
    let refused = service.refused.iter();
    pairs.extend(refused.map(|refusal| {
        let words = format!("{} ({}): {}", refusal.place, refusal.source, refusal.reason);
        ("Refused", screen.paint(&clean(&words), Tone::Bad))
    }));
    let owners = service.owners.iter();
    pairs.extend(owners.map(|owner| {
        let words = format!("{}: namespace {}", owner.name, owner.namespace);
        ("Owner", clean(&words))
    }));
    let conflicts = service.conflicts.iter();
    pairs.extend(conflicts.map(|conflict| {
        let overruled = join(&conflict.overruled);
        let words = format!("{}: most say otherwise than {overruled}", conflict.key);
        ("Conflict", screen.paint(&clean(&words), Tone::Doubtful))
    }));
    let drains = service.drains.iter();
    pairs.extend(drains.map(|drain| ("Drain", drain_line(drain, screen))));
    let forces = service.forces.iter();
    pairs.extend(forces.map(|force| ("Force", force_line(force, screen.now))));
    let mut text = screen.pairs(&pairs);
    text.push('\n');
    text.push_str(&shares(service, screen));
    text.push('\n');
    text.push_str(&lists::endpoints(&service.endpoints, screen));
    if !service.objects.is_empty() {
        text.push('\n');
        text.push_str(&members::objects(&service.objects, screen));
    }
    if !service.history.is_empty() {
        let history: &[EventDto] = &service.history;
        text.push('\n');
        text.push_str(&lists::events(&whole(history), screen));
    }
    text
}

/// Makes a page of a whole list.
fn whole<T: Clone>(items: &[T]) -> Page<T> {
    Page {
        items: items.to_vec(),
        total: items.len() as u64,
        next: None,
    }
}

/// Which cluster gets what share, and whose clients.
fn shares(service: &ServiceDto, screen: &Screen) -> String {
    let mut table = Table::new(
        screen,
        &[
            Left("CLUSTER"),
            Left("STATE"),
            Right("ANSWERS"),
            Left("CLIENTS FROM"),
        ],
        &[],
    );
    for share in &service.clusters {
        let places = service.places.iter();
        let mut from: Vec<String> = places
            .filter(|place| place.cluster.as_ref() == Some(&share.cluster))
            .map(|place| place.country.clone())
            .collect();
        if !screen.wide && from.len() > 12 {
            let more = from.len() - 10;
            from.truncate(10);
            from.push(format!("and {more} more"));
        }
        let expected = share.share.map(|share| share * 100.0);
        table.row(
            [
                (&share.cluster).into(),
                lists::state(share.state),
                measure(expected, "%").into(),
                join(&from).into(),
            ],
            || [],
        );
    }
    table.draw("no clusters")
}

/// How long a failure can last.
fn budget(budget: &BudgetDto) -> String {
    let ms = lists::milliseconds;
    format!(
        "at most {}: detect {}, agree {}, publish {}, TTL {}",
        ms(budget.total_ms),
        ms(budget.detect_ms),
        ms(budget.agree_ms),
        ms(budget.publish_ms),
        ms(budget.ttl_ms)
    )
}

/// A drain in one line.
pub(super) fn drain_line(drain: &DrainDto, screen: &Screen) -> String {
    let state = words::drain_state(screen.now, drain);
    format!(
        "{}: {} · {}",
        words::target(&drain.target),
        screen.paint(&state, drain.state.into()),
        words::change(screen.now, &drain.created)
    )
}

/// A force in one line.
pub(super) fn force_line(force: &ForceDto, now: Timestamp) -> String {
    format!(
        "{}: {}, ends {} · {}",
        words::target(&force.target),
        words::verdict(force.verdict),
        lists::ends(now, force.expires.as_deref()),
        words::change(now, &force.created)
    )
}

/// A drain.
pub(in crate::app) fn drain(drain: &DrainDto, screen: &Screen) -> String {
    let now = screen.now;
    let state = words::drain_state(now, drain);
    let mut pairs = vec![
        ("Drained", words::target(&drain.target)),
        ("State", screen.paint(&state, drain.state.into())),
        (
            "Safe to stop",
            screen.paint(
                yes(drain.safe_to_stop),
                if drain.safe_to_stop {
                    Tone::Good
                } else {
                    Tone::Doubtful
                },
            ),
        ),
    ];
    pairs.extend(
        drain
            .waiting_for
            .iter()
            .map(|what| ("Waiting for", clean(what))),
    );
    if !drain.held_services.is_empty() {
        pairs.push(("Held by", join(&drain.held_services)));
    }
    pairs.push(("Announced", words::change(now, &drain.created)));
    pairs.push(("Begins", when(now, &drain.starts)));
    pairs.push(("Ends", lists::ends(now, drain.expires.as_deref())));
    if let Some(ended) = &drain.ended {
        pairs.push(("Ended", words::change(now, ended)));
    }
    pairs.push(("Id", clean(&drain.id)));
    let mut text = screen.pairs(&pairs);
    text.push('\n');
    text.push_str(&drain_nodes(&drain.nodes, screen));
    text
}

/// Each node's word about a drain.
fn drain_nodes(nodes: &[NodeDrainDto], screen: &Screen) -> String {
    let mut table = Table::new(
        screen,
        &[
            Left("NODE"),
            Left("IN FORCE"),
            Left("HEARD"),
            Right("LAST GIVEN"),
            Right("TTL"),
            Right("LEFT"),
            Right("HELD"),
            Left("ERROR"),
        ],
        &[],
    );
    for node in nodes {
        let heard = match (node.own, node.heard_ms_ago) {
            (true, _) => "itself".to_owned(),
            (false, Some(ms)) => format!("{} ago", span(ms / 1_000)),
            (false, None) => "never".to_owned(),
        };
        let seconds = |number: Option<f64>| measure(number.map(f64::ceil), "s");
        let given = node
            .last_given_seconds_ago
            .map(|_| seconds(node.last_given_seconds_ago));
        table.row(
            [
                (&node.node).into(),
                Cell::toned(yes(node.in_force), Tone::of_truth(node.in_force)),
                heard.into(),
                given
                    .map_or_else(|| "-".to_owned(), |given| format!("{given} ago"))
                    .into(),
                format!("{} s", node.ttl).into(),
                seconds(node.remaining_seconds).into(),
                count(node.held).into(),
                or_dash(node.error.as_deref()).into(),
            ],
            || [],
        );
    }
    table.draw("no nodes")
}

/// A force.
pub(in crate::app) fn force(force: &ForceDto, screen: &Screen) -> String {
    let now = screen.now;
    let verdict = words::verdict(force.verdict);
    let mut pairs = vec![
        ("Forced", words::target(&force.target)),
        ("To", screen.paint(verdict, Tone::of_verdict(verdict))),
        ("Active", yes(force.active).to_owned()),
        (
            "Nodes",
            format!("{}/{}", force.acknowledged, force.expected),
        ),
    ];
    if !force.missing.is_empty() {
        let missing = join(&force.missing);
        pairs.push(("Missing", screen.paint(&missing, Tone::Bad)));
    }
    pairs.push(("Set", words::change(now, &force.created)));
    pairs.push(("Ends", lists::ends(now, force.expires.as_deref())));
    if let Some(ended) = &force.ended {
        pairs.push(("Ended", words::change(now, ended)));
    }
    pairs.push(("Id", clean(&force.id)));
    screen.pairs(&pairs)
}

/// A zone.
pub(super) fn zone(zone: &ZoneDto, screen: &Screen) -> String {
    let mut pairs = vec![
        ("Zone", clean(&zone.name)),
        ("Serial", zone.serial.to_string()),
        ("Name servers", join(&zone.nameservers)),
        ("Names made", join(&zone.name_forms)),
        ("Static names", count(zone.names)),
        ("TTL", format!("{} s", zone.ttl)),
        ("Negative TTL", format!("{} s", zone.negative_ttl)),
    ];
    if let Some(federation) = &zone.federation_name {
        pairs.push(("Federation", clean(federation)));
    }
    let Some(delegation) = &zone.delegation else {
        pairs.push(("Delegation", "not looked up yet".to_owned()));
        return screen.pairs(&pairs);
    };
    let fine = if delegation.ok {
        "as it should be"
    } else {
        "at fault"
    };
    let fine = screen.paint(fine, Tone::of_truth(delegation.ok));
    let checked = when(screen.now, &delegation.checked);
    pairs.push(("Delegation", format!("{fine}, looked up {checked}")));
    let faults = delegation.faults.iter();
    pairs.extend(faults.map(|fault| ("Fault", screen.paint(&clean(fault), Tone::Bad))));
    if !delegation.ok {
        let wanted = delegation.wanted.iter();
        pairs.extend(wanted.map(|record| ("Wanted", clean(record))));
        let found = delegation.found.iter();
        pairs.extend(found.map(|record| ("Found", clean(record))));
    }
    let mut text = screen.pairs(&pairs);
    text.push('\n');
    text.push_str(&servers(delegation, screen));
    text
}

/// The zone's servers, as they answer.
fn servers(delegation: &DelegationDto, screen: &Screen) -> String {
    let mut table = Table::new(
        screen,
        &[
            Left("NAME SERVER"),
            Left("ADDRESS"),
            Right("SERIAL"),
            Left("FAULT"),
        ],
        &[],
    );
    for server in &delegation.servers {
        let fault = server.fault.as_deref();
        table.row(
            [
                (&server.name).into(),
                (&server.address).into(),
                or_dash(server.serial.map(|serial| serial.to_string()).as_deref()).into(),
                Cell::toned(
                    or_dash(fault),
                    if fault.is_some() {
                        Tone::Bad
                    } else {
                        Tone::Plain
                    },
                ),
            ],
            || [],
        );
    }
    table.draw("no name servers were asked")
}
