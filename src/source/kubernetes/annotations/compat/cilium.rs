//! Cilium's global services: `service.cilium.io/`, and `io.cilium/` before it.

use super::{TheirKey, as_ours, later};
use crate::source::kubernetes::annotations::grammar;

/// Words of `affinity`.
const AFFINITIES: &[(&str, bool)] = &[("none", true), ("local", false), ("remote", false)];

/// Its keys.
pub(super) const KEYS: &[TheirKey] = &[
    TheirKey {
        names: &["service.cilium.io/global", "io.cilium/global-service"],
        ours: Some("enabled"),
        grammar: "BOOL",
        read: |text, said| as_ours("enabled", text, said),
    },
    TheirKey {
        names: &["service.cilium.io/shared", "io.cilium/shared-service"],
        ours: None,
        grammar: "`true`; `false` is not supported yet",
        read: |text, _| {
            if grammar::boolean(text)? {
                Ok(())
            } else {
                later()
            }
        },
    },
    TheirKey {
        names: &["service.cilium.io/affinity", "io.cilium/service-affinity"],
        ours: None,
        grammar: "`none`; `local` and `remote` are not supported yet",
        read: |text, _| {
            if grammar::word(text, AFFINITIES)? {
                Ok(())
            } else {
                later()
            }
        },
    },
];
