//! An object as a server sent it, taken apart as far as somebody may read it.
//!
//! It borrows what it can from the octets that it came in. Servers send JSON, or, of the kinds that Kubernetes itself has, its
//! protobuf: both become the same tree, so that readers know nothing of the difference.

mod json;
mod protobuf;
mod schema;

use std::borrow::Cow;

use serde_json::Number;

pub(super) use protobuf::{Envelope, List, Malformed, WatchEvent, name_of_protobuf};
pub(super) use schema::Schema;

/// What an object says beside its metadata, from any place on down.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree<'a> {
    /// `null`.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Self>),
    /// Keys with values, in the order in which they came.
    Map(Vec<(Cow<'a, str>, Self)>),
}

impl Tree<'_> {
    /// Tells whether it is nothing.
    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Goes down by a key. Of two values of one key the last counts. `None`: there is none, or this has no keys.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Map(map) = self else { return None };
        let found = map.iter().rev().find(|(name, _)| name == key);
        found.map(|(_, value)| value)
    }
}

/// Labels or annotations: each key once, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pairs<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Pairs<'a> {
    /// Puts them in order. Of two values of one key the last counts.
    fn of(mut pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>) -> Self {
        pairs.reverse();
        pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
        pairs.dedup_by(|(later, _), (kept, _)| later == kept);
        Self(pairs)
    }

    /// Gives the value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.binary_search_by(|(name, _)| (**name).cmp(key));
        self.0.get(found.ok()?).map(|(_, value)| &**value)
    }

    /// Lists them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }
}

/// What of the metadata somebody reads. What is missing is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Meta<'a> {
    /// Its name.
    pub(super) name: Cow<'a, str>,
    /// The namespace that it is in.
    pub(super) namespace: Cow<'a, str>,
    /// Its version.
    pub(super) version: Cow<'a, str>,
    /// It is being deleted.
    pub(super) is_deleting: bool,
    /// Its labels.
    pub(super) labels: Pairs<'a>,
    /// Its annotations, without the copy of the whole object that `kubectl apply` keeps there.
    pub(super) annotations: Pairs<'a>,
}

/// An object.
#[derive(Clone, Debug, PartialEq)]
pub struct Object<'a> {
    pub(super) meta: Meta<'a>,
    /// What stands beside `metadata`, `apiVersion` and `kind`; always a map.
    pub(super) body: Tree<'a>,
}

/// Annotations that nobody reads, and that may hold the whole object once more.
const COPY: &str = "kubectl.kubernetes.io/last-applied-configuration";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_values_of_one_key_the_last_counts() {
        let pair = |key: &'static str, value: &'static str| (key.into(), value.into());
        let pairs = Pairs::of(vec![pair("b", "1"), pair("a", "2"), pair("b", "3")]);
        let all: Vec<_> = pairs.iter().collect();
        assert_eq!(all, [("a", "2"), ("b", "3")]);
        assert_eq!((pairs.get("b"), pairs.get("c")), (Some("3"), None));
        let map = Tree::Map(vec![
            ("a".into(), Tree::Bool(true)),
            ("a".into(), Tree::Null),
        ]);
        assert_eq!(map.get("a"), Some(&Tree::Null));
        assert_eq!(map.get("b"), None);
        assert_eq!(Tree::Null.get("a"), None);
    }
}
