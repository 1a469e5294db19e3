//! What a server sends, taken apart: pages of lists, lines of watches, objects. One object that is wrong spoils no other.

use std::fmt;
use std::sync::Arc;

use kube::core::{DynamicObject, ObjectMeta, TypeMeta};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::fault::{Fault, FaultKind, Masks};
use crate::inventory::Refused;
use crate::source::kubernetes::records::{Event, Key, Watched};

/// Octets of one object. API servers store no more than that, and an object takes many times its octets in memory once it is
/// read.
pub(super) const MAX_OBJECT: usize = 2 << 20;
/// The annotation of the bookmark that ends the list of a stream (KEP-3157).
const INITIAL_END: &str = "k8s.io/initial-events-end";

/// What a page says beside its objects.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// The version of the list.
    pub(super) version: Box<str>,
    /// Where the next page begins; `None`: this is the last.
    pub(super) rest: Option<Box<str>>,
}

/// Reads a page and hands on its objects one by one, so that never more than one is in memory in this form. One that cannot be
/// read, or is too large, is handed on by its name, if that can be found.
///
/// # Errors
/// When it is no list: whatever else a server may answer must not be taken for an empty one. Some objects may have been handed
/// on by then; they are there all the same.
pub(super) fn read_page(octets: &[u8], each: &mut dyn FnMut(Item)) -> Result<Page, Fault> {
    let malformed = |why: &str| Fault::new(FaultKind::Malformed, why);
    let mut deserializer = serde_json::Deserializer::from_slice(octets);
    let read = Whole { each }
        .deserialize(&mut deserializer)
        .and_then(|read| deserializer.end().map(|()| read))
        .map_err(|error| {
            let (line, column) = (error.line(), error.column());
            malformed(&format!(
                "the list cannot be read from line {line}, column {column} on"
            ))
        })?;
    let is_list = read
        .kind
        .as_deref()
        .is_none_or(|kind| kind.ends_with("List"));
    let version = read
        .metadata
        .resource_version
        .filter(|version| !version.is_empty());
    match version {
        Some(version) if read.has_items && is_list => Ok(Page {
            version,
            rest: read.metadata.rest.filter(|rest| !rest.is_empty()),
        }),
        _ => Err(malformed("the answer is no list")),
    }
}

#[derive(Default, Deserialize)]
struct ListMeta {
    #[serde(rename = "resourceVersion")]
    resource_version: Option<Box<str>>,
    #[serde(rename = "continue")]
    rest: Option<Box<str>>,
}

/// What was read of a page.
#[derive(Default)]
struct Read {
    kind: Option<Box<str>>,
    metadata: ListMeta,
    has_items: bool,
}

/// Reads the page.
struct Whole<'f> {
    each: &'f mut dyn FnMut(Item),
}

impl<'de> DeserializeSeed<'de> for Whole<'_> {
    type Value = Read;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Read, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Whole<'_> {
    type Value = Read;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Read, A::Error> {
        let mut read = Read::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "kind" => read.kind = map.next_value()?,
                "metadata" => {
                    read.metadata = map.next_value::<Option<ListMeta>>()?.unwrap_or_default();
                }
                "items" if read.has_items => return Err(A::Error::custom("two times items")),
                "items" => {
                    map.next_value_seed(Items {
                        each: &mut *self.each,
                    })?;
                    read.has_items = true;
                }
                _ => {
                    let _: IgnoredAny = map.next_value()?;
                }
            }
        }
        Ok(read)
    }
}

/// Reads the objects; `null` is none, as servers written in Go say it.
struct Items<'f> {
    each: &'f mut dyn FnMut(Item),
}

impl<'de> DeserializeSeed<'de> for Items<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<&RawValue>()? {
            (self.each)(Item::of(item.get()));
        }
        Ok(())
    }
}

/// An object as it came.
#[derive(Debug, PartialEq)]
pub(super) enum Item {
    /// It can be looked into.
    Read(Value),
    /// It cannot, and why.
    Unreadable(Key, Refused),
    /// It has no name.
    Nobody,
}

impl Item {
    /// Reads one.
    fn of(text: &str) -> Self {
        let why = if text.len() > MAX_OBJECT {
            format!("more than {MAX_OBJECT} octets")
        } else {
            match serde_json::from_str(text) {
                Ok(object) => return Self::Read(object),
                // It was taken for JSON as a part of what it came in.
                Err(_) => "nested too deeply".to_owned(),
            }
        };
        let reason = why.into();
        let what = "object".into();
        let key = Named::of(text).and_then(Named::key);
        key.map_or(Self::Nobody, |key| {
            Self::Unreadable(key, Refused { what, reason })
        })
    }
}

