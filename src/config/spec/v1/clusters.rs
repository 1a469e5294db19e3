//! Clusters: where they are, and how those that are watched are reached.

use super::{TEXTS, shape};
use crate::config::spec::shape::{Form, Shape, optional, required};

pub(crate) static CLUSTER: Shape = shape(
    "a cluster",
    &[
        required("name", Form::Text, "its name, as Kubernetes spells names"),
        optional(
            "region",
            Form::Text,
            "the cloud region; with `provider` it gives the location",
        ),
        optional("provider", Form::Text, "the cloud"),
        optional("zones", TEXTS, "availability zones"),
        optional(
            "tags",
            TEXTS,
            "words of its own that selectors may name, such as `eu`: letters, digits and hyphens",
        ),
        optional("location", Form::Map(&LOCATION), "where it is"),
        optional(
            "cost",
            Form::Number(0.0, 40_000.0),
            "kilometers added to every distance; default 0",
        ),
        optional(
            "kubeconfig",
            Form::Map(&KUBECONFIG),
            "how its API server is reached: the cluster is watched, and its Nodes tell the place that is not written here",
        ),
        optional(
            "inCluster",
            Form::Boolean,
            "it is the cluster that this runs in, reached by the service account of the pod; not beside `kubeconfig`; default: false",
        ),
    ],
);

pub(crate) static LOCATION: Shape = shape(
    "a location",
    &[
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
        optional(
            "country",
            Form::Text,
            "an ISO 3166-1 code; alone it gives the center of the country",
        ),
        optional(
            "continent",
            Form::Text,
            "AF, AN, AS, EU, NA, OC or SA; default: the country's",
        ),
    ],
);

pub(crate) static KUBECONFIG: Shape = shape(
    "`kubeconfig`",
    &[
        required(
            "file",
            Form::Text,
            "a kubeconfig file, relative to this file",
        ),
        optional(
            "context",
            Form::Text,
            "the name of one of its contexts; default: its `current-context`",
        ),
    ],
);

pub(crate) static SECRETS: Shape = shape(
    "`secrets`",
    &[
        optional(
            "cluster",
            Form::Text,
            "the cluster of `clusters` whose API server has them",
        ),
        optional(
            "kubeconfig",
            Form::Map(&KUBECONFIG),
            "how that API server is reached, where it is none of `clusters`",
        ),
        optional(
            "inCluster",
            Form::Boolean,
            "it is that of the cluster that this runs in; default: false",
        ),
        required("namespace", Form::Text, "the namespace that has them"),
        optional(
            "selector",
            Form::Text,
            "which of its Secrets, by their labels, as Kubernetes writes it; default: meridian-dns.io/cluster=true",
        ),
        optional(
            "key",
            Form::Text,
            "the key that has the kubeconfig, the Secret's name being that of the cluster; `*`: each key is the name of a cluster, as in Istio's; default: kubeconfig",
        ),
        optional(
            "nameLabel",
            Form::Text,
            "the label that has the cluster's name, in the place of the Secret's name",
        ),
    ],
);

/// Words of `clustersFrom[].admit`.
pub(crate) const ADMIT: &[&str] = &["serve", "observe"];

pub(crate) static CLUSTER_SOURCE: Shape = shape(
    "a source of clusters",
    &[
        optional(
            "directory",
            Form::Text,
            "a directory of kubeconfig files, relative to this file: each is a cluster of its name",
        ),
        optional(
            "secrets",
            Form::Map(&SECRETS),
            "Secrets with kubeconfigs, in one namespace: each is a cluster; not beside `directory`",
        ),
        optional(
            "admit",
            Form::Word(ADMIT),
            "serve: its clusters are answered with at once; observe: they are watched and probed until `clusters` names them; default: serve",
        ),
        optional(
            "exec",
            TEXTS,
            "absolute paths of the programs that these kubeconfigs may run for credentials; default: none",
        ),
    ],
);
