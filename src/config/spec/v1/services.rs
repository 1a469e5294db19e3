//! Services, policies and monitors.

use super::{ADDRESSES, NAMES, PREFIXES, TEXTS, shape};
use crate::config::spec::shape::{Form, Key, Shape, later, optional, required};

/// Words of `steer`.
pub(crate) const STEER: &[&str] = &["proximity", "weighted", "roundRobin", "all", "failover"];

pub(crate) static SERVICE: Shape = shape(
    "a service",
    &[
        required("namespace", Form::Text, "as Kubernetes spells names"),
        required("name", Form::Text, "as Kubernetes spells names"),
        required(
            "hostnames",
            NAMES,
            "the names it answers; the leftmost label may be `*`",
        ),
        optional("ttl", Form::Duration, "1s to 1d; default: the zone's"),
        optional("policy", Form::Map(&POLICY), "who gets which cluster"),
        optional(
            "monitor",
            MONITOR_FORM,
            "how endpoints are judged; default: not at all",
        ),
        optional(
            "endpoints",
            Form::List(&Form::Map(&ENDPOINT)),
            "where it can be reached",
        ),
    ],
);

pub(crate) static ENDPOINT: Shape = shape(
    "an endpoint",
    &[
        required("cluster", Form::Text, "the name of a cluster"),
        optional("addresses", ADDRESSES, "addresses to answer with"),
        optional(
            "hostname",
            Form::Name,
            "in place of addresses: answered by the addresses that it resolves to",
        ),
        optional(
            "weight",
            Form::Integer(0, 65_535),
            "share among the others; default 1",
        ),
        optional(
            "clients",
            PREFIXES,
            "only for senders in these prefixes, by packet source",
        ),
        later("capacity"),
    ],
);

/// Words of `weightsFrom`.
pub(crate) const WEIGHTS_FROM: &[&str] = &["none", "endpoints"];

pub(crate) static POLICY: Shape = shape(
    "a policy",
    &[
        optional(
            "steer",
            Form::Word(STEER),
            "how the best tier is used; default: proximity. failover: proximity, and tiers are required",
        ),
        optional(
            "tiers",
            Form::List(&TEXTS),
            "sets of clusters; the first that can serve is used",
        ),
        optional(
            "failback",
            Form::Word(&["auto"]),
            "when a better tier that came back is used again; default: auto",
        ),
        optional(
            "weights",
            Form::ByName(&Form::Integer(0, 65_535)),
            "share by cluster or selector; the first match wins, others get 0",
        ),
        optional(
            "weightsFrom",
            Form::Word(WEIGHTS_FROM),
            "endpoints: in `defaults.policy`, for services of Kubernetes: a cluster's weight times its ready endpoints, unless `weights` are listed; default: none",
        ),
        optional(
            "bias",
            Form::ByName(&Form::Integer(-99, 99)),
            "draws clients nearer (above 0) or pushes them away, by cluster or selector",
        ),
        optional(
            "maps",
            Form::List(&Form::Map(&MAP_ENTRY)),
            "clusters by place of the client; the first match wins, before distance",
        ),
        optional(
            "fence",
            Form::List(&Form::Map(&FENCE_RULE)),
            "which clients may be answered with which clusters; the first match wins, no match denies",
        ),
        optional(
            "fenceAnswer",
            Form::Any(&[Form::Name, ADDRESSES, Form::Map(&ANSWER)]),
            "what a client gets whom the fence allows nothing; default: NODATA",
        ),
        later("spill"),
        optional("affinity", Form::Word(&["none"]), "default: none"),
        optional(
            "panic",
            Form::Number(0.0, 1.0),
            "share of endpoints below which health is ignored; default 0",
        ),
        optional(
            "answers",
            Form::Integer(1, 32),
            "addresses per family; default 8",
        ),
        optional("alternates", Form::Integer(0, 0), "default 0"),
        optional(
            "fallback",
            Form::Map(&ANSWER),
            "what is answered when nothing is up; outside every fence",
        ),
        later("shift"),
    ],
);

