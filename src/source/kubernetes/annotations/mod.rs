//! Annotations of a Service, an Ingress, a Gateway or a Route: `meridian-dns.io/KEY: VALUE`.
//!
//! One table has every key with its grammar, its default, what it does and its reader. A bad value is refused for its key alone: the others
//! apply, and the next level (hub, `defaults`) decides that key. A fence that cannot be read leaves the object unserved: whom it
//! keeps out is not known.

mod cluster;
pub mod compat;
mod grammar;
mod keys;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use jiff::Timestamp;

use super::words::shown;
use crate::inventory::NameKeys;
use crate::model::{LowerName, StatusRange, TlsMode, Weight};

pub use cluster::{ClusterKey, ClusterRead, ClusterSaid, cluster_keys, read_cluster};
pub(super) use grammar::{hostname, hostname_or_wildcard};
pub use keys::{Key, Level, keys};

/// What all keys begin with.
pub const PREFIX: &str = "meridian-dns.io/";
/// Octets of one value, at most.
const MAX_VALUE: usize = 16 * 1024;
/// Refused keys of one object that are kept; the others are counted.
const MAX_REFUSED: usize = 64;

/// What the annotations of one object say; `None` where they say nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Service {
    /// It is to be served, or not, whatever the mode.
    pub enabled: Option<bool>,
    /// The instances it is for.
    pub class: Option<Box<str>>,
    /// Host names, at most 32.
    pub hostnames: Option<Vec<LowerName>>,
    /// What it says of its names. A TTL is absent also where 0 was written, which stands for the default;
    /// [`Read::is_fence_refused`] tells whether a fence was written that could not be read.
    pub name: NameKeys,
    /// `failover` was said: tiers are required.
    pub needs_tiers: bool,
    /// The weight of this cluster's endpoints; 0: no new traffic.
    pub weight: Option<Weight>,
    /// Addresses and host names in place of those of the status.
    pub targets: Option<Vec<Target>>,
    /// Only senders in these prefixes get this cluster's endpoints.
    pub clients: Option<Vec<IpNet>>,
    /// When no new answers name it.
    pub drain: Option<Drain>,
    /// Ready endpoints that must stand behind it.
    pub min_ready: Option<MinReady>,
    /// How it is checked.
    pub checks: Checks,
}

/// Where clients are sent in place of what the status says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// An address.
    Address(IpAddr),
    /// A host name.
    Hostname(LowerName),
}

/// When no new answers name an object's endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// Not at all: said aloud.
    No,
    /// From a moment on, or always; until a moment, or until it is taken away.
    From(Option<Timestamp>, Option<Timestamp>),
}

/// Ready endpoints that must stand behind a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinReady {
    /// So many; 0: none need be.
    Count(u32),
    /// So many of a hundred, 1..=100.
    Percent(u8),
}

/// What a check connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortRef {
    /// A number.
    Number(u16),
    /// The name of one of the object's ports.
    Name(Box<str>),
}

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// Nothing, not even readiness.
    None,
    /// A connection.
    Tcp,
    /// A request in clear text.
    Http,
    /// A request over TLS.
    Https,
    /// Readiness alone.
    Endpoints,
}

/// The keys `health-check…`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checks {
    /// What.
    pub kind: Option<CheckKind>,
    /// Where.
    pub port: Option<PortRef>,
    /// Path and query, begins with `/`.
    pub path: Option<Box<str>>,
    /// Host header and SNI.
    pub host: Option<Box<str>>,
    /// `HEAD` instead of `GET`.
    pub head: Option<bool>,
    /// Codes that mean success; never empty.
    pub expect: Option<Vec<StatusRange>>,
    /// From one to the next, 100 ms..=1 h.
    pub interval: Option<Duration>,
    /// A check that takes longer has failed, 10 ms..=1 h.
    pub timeout: Option<Duration>,
    /// Failures in a row that make it Down, 1..=20.
    pub fall: Option<u8>,
    /// Successes in a row that make it Up, 1..=20.
    pub rise: Option<u8>,
    /// How far certificates are trusted.
    pub tls: Option<TlsMode>,
}

/// A key that was refused: the next level decides it. All three are fit to be shown, at most 256 octets each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The whole key as it was written; [`PREFIX`] alone where the reason is that there are more.
    pub key: Box<str>,
    /// Its value; where that is long, how it begins.
    pub value: Box<str>,
    /// What is wrong, and what would be right.
    pub reason: Box<str>,
}

/// What came of an object's annotations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read {
    /// What they say.
    pub said: Service,
    /// What was refused, in the order of the keys.
    pub refused: Vec<Refused>,
    /// A fence was written that could not be read: the object must not be served.
    pub is_fence_refused: bool,
    /// What the annotations of other programs say, whether they count or not.
    theirs: Vec<compat::Theirs>,
    /// What it says itself, where those of others were laid under it.
    own: Option<Box<compat::Own>>,
}

/// Reads the annotations of one object; those of others are passed over. Of a key written under two of its names, the first in
/// the order of the alphabet counts, and the other is refused.
pub fn read<'a>(annotations: impl IntoIterator<Item = (&'a str, &'a str)>) -> Read {
    let (mut ours, others): (Vec<(&str, &str)>, Vec<_>) = annotations
        .into_iter()
        .partition(|(key, _)| key.starts_with(PREFIX));
    ours.sort_unstable();
    let mut out = Read {
        theirs: compat::read(others.into_iter()),
        ..Read::default()
    };
    let mut seen: Vec<(&'static str, &str)> = Vec::new();
    let mut others = 0_usize;
    for (written, value) in ours {
        let word = written.get(PREFIX.len()..).unwrap_or_default();
        let result = keys::find(word).and_then(|key| {
            let result = match seen.iter().find(|(name, _)| *name == key.name) {
                Some((_, first)) => Err(format!("`{first}` says the same, and counts")),
                None if value.len() > MAX_VALUE => {
                    Err(format!("it has more than {MAX_VALUE} octets"))
                }
                None => (key.read)(value.trim(), &mut out.said),
            };
            // One that is refused says nothing.
            if result.is_ok() {
                seen.push((key.name, written));
            }
            out.is_fence_refused |= key.name == "fence" && result.is_err();
            result
        });
        match result {
            Ok(()) => {}
            Err(reason) if out.refused.len() < MAX_REFUSED => {
                out.refused.push(refused(written, value, &reason));
            }
            Err(_) => others += 1,
        }
    }
    let Checks {
        interval, timeout, ..
    } = out.said.checks;
    if let (Some(interval), Some(timeout)) = (interval, timeout)
        && timeout > interval
    {
        out.said.checks.timeout = None;
        out.refused.push(refused(
            &format!("{PREFIX}health-check-timeout"),
            &format!("{timeout:?}"),
            &format!("it is longer than the interval of {interval:?}"),
        ));
        out.refused.sort_by(|a, b| a.key.cmp(&b.key));
    }
    if others > 0 {
        let reason = format!("{others} more keys were refused");
        out.refused.push(refused(PREFIX, "", &reason));
    }
    out
}

/// Makes a refusal that may be shown.
fn refused(key: &str, value: &str, reason: &str) -> Refused {
    Refused {
        key: shown(key).into(),
        value: shown(value).into(),
        reason: shown(reason).into(),
    }
}
