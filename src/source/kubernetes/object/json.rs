//! Objects out of JSON, in one pass. Managed fields, half of many objects, are passed over and take no memory.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::{COPY, Meta, Object, Pairs, Tree};

/// A text that borrows where nothing in it is escaped.
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

/// Reads a text.
struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(text)))
    }
}

impl<'de> Deserialize<'de> for Tree<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

/// Reads whatever comes.
struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(Tree::Bool(flag))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Tree::Number(number.into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Tree::Number(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Number::from_f64(number).map_or(Tree::Null, Tree::Number))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Tree::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Tree::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(Tree::Text(Cow::Owned(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut read = Vec::new();
        while let Some((Text(key), value)) = map.next_entry()? {
            read.push((key, value));
        }
        Ok(Tree::Map(read))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor)
    }
}

/// Reads texts by keys.
struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Pairs<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("texts by keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(Text(key)) = map.next_key()? {
            if key == COPY {
                let _: IgnoredAny = map.next_value()?;
            } else {
                let Text(value) = map.next_value()?;
                pairs.push((key, value));
            }
        }
        Ok(Pairs::of(pairs))
    }
}

/// Metadata as they are written.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Written<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    namespace: Option<Text<'a>>,
    #[serde(borrow)]
    resource_version: Option<Text<'a>>,
    deletion_timestamp: Option<IgnoredAny>,
    #[serde(borrow)]
    labels: Option<Pairs<'a>>,
    #[serde(borrow)]
    annotations: Option<Pairs<'a>>,
}

impl<'a> From<Written<'a>> for Meta<'a> {
    fn from(written: Written<'a>) -> Self {
        let text = |text: Option<Text<'a>>| text.map(|Text(text)| text).unwrap_or_default();
        Self {
            name: text(written.name),
            namespace: text(written.namespace),
            version: text(written.resource_version),
            is_deleting: written.deletion_timestamp.is_some(),
            labels: written.labels.unwrap_or_default(),
            annotations: written.annotations.unwrap_or_default(),
        }
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// Reads an object.
struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut meta = Meta::default();
        let mut body = Vec::new();
        while let Some(Text(key)) = map.next_key()? {
            match &*key {
                "metadata" => {
                    let written: Option<Written<'de>> = map.next_value()?;
                    meta = written.unwrap_or_default().into();
                }
                "apiVersion" | "kind" => {
                    let _: IgnoredAny = map.next_value()?;
                }
                _ => body.push((key, map.next_value()?)),
            }
        }
        let body = Tree::Map(body);
        Ok(Object { meta, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_read_without_what_nobody_reads() {
        let text = r#"{
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "5", "uid": "x",
                "managedFields": [{"manager": "x"}], "labels": {"b": "2", "a": "1"},
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "n": "a\nb"},
                "deletionTimestamp": null},
            "spec": {"ports": [{"port": 80}], "on": true, "low": -1, "part": 0.5, "none": null, "host": "a\u002eb"}}"#;
        let object: Object<'_> = serde_json::from_str(text).unwrap();
        let meta = &object.meta;
        assert_eq!(
            (&*meta.name, &*meta.namespace, &*meta.version),
            ("web", "shop", "5")
        );
        assert!(!meta.is_deleting);
        assert_eq!(
            meta.labels.iter().collect::<Vec<_>>(),
            [("a", "1"), ("b", "2")]
        );
        assert_eq!(meta.annotations.iter().collect::<Vec<_>>(), [("n", "a\nb")]);
        let Tree::Map(body) = &object.body else {
            panic!("no map");
        };
        assert_eq!(body.len(), 1);
        let spec = object.body.get("spec").unwrap();
        let port = Tree::Map(vec![("port".into(), Tree::Number(80.into()))]);
        assert_eq!(spec.get("ports"), Some(&Tree::List(vec![port])));
        assert_eq!(spec.get("on"), Some(&Tree::Bool(true)));
        assert_eq!(spec.get("low"), Some(&Tree::Number((-1).into())));
        assert_eq!(spec.get("none"), Some(&Tree::Null));
        assert_eq!(spec.get("host"), Some(&Tree::Text("a.b".into())));
    }

    #[test]
    fn metadata_that_are_none_are_refused() {
        for metadata in [
            "7",
            r#"{"name": 7}"#,
            r#"{"labels": []}"#,
            r#"{"labels": {"a": null}}"#,
        ] {
            let text = format!(r#"{{"metadata": {metadata}}}"#);
            let read = serde_json::from_str::<Object<'_>>(&text);
            assert!(read.unwrap_err().is_data(), "{metadata}");
        }
        for metadata in ["null", "{}", r#"{"name": null, "labels": null}"#] {
            let text = format!(r#"{{"metadata": {metadata}}}"#);
            let read = serde_json::from_str::<Object<'_>>(&text).unwrap();
            assert_eq!(read.meta, Meta::default(), "{metadata}");
        }
        let deleting = r#"{"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}"#;
        assert!(
            serde_json::from_str::<Object<'_>>(deleting)
                .unwrap()
                .meta
                .is_deleting
        );
    }
}
