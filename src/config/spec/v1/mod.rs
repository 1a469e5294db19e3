//! Version 1 of the configuration: every key of the contract, in its order.
//!
//! A key is added here and read in `validate`; a test tries every key of this table against the readers.

mod clusters;
mod kubernetes;
mod peers;
mod resolver;
mod services;

pub(crate) use clusters::{ADMIT, CLUSTER, CLUSTER_SOURCE, KUBECONFIG, LOCATION, SECRETS};
pub(crate) use kubernetes::{
    CLUSTER_SET, COMPAT, GRANT, KUBEFED, KUBERNETES, LEAST_INTERVAL, LEAST_TTL, LIMITS,
    MASS_ACTIONS, MASS_DELETION, NAME_FORM, NAME_FORMS, PRIVATE_ADDRESSES, WRITE_BACKS,
};
pub(crate) use peers::PEER;
pub(crate) use resolver::RESOLVER;
pub(crate) use services::{
    ANSWER, ENDPOINT, FENCE_RULE, HTTP, HTTPS, MAP_ENTRY, MONITOR, NONE, POLICY, SERVICE, STEER,
    TCP_CHECK, WEIGHTS_FROM,
};

use super::shape::{Form, Key, Shape, later, optional, required};
use services::MONITOR_FORM;

const TEXTS: Form = Form::List(&Form::Text);
const NAMES: Form = Form::List(&Form::Name);
const ADDRESSES: Form = Form::List(&Form::Address);
const SOCKETS: Form = Form::List(&Form::Socket);
const PREFIXES: Form = Form::List(&Form::Prefix);

const fn shape(what: &'static str, keys: &'static [Key]) -> Shape {
    Shape {
        what,
        keys,
        may_be_blank: false,
    }
}

/// The whole file.
pub(crate) static FILE: Shape = Shape {
    what: "the configuration",
    keys: &[
        required("version", Form::Integer(1, 1), "1"),
        optional("node", Form::Map(&NODE), "this node"),
        optional("dns", Form::Map(&DNS), "how DNS is served"),
        optional(
            "zones",
            Form::List(&Form::Map(&ZONE)),
            "the zones served; the longest zone has a name",
        ),
        optional("geoip", Form::Map(&GEOIP), "where clients are"),
        optional(
            "groups",
            Form::ByName(&TEXTS),
            "groups of country codes, beside the built-in EU-27, EEA, EFTA and GDPR",
        ),
        optional(
            "clusters",
            Form::List(&Form::Map(&CLUSTER)),
            "the clusters that endpoints lie in",
        ),
        optional(
            "clustersFrom",
            Form::List(&Form::Map(&CLUSTER_SOURCE)),
            "where more clusters come from, without an edit of this file",
        ),
        later("federation"),
        optional(
            "kubernetes",
            Form::Map(&KUBERNETES),
            "how objects of clusters with `kubeconfig` or `inCluster` are read",
        ),
        optional(
            "defaults",
            Form::Map(&DEFAULTS),
            "what services do not say themselves",
        ),
        optional(
            "services",
            Form::List(&Form::Map(&SERVICE)),
            "the steered services",
        ),
        optional("probes", Form::Map(&PROBES), "bounds of probing"),
        optional(
            "resolver",
            Form::Map(&RESOLVER),
            "who is asked for load balancers that are host names",
        ),
        optional(
            "admin",
            Form::Map(&ADMIN),
            "the dashboard, its API, livez, readyz and metrics",
        ),
        optional(
            "metrics",
            Form::Map(&METRICS),
            "livez, readyz and metrics alone",
        ),
        optional(
            "peers",
            Form::List(&Form::Map(&PEER)),
            "the other nodes, and perhaps this one too",
        ),
        optional(
            "queryLog",
            Form::Map(&QUERY_LOG),
            "a log of some of the queries; default: none",
        ),
        optional(
            "telemetry",
            Form::Map(&TELEMETRY),
            "traces of what this node does beside answering; default: none",
        ),
        later("quorum"),
    ],
    may_be_blank: true,
};

