//! Decisions and places in words that an operator understands at night. No secrets: names of clusters, counts and distances.

use std::fmt::Write;

use crate::answer::witness::Decided;
use crate::geo::Located;
use crate::model::{AreaIndex, Location, NameRef, RecordType, ServiceIndex, ZoneIndex, counted};
use crate::snapshot::{Area, Snapshot, Step};
use crate::steering::{Basis, Chosen, Level, Ranked};
use crate::zone::Lookup;

/// Says where a client is.
pub(super) fn place(located: &Located<'_>, databases: usize) -> String {
    let scope = located.scope.0;
    let Some(location) = located.location.filter(|location| !location.is_unknown()) else {
        return format!(
            "Place: unknown; no override and none of {} knows it (the hole around it is a /{scope})",
            counted(databases, "database")
        );
    };
    format!(
        "Place: {} (the databases and overrides decide by the first {scope} bits)",
        parts(location)
    )
}

/// Lists what is known of a place.
fn parts(location: &Location) -> String {
    let mut parts = Vec::new();
    if let Some(cluster) = &location.cluster {
        parts.push(format!("inside cluster {cluster} by an override"));
    }
    if let Some(country) = location.country {
        parts.push(format!("country {country}"));
    }
    if let Some(subdivision) = location.subdivision {
        parts.push(format!("subdivision {subdivision}"));
    }
    if let Some(continent) = location.continent {
        parts.push(format!("continent {continent}"));
    }
    if let Some(asn) = location.asn {
        parts.push(format!("AS{asn}"));
    }
    parts.push(match location.coordinates {
        Some(point) => format!(
            "latitude {:.2}, longitude {:.2}",
            point.latitude(),
            point.longitude()
        ),
        None => "no coordinates".to_owned(),
    });
    parts.join(", ")
}

/// Says what stands at a name.
pub(super) fn lookup(snapshot: &Snapshot, name: NameRef<'_>, found: &Lookup<'_>) -> String {
    let zone = |index: &ZoneIndex| {
        let apex = snapshot
            .zones()
            .get(*index)
            .map(|zone| zone.apex().to_string());
        apex.unwrap_or_else(|| "?".to_owned())
    };
    let by_wildcard = |wildcard: &bool| if *wildcard { ", by a wildcard" } else { "" };
    match found {
        Lookup::NotOurs => format!("{name}: in none of our zones"),
        Lookup::Rrset {
            zone: index,
            rrset,
            wildcard,
        } => format!(
            "{name}: zone {} has {}{}",
            zone(index),
            counted(rrset.count(), &format!("static {} record", rrset.rtype())),
            by_wildcard(wildcard)
        ),
        Lookup::Cname { zone: index, .. } => {
            format!("{name}: zone {} has a CNAME, followed", zone(index))
        }
        Lookup::Dname { zone: index, .. } => format!(
            "{name}: lies below a DNAME of zone {}, rewritten",
            zone(index)
        ),
        Lookup::Referral { zone: index, .. } => {
            format!(
                "{name}: zone {} delegates it to other name servers",
                zone(index)
            )
        }
        Lookup::Ds { zone: index, rrset } => format!(
            "{name}: zone {} is the parent at this cut and has {}",
            zone(index),
            if rrset.is_some() { "DS" } else { "no DS" }
        ),
        Lookup::Steered {
            zone: index,
            wildcard,
            ..
        } => format!(
            "{name}: a steered name of zone {}{}",
            zone(index),
            by_wildcard(wildcard)
        ),
        Lookup::Any { zone: index, .. } => format!(
            "{name}: exists in zone {}; ANY is answered with one HINFO (RFC 8482)",
            zone(index)
        ),
        Lookup::Challenge { zone: index, rrset } => format!(
            "{name}: where the challenge of a steered name of zone {} is looked for; {}",
            zone(index),
            match rrset {
                Some(rrset) => counted(rrset.count(), "challenge") + " set by `meridian acme set`",
                None => "a CNAME by the zone's `acme`".to_owned(),
            }
        ),
        Lookup::Level {
            zone: index, area, ..
        } => at_level(snapshot, name, &zone(index), *area),
        Lookup::Port { zone: index, .. } | Lookup::Host { zone: index, .. } => {
            in_cluster_set(snapshot, name, &zone(index), found)
        }
        Lookup::NoData { zone: index } => format!(
            "{name}: exists in zone {}, without records of this type",
            zone(index)
        ),
        Lookup::NxDomain { zone: index } => format!(
            "{name}: does not exist in zone {}, nor anything below it",
            zone(index)
        ),
    }
}

