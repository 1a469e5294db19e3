//! The monitor of an object: its annotations over the configuration's `defaults.monitor` over what is usual.

use std::time::Duration;

use super::View;
use super::attached::Attached;
use super::notes::Notes;
use crate::model::{Check, HttpCheck, LowerName, MonitorSpec, Origin, StatusRange};
use crate::source::kubernetes::annotations::{CheckKind, Checks, PortRef};
use crate::source::kubernetes::{Listener, Port, Protocol, Record, Rules};

/// The codes that mean success where nobody says it.
const DEFAULT_EXPECT: StatusRange = StatusRange {
    first: 200,
    last: 399,
};
/// The key that says what is checked.
const KIND: &str = "health-check";
/// The longest timeout that an object may ask for: a target that takes connections and says nothing holds a place of all tenants
/// for so long.
const MOST_TIMEOUT: Duration = Duration::from_secs(10);
const HTTPS: u16 = 443;
const HTTP: u16 = 80;

/// What an object's own annotations say of its monitor: refusals are about them alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saying<'a> {
    /// With those of its Gateways.
    pub(super) checks: &'a Checks,
    /// Without.
    pub(super) own: &'a Checks,
    /// The first host of the object that is no wildcard.
    pub(super) host: Option<&'a LowerName>,
    /// It is its endpoints, which its cluster judges.
    pub(super) is_headless: bool,
}

/// Tells what decides about an object: its own word, else that of the configuration.
pub(super) fn kind(checks: &Checks, rules: &Rules) -> Option<CheckKind> {
    checks.kind.or(rules.checks.kind)
}

/// Makes the monitor of an object; `None`: nothing is probed, and readiness alone counts.
pub(super) fn monitor(
    view: &View<'_>,
    saying: Saying<'_>,
    ports: &Ports<'_>,
    notes: &mut Notes,
) -> Option<MonitorSpec> {
    let own = saying.checks;
    let silent = Checks::default();
    // Defaults are for what listens on TCP at all.
    let below = match ports.first {
        Some(_) => &view.rules.checks,
        None => &silent,
    };
    let is_silent = own.kind.is_none() && own.path.is_none();
    let kind = if saying.is_headless && is_silent {
        Some(CheckKind::Endpoints)
    } else {
        own.kind.or(below.kind)
    };
    if matches!(kind, Some(CheckKind::None | CheckKind::Endpoints)) {
        for key in keys(saying.own).filter(|key| *key != KIND) {
            notes.key(key, "of use for `tcp`, `http` and `https` only");
        }
        return None;
    }
    let path = own.path.as_ref().or(below.path.as_ref());
    let Some((port, is_tls)) = ports.resolve(own.port.as_ref(), below.port.as_ref(), notes) else {
        if own.kind.is_some() || own.path.is_some() {
            let why = "no port that speaks TCP is known: write its number";
            notes.key("health-check-port", why);
        }
        return None;
    };
    let is_https = match kind {
        Some(CheckKind::Https) => Some(true),
        Some(CheckKind::Http) => Some(false),
        None if path.is_some() => Some(is_tls),
        _ => None,
    };
    say_unused(own, is_https, notes);
    let check = match is_https {
        None => Check::connect(port),
        Some(is_https) => {
            let tls = own.tls.or(below.tls).unwrap_or_default();
            let host = own.host.clone().or_else(|| below.host.clone());
            let expect = own.expect.clone().or_else(|| below.expect.clone());
            Check::Http(HttpCheck {
                tls: is_https.then_some(tls),
                port,
                path: path.cloned().unwrap_or_else(|| "/".into()),
                host: host.or_else(|| Some(saying.host?.to_string().into())),
                head: own.head.or(below.head).unwrap_or_default(),
                expect: expect.unwrap_or_else(|| vec![DEFAULT_EXPECT]),
            })
        }
    };
    let (interval, timeout) = times(own, view.rules, notes);
    Some(MonitorSpec {
        check,
        interval,
        timeout,
        rise: own.rise.or(below.rise).unwrap_or(MonitorSpec::COUNT),
        fall: own.fall.or(below.fall).unwrap_or(MonitorSpec::COUNT),
        origin: Origin::Tenant,
    })
}

/// Lists the keys that are there.
fn keys(checks: &Checks) -> impl Iterator<Item = &'static str> {
    // All fields are named, so that none is forgotten.
    let Checks {
        kind,
        port,
        path,
        host,
        head,
        expect,
        interval,
        timeout,
        fall,
        rise,
        tls,
    } = checks;
    let all = [
        (KIND, kind.is_some()),
        ("health-check-port", port.is_some()),
        ("health-check-path", path.is_some()),
        ("health-check-host", host.is_some()),
        ("health-check-method", head.is_some()),
        ("health-check-expect", expect.is_some()),
        ("health-check-interval", interval.is_some()),
        ("health-check-timeout", timeout.is_some()),
        ("health-check-unhealthy-threshold", fall.is_some()),
        ("health-check-healthy-threshold", rise.is_some()),
        ("health-check-tls", tls.is_some()),
    ];
    let there = all.into_iter().filter(|(_, is_there)| *is_there);
    there.map(|(key, _)| key)
}

