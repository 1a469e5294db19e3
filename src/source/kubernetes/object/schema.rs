//! Where protobuf has what readers look for: numbers of fields, as `generated.proto` of `k8s.io/api` and `k8s.io/apimachinery`
//! have them (core v1, discovery v1, networking v1). Kubernetes never gives a number to something else.
//!
//! Fields that are not here are passed over.

use crate::source::kubernetes::records::Watched;

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    /// Its number.
    pub(super) number: u32,
    /// Its name in JSON.
    pub(super) name: &'static str,
    /// What it is.
    pub(super) kind: Kind,
}

/// What a field is.
#[derive(Debug)]
pub(super) enum Kind {
    /// A text. Protobuf has an empty one where JSON has none.
    Text,
    /// Yes or no.
    Flag,
    /// A whole number.
    Whole,
    /// A message.
    Message(&'static [Field]),
    /// A message whose fields stand in JSON where it would stand itself.
    Inline(&'static [Field]),
    /// Texts.
    Texts,
    /// Messages.
    Messages(&'static [Field]),
}

/// Names a field.
const fn field(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind }
}

use Kind::{Flag, Inline, Message, Messages, Text, Texts, Whole};

/// LoadBalancerStatus and IngressLoadBalancerStatus, each with entries whose first fields are the same.
const LOAD_BALANCER: &[Field] = &[field(
    1,
    "ingress",
    Messages(&[field(1, "ip", Text), field(2, "hostname", Text)]),
)];

/// Service (core v1).
const SERVICE: &[Field] = &[
    field(
        2,
        "spec",
        Message(&[
            field(
                1,
                "ports",
                Messages(&[
                    field(1, "name", Text),
                    field(2, "protocol", Text),
                    field(3, "port", Whole),
                    field(6, "appProtocol", Text),
                ]),
            ),
            field(3, "clusterIP", Text),
            field(4, "type", Text),
            field(13, "publishNotReadyAddresses", Flag),
        ]),
    ),
    field(
        3,
        "status",
        Message(&[field(1, "loadBalancer", Message(LOAD_BALANCER))]),
    ),
];

/// EndpointSlice (discovery v1).
const ENDPOINT_SLICE: &[Field] = &[
    field(
        2,
        "endpoints",
        Messages(&[
            field(1, "addresses", Texts),
            field(
                2,
                "conditions",
                Message(&[
                    field(1, "ready", Flag),
                    field(2, "serving", Flag),
                    field(3, "terminating", Flag),
                ]),
            ),
            field(3, "hostname", Text),
            field(
                4,
                "targetRef",
                Message(&[field(1, "kind", Text), field(3, "name", Text)]),
            ),
            field(7, "zone", Text),
        ]),
    ),
    field(
        3,
        "ports",
        Messages(&[
            field(1, "name", Text),
            field(2, "protocol", Text),
            field(3, "port", Whole),
            field(4, "appProtocol", Text),
        ]),
    ),
    field(4, "addressType", Text),
];

/// IngressBackend (networking v1). Of a resource it is enough that it is there.
const BACKEND: &[Field] = &[
    field(3, "resource", Message(&[field(2, "kind", Text)])),
    field(4, "service", Message(&[field(1, "name", Text)])),
];

/// Ingress (networking v1).
const INGRESS: &[Field] = &[
    field(
        2,
        "spec",
        Message(&[
            field(1, "defaultBackend", Message(BACKEND)),
            field(2, "tls", Messages(&[field(1, "hosts", Texts)])),
            field(
                3,
                "rules",
                Messages(&[
                    field(1, "host", Text),
                    field(
                        2,
                        "",
                        Inline(&[field(
                            1,
                            "http",
                            Message(&[field(
                                1,
                                "paths",
                                Messages(&[field(2, "backend", Message(BACKEND))]),
                            )]),
                        )]),
                    ),
                ]),
            ),
        ]),
    ),
    field(
        3,
        "status",
        Message(&[field(1, "loadBalancer", Message(LOAD_BALANCER))]),
    ),
];

/// Node (core v1).
const NODE: &[Field] = &[field(2, "spec", Message(&[field(3, "providerID", Text)]))];

/// A kind that may come as protobuf.
#[derive(Clone, Copy, Debug)]
pub(in crate::source::kubernetes) struct Schema(pub(super) &'static [Field]);

impl Schema {
    /// Gives what is known of a kind at a version of its group; `None`: it comes as JSON alone.
    pub(in crate::source::kubernetes) fn of(watched: Watched, version: &str) -> Option<Self> {
        if version != "v1" {
            return None;
        }
        match watched {
            Watched::Services => Some(Self(SERVICE)),
            Watched::EndpointSlices => Some(Self(ENDPOINT_SLICE)),
            Watched::Ingresses => Some(Self(INGRESS)),
            Watched::Nodes => Some(Self(NODE)),
            // Custom resources have no protobuf.
            Watched::Gateways
            | Watched::HttpRoutes
            | Watched::GrpcRoutes
            | Watched::TlsRoutes
            | Watched::TcpRoutes
            | Watched::UdpRoutes => None,
        }
    }
}