pub(crate) static NODE: Shape = shape(
    "`node`",
    &[
        optional(
            "name",
            Form::Text,
            "the vantage point's name; default: the host name",
        ),
        optional("location", Form::Map(&POINT), "where the node is"),
        optional(
            "stateDirectory",
            Form::Text,
            "where the last good state is kept, relative to this file; default: /var/lib/meridian; \"\" keeps nothing",
        ),
    ],
);

pub(crate) static POINT: Shape = shape(
    "a point",
    &[
        required(
            "latitude",
            Form::Number(-90.0, 90.0),
            "decimal degrees north",
        ),
        required(
            "longitude",
            Form::Number(-180.0, 180.0),
            "decimal degrees east",
        ),
    ],
);

pub(crate) static DNS: Shape = shape(
    "`dns`",
    &[
        optional(
            "listen",
            SOCKETS,
            "addresses with ports, for UDP and TCP; default: 0.0.0.0:53 and [::]:53",
        ),
        later("tls"),
        later("https"),
        later("quic"),
        optional(
            "workers",
            Form::Integer(0, 1024),
            "UDP workers per address; default 0: one per core",
        ),
        optional(
            "identity",
            Form::Text,
            "NSID, at most 128 printable characters; default: none is sent",
        ),
        optional("ecs", Form::Map(&ECS), "EDNS Client Subnet"),
        optional("proxyProtocol", Form::Map(&PROXY), "PROXY v2"),
        optional("tcp", Form::Map(&TCP), "bounds of TCP"),
        later("cookies"),
        later("rateLimit"),
    ],
);

pub(crate) static ECS: Shape = shape(
    "`ecs`",
    &[optional(
        "trust",
        Form::Any(&[Form::Word(&["all", "none"]), PREFIXES]),
        "whose client subnets are believed: all, none, or prefixes of resolvers; default: all",
    )],
);

pub(crate) static PROXY: Shape = shape(
    "`proxyProtocol`",
    &[optional(
        "from",
        PREFIXES,
        "senders whose packets and connections begin with a PROXY v2 header; default: none",
    )],
);

pub(crate) static TCP: Shape = shape(
    "`tcp`",
    &[
        optional(
            "connections",
            Form::Integer(1, 1_000_000),
            "connections at once; default 4096",
        ),
        optional(
            "perClient",
            Form::Integer(1, 1_000_000),
            "connections at once of one client; default 64",
        ),
        optional(
            "idle",
            Form::Duration,
            "an idle connection is closed after this, 100ms to 1h; default 10s",
        ),
        optional(
            "write",
            Form::Duration,
            "a reply not taken is given up after this, 100ms to 1h; default 5s",
        ),
    ],
);

pub(crate) static ZONE: Shape = shape(
    "a zone",
    &[
        required("name", Form::Name, "the apex"),
        optional(
            "nameservers",
            Form::List(&Form::Map(&NAMESERVER)),
            "needed unless `file` has NS records",
        ),
        optional(
            "contact",
            Form::Text,
            "SOA RNAME, as hostmaster.example.com or hostmaster@example.com",
        ),
        optional("soa", Form::Map(&SOA), "numbers of the SOA record"),
        optional(
            "nsTtl",
            Form::Duration,
            "TTL of NS records and glue; default 3600",
        ),
        optional(
            "ttl",
            Form::Duration,
            "TTL of steered names, 1s to 1d; default 30",
        ),
        optional(
            "negativeTtl",
            Form::Duration,
            "TTL of NXDOMAIN and NODATA, at most 1d; default 30",
        ),
        optional(
            "file",
            Form::Text,
            "static records: an RFC 1035 master file, relative to this file",
        ),
        optional(
            "names",
            Form::List(&Form::Word(NAME_FORMS)),
            "names made of every Kubernetes service; kubefed: of a federation, with its regions and zones; clusterset: of services that ask for it; default: \"{service}.{namespace}\"; []: only those that they ask for",
        ),
        optional(
            "federationName",
            Form::Text,
            "the federation in names of KubeFed, a label; default: only services that name theirs have such names",
        ),
        optional(
            "grants",
            Form::List(&Form::Map(&GRANT)),
            "which namespaces of Kubernetes may have which names; default: each those below `{namespace}.` and the zone",
        ),
        optional(
            "privateAddresses",
            Form::Word(PRIVATE_ADDRESSES),
            "who is answered with private addresses that come from Kubernetes; default: clients: the senders that the object lists",
        ),
        later("fence"),
        optional(
            "acme",
            Form::Map(&ACME),
            "where `_acme-challenge` of steered names is answered; default: nowhere but here, by `meridian acme set`",
        ),
        later("dnssec"),
        later("primaries"),
        later("transfer"),
    ],
);

