//! Names and objects that come from live Kubernetes clusters.

use super::{NAMES, TEXTS, shape};
use crate::config::spec::shape::{Form, Shape, optional, required};

/// The one form of `names` that is built.
pub(crate) const NAME_FORM: &str = "{service}.{namespace}";

/// Names of a federation of KubeFed, and of its regions and zones.
pub(crate) const KUBEFED: &str = "kubefed";

/// Names of a cluster set (KEP-1645).
pub(crate) const CLUSTER_SET: &str = "clusterset";

/// All forms of names.
pub(crate) const NAME_FORMS: &[&str] = &[NAME_FORM, KUBEFED, CLUSTER_SET];

/// Words of `privateAddresses`.
pub(crate) const PRIVATE_ADDRESSES: &[&str] = &["clients", "all", "none"];

pub(crate) static GRANT: Shape = shape(
    "a grant",
    &[
        optional(
            "clusters",
            TEXTS,
            "names of clusters; default: [\"*\"], all of them",
        ),
        required(
            "namespaces",
            TEXTS,
            "names of namespaces; [\"*\"]: all of them. Of several, the first to ask for a name has it",
        ),
        required(
            "hostnames",
            NAMES,
            "names in the zone; one that begins with `*.` grants all below the rest, at any depth",
        ),
    ],
);

pub(crate) static KUBERNETES: Shape = shape(
    "`kubernetes`",
    &[
        optional(
            "optIn",
            Form::Boolean,
            "only objects that ask for it by an annotation are served; default: true",
        ),
        optional(
            "class",
            Form::Text,
            "the class of objects that this node serves, 1 to 63 lower-case letters, digits and hyphens; default: meridian, that of objects without a class",
        ),
        optional(
            "writeBack",
            Form::Word(WRITE_BACKS),
            "events: Kubernetes Events on the objects that they concern, by one node at a time; none: nothing is written into clusters; default: none",
        ),
        optional(
            "eventsNamespace",
            Form::Text,
            "the namespace of the Lease `meridian-events` in every member, by which nodes agree on who writes; default: meridian",
        ),
        optional(
            "compat",
            Form::List(&Form::Word(COMPAT)),
            "other programs whose annotations are read where ours say nothing; default: none",
        ),
        optional(
            "staleAfter",
            Form::Duration,
            "a cluster whose API server has not answered for so long is stale, 1s to 1h; default 15s",
        ),
        optional(
            "maxAge",
            Form::Duration,
            "addresses that neither the API of their cluster nor a probe confirmed for longer are used after all others, 1m to 30d; default 24h",
        ),
        optional(
            "massDeletion",
            Form::Map(&MASS_DELETION),
            "when most objects of a cluster are gone at once",
        ),
        optional(
            "limits",
            Form::Map(&LIMITS),
            "bounds of what annotations ask for",
        ),
    ],
);

/// Words of `writeBack`.
pub(crate) const WRITE_BACKS: &[&str] = &["none", "events"];

/// Words of `compat`.
pub(crate) const COMPAT: &[&str] = &["external-dns", "k8gb", "cilium"];

/// Words of `massDeletion.action`.
pub(crate) const MASS_ACTIONS: &[&str] = &["hold", "release"];

pub(crate) static MASS_DELETION: Shape = shape(
    "`massDeletion`",
    &[
        optional(
            "action",
            Form::Word(MASS_ACTIONS),
            "hold: they are served on for a while, and an alarm is given; release: they go at once; default: hold",
        ),
        optional(
            "share",
            Form::Number(0.0, 1.0),
            "the share of the cluster's served objects from which on it is a mass; default 0.5",
        ),
        optional(
            "atLeast",
            Form::Integer(1, 1_000_000),
            "and so many at least; default 10",
        ),
        optional(
            "for",
            Form::Duration,
            "how long they are held, 1s to 7d; those still gone then are let go; default 5m",
        ),
    ],
);

pub(crate) static LIMITS: Shape = shape(
    "`limits`",
    &[
        optional("ttl", Form::Map(&LEAST_TTL), "TTLs of answers"),
        optional(
            "interval",
            Form::Map(&LEAST_INTERVAL),
            "intervals of health checks",
        ),
        optional(
            "monitorsPerNamespace",
            Form::Integer(0, 1_000_000),
            "objects of one namespace that may be probed; those beyond have readiness alone; default 200",
        ),
    ],
);

pub(crate) static LEAST_TTL: Shape = shape(
    "`limits.ttl`",
    &[optional(
        "min",
        Form::Duration,
        "shorter ones are raised to it, 1s to 1d; default 1s",
    )],
);

pub(crate) static LEAST_INTERVAL: Shape = shape(
    "`limits.interval`",
    &[optional(
        "min",
        Form::Duration,
        "shorter ones are raised to it, 100ms to 1h; default 500ms",
    )],
);
