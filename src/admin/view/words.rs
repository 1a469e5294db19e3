//! Times, ids and targets as the API writes them.

use std::time::Duration;

use jiff::Timestamp;

use super::ViewError;
use crate::admin::dto::{
    ChangeDto, EventDto, EventKind, HealthState, ProbeDto, Severity, TargetDto, TargetKind,
};
use crate::controller::{Event, Kind, Weightiness};
use crate::health::ProbeError;
use crate::model::{
    Check, EndpointState, IdError, Intent, MonitorSpec, OperatorRecord, OperatorTarget, Said,
    ServiceKey, Target, TlsMode, WallTime,
};

/// Writes a moment in RFC 3339, UTC, with milliseconds.
pub(super) fn time(at: WallTime) -> String {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    let stamp = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
    format!("{stamp:.3}")
}

/// Begins a sentence with what is lower-case.
pub(super) fn sentence(text: &str) -> String {
    let mut all = text.chars();
    let first = all.next().into_iter().flat_map(char::to_uppercase);
    first.chain(all.as_str().chars()).collect()
}

/// Writes a Unix time in seconds.
pub(super) fn unix_time(seconds: u64) -> String {
    time(WallTime(seconds.saturating_mul(1000)))
}

/// Gives milliseconds.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Gives milliseconds with three digits behind the point.
pub(super) fn precise_millis(time: Duration) -> f64 {
    let micros = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
    f64::from(micros) / 1000.0
}

/// Writes who did something.
pub(super) fn change(said: &Said) -> ChangeDto {
    ChangeDto {
        time: time(said.time),
        actor: said.actor.to_string(),
        reason: said.reason.to_string(),
    }
}

/// Says that a record stands in the way of another with other times.
pub(super) fn standing(held: &OperatorRecord) -> String {
    let what = match held.intent {
        Intent::Drain => "a drain",
        Intent::ForceUp => "a force up",
        Intent::ForceDown => "a force down",
        Intent::Challenge => "a challenge",
    };
    let end = held.expires.map_or_else(
        || "until somebody ends it".to_owned(),
        |end| format!("until {}", time(end)),
    );
    let (target, from, id) = (&held.target, time(held.starts), &held.id);
    format!("{what} of {target} stands already, from {from} {end} (id {id}): end it first")
}

/// Writes a target.
pub(super) fn target(target: &OperatorTarget) -> TargetDto {
    TargetDto {
        kind: match target {
            OperatorTarget::Cluster(_) => TargetKind::Cluster,
            OperatorTarget::Service { .. } => TargetKind::Service,
            OperatorTarget::Endpoint { .. } => TargetKind::Endpoint,
            OperatorTarget::Challenge { .. } => {
                unreachable!("what is shown of drains and forces is asked for by intent")
            }
        },
        cluster: target.cluster().map(ToString::to_string),
        service: target.service().map(ToString::to_string),
        address: target.address().map(|address| address.to_string()),
    }
}

/// Reads a target.
///
/// # Errors
/// When something is missing, too much, or no name or address.
pub(super) fn read_target(dto: &TargetDto) -> Result<OperatorTarget, ViewError> {
    let invalid = |text: String| ViewError::Invalid(format!("target: {text}"));
    let cluster = dto.cluster.as_deref().map(str::parse);
    let cluster = cluster
        .transpose()
        .map_err(|error| invalid(format!("cluster: {error}")))?;
    let service = dto.service.as_deref().map(read_key).transpose()?;
    let address = dto.address.as_deref().map(str::parse::<std::net::IpAddr>);
    let address = address
        .transpose()
        .map_err(|_| invalid("address: an IPv4 or IPv6 address is wanted".to_owned()))?;
    match (dto.kind, cluster, service, address) {
        (TargetKind::Cluster, Some(cluster), None, None) => Ok(OperatorTarget::Cluster(cluster)),
        (TargetKind::Service, cluster, Some(service), None) => {
            Ok(OperatorTarget::Service { service, cluster })
        }
        (TargetKind::Endpoint, Some(cluster), service, Some(address)) => {
            Ok(OperatorTarget::Endpoint {
                cluster,
                address: address.to_canonical(),
                service,
            })
        }
        (kind, ..) => Err(invalid(
            match kind {
                TargetKind::Cluster => "a cluster has `cluster` and nothing else",
                TargetKind::Service => "a service has `service`, and perhaps `cluster`",
                TargetKind::Endpoint => {
                    "an endpoint has `cluster` and `address`, and perhaps `service`"
                }
            }
            .to_owned(),
        )),
    }
}

/// Reads the key of a service that is served.
///
/// # Errors
/// When it is not `namespace/name`.
fn read_key(text: &str) -> Result<ServiceKey, ViewError> {
    key_by(text, ServiceKey::new)
}