/// The name of an object: all else of it is passed over, and takes no memory.
#[derive(Deserialize)]
struct Named {
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
    fn of(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    fn key(self) -> Option<Key> {
        let NamedMeta {
            name, namespace, ..
        } = self.metadata;
        (!name.is_empty()).then(|| Key {
            namespace: namespace.unwrap_or_default().into(),
            name: name.into(),
        })
    }
}

/// A line of a watch.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// An object is there, new or changed.
    Put(Item),
    /// An object is gone.
    Delete {
        /// Its name, if it has one.
        key: Option<Key>,
        /// Its version.
        version: Option<Box<str>>,
    },
    /// Nothing but a version; `ends_list`: the list of the stream ends here.
    Bookmark {
        /// The version.
        version: Box<str>,
        /// The list of the stream is complete.
        ends_list: bool,
    },
    /// Something that is not known here.
    Unknown,
}

/// An event, its object as it came.
#[derive(Deserialize)]
struct Told<'l> {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(borrow)]
    object: Option<&'l RawValue>,
}

/// Reads a line.
///
/// # Errors
/// When it is no event, which leaves it open what was missed, and when it is one that says what went wrong.
pub(super) fn read_line(line: &[u8], masks: &Masks) -> Result<Line, Fault> {
    let malformed = |why: &str| Fault::new(FaultKind::Malformed, why);
    let told: Told<'_> =
        serde_json::from_slice(line).map_err(|_| malformed("an event is no JSON"))?;
    let (Some(kind), Some(object)) = (told.kind, told.object) else {
        return Err(malformed("an event has no type or no object"));
    };
    let text = object.get();
    let object = || match Item::of(text) {
        Item::Read(object) => Ok(object),
        _ => Err(malformed("an event cannot be read")),
    };
    match &*kind {
        "ADDED" | "MODIFIED" => Ok(Line::Put(Item::of(text))),
        "DELETED" => {
            let mut named = Named::of(text);
            let version = named
                .as_mut()
                .and_then(|named| named.metadata.version.take());
            let key = named.and_then(Named::key);
            Ok(Line::Delete { key, version })
        }
        "BOOKMARK" => bookmark(&object()?),
        "ERROR" => Err(error(&object()?, masks)),
        _ => Ok(Line::Unknown),
    }
}

/// Reads a bookmark.
fn bookmark(object: &Value) -> Result<Line, Fault> {
    let version = version_of(object).unwrap_or_default();
    let annotations = object.pointer("/metadata/annotations");
    let end = annotations.and_then(|annotations| annotations.get(INITIAL_END));
    let ends_list = end.and_then(Value::as_str) == Some("true");
    if ends_list && version.is_empty() {
        // A watch from nowhere would begin with whatever the server has by then.
        let text = "the list has no version";
        return Err(Fault::new(FaultKind::Malformed, text));
    }
    let version = version.into();
    Ok(Line::Bookmark { version, ends_list })
}

/// Reads what went wrong.
fn error(object: &Value, masks: &Masks) -> Fault {
    let code = object.get("code").and_then(Value::as_u64);
    let code = code.and_then(|code| u16::try_from(code).ok());
    let text = object.get("message").and_then(Value::as_str);
    Fault::of_status(code.unwrap_or(500), text.unwrap_or_default(), masks)
}

/// Gives the version of an object.
pub(super) fn version_of(object: &Value) -> Option<&str> {
    object.pointer("/metadata/resourceVersion")?.as_str()
}

/// Gives the name of an object.
pub(super) fn name_of(object: &Value) -> Option<&str> {
    object.pointer("/metadata/name")?.as_str()
}

/// Gives namespace and name of an object.
pub(super) fn key_of(object: &Value) -> Option<Key> {
    let name = name_of(object).filter(|name| !name.is_empty())?;
    let namespace = object.pointer("/metadata/namespace");
    Some(Key {
        namespace: Arc::from(namespace.and_then(Value::as_str).unwrap_or_default()),
        name: Arc::from(name),
    })
}