/// Says which keys have no use for the check that was chosen: nothing is accepted and ignored.
fn say_unused(own: &Checks, is_https: Option<bool>, notes: &mut Notes) {
    let is_tcp = is_https.is_none();
    for (key, is_unused) in [
        ("health-check-path", is_tcp && own.path.is_some()),
        ("health-check-host", is_tcp && own.host.is_some()),
        ("health-check-method", is_tcp && own.head.is_some()),
        ("health-check-expect", is_tcp && own.expect.is_some()),
    ] {
        if is_unused {
            notes.key(key, "of use for `http` and `https` only");
        }
    }
    if is_https != Some(true) && own.tls.is_some() {
        notes.key("health-check-tls", "of use for `https` only");
    }
}

/// Gives interval and timeout within their bounds.
fn times(own: &Checks, rules: &Rules, notes: &mut Notes) -> (Duration, Duration) {
    let below = &rules.checks;
    let interval = own
        .interval
        .or(below.interval)
        .unwrap_or(MonitorSpec::INTERVAL);
    let least = rules.min_interval;
    if own.interval.is_some() && interval < least {
        let reason = format_args!("raised to {least:?}, the least allowed");
        notes.key("health-check-interval", reason);
    }
    let interval = interval.max(least);
    let timeout = own
        .timeout
        .or(below.timeout)
        .unwrap_or(MonitorSpec::TIMEOUT);
    if own.timeout.is_some() && timeout > interval.min(MOST_TIMEOUT) {
        let reason = if interval <= MOST_TIMEOUT {
            format!("lowered to {interval:?}, the interval")
        } else {
            format!("lowered to {MOST_TIMEOUT:?}, the most allowed")
        };
        notes.key("health-check-timeout", reason);
        return (interval, interval.min(MOST_TIMEOUT));
    }
    (interval, timeout.min(interval))
}

/// The ports of an object.
#[derive(Debug, Default)]
pub(super) struct Ports<'a> {
    /// Name, number, protocol.
    all: Vec<(&'a str, u16, Protocol)>,
    /// The port that is checked where nobody says another one; `None`: none speaks TCP.
    first: Option<(u16, bool)>,
}

impl<'a> Ports<'a> {
    /// Lists the ports of an object. Those of a Route are those of the listeners that accept it.
    pub(super) fn of(record: &'a Record, attached: &[Attached<'a>]) -> Self {
        match record {
            Record::Service(service) => {
                let ports = service.ports.iter();
                Self::listed(ports.map(|port| (&*port.name, port.number, port.protocol)))
            }
            Record::Ingress(ingress) => Self {
                all: Vec::new(),
                first: Some(if ingress.has_tls {
                    (HTTPS, true)
                } else {
                    (HTTP, false)
                }),
            },
            Record::Gateway(gateway) => Self::listed(gateway.listeners.iter().map(listened)),
            Record::Route(route) => {
                let listeners = attached
                    .iter()
                    .flat_map(|parent| parent.listeners(route.kind));
                Self::listed(listeners.map(listened))
            }
            Record::Slice(_) | Record::Node(_) => Self::default(),
        }
    }

    /// Takes these ports in place of its own, where there are any: what listens behind a Service may have other numbers.
    pub(super) fn or_those_of(self, ports: impl Iterator<Item = &'a Port>) -> Self {
        let others = Self::listed(ports.map(|port| (&*port.name, port.number, port.protocol)));
        if others.all.is_empty() { self } else { others }
    }

    fn listed(ports: impl Iterator<Item = (&'a str, u16, Protocol)>) -> Self {
        let all: Vec<_> = ports.collect();
        let first = all.iter().find(|(_, _, protocol)| is_tcp(*protocol));
        let first = first.map(|(_, number, protocol)| (*number, is_tls(*number, *protocol)));
        Self { all, first }
    }

    /// Finds the port to check, and whether it speaks TLS: what the object says, else the configuration, else the first one. A
    /// name that the object does not have is passed over, and the object's own is refused.
    fn resolve(
        &self,
        own: Option<&PortRef>,
        below: Option<&PortRef>,
        notes: &mut Notes,
    ) -> Option<(u16, bool)> {
        let named = own.and_then(|port| {
            let found = self.find(port);
            if let (None, PortRef::Name(name)) = (found, port) {
                let reason = format_args!("no port that speaks TCP has the name `{name}`");
                notes.key("health-check-port", reason);
            }
            found
        });
        named.or_else(|| self.find(below?)).or(self.first)
    }

    fn find(&self, port: &PortRef) -> Option<(u16, bool)> {
        let mut tcp = self.all.iter().filter(|(_, _, protocol)| is_tcp(*protocol));
        match port {
            PortRef::Number(number) => {
                let known = tcp.find(|(_, other, _)| other == number);
                let protocol = known.map_or(Protocol::Tcp, |(_, _, protocol)| *protocol);
                Some((*number, is_tls(*number, protocol)))
            }
            PortRef::Name(name) => {
                let (_, number, protocol) = tcp.find(|(other, _, _)| *other == &**name)?;
                Some((*number, is_tls(*number, *protocol)))
            }
        }
    }
}

/// A listener's port goes by the listener's name.
fn listened(listener: &Listener) -> (&str, u16, Protocol) {
    (&listener.name, listener.port.number, listener.port.protocol)
}

fn is_tcp(protocol: Protocol) -> bool {
    matches!(protocol, Protocol::Tcp | Protocol::Http | Protocol::Tls)
}

/// Tells whether a port speaks TLS, by what it says or by its number.
fn is_tls(number: u16, protocol: Protocol) -> bool {
    match protocol {
        Protocol::Tls => true,
        Protocol::Tcp => number == HTTPS,
        Protocol::Http | Protocol::Udp | Protocol::Sctp | Protocol::Other => false,
    }
}