/// Reads the key of a service as it is shown: it may be one that is observed.
///
/// # Errors
/// When it is not `namespace/name`, nor `namespace/name@observed`.
pub(super) fn read_shown_key(text: &str) -> Result<ServiceKey, ViewError> {
    key_by(text, ServiceKey::shown)
}

fn key_by(
    text: &str,
    make: fn(&str, &str) -> Result<ServiceKey, IdError>,
) -> Result<ServiceKey, ViewError> {
    let parts = text.split_once('/');
    let (namespace, name) = parts.ok_or_else(|| {
        ViewError::Invalid(format!("`{}` is not `namespace/name`", shorten(text)))
    })?;
    make(namespace, name)
        .map_err(|error| ViewError::Invalid(format!("service `{}`: {error}", shorten(text))))
}

/// Cuts what came from outside before it is said back, and escapes control characters.
pub(super) fn shorten(text: &str) -> String {
    let kept: String = text.chars().take(120).collect();
    kept.chars()
        .flat_map(|c| {
            let shown: Vec<char> = if c.is_control() {
                c.escape_default().collect()
            } else {
                vec![c]
            };
            shown
        })
        .collect()
}

/// Writes an event.
pub(super) fn event(event: &Event) -> EventDto {
    EventDto {
        id: event.id,
        time: time(event.time),
        kind: kind(event.kind),
        severity: severity(event.weight),
        cluster: event.clusters.first().cloned(),
        services: event.services.clone(),
        service_count: event.service_count,
        target: event.target.clone(),
        before: event.before.map(|verdict| verdict.to_string()),
        text: event.text.clone(),
    }
}

/// Translates the kind of an event.
pub(super) fn kind(kind: Kind) -> EventKind {
    match kind {
        Kind::Flip => EventKind::Flip,
        Kind::Service => EventKind::Service,
        Kind::Publish => EventKind::Publish,
        Kind::Drain => EventKind::Drain,
        Kind::Force => EventKind::Force,
        Kind::Challenge => EventKind::Challenge,
        Kind::Refusal => EventKind::Refusal,
        Kind::Conflict => EventKind::Conflict,
        Kind::Source => EventKind::Source,
    }
}

/// Translates how much an event matters.
pub(super) fn severity(weight: Weightiness) -> Severity {
    match weight {
        Weightiness::Info => Severity::Info,
        Weightiness::Warning => Severity::Warning,
        Weightiness::Critical => Severity::Critical,
    }
}

/// Names a check: `http GET /healthz`, `tcp`.
pub(super) fn check(spec: &MonitorSpec) -> String {
    match &spec.check {
        Check::Tcp(check) if check.expect.is_empty() => "tcp connect".to_owned(),
        Check::Tcp(_) => "tcp with expected reply".to_owned(),
        Check::Http(check) => {
            let scheme = match check.tls {
                None => "http",
                Some(TlsMode::Verify) => "https",
                Some(TlsMode::Skip) => "https (certificate not checked)",
                Some(TlsMode::Pin(_)) => "https (certificate pinned)",
            };
            let method = if check.head { "HEAD" } else { "GET" };
            let host = check.host.as_deref().map(|host| format!(" at {host}"));
            format!(
                "{scheme} {method} {}{}",
                check.path,
                host.unwrap_or_default()
            )
        }
    }
}

/// Writes a monitor in one sentence.
pub(super) fn monitor(spec: &MonitorSpec) -> String {
    format!(
        "{} on port {} every {}, {} at most; down after {}, up after {}",
        check(spec),
        spec.check.port(),
        duration(spec.interval),
        duration(spec.timeout),
        in_a_row(spec.fall.into(), "failure"),
        in_a_row(spec.rise.into(), "success")
    )
}

/// Writes how many of something in a row.
fn in_a_row(count: u32, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        many if noun.ends_with('s') => format!("{many} {noun}es in a row"),
        many => format!("{many} {noun}s in a row"),
    }
}

/// Writes a duration in its largest whole unit.
pub(super) fn duration(time: Duration) -> String {
    let millis = time.as_millis();
    if millis.is_multiple_of(1000) {
        format!("{} s", millis / 1000)
    } else {
        format!("{millis} ms")
    }
}

/// Writes the last probe.
pub(super) fn probe(last: Result<Duration, ProbeError>) -> ProbeDto {
    match last {
        Ok(took) => ProbeDto {
            ok: true,
            milliseconds: Some(precise_millis(took)),
            error: None,
        },
        Err(error) => ProbeDto {
            ok: false,
            milliseconds: None,
            error: Some(error.to_string()),
        },
    }
}

/// Names a monitor: the same on every node while target and check are the same.
pub(super) fn monitor_id(target: &Target) -> String {
    let key = crate::controller::target_key(target);
    let times = format!(
        "{key} {:?} {:?} {} {}",
        target.spec.interval, target.spec.timeout, target.spec.rise, target.spec.fall
    );
    let mut hash = crate::controller::content_hash(times.as_bytes());
    hash.truncate(16);
    hash
}

