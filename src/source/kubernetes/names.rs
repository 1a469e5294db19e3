//! Names of objects as Kubernetes has them. What is no such name goes no further than the door.

use std::sync::Arc;

use super::fields::refused;
use super::object::Object;
use super::records::{Key, Watched};
use super::words::shown;
use crate::inventory::Refused;

/// Longest label of a name, and longest value of an object's label, octets.
const MAX_LABEL: usize = 63;
/// Longest name of an object, octets (RFC 1123 subdomain).
const MAX_NAME: usize = 253;

/// Tells whether a text is made of lower-case letters, digits and `-`, and begins and ends with a letter or digit.
fn is_label(text: &str) -> bool {
    let edge = |octet: &u8| octet.is_ascii_lowercase() || octet.is_ascii_digit();
    let octets = text.as_bytes();
    octets.first().is_some_and(edge)
        && octets.last().is_some_and(edge)
        && octets.iter().all(|octet| edge(octet) || *octet == b'-')
}

/// Tells why a text is not the name of a namespace or a Service (RFC 1123 label). `None`: it is.
pub(super) fn label_fault(text: &str) -> Option<String> {
    let is_good = text.len() <= MAX_LABEL && is_label(text);
    (!is_good).then(|| {
        format!(
            "lower-case letters, digits and `-` are wanted, at most {MAX_LABEL}, and not `{}`",
            shown(text)
        )
    })
}

/// Tells why a text is not the name of an object or of a listener (RFC 1123 subdomain). `None`: it is.
pub(super) fn name_fault(text: &str) -> Option<String> {
    let is_good = text.len() <= MAX_NAME && text.split('.').all(is_label);
    (!is_good).then(|| {
        format!(
            "lower-case letters, digits, `-` and `.` are wanted, at most {MAX_NAME}, and not `{}`",
            shown(text)
        )
    })
}

/// Tells whether a text may be the value of an object's label, and says something.
pub(super) fn is_label_value(text: &str) -> bool {
    let octets = text.as_bytes();
    let inner = |octet: &u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_' | b'.');
    text.len() <= MAX_LABEL
        && octets.first().is_some_and(u8::is_ascii_alphanumeric)
        && octets.last().is_some_and(u8::is_ascii_alphanumeric)
        && octets.iter().all(inner)
}

/// Gives the namespace that an object is in.
pub(super) fn namespace(object: &Object<'_>) -> Arc<str> {
    (*object.meta.namespace).into()
}

/// Gives an object's namespace and name.
///
/// # Errors
/// When one of them is no name that Kubernetes gives; with a key that no good object can have, and that may be shown.
pub(super) fn key(watched: Watched, object: &Object<'_>) -> Result<Key, (Key, Refused)> {
    let name = &*object.meta.name;
    let namespace = match watched {
        Watched::Nodes => None,
        _ => Some(&*object.meta.namespace),
    };
    let name_fault = match watched {
        Watched::Services => label_fault,
        _ => name_fault,
    };
    let faults = [
        ("metadata.namespace", namespace.and_then(label_fault)),
        ("metadata.name", name_fault(name)),
    ];
    let namespace = namespace.unwrap_or_default();
    for (what, fault) in faults {
        if let Some(why) = fault {
            let key = Key {
                namespace: shown(namespace).into(),
                name: shown(name).into(),
            };
            return Err((key, refused(what, &why)));
        }
    }
    Ok(Key {
        namespace: namespace.into(),
        name: name.into(),
    })
}
