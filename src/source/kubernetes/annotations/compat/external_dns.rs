//! ExternalDNS: `external-dns.kubernetes.io/`, and `external-dns.alpha.kubernetes.io/` before it was renamed.

use super::{TheirKey, as_ours, later};
use crate::model::Weight;
use crate::source::kubernetes::annotations::grammar;

/// The controller that ExternalDNS answers to by default.
const CONTROLLER: &str = "dns-controller";

/// Its keys. Those of single providers are passed over.
pub(super) const KEYS: &[TheirKey] = &[
    TheirKey {
        names: &[
            "external-dns.kubernetes.io/hostname",
            "external-dns.alpha.kubernetes.io/hostname",
        ],
        ours: Some("hostname"),
        grammar: "host names between commas",
        read: |text, said| as_ours("hostname", text, said),
    },
    TheirKey {
        names: &[
            "external-dns.kubernetes.io/ttl",
            "external-dns.alpha.kubernetes.io/ttl",
        ],
        ours: Some("ttl"),
        grammar: "seconds, or a duration such as `1m30s`; 0 is the default",
        read: |text, said| as_ours("ttl", text, said),
    },
    TheirKey {
        names: &[
            "external-dns.kubernetes.io/target",
            "external-dns.alpha.kubernetes.io/target",
        ],
        ours: Some("target"),
        grammar: "addresses and host names between commas",
        read: |text, said| as_ours("target", text, said),
    },
    TheirKey {
        names: &[
            "external-dns.kubernetes.io/controller",
            "external-dns.alpha.kubernetes.io/controller",
        ],
        ours: Some("enabled"),
        grammar: "`dns-controller`; anything else is `false`, unless `class` or `hostname` of ours is said",
        read: |text, said| {
            if text != CONTROLLER {
                said.enabled = Some(false);
            }
            Ok(())
        },
    },
    TheirKey {
        names: &[
            "external-dns.kubernetes.io/aws-weight",
            "external-dns.alpha.kubernetes.io/aws-weight",
        ],
        ours: Some("weight"),
        grammar: "0..255",
        read: |text, said| {
            said.weight = Some(Weight(grammar::number(text, 0, 255)?));
            Ok(())
        },
    },
    unbuilt(&[
        "external-dns.kubernetes.io/set-identifier",
        "external-dns.alpha.kubernetes.io/set-identifier",
    ]),
    unbuilt(&[
        "external-dns.kubernetes.io/ingress-hostname-source",
        "external-dns.alpha.kubernetes.io/ingress-hostname-source",
    ]),
    unbuilt(&[
        "external-dns.kubernetes.io/gateway-hostname-source",
        "external-dns.alpha.kubernetes.io/gateway-hostname-source",
    ]),
    unbuilt(&[
        "external-dns.kubernetes.io/aws-failover",
        "external-dns.alpha.kubernetes.io/aws-failover",
    ]),
    unbuilt(&[
        "external-dns.kubernetes.io/aws-region",
        "external-dns.alpha.kubernetes.io/aws-region",
    ]),
    unbuilt(&[
        "external-dns.kubernetes.io/aws-geolocation-continent-code",
        "external-dns.alpha.kubernetes.io/aws-geolocation-continent-code",
    ]),
    unbuilt(&[
        "external-dns.kubernetes.io/aws-geolocation-country-code",
        "external-dns.alpha.kubernetes.io/aws-geolocation-country-code",
    ]),
    unbuilt(&[
        "external-dns.kubernetes.io/aws-geolocation-subdivision-code",
        "external-dns.alpha.kubernetes.io/aws-geolocation-subdivision-code",
    ]),
];

/// Makes the entry of a key that is known and does nothing yet.
const fn unbuilt(names: &'static [&'static str]) -> TheirKey {
    TheirKey {
        names,
        ours: None,
        grammar: "–",
        read: |_, _| later(),
    }
}
