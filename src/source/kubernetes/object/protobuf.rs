//! Objects out of the protobuf of Kubernetes: an envelope that begins with `k8s` and a zero octet, lists, events of watches.
//!
//! A server spends a third of the time on it that JSON takes, and so do we. Nothing is built of fields that nobody reads. How deep
//! it goes is how deep the [`Schema`] goes.

use std::borrow::Cow;

use super::schema::{Field, Kind};
use super::{COPY, Meta, Object, Pairs, Schema, Tree};

/// What an object that stands by itself begins with.
const MAGIC: &[u8] = b"k8s\0";
/// Longest number, octets.
const MAX_VARINT: usize = 10;

/// It is no protobuf, or not what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source::kubernetes) struct Malformed;

/// A value as it is written.
enum Wire<'a> {
    Number(u64),
    Octets(&'a [u8]),
    /// Fixed width: nothing that is read here.
    Other,
}

/// Fields of a message, in the order in which they came. Ends with the first that cannot be read.
struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for at in 0..MAX_VARINT {
            let [octet] = self.take(1)? else {
                return Err(Malformed);
            };
            number |= u64::from(octet & 0x7f) << (7 * at).min(63);
            if octet & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed)
    }

    fn field(&mut self) -> Result<(u32, Wire<'a>), Malformed> {
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).map_err(|_| Malformed)?;
        let wire = match key & 7 {
            0 => Wire::Number(self.varint()?),
            1 => {
                self.take(8)?;
                Wire::Other
            }
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
                Wire::Octets(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                Wire::Other
            }
            _ => return Err(Malformed),
        };
        Ok((number, wire))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Wire<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Goes through the fields that are octets: texts and messages.
fn octets(message: &[u8]) -> impl Iterator<Item = Result<(u32, &[u8]), Malformed>> {
    Fields { rest: message }.filter_map(|field| match field {
        Ok((number, Wire::Octets(octets))) => Some(Ok((number, octets))),
        Ok(_) => None,
        Err(malformed) => Some(Err(malformed)),
    })
}

/// Gives the last field of a number.
fn last(message: &[u8], wanted: u32) -> Result<Option<&[u8]>, Malformed> {
    let mut found = None;
    for field in octets(message) {
        let (number, octets) = field?;
        if number == wanted {
            found = Some(octets);
        }
    }
    Ok(found)
}

/// Reads a text.
fn text(octets: &[u8]) -> Result<&str, Malformed> {
    std::str::from_utf8(octets).map_err(|_| Malformed)
}

/// Gives the last text of a number; an empty one where there is none.
fn said(message: &[u8], wanted: u32) -> Result<&str, Malformed> {
    last(message, wanted)?.map_or(Ok(""), text)
}

// === Envelopes, lists, events ===

/// What stands by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source::kubernetes) struct Envelope<'a> {
    /// The kind that is in it.
    pub(in crate::source::kubernetes) kind: &'a str,
    /// The message.
    pub(in crate::source::kubernetes) message: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Opens one (`runtime.Unknown`).
    ///
    /// # Errors
    /// When it is none.
    pub(in crate::source::kubernetes) fn open(octets: &'a [u8]) -> Result<Self, Malformed> {
        let unknown = octets.strip_prefix(MAGIC).ok_or(Malformed)?;
        let types = last(unknown, 1)?.unwrap_or_default();
        Ok(Self {
            kind: said(types, 2)?,
            message: last(unknown, 2)?.unwrap_or_default(),
        })
    }

    /// Gives what it says went wrong, and the number of its status, if it is one.
    pub(in crate::source::kubernetes) fn status(self) -> Option<(u16, &'a str)> {
        if self.kind != "Status" {
            return None;
        }
        let code = Fields { rest: self.message }.find_map(|field| match field {
            Ok((6, Wire::Number(code))) => u16::try_from(code).ok(),
            _ => None,
        });
        let message = said(self.message, 3).unwrap_or_default();
        Some((code.unwrap_or(500), message))
    }
}

/// A list of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source::kubernetes) struct List<'a> {
    /// The version of the list.
    pub(in crate::source::kubernetes) version: &'a str,
    /// Where the next page begins; empty: this is the last.
    pub(in crate::source::kubernetes) rest: &'a str,
    message: &'a [u8],
}

impl<'a> List<'a> {
    /// Opens one.
    ///
    /// # Errors
    /// When it is none: whatever else a server may answer must not be taken for an empty one.
    pub(in crate::source::kubernetes) fn open(octets: &'a [u8]) -> Result<Self, Malformed> {
        let Envelope { kind, message } = Envelope::open(octets)?;
        let meta = last(message, 1)?.ok_or(Malformed)?;
        let (version, rest) = (said(meta, 2)?, said(meta, 3)?);
        if !kind.ends_with("List") || version.is_empty() {
            return Err(Malformed);
        }
        Ok(Self {
            version,
            rest,
            message,
        })
    }

