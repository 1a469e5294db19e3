//! What a server sends, taken apart: pages of lists, events of watches.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::fault::{Fault, FaultKind, Masks};
use super::raw::{Item, Named, Raw};
use super::server::Form;
use crate::source::kubernetes::object::{List, Malformed, Meta, Schema, WatchEvent};
use crate::source::kubernetes::read::read;
use crate::source::kubernetes::records::{Event, Key, Watched};

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

/// Says that something is not what was asked for.
fn malformed(why: &str) -> Fault {
    Fault::new(FaultKind::Malformed, why)
}

/// Reads a page and hands on its objects one by one, as they came.
///
/// # Errors
/// When it is no list: whatever else a server may answer must not be taken for an empty one. Some objects may have been handed
/// on by then; they are there all the same.
pub(super) fn read_page<'a>(
    form: Form,
    octets: &'a [u8],
    each: &mut dyn FnMut(Raw<'a>),
) -> Result<Page, Fault> {
    match form {
        Form::Json => read_json(octets, each),
        Form::Protobuf => {
            let list =
                List::open(octets).map_err(|Malformed| malformed("the answer is no list"))?;
            list.items().map(Raw::Protobuf).for_each(each);
            Ok(Page {
                version: list.version.into(),
                rest: (!list.rest.is_empty()).then(|| list.rest.into()),
            })
        }
    }
}

/// Reads a whole list of a kind as a server answers it, in JSON or protobuf: what a watch would hand on of each object.
///
/// # Errors
/// When it is no list.
pub fn read_list(watched: Watched, octets: &[u8]) -> Result<Vec<Event>, String> {
    let form = Form::of_list(octets);
    let schema = Schema::of(watched, "v1");
    let mut events = Vec::new();
    let mut each = |raw: Raw<'_>| match raw.object(schema) {
        Item::Read(object) => events.extend(read(watched, &object)),
        Item::Unreadable(key, why) => events.push(Event::Unreadable(key, why)),
        Item::Nobody => {}
    };
    read_page(form, octets, &mut each).map_err(|fault| fault.text.into_string())?;
    Ok(events)
}

/// Reads a page of JSON.
fn read_json<'a>(octets: &'a [u8], each: &mut dyn FnMut(Raw<'a>)) -> Result<Page, Fault> {
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
struct Whole<'f, 'a> {
    each: &'f mut dyn FnMut(Raw<'a>),
}

impl<'de> DeserializeSeed<'de> for Whole<'_, 'de> {
    type Value = Read;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Read, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Whole<'_, 'de> {
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
struct Items<'f, 'a> {
    each: &'f mut dyn FnMut(Raw<'a>),
}

impl<'de> DeserializeSeed<'de> for Items<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Items<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<&'de RawValue>()? {
            (self.each)(Raw::Json(item.get()));
        }
        Ok(())
    }
}

/// A line of a watch.
#[derive(Debug, PartialEq)]
pub(super) enum Line<'a> {
    /// An object is there, new or changed.
    Put(Raw<'a>),
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

/// Reads an event: a line of JSON, or a frame of protobuf.
///
/// # Errors
/// When it is no event, which leaves it open what was missed, and when it is one that says what went wrong.
pub(super) fn read_line<'a>(form: Form, line: &'a [u8], masks: &Masks) -> Result<Line<'a>, Fault> {
    match form {
        Form::Json => read_told(line, masks),
        Form::Protobuf => {
            let event = WatchEvent::open(line);
            let WatchEvent { kind, object } =
                event.map_err(|Malformed| malformed("an event is no protobuf"))?;
            match kind {
                "BOOKMARK" => {
                    let meta = Meta::of_protobuf(object.message);
                    bookmark(&meta.map_err(|Malformed| unreadable())?)
                }
                "ERROR" => {
                    let (code, text) = object.status().ok_or_else(unreadable)?;
                    Err(Fault::of_status(code, text, masks))
                }
                _ => Ok(of_object(kind, Raw::Protobuf(object.message))),
            }
        }
    }
}

/// Says that an event cannot be read.
fn unreadable() -> Fault {
    malformed("an event cannot be read")
}

/// Reads a line of JSON.
fn read_told<'a>(line: &'a [u8], masks: &Masks) -> Result<Line<'a>, Fault> {
    let told: Told<'a> =
        serde_json::from_slice(line).map_err(|_| malformed("an event is no JSON"))?;
    let (Some(kind), Some(object)) = (told.kind, told.object) else {
        return Err(malformed("an event has no type or no object"));
    };
    let object = Raw::Json(object.get());
    match &*kind {
        "BOOKMARK" => match object.object(None) {
            Item::Read(object) => bookmark(&object.meta),
            _ => Err(unreadable()),
        },
        "ERROR" => match object.value() {
            Item::Read(object) => Err(error(&object, masks)),
            _ => Err(unreadable()),
        },
        _ => Ok(of_object(&kind, object)),
    }
}