/// Says why the policy chose as it did.
pub(super) fn reason(decided: &Decided<'_>) -> String {
    let reason = &decided.decision.reason;
    let clusters = decided.ask.service.pools.cluster_count();
    let denied = match decided.decision.chosen {
        Chosen::Denied | Chosen::FenceAnswer(_) => Some(format!(
            "the fence leaves this client none of the service's {}",
            counted(clusters, "cluster")
        )),
        _ if clusters == 0 => Some("the service has no endpoint".to_owned()),
        Chosen::Nothing => {
            Some("no endpoint with an address of this family is for this client".to_owned())
        }
        _ => None,
    };
    if let Some(denied) = denied {
        return format!("Why: {denied}");
    }
    let policy = &decided.steering.policy;
    let tiers = policy.tier_count();
    let basis = match reason.basis {
        Basis::Fixed if clusters == 1 => "there is one cluster".to_owned(),
        Basis::Fixed if policy.reads_client() => "the fence leaves one cluster".to_owned(),
        Basis::Fixed => "the policy does not look at the client".to_owned(),
        // Counted from 0, as paths of keys in the configuration are.
        Basis::Map(entry) => format!("maps[{entry}] gives the order"),
        Basis::Distance => "the nearest comes first".to_owned(),
        Basis::Inside => "an override puts the client inside a cluster".to_owned(),
        Basis::UnknownPlace => {
            let among = if tiers > 1 { "" } else { " over all clusters" };
            format!(
                "the place is unknown and no entry of maps is for everyone: drawn by weight{among}"
            )
        }
        Basis::Weight => "drawn by weight".to_owned(),
        Basis::Turn => "clusters take turns".to_owned(),
        Basis::Everything => "every usable endpoint is answered".to_owned(),
        Basis::Named => "the endpoint was asked for by its name".to_owned(),
    };
    let level = match decided.decision.chosen {
        Chosen::Fallback(_) => {
            "; no endpoint for this client is up, and `fallback` comes before those that are down"
        }
        Chosen::OtherFamily => "",
        _ if reason.panic => "; too few endpoints are up (`panic`): health is ignored",
        _ => match reason.level {
            Level::Up => "",
            Level::Panic => "; too few endpoints are up (`panic`): health is ignored",
            Level::Drained => "; nothing else is up: drained endpoints are used",
            Level::AsIfUp => "; nothing is up: endpoints are used as if they were",
            Level::ForcedDown => "; nothing but endpoints that are forced down is left",
        },
    };
    let skipped = match (decided.decision.chosen, reason.skipped) {
        (Chosen::Fallback(_) | Chosen::OtherFamily, _) | (_, 0) => String::new(),
        (_, count) => format!(
            "; {} passed over, with nothing usable",
            counted(usize::from(count), "cluster")
        ),
    };
    let ordered = match (tiers, policy.clusters_in_tier(reason.tier)) {
        (0 | 1, _) => basis,
        _ if reason.basis == Basis::Named => basis,
        (_, 1) => format!("tier {} is in use, one cluster", u16::from(reason.tier) + 1),
        _ => format!(
            "tier {} is in use, and within it {basis}",
            u16::from(reason.tier) + 1
        ),
    };
    format!("Why: {ordered}{skipped}{level}")
}

/// Says that a name is one of a port or of an endpoint.
fn in_cluster_set(
    snapshot: &Snapshot,
    name: NameRef<'_>,
    zone: &str,
    found: &Lookup<'_>,
) -> String {
    let what = format!("of a service in the cluster set of zone {zone}");
    match found {
        Lookup::Port {
            service, number, ..
        } => {
            let targets = port_targets(snapshot, *service);
            format!("{name}: a port {what}, {number}: {targets}")
        }
        _ => format!("{name}: the name of an endpoint {what}"),
    }
}

/// Says what the SRV of a service's ports lead to.
fn port_targets(snapshot: &Snapshot, service: ServiceIndex) -> &'static str {
    let slot = snapshot.service(service);
    let extras = slot.and_then(|slot| slot.extras.as_deref());
    if extras.is_some_and(|extras| extras.hosts.is_some()) {
        "one SRV with the name of each endpoint, at its own number"
    } else {
        "one SRV with the service's name"
    }
}

/// Says that a name is one of a level.
fn at_level(snapshot: &Snapshot, name: NameRef<'_>, zone: &str, area: AreaIndex) -> String {
    let area = snapshot.area(area).map_or("?", Area::what);
    format!("{name}: a level of a federated service of zone {zone}: {area}")
}

/// Says which level of a federated service decided, and which were passed over.
pub(super) fn level(area: &Area, by: Option<usize>) -> String {
    let passed = area.steps().iter().take(by.unwrap_or(usize::MAX));
    let passed: Vec<&str> = passed.map(|step| &*step.what).collect();
    let decided = by.and_then(|position| area.steps().get(position));
    let decided = decided.map_or("the whole federation", |step: &Step| &step.what);
    let mut why = Vec::new();
    if !area.is_own(0) {
        why.push(format!("no cluster is in {} any more", area.what()));
    }
    if !passed.is_empty() {
        why.push(format!("nothing is usable in {}", passed.join(", nor in ")));
    }
    if why.is_empty() {
        format!("Level: {decided} decides, as asked")
    } else {
        format!("Level: {decided} decides; {}", why.join(", and "))
    }
}

/// Gives an RCODE's mnemonic (IANA registry of DNS RCODEs).
pub(super) fn rcode(code: u16) -> String {
    match code {
        0 => "NOERROR",
        1 => "FORMERR",
        2 => "SERVFAIL",
        3 => "NXDOMAIN",
        4 => "NOTIMP",
        5 => "REFUSED",
        6 => "YXDOMAIN",
        9 => "NOTAUTH",
        16 => "BADVERS",
        other => return format!("RCODE{other}"),
    }
    .to_owned()
}

/// Says how a cluster stands for a client: its place in the order of use, its tier, its distance.
pub(super) fn ranked(name: &str, place: usize, ranked: &Ranked) -> String {
    let mut text = format!("Cluster {name}: ");
    let _ = match ranked.distance_km {
        Some(km) => write!(text, "{km:.0} km"),
        None => write!(text, "distance unknown"),
    };
    if let Some((km, plain)) = ranked.effective_km.zip(ranked.distance_km)
        && (km - plain).abs() >= 0.5
    {
        let _ = write!(text, ", counted as {km:.0} km with bias and cost");
    }
    let _ = match ranked.group {
        Some(group) => write!(
            text,
            ", {} in the order of use (group {}, tier {})",
            place + 1,
            group + 1,
            ranked.tier + 1
        ),
        None => write!(text, ", denied by the fence"),
    };
    text
}

/// Names the family's type for words.
pub(super) fn family(qtype: RecordType) -> &'static str {
    if qtype == RecordType::AAAA {
        "IPv6"
    } else {
        "IPv4"
    }
}