    /// Goes through its objects.
    pub(in crate::source::kubernetes) fn items(self) -> impl Iterator<Item = &'a [u8]> {
        // That it can be read to its end was seen when it was opened.
        let items = octets(self.message).filter_map(Result::ok);
        items.filter_map(|(number, octets)| (number == 2).then_some(octets))
    }
}

/// What a watch tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source::kubernetes) struct WatchEvent<'a> {
    /// `ADDED` and so on.
    pub(in crate::source::kubernetes) kind: &'a str,
    /// What it is about.
    pub(in crate::source::kubernetes) object: Envelope<'a>,
}

impl<'a> WatchEvent<'a> {
    /// Reads a frame (`metav1.WatchEvent`).
    ///
    /// # Errors
    /// When it is none, which leaves it open what was missed.
    pub(in crate::source::kubernetes) fn open(frame: &'a [u8]) -> Result<Self, Malformed> {
        let kind = said(frame, 1)?;
        let raw = last(last(frame, 2)?.ok_or(Malformed)?, 1)?.ok_or(Malformed)?;
        if kind.is_empty() {
            return Err(Malformed);
        }
        Ok(Self {
            kind,
            object: Envelope::open(raw)?,
        })
    }
}

// === Objects ===

/// Reads a label or an annotation.
fn pair(entry: &[u8]) -> Result<(Cow<'_, str>, Cow<'_, str>), Malformed> {
    let said = |number| Ok(loose(last(entry, number)?.unwrap_or_default()));
    Ok((said(1)?, said(2)?))
}

/// Reads a text that nobody checked when it was written: what is no UTF-8 is as a server writes it in JSON.
fn loose(octets: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(octets)
}

/// Reads name, namespace and version of an object of any kind, whatever else stands there.
///
/// # Errors
/// When they cannot be read.
pub(in crate::source::kubernetes) fn name_of_protobuf(
    object: &[u8],
) -> Result<[&str; 3], Malformed> {
    let meta = last(object, 1)?.unwrap_or_default();
    Ok([said(meta, 1)?, said(meta, 3)?, said(meta, 6)?])
}

impl<'a> Meta<'a> {
    /// Reads the metadata of an object of any kind.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(in crate::source::kubernetes) fn of_protobuf(object: &'a [u8]) -> Result<Self, Malformed> {
        let mut read = Self::default();
        let (mut labels, mut annotations) = (Vec::new(), Vec::new());
        for field in octets(last(object, 1)?.unwrap_or_default()) {
            match field? {
                (1, octets) => read.name = text(octets)?.into(),
                (3, octets) => read.namespace = text(octets)?.into(),
                (6, octets) => read.version = text(octets)?.into(),
                (9, _) => read.is_deleting = true,
                (11, octets) => labels.push(pair(octets)?),
                (12, octets) => match pair(octets)? {
                    (key, _) if key == COPY => {}
                    pair => annotations.push(pair),
                },
                _ => {}
            }
        }
        read.labels = Pairs::of(labels);
        read.annotations = Pairs::of(annotations);
        Ok(read)
    }
}

impl<'a> Object<'a> {
    /// Reads an object of a kind, without its envelope.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(in crate::source::kubernetes) fn of_protobuf(
        octets: &'a [u8],
        Schema(fields): Schema,
    ) -> Result<Self, Malformed> {
        let meta = Meta::of_protobuf(octets)?;
        let body = Tree::Map(message(octets, fields)?);
        Ok(Self { meta, body })
    }
}

/// Reads the fields of a message that somebody reads.
fn message<'a>(octets: &'a [u8], fields: &'static [Field]) -> Result<Map<'a>, Malformed> {
    let mut map = Vec::new();
    for field in (Fields { rest: octets }) {
        let (number, wire) = field?;
        let Some(known) = fields.iter().find(|field| field.number == number) else {
            continue;
        };
        match (&known.kind, wire) {
            (Kind::Text, Wire::Octets([])) => {}
            (Kind::Text, Wire::Octets(octets)) => put(&mut map, known.name, of_text(octets)),
            (Kind::Flag, Wire::Number(flag)) => put(&mut map, known.name, Tree::Bool(flag != 0)),
            (Kind::Whole, Wire::Number(number)) => {
                let number = Tree::Number(number.cast_signed().into());
                put(&mut map, known.name, number);
            }
            (Kind::Message(fields), Wire::Octets(octets)) => {
                put(&mut map, known.name, Tree::Map(message(octets, fields)?));
            }
            (Kind::Inline(fields), Wire::Octets(octets)) => {
                for (name, value) in message(octets, fields)? {
                    put(&mut map, name, value);
                }
            }
            (Kind::Texts, Wire::Octets(octets)) => add(&mut map, known.name, of_text(octets)),
            (Kind::Messages(fields), Wire::Octets(octets)) => {
                add(&mut map, known.name, Tree::Map(message(octets, fields)?));
            }
            _ => return Err(Malformed),
        }
    }
    Ok(map)
}

