//! Objects as they came, looked into one by one: one that is wrong spoils no other.

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::Value;

use super::fault::Masks;
use crate::inventory::Refused;
use crate::source::kubernetes::object::{Malformed, Meta, Object, Schema, name_of_protobuf};
use crate::source::kubernetes::records::Key;

/// Octets of one object. API servers store no more than that, and an object takes many times its octets in memory once it is
/// read.
pub(super) const MAX_OBJECT: usize = 2 << 20;
/// An object as it came.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Raw<'a> {
    /// As JSON.
    Json(&'a str),
    /// As protobuf, without an envelope.
    Protobuf(&'a [u8]),
}

/// An object that was looked into.
#[derive(Debug, PartialEq)]
pub(super) enum Item<T> {
    /// It can be read.
    Read(T),
    /// It cannot, and why.
    Unreadable(Key, Refused),
    /// It has no name.
    Nobody,
}

impl<'a> Raw<'a> {
    /// Reads it as an object of a kind; `schema` says how that is written in protobuf.
    pub(super) fn object(self, schema: Option<Schema>) -> Item<Object<'a>> {
        match (self, schema) {
            (Self::Json(text), _) => {
                self.read((text.len(), "metadata"), || serde_json::from_str(text))
            }
            (Self::Protobuf(octets), Some(schema)) => self.read((octets.len(), "object"), || {
                Object::of_protobuf(octets, schema)
                    .map_err(|Malformed| serde_json::Error::custom("no protobuf of its kind"))
            }),
            (Self::Protobuf(_), None) => Item::Nobody,
        }
    }

    /// Reads all of it.
    pub(super) fn value(self) -> Item<Value> {
        match self {
            Self::Json(text) => self.read((text.len(), "metadata"), || serde_json::from_str(text)),
            Self::Protobuf(_) => Item::Nobody,
        }
    }

    /// Reads it, unless it is too large. What cannot be read is known by its name; `place` is where that is then.
    fn read<T>(
        self,
        (octets, place): (usize, &str),
        read: impl FnOnce() -> serde_json::Result<T>,
    ) -> Item<T> {
        let refused = if octets > MAX_OBJECT {
            Refused {
                what: "object".into(),
                reason: format!("more than {MAX_OBJECT} octets").into(),
            }
        } else {
            match read() {
                Ok(object) => return Item::Read(object),
                Err(error) if error.is_data() => Refused {
                    what: place.into(),
                    reason: Masks::default().said(&error.to_string()),
                },
                // It was taken for JSON as a part of what it came in.
                Err(_) => Refused {
                    what: "object".into(),
                    reason: "nested too deeply".into(),
                },
            }
        };
        match self.named().and_then(Named::key) {
            Some(key) => Item::Unreadable(key, refused),
            None => Item::Nobody,
        }
    }

    /// Finds its name. All else of it is passed over, and takes no memory.
    pub(super) fn named(self) -> Option<Named> {
        match self {
            Self::Json(text) => serde_json::from_str(text).ok(),
            Self::Protobuf(octets) => {
                let [name, namespace, version] = name_of_protobuf(octets).ok()?;
                let metadata = NamedMeta {
                    name: name.to_owned(),
                    namespace: Some(namespace.to_owned()),
                    version: Some(version.into()),
                };
                Some(Named { metadata })
            }
        }
    }
}

/// The name of an object.
#[derive(Deserialize)]
pub(super) struct Named {
    metadata: NamedMeta,
}

#[derive(Deserialize)]
struct NamedMeta {
    name: String,
    namespace: Option<String>,
    #[serde(rename = "resourceVersion")]
    version: Option<Box<str>>,
}

impl Named {
    /// Gives its name.
    pub(super) fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Gives its version.
    pub(super) fn version(&mut self) -> Option<Box<str>> {
        self.metadata.version.take()
    }

    /// Gives namespace and name.
    pub(super) fn key(self) -> Option<Key> {
        let NamedMeta {
            name, namespace, ..
        } = self.metadata;
        (!name.is_empty()).then(|| Key {
            namespace: namespace.unwrap_or_default().into(),
            name: name.into(),
        })
    }
}

/// Gives namespace and name of an object; `None`: it has no name.
pub(super) fn key_of(meta: &Meta<'_>) -> Option<Key> {
    (!meta.name.is_empty()).then(|| Key {
        namespace: (*meta.namespace).into(),
        name: (*meta.name).into(),
    })
}