pub(crate) static ACME: Shape = shape(
    "`acme`",
    &[required(
        "cname",
        Form::Text,
        "target of the CNAME, such as \"{name}.acme.example.net.\": `{name}` is the steered name without the zone's",
    )],
);

pub(crate) static NAMESERVER: Shape = shape(
    "a name server",
    &[
        required("name", Form::Name, "its host name"),
        optional(
            "addresses",
            ADDRESSES,
            "needed when its name lies in the zone",
        ),
    ],
);

pub(crate) static SOA: Shape = shape(
    "`soa`",
    &[
        optional(
            "ttl",
            Form::Duration,
            "TTL of the SOA record itself; default 3600",
        ),
        optional("refresh", Form::Duration, "default 1h"),
        optional("retry", Form::Duration, "default 10m"),
        optional("expire", Form::Duration, "default 2w"),
    ],
);

pub(crate) static GEOIP: Shape = shape(
    "`geoip`",
    &[
        optional(
            "databases",
            TEXTS,
            "MMDB files, relative to this file; default: the embedded country database",
        ),
        optional(
            "overrides",
            Form::List(&Form::Map(&OVERRIDE)),
            "prefixes that the operator knows better",
        ),
    ],
);

pub(crate) static OVERRIDE: Shape = shape(
    "an override",
    &[
        required("prefix", Form::Prefix, "the network"),
        optional("cluster", Form::Text, "clients are inside this cluster"),
        optional("country", Form::Text, "an ISO 3166-1 code"),
        optional("continent", Form::Text, "AF, AN, AS, EU, NA, OC or SA"),
        optional("subdivision", Form::Text, "an ISO 3166-2 code"),
        optional(
            "latitude",
            Form::Number(-90.0, 90.0),
            "decimal degrees north",
        ),
        optional(
            "longitude",
            Form::Number(-180.0, 180.0),
            "decimal degrees east",
        ),
    ],
);

pub(crate) static DEFAULTS: Shape = shape(
    "`defaults`",
    &[
        optional(
            "policy",
            Form::Map(&POLICY),
            "keys of policies that services do not write",
        ),
        optional(
            "monitor",
            MONITOR_FORM,
            "keys of monitors that services do not write",
        ),
    ],
);

pub(crate) static PROBES: Shape = shape(
    "`probes`",
    &[
        optional(
            "allow",
            PREFIXES,
            "prefixes that targets of tenants may lie in; loopback, link-local and metadata addresses open to prefixes within their range only; default: none",
        ),
        optional(
            "perTarget",
            Form::Integer(1, 1000),
            "probes at once against one address, operators' and tenants' apart; default 5",
        ),
        optional(
            "concurrency",
            Form::Integer(1, 65_536),
            "probes at once, three quarters of them tenants' at most; default 512",
        ),
        optional(
            "references",
            Form::Nothing,
            "targets that tell whether this node itself is cut off; not supported yet",
        ),
    ],
);

pub(crate) static ADMIN: Shape = shape(
    "`admin`",
    &[
        optional(
            "listen",
            SOCKETS,
            "addresses with ports; beyond loopback only with `tls` and with `tokens` or `oidc`; default: 127.0.0.1:8053",
        ),
        optional("tls", Form::Map(&ADMIN_TLS), "TLS of every listener"),
        optional(
            "anonymous",
            Form::Word(ANONYMOUS),
            "what those on this machine may who show nothing, on loopback listeners only; default: viewer",
        ),
        optional(
            "tokens",
            Form::List(&Form::Map(&TOKEN)),
            "who may do what by a bearer token",
        ),
        optional(
            "oidc",
            Form::Map(&OIDC),
            "bearer tokens of an OpenID Connect provider",
        ),
        optional(
            "hosts",
            TEXTS,
            "further names that browsers may call the dashboard by, without port",
        ),
    ],
);

