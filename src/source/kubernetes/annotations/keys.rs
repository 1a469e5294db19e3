//! The table of keys.

use std::time::Duration;

use super::grammar::{self, Said};
use super::{CheckKind, PREFIX, Service};
use crate::model::{FederationName, Steer, Ttl, Weight};

/// On whose word a key counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The cluster's own object, else the hub's.
    Shard,
    /// The hub's object, else what most members say.
    Name,
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name after the prefix.
    pub name: &'static str,
    /// Other names that say the same.
    pub aliases: &'static [&'static str],
    /// On whose word it counts.
    pub level: Level,
    /// How it is written.
    pub grammar: &'static str,
    /// What holds where nobody says anything.
    pub default: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    /// Reads a value.
    pub(super) read: fn(&str, &mut Service) -> Said<()>,
}

/// Keys that are known and do nothing yet: an object that relies on one must hear of it.
const LATER: &[&str] = &[
    "affinity",
    "alternates",
    "capacity",
    "failback",
    "flatten",
    "geo-tag",
    "health-check-body",
    "health-check-grpc-service",
    "health-check-headers-secret",
    "health-check-quorum",
    "hostname-source",
    "hub-health",
    "locality",
    "record-types",
    "service-health-policy",
    "set-identifier",
    "shared",
    "spill",
    "tiers-from",
];

/// Lists the keys that work, as the reference does.
#[must_use]
pub fn keys() -> &'static [Key] {
    KEYS
}

/// Finds a key by one of its names.
pub(super) fn find(word: &str) -> Said<&'static Key> {
    let is_it = |key: &&Key| key.name == word || key.aliases.contains(&word);
    KEYS.iter().find(is_it).ok_or_else(|| {
        if LATER.contains(&word) {
            "not supported yet".to_owned()
        } else {
            format!("there is no key `{PREFIX}{word}`")
        }
    })
}

/// Begins a table entry of a key about a name.
const fn key(
    (name, level): (&'static str, Level),
    (grammar, default): (&'static str, &'static str),
    about: &'static str,
    read: fn(&str, &mut Service) -> Said<()>,
) -> Key {
    Key {
        name,
        aliases: &[],
        level,
        grammar,
        default,
        about,
        read,
    }
}

/// Adds other names.
const fn also(key: Key, aliases: &'static [&'static str]) -> Key {
    Key { aliases, ..key }
}

/// The words of `steer`, those of k8gb too. `failover` is proximity with tiers required.
const STEERS: &[(&str, (Steer, bool))] = &[
    (Steer::Proximity.as_str(), (Steer::Proximity, false)),
    (Steer::Weighted.as_str(), (Steer::Weighted, false)),
    (Steer::RoundRobin.as_str(), (Steer::RoundRobin, false)),
    (Steer::All.as_str(), (Steer::All, false)),
    ("failover", (Steer::Proximity, true)),
    ("geoip", (Steer::Proximity, false)),
    ("geo", (Steer::Proximity, false)),
    ("nearest", (Steer::Proximity, false)),
];

const CHECKS: &[(&str, CheckKind)] = &[
    ("none", CheckKind::None),
    ("tcp", CheckKind::Tcp),
    ("http", CheckKind::Http),
    ("https", CheckKind::Https),
    ("endpoints", CheckKind::Endpoints),
];

const WEIGHTS_FROM: &[(&str, bool)] = &[("none", false), ("endpoints", true)];

const METHODS: &[(&str, bool)] = &[("GET", false), ("HEAD", true)];

const HOUR: Duration = Duration::from_secs(3600);