/// Reads an object with one of the readers. Its managed fields, half of many objects, are dropped before anything else.
pub(super) fn read_object(
    read: fn(Watched, &DynamicObject) -> Option<Event>,
    watched: Watched,
    key: &Key,
    mut object: Value,
) -> Option<Event> {
    let mut field = |name: &str| object.as_object_mut()?.remove(name);
    let types = Option::zip(field("apiVersion"), field("kind"));
    let types = types.and_then(|(version, kind)| {
        Some(TypeMeta {
            api_version: version.as_str()?.to_owned(),
            kind: kind.as_str()?.to_owned(),
        })
    });
    let mut metadata = field("metadata").unwrap_or_default();
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.remove("managedFields");
    }
    match serde_json::from_value::<ObjectMeta>(metadata) {
        Ok(metadata) => read(
            watched,
            &DynamicObject {
                types,
                metadata,
                data: object,
            },
        ),
        Err(error) => Some(Event::Unreadable(
            key.clone(),
            Refused {
                what: "metadata".into(),
                reason: Masks::default().said(&error.to_string()),
            },
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page(text: &str) -> (Result<Page, Fault>, Vec<Item>) {
        let mut items = Vec::new();
        let read = read_page(text.as_bytes(), &mut |item| items.push(item));
        (read, items)
    }

    /// A service with a field of so many numbers, each of which takes dozens of octets once it is read.
    fn large(numbers: usize) -> String {
        let numbers = vec!["0"; numbers].join(",");
        format!(
            r#"{{"spec": [{numbers}], "metadata": {{"name": "big", "namespace": "shop", "resourceVersion": "5"}}}}"#
        )
    }

    #[test]
    fn an_object_that_is_too_large_is_known_by_its_name_and_never_built() {
        let big = Key {
            namespace: "shop".into(),
            name: "big".into(),
        };
        let text = large(MAX_OBJECT);
        let list = format!(
            r#"{{"metadata": {{"resourceVersion": "7"}}, "items": [{text}, {{"metadata": {{"name": "a"}}}}]}}"#
        );
        let (read, items) = page(&list);
        assert_eq!(&*read.unwrap().version, "7");
        let [Item::Unreadable(key, why), Item::Read(_)] = &*items else {
            panic!("not both");
        };
        assert_eq!((key, &*why.reason), (&big, "more than 2097152 octets"));
        for (kind, is_put) in [("ADDED", true), ("MODIFIED", true), ("DELETED", false)] {
            let line = format!(r#"{{"type": "{kind}", "object": {text}}}"#);
            match read_line(line.as_bytes(), &Masks::default()).unwrap() {
                Line::Put(Item::Unreadable(key, _)) => assert!(is_put && key == big),
                Line::Delete { key, version } => {
                    assert_eq!((key, version.as_deref()), (Some(big.clone()), Some("5")));
                    assert!(!is_put);
                }
                _ => panic!("{kind}"),
            }
        }
        for kind in ["BOOKMARK", "ERROR"] {
            let line = format!(r#"{{"type": "{kind}", "object": {text}}}"#);
            let fault = read_line(line.as_bytes(), &Masks::default()).unwrap_err();
            assert_eq!(fault.kind, FaultKind::Malformed, "{kind}");
        }
        assert!(matches!(Item::of(&large(1_000)), Item::Read(_)));
        // So is one that no reader gets to the bottom of.
        let deep = format!(
            r#"{{"a": {}{}, "metadata": {{"name": "big", "namespace": "shop"}}}}"#,
            "[".repeat(1_000),
            "]".repeat(1_000)
        );
        let read = Item::of(&deep);
        assert!(matches!(read, Item::Unreadable(key, _) if key == big));
        let nobody = large(MAX_OBJECT).replace("big", "");
        assert_eq!(Item::of(&nobody), Item::Nobody);
    }

    #[test]
    fn pages_are_read_with_what_is_wrong_in_them() {
        let text = json!({
            "kind": "ServiceList",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": "12", "continue": "next", "remainingItemCount": 5},
            "items": [{"metadata": {"name": "a"}}, 7, null, {"metadata": {"name": 7}}],
        });
        let (read, items) = page(&text.to_string());
        let read = read.unwrap();
        assert_eq!((&*read.version, read.rest.as_deref()), ("12", Some("next")));
        assert_eq!(items.len(), 4);
        let keys = items.iter().filter(|item| match item {
            Item::Read(object) => key_of(object).is_some(),
            _ => false,
        });
        assert_eq!(keys.count(), 1);
        for items in ["[]", "null"] {
            let text = format!(
                r#"{{"items": {items}, "metadata": {{"resourceVersion": "1", "continue": ""}}}}"#
            );
            let (read, items) = page(&text);
            assert_eq!(read.unwrap().rest, None);
            assert!(items.is_empty());
        }
    }

    #[test]
    fn whatever_is_no_list_is_not_an_empty_one() {
        for text in [
            "",
            "{}",
            "[]",
            "null",
            "<html>",
            r#"{"items": []}"#,
            r#"{"metadata": {"resourceVersion": "1"}}"#,
            r#"{"metadata": {"resourceVersion": ""}, "items": []}"#,
            r#"{"metadata": {"resourceVersion": "1"}, "items": {}}"#,
            r#"{"metadata": {"resourceVersion": "1"}, "items": [], "items": []}"#,
            r#"{"kind": "Status", "metadata": {"resourceVersion": "1"}, "items": []}"#,
            r#"{"metadata": {"resourceVersion": "1"}, "items": []} {}"#,
            r#"{"metadata": {"resourceVersion": "1"}, "items": [{"a": "#,
        ] {
            let fault = page(text).0.unwrap_err();
            assert_eq!(fault.kind, FaultKind::Malformed, "{text}");
        }
    }

    #[test]
    fn lines_are_read() {
        let masks = Masks::new(["s3cret".to_owned()]);
        let line = |value: Value| read_line(value.to_string().as_bytes(), &masks);
        let object = json!({"metadata": {"name": "a", "resourceVersion": "5"}});
        for (kind, read) in [
            ("ADDED", Line::Put(Item::Read(object.clone()))),
            ("MODIFIED", Line::Put(Item::Read(object.clone()))),
            (
                "DELETED",
                Line::Delete {
                    key: key_of(&object),
                    version: Some("5".into()),
                },
            ),
            ("NOVELTY", Line::Unknown),
        ] {
            assert_eq!(line(json!({"type": kind, "object": object})), Ok(read));
        }
        for (annotations, ends_list) in [
            (json!({}), false),
            (json!({INITIAL_END: "true"}), true),
            (json!({INITIAL_END: "false"}), false),
        ] {
            let object = json!({"metadata": {"resourceVersion": "6", "annotations": annotations}});
            let read = line(json!({"type": "BOOKMARK", "object": object}));
            let version = "6".into();
            assert_eq!(read, Ok(Line::Bookmark { version, ends_list }));
        }
        let gone = json!({"kind": "Status", "code": 410, "message": "too old, s3cret"});
        let fault = line(json!({"type": "ERROR", "object": gone})).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Gone);
        assert_eq!(&*fault.text, "status 410: too old, ***");
        for text in [
            "",
            "{",
            "{}",
            "7",
            r#"{"type": "ADDED"}"#,
            r#"{"type": 7, "object": {}}"#,
            // The end of a list from which no watch could go on.
            r#"{"type": "BOOKMARK", "object": {"metadata": {"annotations": {"k8s.io/initial-events-end": "true"}}}}"#,
            r#"{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "", "annotations": {"k8s.io/initial-events-end": "true"}}}}"#,
        ] {
            let fault = read_line(text.as_bytes(), &masks).unwrap_err();
            assert_eq!(fault.kind, FaultKind::Malformed, "{text}");
        }
    }

    #[test]
    fn an_object_comes_to_its_reader_without_what_nobody_reads() {
        let read = |watched, object: &DynamicObject| {
            assert_eq!(watched, Watched::Ingresses);
            assert_eq!(object.types.as_ref().unwrap().kind, "Ingress");
            assert_eq!(object.metadata.managed_fields, None);
            assert_eq!(object.data, json!({"spec": {"a": 1}}));
            let name = object.metadata.name.as_deref()?;
            Some(Event::Gone(Key {
                namespace: "shop".into(),
                name: name.into(),
            }))
        };
        let object = json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"namespace": "shop", "name": "web", "managedFields": [{"manager": "x"}]},
            "spec": {"a": 1},
        });
        let key = key_of(&object).unwrap();
        let event = read_object(read, Watched::Ingresses, &key, object).unwrap();
        assert_eq!(event, Event::Gone(key));
    }

    #[test]
    fn an_object_with_bad_metadata_is_unreadable_and_nothing_more() {
        let read = |_, _: &DynamicObject| None;
        let object = json!({"metadata": {"name": "web", "creationTimestamp": "yesterday"}});
        let key = key_of(&object).unwrap();
        let Some(Event::Unreadable(unreadable, refused)) =
            read_object(read, Watched::Nodes, &key, object)
        else {
            panic!("it was read");
        };
        assert_eq!((unreadable, &*refused.what), (key, "metadata"));
        assert!(refused.reason.len() <= 256);
    }
}