/// Gives the state of one endpoint. `judged`: a monitor has said something, which none of a refused target ever has.
pub(super) fn state(state: EndpointState, judged: bool) -> HealthState {
    if !state.is_up() {
        let is_down = state.is_down() || state.is_forced_down();
        if is_down {
            HealthState::Down
        } else {
            HealthState::Unready
        }
    } else if state.is_drained() {
        HealthState::Drained
    } else if judged && !state.is_refused() {
        HealthState::Up
    } else {
        HealthState::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Condition, Forced, Verdict};

    #[test]
    fn times_are_rfc_3339_with_milliseconds() {
        assert_eq!(
            time(WallTime(1_795_219_200_042)),
            "2026-11-21T00:00:00.042Z"
        );
        assert_eq!(unix_time(0), "1970-01-01T00:00:00.000Z");
        assert!(time(WallTime(u64::MAX)).starts_with("9999-"));
    }

    #[test]
    fn a_service_that_is_observed_is_found_by_its_key_and_is_no_target() {
        for text in ["shop/web", "shop/web@observed"] {
            assert_eq!(read_shown_key(text).unwrap().as_str(), text);
        }
        assert!(read_key("shop/web").is_ok() && read_key("shop/web@observed").is_err());
        assert!(read_shown_key("shop/web@other").is_err() && read_shown_key("web").is_err());
    }

    #[test]
    fn a_refused_target_is_never_shown_as_up() {
        use crate::model::{Forced, Verdict};
        let up = EndpointState::UP;
        let refused = up.with_refused(true);
        for (endpoint, judged, shown) in [
            (up, true, HealthState::Up),
            (up, false, HealthState::Unknown),
            (refused, true, HealthState::Unknown),
            (refused, false, HealthState::Unknown),
            (refused.with_drained(true), true, HealthState::Drained),
            (refused.with_forced(Forced::Down), true, HealthState::Down),
            (up.with_verdict(Verdict::Down), true, HealthState::Down),
        ] {
            assert_eq!(state(endpoint, judged), shown, "{endpoint:?}");
        }
    }

    #[test]
    fn what_a_cluster_says_of_its_endpoints_shows() {
        let condition = |is_unready, is_withdrawn| Condition {
            is_unready,
            is_withdrawn,
            is_unproven: false,
        };
        let up = EndpointState::UP;
        let unready = up.with_condition(condition(true, false));
        let withdrawn = up.with_condition(condition(false, true));
        for (endpoint, shown) in [
            (unready, HealthState::Unready),
            (unready.with_verdict(Verdict::Down), HealthState::Down),
            (unready.with_forced(Forced::Down), HealthState::Down),
            (unready.with_forced(Forced::Up), HealthState::Up),
            (
                up.with_condition(condition(true, true)),
                HealthState::Unready,
            ),
            (withdrawn, HealthState::Drained),
            (withdrawn.with_verdict(Verdict::Down), HealthState::Down),
        ] {
            assert_eq!(state(endpoint, true), shown, "{endpoint:?}");
        }
    }

    #[test]
    fn targets_are_read_as_they_are_written() {
        let dto =
            |kind, cluster: Option<&str>, service: Option<&str>, address: Option<&str>| TargetDto {
                kind,
                cluster: cluster.map(Into::into),
                service: service.map(Into::into),
                address: address.map(Into::into),
            };
        for good in [
            dto(TargetKind::Cluster, Some("a"), None, None),
            dto(TargetKind::Service, None, Some("n/s"), None),
            dto(TargetKind::Service, Some("a"), Some("n/s"), None),
            dto(TargetKind::Endpoint, Some("a"), None, Some("192.0.2.1")),
            dto(
                TargetKind::Endpoint,
                Some("a"),
                Some("n/s"),
                Some("2001:db8::1"),
            ),
        ] {
            assert_eq!(target(&read_target(&good).unwrap()), good);
        }
        for bad in [
            dto(TargetKind::Cluster, None, None, None),
            dto(TargetKind::Cluster, Some("a"), Some("n/s"), None),
            dto(TargetKind::Cluster, Some("A b"), None, None),
            dto(TargetKind::Service, None, Some("n"), None),
            dto(TargetKind::Endpoint, Some("a"), None, Some("x")),
            dto(TargetKind::Endpoint, None, None, Some("192.0.2.1")),
        ] {
            assert!(
                matches!(read_target(&bad), Err(ViewError::Invalid(_))),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn what_is_said_back_is_cut_and_escaped() {
        assert_eq!(shorten("a\nb\u{7f}"), "a\\nb\\u{7f}");
        assert_eq!(shorten(&"x".repeat(500)).len(), 120);
    }
}