const KEYS: &[Key] = &[
    key(
        ("enabled", Level::Name),
        ("BOOL", "as `hostname` and the mode say"),
        "Serves the object, or does not.",
        |text, said| {
            said.enabled = Some(grammar::boolean(text)?);
            Ok(())
        },
    ),
    key(
        ("class", Level::Name),
        ("`[a-z0-9-]{1,63}`", "`meridian`"),
        "Names the instances that it is for; others pass it over.",
        |text, said| {
            let is_class = (1..=63).contains(&text.len())
                && text.bytes().all(|octet| {
                    octet.is_ascii_lowercase() || octet.is_ascii_digit() || octet == b'-'
                });
            if !is_class {
                return Err("1 to 63 lower-case letters, digits and hyphens are wanted".to_owned());
            }
            said.class = Some(text.into());
            Ok(())
        },
    ),
    key(
        ("hostname", Level::Name),
        (
            "host names between commas, at most 32; a leftmost `*.` is a wildcard",
            "hosts of the Ingress or Route; none for a Service",
        ),
        "The names that are answered.",
        |text, said| {
            said.hostnames = Some(grammar::hostnames(text)?);
            Ok(())
        },
    ),
    key(
        ("federation-name", Level::Name),
        (
            "a label: letters, digits and `-`",
            "`federationName` of the zone",
        ),
        "The federation in a Service’s names of KubeFed: `<service>.<namespace>.<federation>.svc` in zones with `names: [kubefed]`.",
        |text, said| {
            let name = text.parse::<FederationName>();
            said.name.federation = Some(name.map_err(|error| error.to_string())?);
            Ok(())
        },
    ),
    key(
        ("clusterset-name", Level::Name),
        ("BOOL", "`false`"),
        "Gives a Service the name `<service>.<namespace>.svc`, and its named ports SRV below it, in zones with `names: [clusterset]`.",
        |text, said| {
            said.name.in_cluster_set = Some(grammar::boolean(text)?);
            Ok(())
        },
    ),
    also(
        key(
            ("steer", Level::Name),
            (
                "`proximity`, `weighted`, `roundRobin`, `all` or `failover`; k8gb’s `geoip`, `geo` and `nearest` are `proximity`",
                "`proximity`",
            ),
            "How the best tier is used.",
            |text, said| {
                let (steer, needs_tiers) = grammar::word(text, STEERS)?;
                (said.name.steer, said.needs_tiers) = (Some(steer), needs_tiers);
                Ok(())
            },
        ),
        &["policy"],
    ),
    key(
        ("weight", Level::Shard),
        ("0..65535", "1"),
        "The weight of this cluster’s endpoints; 0 is no new traffic.",
        |text, said| {
            said.weight = Some(Weight(grammar::number(text, 0, u16::MAX)?));
            Ok(())
        },
    ),
    key(
        ("weights", Level::Name),
        ("`CLUSTERS=0..65535` between commas", "–"),
        "Weights by cluster; the first match wins, what matches nothing has 0.",
        |text, said| {
            let pairs = grammar::by_cluster(text, 0, u16::MAX)?;
            said.name.weights = Some(
                pairs
                    .into_iter()
                    .map(|(selector, weight)| (selector, Weight(weight)))
                    .collect(),
            );
            Ok(())
        },
    ),
    key(
        ("weights-from", Level::Name),
        ("`none` or `endpoints`", "`none`"),
        "`endpoints`: a cluster’s weight times its ready endpoints; `weights` go before it.",
        |text, said| {
            said.name.weighs_endpoints = Some(match text {
                "hub" | "replicas" | "capacity" => return Err("not supported yet".to_owned()),
                _ => grammar::word(text, WEIGHTS_FROM)?,
            });
            Ok(())
        },
    ),
    also(
        key(
            ("tiers", Level::Name),
            (
                "sets of clusters between commas; a set is selectors between `|`",
                "one tier",
            ),
            "A tier is used while nothing before it is up.",
            |text, said| {
                said.name.tiers = Some(grammar::tiers(text)?);
                Ok(())
            },
        ),
        &["failover-order"],
    ),
    key(
        ("bias", Level::Name),
        ("`CLUSTERS=-99..99` between commas", "–"),
        "Makes clusters nearer or farther than they are.",
        |text, said| {
            said.name.bias = Some(grammar::by_cluster(text, -99, 99)?);
            Ok(())
        },
    ),
    key(
        ("maps", Level::Name),
        ("`CLIENTS->CLUSTERS` between semicolons", "–"),
        "Says for some clients which clusters come first.",
        |text, said| {
            said.name.maps = Some(grammar::maps(text)?);
            Ok(())
        },
    ),
    also(
        key(
            ("fence", Level::Name),
            ("`CLIENTS->CLUSTERS` between semicolons", "none"),
            "Where clients may be sent; the first match wins, whoever matches nothing gets nothing. An object whose fence cannot be read, or names a country or group that there is not, is not served.",
            |text, said| {
                said.name.fence = Some(grammar::fence(text)?);
                Ok(())
            },
        ),
        &["geo-fence"],
    ),
    key(
        ("fence-answer", Level::Name),
        (
            "addresses between commas, or a host name",
            "NODATA with Extended DNS Error 18",
        ),
        "What clients get that the fence leaves nothing.",
        |text, said| {
            said.name.fence_answer = Some(grammar::answer(text)?);
            Ok(())
        },
    ),
    key(
        ("fallback", Level::Name),
        ("addresses between commas, or a host name", "–"),
        "What is answered when nothing is up.",
        |text, said| {
            said.name.fallback = Some(grammar::answer(text)?);
            Ok(())
        },
    ),
    key(
        ("ttl", Level::Name),
        (
            "a duration up to 24 h; 0 is the default",
            "that of the zone",
        ),
        "How long answers may be kept.",
        |text, said| {
            let ttl = grammar::duration_within(text, Duration::ZERO, HOUR * 24)?;
            if ttl.subsec_nanos() != 0 {
                return Err("whole seconds are wanted".to_owned());
            }
            let seconds = u32::try_from(ttl.as_secs()).unwrap_or(u32::MAX);
            said.name.ttl = Ttl::new(seconds).filter(|ttl| ttl.seconds() > 0);
            Ok(())
        },
    ),
    key(
        ("answers", Level::Name),
        ("1..32", "8"),
        "Addresses of one family in an answer, at most.",
        |text, said| {
            said.name.answers = Some(grammar::number(text, 1, 32)?);
            Ok(())
        },
    ),
    key(
        ("panic", Level::Name),
        ("a share from 0 to 1", "0"),
        "Below this share of endpoints that are up, health is ignored for the name.",
        |text, said| {
            said.name.panic = Some(grammar::share(text)?);
            Ok(())
        },
    ),
    key(
        ("target", Level::Shard),
        (
            "addresses and host names between commas",
            "those of the status",
        ),
        "Where clients are sent in place of what the status says.",
        |text, said| {
            said.targets = Some(grammar::targets(text)?);
            Ok(())
        },
    ),
    key(
        ("clients", Level::Shard),
        ("prefixes between commas", "everyone"),
        "Only senders in these networks get this cluster’s endpoints.",
        |text, said| {
            said.clients = Some(grammar::prefixes(text)?);
            Ok(())
        },
    ),
    key(
        ("drain", Level::Shard),
        (
            "BOOL, a moment (RFC 3339), `MOMENT/MOMENT` or `MOMENT/DURATION`",
            "`false`",
        ),
        "From then on no new answer names this cluster’s endpoints.",
        |text, said| {
            said.drain = Some(grammar::drain(text)?);
            Ok(())
        },
    ),
    key(
        ("min-ready-endpoints", Level::Shard),
        ("a number, or `1%`..`100%`", "1"),
        "Ready endpoints that must stand behind it.",
        |text, said| {
            said.min_ready = Some(grammar::min_ready(text)?);
            Ok(())
        },
    ),
    key(
        ("health-check", Level::Shard),
        (
            "`none`, `tcp`, `http`, `https` or `endpoints`",
            "`tcp` beside readiness; `http` where a path is given",
        ),
        "What is probed.",
        |text, said| {
            said.checks.kind = Some(match text {
                "tls" | "grpc" | "dns" => return Err("not supported yet".to_owned()),
                _ => grammar::word(text, CHECKS)?,
            });
            Ok(())
        },
    ),
    key(
        ("health-check-port", Level::Shard),
        ("1..65535, or the name of a port", "the first port"),
        "Where it is probed.",
        |text, said| {
            said.checks.port = Some(grammar::port(text)?);
            Ok(())
        },
    ),
    key(
        ("health-check-path", Level::Shard),
        ("begins with `/`, at most 1024 characters", "`/`"),
        "What is asked for.",
        |text, said| {
            said.checks.path = Some(grammar::path(text)?);
            Ok(())
        },
    ),
    key(
        ("health-check-host", Level::Shard),
        ("a host name", "the first host name"),
        "The Host header, and the name in TLS.",
        |text, said| {
            said.checks.host = Some(
                grammar::hostname(text)?
                    .to_string()
                    .trim_end_matches('.')
                    .into(),
            );
            Ok(())
        },
    ),
    key(
        ("health-check-method", Level::Shard),
        ("`GET` or `HEAD`", "`GET`"),
        "How it is asked for.",
        |text, said| {
            said.checks.head = Some(grammar::word(text, METHODS)?);
            Ok(())
        },
    ),
    key(
        ("health-check-expect", Level::Shard),
        (
            "codes and ranges between commas, such as `200-399,401`",
            "`200-399`",
        ),
        "The codes that mean well.",
        |text, said| {
            said.checks.expect = Some(grammar::statuses(text)?);
            Ok(())
        },
    ),
    key(
        ("health-check-interval", Level::Shard),
        ("100 ms to 1 h", "2 s"),
        "From one probe to the next.",
        |text, said| {
            said.checks.interval = Some(grammar::duration_within(
                text,
                Duration::from_millis(100),
                HOUR,
            )?);
            Ok(())
        },
    ),
    key(
        ("health-check-timeout", Level::Shard),
        ("10 ms to 10 s, the interval at most", "1 s"),
        "A probe that takes longer has failed.",
        |text, said| {
            said.checks.timeout = Some(grammar::duration_within(
                text,
                Duration::from_millis(10),
                HOUR,
            )?);
            Ok(())
        },
    ),
    key(
        ("health-check-unhealthy-threshold", Level::Shard),
        ("1..20", "2"),
        "Failures in a row that make it Down.",
        |text, said| {
            said.checks.fall = Some(grammar::number(text, 1, 20)?);
            Ok(())
        },
    ),
    key(
        ("health-check-healthy-threshold", Level::Shard),
        ("1..20", "2"),
        "Successes in a row that make it Up.",
        |text, said| {
            said.checks.rise = Some(grammar::number(text, 1, 20)?);
            Ok(())
        },
    ),
    key(
        ("health-check-tls", Level::Shard),
        (
            "`verify`, `skip`, or `pin:` with the SHA-256 of the certificate",
            "`verify`",
        ),
        "How far certificates are trusted.",
        |text, said| {
            said.checks.tls = Some(grammar::tls(text)?);
            Ok(())
        },
    ),
];