/// Reads an event about an object.
fn of_object<'a>(kind: &str, object: Raw<'a>) -> Line<'a> {
    match kind {
        "ADDED" | "MODIFIED" => Line::Put(object),
        "DELETED" => {
            let mut named = object.named();
            let version = named.as_mut().and_then(Named::version);
            let key = named.and_then(Named::key);
            Line::Delete { key, version }
        }
        _ => Line::Unknown,
    }
}

/// Reads a bookmark.
fn bookmark<'a>(meta: &Meta<'_>) -> Result<Line<'a>, Fault> {
    let ends_list = meta.annotations.get(INITIAL_END) == Some("true");
    if ends_list && meta.version.is_empty() {
        // A watch from nowhere would begin with whatever the server has by then.
        return Err(malformed("the list has no version"));
    }
    let version = (*meta.version).into();
    Ok(Line::Bookmark { version, ends_list })
}

/// Reads what went wrong.
fn error(object: &Value, masks: &Masks) -> Fault {
    let code = object.get("code").and_then(Value::as_u64);
    let code = code.and_then(|code| u16::try_from(code).ok());
    let text = object.get("message").and_then(Value::as_str);
    Fault::of_status(code.unwrap_or(500), text.unwrap_or_default(), masks)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::raw::MAX_OBJECT;
    use super::*;
    use crate::source::kubernetes::object::Object;

    fn page(text: &str) -> (Result<Page, Fault>, Vec<Item<Value>>) {
        let mut items = Vec::new();
        let read = read_page(Form::Json, text.as_bytes(), &mut |raw| {
            items.push(raw.value())
        });
        (read, items)
    }

    fn of(text: &str) -> Item<Object<'_>> {
        Raw::Json(text).object(None)
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
            match read_line(Form::Json, line.as_bytes(), &Masks::default()).unwrap() {
                Line::Put(raw) => {
                    assert!(is_put);
                    assert!(matches!(raw.object(None), Item::Unreadable(key, _) if key == big));
                }
                Line::Delete { key, version } => {
                    assert_eq!((key, version.as_deref()), (Some(big.clone()), Some("5")));
                    assert!(!is_put);
                }
                _ => panic!("{kind}"),
            }
        }
        for kind in ["BOOKMARK", "ERROR"] {
            let line = format!(r#"{{"type": "{kind}", "object": {text}}}"#);
            let fault = read_line(Form::Json, line.as_bytes(), &Masks::default()).unwrap_err();
            assert_eq!(fault.kind, FaultKind::Malformed, "{kind}");
        }
        assert!(matches!(of(&large(1_000)), Item::Read(_)));
        // So is one that no reader gets to the bottom of.
        let deep = format!(
            r#"{{"a": {}{}, "metadata": {{"name": "big", "namespace": "shop"}}}}"#,
            "[".repeat(1_000),
            "]".repeat(1_000)
        );
        assert!(matches!(of(&deep), Item::Unreadable(key, _) if key == big));
        let nobody = large(MAX_OBJECT).replace("big", "");
        assert_eq!(of(&nobody), Item::Nobody);
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
            Item::Read(object) => object.pointer("/metadata/name") == Some(&json!("a")),
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
        let text = |value: Value| value.to_string();
        let line = |text: &str| match read_line(Form::Json, text.as_bytes(), &masks) {
            Ok(Line::Put(Raw::Json(text))) => Ok(format!("put {text}")),
            other => other.map(|line| format!("{line:?}")),
        };
        let object = json!({"metadata": {"name": "a", "resourceVersion": "5"}});
        let gone = r#"Delete { key: Some(Key { namespace: "", name: "a" }), version: Some("5") }"#;
        for (kind, read) in [
            ("ADDED", format!("put {object}")),
            ("MODIFIED", format!("put {object}")),
            ("DELETED", gone.to_owned()),
            ("NOVELTY", "Unknown".to_owned()),
        ] {
            let told = text(json!({"type": kind, "object": object}));
            assert_eq!(line(&told), Ok(read));
        }
        for (annotations, ends_list) in [
            (json!({}), false),
            (json!({INITIAL_END: "true"}), true),
            (json!({INITIAL_END: "false"}), false),
        ] {
            let object = json!({"metadata": {"resourceVersion": "6", "annotations": annotations}});
            let told = text(json!({"type": "BOOKMARK", "object": object}));
            let read = format!(r#"Bookmark {{ version: "6", ends_list: {ends_list} }}"#);
            assert_eq!(line(&told), Ok(read));
        }
        let gone = json!({"kind": "Status", "code": 410, "message": "too old, s3cret"});
        let fault = line(&text(json!({"type": "ERROR", "object": gone}))).unwrap_err();
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
            assert_eq!(line(text).unwrap_err().kind, FaultKind::Malformed, "{text}");
        }
    }

    #[test]
    fn an_object_with_bad_metadata_is_unreadable_and_nothing_more() {
        let object = json!({"metadata": {"name": "web", "labels": 7}}).to_string();
        let Item::Unreadable(key, refused) = of(&object) else {
            panic!("it was read");
        };
        assert_eq!((&*key.name, &*refused.what), ("web", "metadata"));
        assert!(refused.reason.len() <= 256);
    }
}