pub(crate) static ANSWER: Shape = shape(
    "an answer",
    &[
        optional("addresses", ADDRESSES, "addresses; not beside a host name"),
        optional(
            "hostname",
            Form::Name,
            "a host name, answered by the addresses that it resolves to",
        ),
    ],
);

pub(crate) static MAP_ENTRY: Shape = shape(
    "a map entry",
    &[
        optional("continents", TEXTS, "AF, AN, AS, EU, NA, OC or SA"),
        optional("countries", TEXTS, "ISO 3166-1 codes"),
        optional("subdivisions", TEXTS, "ISO 3166-2 codes"),
        optional(
            "asns",
            Form::List(&Form::Integer(0, u32::MAX as i64)),
            "autonomous system numbers",
        ),
        optional("prefixes", PREFIXES, "networks of clients"),
        optional("groups", TEXTS, "groups of countries"),
        required(
            "clusters",
            TEXTS,
            "clusters or selectors, in order of preference",
        ),
    ],
);

pub(crate) static FENCE_RULE: Shape = shape(
    "a rule of a fence",
    &[
        required(
            "clients",
            TEXTS,
            "selectors of clients: `*`, `unknown`, a prefix, or continent:, country:, subdivision:, asn:, group:, cluster:",
        ),
        required("clusters", TEXTS, "clusters or selectors; may be empty"),
    ],
);

/// What `monitor` takes.
pub(super) const MONITOR_FORM: Form = Form::Any(&[Form::Word(&["none"]), Form::Map(&MONITOR)]);

pub(crate) static MONITOR: Shape = shape(
    "a monitor",
    &[
        optional("none", Form::Map(&NONE), "nobody judges the endpoints"),
        optional("http", Form::Map(&HTTP), "an HTTP request"),
        optional("https", Form::Map(&HTTPS), "an HTTP request over TLS"),
        optional("tcp", Form::Map(&TCP_CHECK), "a TCP connection"),
        later("tls"),
        later("grpc"),
        later("dns"),
        later("endpoints"),
        optional(
            "interval",
            Form::Duration,
            "from the start of one probe to the next, 100ms to 1h; default 2s",
        ),
        optional(
            "timeout",
            Form::Duration,
            "at most the interval; default 1s",
        ),
        optional(
            "rise",
            Form::Integer(1, 20),
            "successes in a row that make an endpoint Up; default 2",
        ),
        optional(
            "fall",
            Form::Integer(1, 20),
            "failures in a row that make an endpoint Down; default 2",
        ),
    ],
);

pub(crate) static NONE: Shape = shape("`none`", &[]);

const PORT: Form = Form::Integer(1, 65_535);
const PATH: Key = optional("path", Form::Text, "path and query; default /");
const HOST: Key = optional(
    "host",
    Form::Text,
    "Host header and server name; default: the endpoint's address",
);
const METHOD: Key = optional("method", Form::Word(&["GET", "HEAD"]), "default GET");
const EXPECT: Key = optional(
    "expect",
    Form::Any(&[
        Form::Integer(100, 599),
        Form::Text,
        Form::List(&Form::Any(&[Form::Integer(100, 599), Form::Text])),
    ]),
    "status codes and ranges such as 200-399; default 200-399",
);

pub(crate) static HTTP: Shape = shape(
    "`http`",
    &[
        PATH,
        optional("port", PORT, "default 80"),
        HOST,
        METHOD,
        EXPECT,
        later("body"),
        later("headersSecret"),
    ],
);

pub(crate) static HTTPS: Shape = shape(
    "`https`",
    &[
        PATH,
        optional("port", PORT, "default 443"),
        HOST,
        METHOD,
        EXPECT,
        optional(
            "tls",
            Form::Text,
            "verify, skip, or pin: and the SHA-256 of the certificate; default verify",
        ),
        later("body"),
        later("headersSecret"),
    ],
);

pub(crate) static TCP_CHECK: Shape = shape(
    "`tcp`",
    &[
        required("port", PORT, "the port to connect to"),
        optional(
            "send",
            Form::Text,
            "what is sent first, at most 1024 octets",
        ),
        optional(
            "expect",
            Form::Text,
            "what must come back within the first 4096 octets, at most 1024 octets",
        ),
    ],
);