/// Makes a text of octets.
fn of_text(octets: &[u8]) -> Tree<'_> {
    Tree::Text(loose(octets))
}

/// A message: no key twice, so that it has no more of them than its schema, however often a field is sent.
type Map<'a> = Vec<(Cow<'a, str>, Tree<'a>)>;

/// Puts a value under a key. Of several the last counts.
fn put<'a>(map: &mut Map<'a>, name: impl Into<Cow<'a, str>>, value: Tree<'a>) {
    let name = name.into();
    match map.iter_mut().find(|(key, _)| *key == name) {
        Some((_, held)) => *held = value,
        None => map.push((name, value)),
    }
}

/// Adds an item to the list under a key.
fn add<'a>(map: &mut Map<'a>, name: &'static str, item: Tree<'a>) {
    match map.iter_mut().find(|(key, _)| key == name) {
        Some((_, Tree::List(list))) => list.push(item),
        _ => put(map, name, Tree::List(vec![item])),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::source::kubernetes::records::Watched;

    /// Writes a number.
    fn varint(mut number: u64) -> Vec<u8> {
        let mut out = Vec::new();
        while number > 0x7f {
            out.push(0x80 | u8::try_from(number & 0x7f).unwrap());
            number >>= 7;
        }
        out.push(u8::try_from(number).unwrap());
        out
    }

    /// Writes a field that is a number.
    fn number(at: u64, number: u64) -> Vec<u8> {
        [varint(at << 3), varint(number)].concat()
    }

    /// Writes a field that is octets.
    fn field(at: u64, octets: impl AsRef<[u8]>) -> Vec<u8> {
        let octets = octets.as_ref();
        let length = varint(octets.len().try_into().unwrap());
        [varint(at << 3 | 2), length, octets.to_vec()].concat()
    }

    /// Writes an envelope.
    fn envelope(kind: &str, message: &[u8]) -> Vec<u8> {
        let types = field(1, [field(1, "v1"), field(2, kind)].concat());
        [MAGIC.to_vec(), types, field(2, message)].concat()
    }

    /// Writes the Service shop/web, version 5.
    fn service() -> Vec<u8> {
        let label = |key: &str, value: &str| field(11, [field(1, key), field(2, value)].concat());
        let copy = field(12, [field(1, COPY), field(2, "{}")].concat());
        let note = field(12, [field(1, "n"), field(2, "v")].concat());
        let created = field(8, number(1, 1_700_000_000));
        let meta = [
            field(1, "web"),
            field(3, "shop"),
            field(6, "5"),
            created,
            label("b", "2"),
            label("a", "1"),
            copy,
            note,
            field(17, field(1, "kubectl")),
        ];
        let http = [field(1, "http"), field(2, "TCP"), number(3, 80)].concat();
        let bare = [field(1, ""), number(3, u64::MAX)].concat();
        let spec = [
            field(1, http),
            field(1, bare),
            field(4, "LoadBalancer"),
            number(13, 0),
        ];
        let ingress = field(1, field(1, field(1, "192.0.2.1")));
        [
            field(1, meta.concat()),
            field(2, spec.concat()),
            field(3, ingress),
        ]
        .concat()
    }

    fn schema() -> Schema {
        Schema::of(Watched::Services, "v1").unwrap()
    }

    #[test]
    fn an_object_is_the_same_as_from_json() {
        let octets = service();
        let read = Object::of_protobuf(&octets, schema()).unwrap();
        let json = r#"{
            "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "5",
                "labels": {"a": "1", "b": "2"}, "annotations": {"n": "v"}},
            "spec": {"ports": [{"name": "http", "protocol": "TCP", "port": 80}, {"port": -1}],
                "type": "LoadBalancer", "publishNotReadyAddresses": false},
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}"#;
        assert_eq!(read, serde_json::from_str(json).unwrap());
        assert!(!read.meta.is_deleting);
        let deleting = field(1, [field(1, "web"), field(9, [])].concat());
        assert!(Meta::of_protobuf(&deleting).unwrap().is_deleting);
    }

    #[test]
    fn what_is_no_utf_8_is_as_a_server_writes_it_in_json() {
        let note = field(12, [field(1, "n"), field(2, [b'a', 0xff])].concat());
        let meta = [field(1, "web"), field(3, "shop"), field(6, "5"), note].concat();
        let spec = field(4, [0xff]);
        let octets = [field(1, meta), field(2, spec)].concat();
        let read = Object::of_protobuf(&octets, schema()).unwrap();
        let json = r#"{"metadata": {"name": "web", "namespace": "shop", "resourceVersion": "5",
            "annotations": {"n": "a\ufffd"}}, "spec": {"type": "\ufffd"}}"#;
        assert_eq!(read, serde_json::from_str(json).unwrap());
        // Whatever cannot be read, its name can.
        let torn = [octets, vec![2 << 3 | 2, 200]].concat();
        assert_eq!(name_of_protobuf(&torn), Err(Malformed));
        let bent = field(
            1,
            [field(1, "web"), field(3, "shop"), number(11, 7)].concat(),
        );
        assert_eq!(name_of_protobuf(&bent), Ok(["web", "shop", ""]));
    }

    /// Half a million fields of two octets fit into an object; each is found among a few.
    #[test]
    fn fields_that_come_again_and_again_are_one() {
        const TIMES: usize = 300_000;
        let flags = number(13, 1).repeat(TIMES);
        let ports = field(1, "").repeat(TIMES);
        let spec = [field(1, ""), flags, ports].concat();
        let octets = [field(1, field(1, "web")), field(2, spec)].concat();
        let read = Object::of_protobuf(&octets, schema()).unwrap();
        let Some(Tree::Map(spec)) = read.body.get("spec") else {
            panic!("{:?}", read.meta);
        };
        assert_eq!(spec.len(), 2);
        let Some(Tree::List(ports)) = read.body.get("spec").and_then(|spec| spec.get("ports"))
        else {
            panic!("no ports");
        };
        assert_eq!(ports.len(), TIMES + 1);
    }

    #[test]
    fn only_kinds_of_kubernetes_itself_have_protobuf() {
        let of = |version| Watched::ALL.map(|watched| Schema::of(watched, version).is_some());
        assert_eq!(of("v1").iter().filter(|has| **has).count(), 4);
        assert_eq!(of("v1beta1").iter().filter(|has| **has).count(), 0);
    }

    #[test]
    fn lists_and_events_are_taken_apart() {
        let meta = [field(2, "12"), field(3, "next"), number(4, 7)].concat();
        let list = [field(1, &meta), field(2, service()), field(2, "")].concat();
        let octets = envelope("ServiceList", &list);
        let list = List::open(&octets).unwrap();
        assert_eq!((list.version, list.rest), ("12", "next"));
        let items: Vec<_> = list.items().collect();
        assert_eq!(items, [&*service(), b""]);
        for (kind, message) in [
            ("Status", field(1, &meta)),
            ("ServiceList", Vec::new()),
            ("ServiceList", field(1, field(3, "next"))),
            ("ServiceList", vec![0xff]),
            (
                "ServiceList",
                [field(1, &meta), vec![2 << 3 | 2, 200]].concat(),
            ),
        ] {
            assert_eq!(
                List::open(&envelope(kind, &message)),
                Err(Malformed),
                "{kind}"
            );
        }
        assert_eq!(List::open(b"{}"), Err(Malformed));

        let frame = |kind: &str, object: &[u8]| {
            let raw = field(1, object);
            [field(1, kind), field(2, raw)].concat()
        };
        let octets = frame("ADDED", &envelope("Service", &service()));
        let event = WatchEvent::open(&octets).unwrap();
        assert_eq!((event.kind, event.object.kind), ("ADDED", "Service"));
        assert_eq!(event.object.message, service());
        let status = [field(3, "too old"), number(6, 410)].concat();
        let octets = frame("ERROR", &envelope("Status", &status));
        let said = WatchEvent::open(&octets).unwrap().object.status();
        assert_eq!(said, Some((410, "too old")));
        for frame in [
            Vec::new(),
            field(1, "ADDED"),
            frame("ADDED", b"{}"),
            frame("", b"k8s\0"),
        ] {
            assert_eq!(WatchEvent::open(&frame), Err(Malformed));
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_refused(octets: Vec<u8>, at in 0_usize..300, with: u8) {
            let mut bent = service();
            if let Some(octet) = bent.get_mut(at) {
                *octet = with;
            }
            for octets in [&octets, &bent] {
                for watched in Watched::ALL {
                    if let Some(schema) = Schema::of(watched, "v1") {
                        let _ = Object::of_protobuf(octets, schema);
                    }
                }
                let _ = WatchEvent::open(octets);
                let enclosed = envelope("ServiceList", octets);
                if let Ok(list) = List::open(&enclosed) {
                    let _ = list.items().count();
                }
            }
        }
    }
}