/// Words of `anonymous`.
pub(crate) const ANONYMOUS: &[&str] = &["viewer", "none"];

/// Words of a token's `role`.
pub(crate) const ROLES: &[&str] = &["viewer", "operator", "peer"];

pub(crate) static ADMIN_TLS: Shape = shape(
    "`admin.tls`",
    &[
        required(
            "certificate",
            Form::Text,
            "PEM file with the certificate and those above it, relative to this file; watched",
        ),
        required(
            "key",
            Form::Text,
            "PEM file with the private key, relative to this file; watched",
        ),
    ],
);

pub(crate) static TOKEN: Shape = shape(
    "a token",
    &[
        required(
            "name",
            Form::Text,
            "who uses it, for the audit log; at most 64 characters",
        ),
        required(
            "file",
            Form::Text,
            "file with its hashes, as `meridian token` prints them, relative to this file; watched",
        ),
        required("role", Form::Word(ROLES), "what it may"),
    ],
);

pub(crate) static OIDC: Shape = shape(
    "`admin.oidc`",
    &[
        required(
            "issuer",
            Form::Text,
            "the provider's URL, as in the claim `iss`",
        ),
        required(
            "audience",
            Form::Text,
            "who the tokens are for, as in the claim `aud`",
        ),
        optional(
            "jwksFile",
            Form::Text,
            "file with the provider's keys, relative to this file, watched; default: the provider is asked over HTTPS",
        ),
        optional(
            "ca",
            Form::Text,
            "PEM file with the authorities of the provider's certificate, relative to this file; default: the system's",
        ),
        optional(
            "rolesClaim",
            Form::Text,
            "the claim that has the roles; dots lead into objects; default: roles",
        ),
        optional("viewer", TEXTS, "values of the claim that make a viewer"),
        optional(
            "operator",
            TEXTS,
            "values of the claim that make an operator",
        ),
    ],
);

pub(crate) static METRICS: Shape = shape(
    "`metrics`",
    &[optional(
        "listen",
        SOCKETS,
        "addresses with ports; default: none",
    )],
);

pub(crate) static QUERY_LOG: Shape = shape(
    "`queryLog`",
    &[
        required(
            "file",
            Form::Text,
            "where lines of JSON go, relative to this file; \"-\": standard error",
        ),
        optional(
            "sample",
            Form::Integer(1, 1_000_000_000),
            "one of so many queries is logged; default 1000",
        ),
        optional(
            "prefixV4",
            Form::Integer(0, 32),
            "bits kept of an IPv4 client; default 24",
        ),
        optional(
            "prefixV6",
            Form::Integer(0, 128),
            "bits kept of an IPv6 client; default 48",
        ),
        optional(
            "maxBytes",
            Form::Integer(65_536, 1 << 40),
            "octets at which the file is put aside; default 104857600",
        ),
        optional(
            "keep",
            Form::Integer(1, 100),
            "files put aside that are kept; default 5",
        ),
    ],
);

pub(crate) static TELEMETRY: Shape = shape(
    "`telemetry`",
    &[optional(
        "otlp",
        Form::Map(&OTLP),
        "an OpenTelemetry collector; default: none",
    )],
);

pub(crate) static OTLP: Shape = shape(
    "`otlp`",
    &[
        required(
            "endpoint",
            Form::Text,
            "URL of the collector (OTLP over HTTP), such as http://127.0.0.1:4318",
        ),
        optional(
            "headersFile",
            Form::Text,
            "lines `name: value` sent along, such as a token; relative to this file",
        ),
        optional(
            "sample",
            Form::Number(0.0, 1.0),
            "share of traces sent; default 1",
        ),
    ],
);
