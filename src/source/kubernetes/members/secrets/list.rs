//! The Secrets of one place that are known, and the clusters that they make.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::Found;
use super::object::{Secret, is_of_others, read};
use super::store::{MAX, MAX_OCTETS, Store};
use crate::model::{ClusterId, Rejection, counted};
use crate::source::kubernetes::directory::{FoundCluster, Kubeconfig, Listing};
use crate::source::kubernetes::members::raw::Item;
use crate::source::kubernetes::records::Key;
use crate::source::kubernetes::rules::SecretsPlace;

/// Most names that are kept of those that are left out.
const MAX_OVER: usize = 10 * MAX;
/// Most refusals that are told: a Secret may have as many bad keys as it has room for.
const MAX_REFUSED: usize = 1000;
/// Octets of a name. Kubernetes has no longer ones.
const MAX_NAME: usize = 253;

/// Takes what the watch sees, and publishes what it comes to.
pub(in crate::source::kubernetes::members) struct SecretList {
    place: Arc<SecretsPlace>,
    known: Store,
    /// The list that is being read.
    listing: Option<Store>,
    /// Secrets that cannot be read at all, and why.
    unreadable: BTreeMap<Box<str>, String>,
    /// Secrets that are left out, or as they were before, because there is no room for what they are.
    over: BTreeSet<Box<str>>,
    /// A list was read to its end.
    is_listed: bool,
    found: Arc<Found>,
}

impl fmt::Debug for SecretList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretList({})", self.place)
    }
}

impl SecretList {
    /// Begins with nothing.
    pub(super) fn new(place: Arc<SecretsPlace>, found: Arc<Found>) -> Self {
        Self {
            place,
            known: Store::with_room(MAX_OCTETS),
            listing: None,
            unreadable: BTreeMap::new(),
            over: BTreeSet::new(),
            is_listed: false,
            found,
        }
    }

    /// Gives the path of the Secrets, and the selector of their labels.
    pub(in crate::source::kubernetes::members) fn scope(&self) -> (String, &str) {
        let path = format!("/api/v1/namespaces/{}/secrets", self.place.namespace);
        (path, &self.place.selector)
    }

    /// Counts what is known, and what was left out.
    pub(in crate::source::kubernetes::members) fn counts(&self) -> (usize, usize) {
        (self.known.len(), self.over.len())
    }

    /// A list begins.
    pub(in crate::source::kubernetes::members) fn begin_list(&mut self) {
        self.listing = Some(self.known.another());
        self.over.clear();
        self.unreadable.clear();
    }

    /// The list is at its end: what is not in it is gone.
    pub(in crate::source::kubernetes::members) fn end_list(&mut self) {
        if let Some(listing) = self.listing.take() {
            self.known = listing;
            self.is_listed = true;
            self.publish();
        }
    }

    /// A Secret is there, or another one now.
    pub(in crate::source::kubernetes::members) fn put(&mut self, item: &Item<Value>) {
        match item {
            Item::Read(object) => {
                let name = object.pointer("/metadata/name").and_then(Value::as_str);
                match name {
                    Some(name) if (1..=MAX_NAME).contains(&name.len()) => self.take(name, object),
                    _ => return,
                }
            }
            Item::Unreadable(key, _) if key.name.len() > MAX_NAME => return,
            Item::Unreadable(key, why) => {
                let name = &*key.name;
                // What was good of it before stays.
                if let Some((listing, former)) = self.listing.as_mut().zip(self.known.get(name)) {
                    let out = listing.put_of_list(name, former.clone(), &self.known);
                    self.leave_out(out);
                }
                if self.unreadable.len() < MAX {
                    self.unreadable.insert(name.into(), why.reason.to_string());
                }
            }
            Item::Nobody => return,
        }
        self.tell();
    }

    /// Takes in a Secret that was read.
    fn take(&mut self, name: &str, object: &Value) {
        self.unreadable.remove(name);
        self.over.remove(name);
        let former = self.known.get(name);
        if former.is_none() && is_of_others(object, &self.place) {
            return;
        }
        let mut secret = read(object, &self.place);
        if let Some(former) = former {
            keep_usable(&mut secret, former);
        }
        let out = match &mut self.listing {
            Some(listing) => listing.put_of_list(name, secret, &self.known),
            None => {
                let fits = self.known.put(name, secret);
                if fits { Vec::new() } else { vec![name.into()] }
            }
        };
        self.leave_out(out);
    }

    /// Notes those that there is no room for.
    fn leave_out(&mut self, names: Vec<Box<str>>) {
        for name in names {
            if self.over.len() < MAX_OVER {
                self.over.insert(name);
            }
        }
    }

    /// A Secret is gone, or has no such label any more.
    pub(in crate::source::kubernetes::members) fn delete(&mut self, key: &Key) {
        let name = &*key.name;
        self.unreadable.remove(name);
        self.over.remove(name);
        self.known.remove(name);
        if let Some(listing) = &mut self.listing {
            listing.remove(name);
        }
        self.tell();
    }

    /// Publishes a change; of a list that is being read only its end is told.
    fn tell(&self) {
        if self.is_listed && self.listing.is_none() {
            self.publish();
        }
    }

    fn publish(&self) {
        let mut listing = sort_out(&self.place, &self.known);
        let namespace = &self.place.namespace;
        for (name, why) in &self.unreadable {
            listing.refused.push(Rejection {
                source: format!("Secret {namespace}/{name}"),
                place: String::new(),
                reason: format!("cannot be read: {why}"),
            });
        }
        if let Some(first) = self.over.first() {
            let at_least = if self.over.len() < MAX_OVER {
                ""
            } else {
                "at least "
            };
            let left_out = counted(self.over.len(), "Secret");
            listing.refused.push(Rejection {
                source: self.place.to_string(),
                place: String::new(),
                reason: format!(
                    "there is room for {MAX} Secrets and {MAX_OCTETS} octets of them; left out, or kept as before: {at_least}{left_out}, such as {first}"
                ),
            });
        }
        self.found.publish(listing);
    }
}

/// Keeps a kubeconfig that was good where what stands there now is none: whoever spoils a Secret takes no cluster away. What is as
/// before is in memory once, while two lists are compared too.
fn keep_usable(secret: &mut Secret, former: &Secret) {
    for (key, entry) in &mut secret.entries {
        let held = former.entries.get(key);
        let held = held.filter(|held| held.id.is_ok() && held.id == entry.id);
        if let Some(held) = held
            && (entry.text.is_none() || entry.text == held.text)
        {
            entry.text.clone_from(&held.text);
        }
    }
}

/// Finds the clusters of Secrets. Of two of one name that of the older Secret counts, so that nobody takes a name by making another.
fn sort_out(place: &SecretsPlace, known: &Store) -> Listing {
    let mut listing = Listing::default();
    let mut untold = 0_usize;
    let mut seen: BTreeMap<ClusterId, String> = BTreeMap::new();
    let mut sorted: Vec<(&str, &Secret)> = known.iter().collect();
    sorted.sort_by_key(|(name, secret)| (&secret.created, *name));
    for (name, secret) in sorted {
        let source = format!("Secret {}/{name}", place.namespace);
        for (key, entry) in &secret.entries {
            let mut refuse = |reason: String| {
                if listing.refused.len() >= MAX_REFUSED {
                    untold += 1;
                    return;
                }
                listing.refused.push(Rejection {
                    source: source.clone(),
                    place: key.to_string(),
                    reason,
                });
            };
            if let Some(why) = &entry.why {
                refuse(why.clone());
            }
            let id = match &entry.id {
                Ok(id) => id,
                Err(why) => {
                    refuse(why.clone());
                    continue;
                }
            };
            let Some(text) = &entry.text else { continue };
            if let Some(first) = seen.get(id) {
                refuse(format!("the cluster {id} is that of {first} already"));
                continue;
            }
            if listing.clusters.len() >= MAX {
                refuse(format!("there are at most {MAX} clusters"));
                continue;
            }
            let stands = format!("{source}, key {key}");
            seen.insert(id.clone(), stands.clone());
            listing.clusters.push(FoundCluster {
                id: id.clone(),
                kubeconfig: Kubeconfig::Secret {
                    name: stands.into(),
                    text: text.clone(),
                },
                annotations: secret.annotations.clone(),
            });
        }
    }
    if untold > 0 {
        listing.refused.push(Rejection {
            source: place.to_string(),
            place: String::new(),
            reason: format!("{untold} more are refused"),
        });
    }
    listing
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::inventory::Refused;
    use crate::source::kubernetes::rules::Access;

    fn list() -> (SecretList, Arc<Found>) {
        list_of(None, None)
    }

    fn list_of(key: Option<&str>, label: Option<&str>) -> (SecretList, Arc<Found>) {
        let place = SecretsPlace {
            server: "cluster hub".into(),
            cluster: "hub".parse().unwrap(),
            access: Access::InCluster,
            namespace: "m".into(),
            selector: "a=b".into(),
            key: key.map(Into::into),
            name_label: label.map(Into::into),
        };
        let found = Arc::new(Found::default());
        (SecretList::new(Arc::new(place), found.clone()), found)
    }

    fn secret(name: &str, created: &str, data: &Value) -> Item<Value> {
        Item::Read(json!({
            "metadata": {"name": name, "namespace": "m", "creationTimestamp": created}, "data": data,
        }))
    }

    fn key(name: &str) -> Key {
        Key {
            namespace: "m".into(),
            name: name.into(),
        }
    }

    /// What was published: clusters with their texts, and refusals.
    fn shown(found: &Found) -> String {
        let Some(listing) = found.get() else {
            return "never".to_owned();
        };
        let clusters = listing.clusters.iter().map(|one| match &one.kubeconfig {
            Kubeconfig::Secret { name, text } => format!("{} {name} {}", one.id, text.expose()),
            Kubeconfig::File(file) => panic!("{file:?}"),
        });
        let refused = listing.refused.iter().map(ToString::to_string);
        clusters.chain(refused).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn nothing_is_published_before_a_list_is_at_its_end() {
        let (mut list, found) = list();
        list.put(&secret("a", "1", &json!({"x": "YQ=="})));
        list.begin_list();
        list.put(&secret("b", "2", &json!({"y": "Yg=="})));
        assert_eq!(shown(&found), "never");
        list.end_list();
        assert_eq!(shown(&found), "y Secret m/b, key y b");
        // A list that breaks off changes nothing, and the next one is compared with what is known.
        list.begin_list();
        list.begin_list();
        assert_eq!(shown(&found), "y Secret m/b, key y b");
        list.put(&secret("c", "3", &json!({"z": "Yw=="})));
        list.end_list();
        assert_eq!(shown(&found), "z Secret m/c, key z c");
        list.delete(&key("c"));
        assert_eq!(shown(&found), "");
    }

    #[test]
    fn the_older_secret_has_the_name() {
        let (mut list, found) = list();
        list.begin_list();
        list.end_list();
        list.put(&secret("b", "2026-01-01T00:00:00Z", &json!({"x": "Yg=="})));
        list.put(&secret("a", "2026-01-02T00:00:00Z", &json!({"x": "YQ=="})));
        let expected = "x Secret m/b, key x b; \
                        Secret m/a: x: the cluster x is that of Secret m/b, key x already";
        assert_eq!(shown(&found), expected);
        list.delete(&key("b"));
        assert_eq!(shown(&found), "x Secret m/a, key x a");
    }

    #[test]
    fn what_is_spoiled_takes_no_cluster_away() {
        let (mut list, found) = list();
        list.begin_list();
        list.put(&secret("a", "1", &json!({"x": "YQ=="})));
        list.end_list();
        list.put(&secret("a", "1", &json!({"x": "//4A"})));
        let kept = "x Secret m/a, key x a; Secret m/a: x: is no UTF-8 text";
        assert_eq!(shown(&found), kept);
        let why = Refused {
            what: "object".into(),
            reason: "nested too deeply".into(),
        };
        list.begin_list();
        list.put(&Item::Unreadable(key("a"), why));
        list.end_list();
        let shown_now = shown(&found);
        assert!(
            shown_now.contains("x Secret m/a, key x a") && shown_now.contains("nested too deeply"),
            "{shown_now}"
        );
        // A key that is taken out is gone.
        list.put(&secret("a", "1", &json!({})));
        assert_eq!(shown(&found), "");
    }

    #[test]
    fn there_is_a_bound() {
        let (mut list, found) = list();
        list.begin_list();
        for at in 0..MAX + 2 {
            list.put(&secret(
                &format!("s-{at:04}"),
                "1",
                &json!({format!("c-{at:04}"): "YQ=="}),
            ));
        }
        list.end_list();
        let listing = found.get().unwrap();
        assert_eq!(listing.clusters.len(), MAX);
        assert_eq!(list.counts(), (MAX, 2));
        let last = listing.refused.last().unwrap().to_string();
        assert!(
            last.ends_with("before: 2 Secrets, such as s-1000"),
            "{last}"
        );
        // Others that sort first take the place of none.
        list.begin_list();
        for at in 0..MAX {
            list.put(&secret(&format!("a-{at:04}"), "1", &json!({"x": "YQ=="})));
        }
        for at in 0..MAX {
            let (name, key) = (format!("s-{at:04}"), format!("c-{at:04}"));
            list.put(&secret(&name, "1", &json!({key: "YQ=="})));
        }
        list.end_list();
        assert_eq!(list.counts(), (MAX, MAX));
        assert!(list.known.get("s-0999").is_some());
    }

    #[test]
    fn refusals_are_bounded_and_the_rest_is_counted() {
        let (mut list, found) = list();
        let keys = (0..MAX_REFUSED + 5).map(|at| (format!("No-{at:04}"), json!("YQ==")));
        let keys: serde_json::Map<String, Value> = keys.collect();
        list.begin_list();
        list.put(&secret("a", "1", &keys.into()));
        list.put(&secret("b", "2", &json!({"well": "YQ=="})));
        list.end_list();
        let listing = found.get().unwrap();
        assert_eq!(listing.clusters.len(), 1);
        assert_eq!(listing.refused.len(), MAX_REFUSED + 1);
        let last = listing.refused.last().unwrap().to_string();
        assert!(last.ends_with(": 5 more are refused"), "{last}");
    }

    #[test]
    fn octets_are_bounded_when_they_are_taken_in() {
        let (mut list, found) = list();
        // Two of them have room, and not three.
        list.known = Store::with_room(2600);
        let large = |letter: &str, octets: usize| {
            let text = data_encoding::BASE64.encode(letter.repeat(octets).as_bytes());
            secret(letter, "1", &json!({letter: text}))
        };
        let names = |found: &Found| {
            let listing = found.get().unwrap();
            let clusters = listing.clusters.iter().map(|one| one.id.to_string());
            let refused = listing.refused.iter().map(ToString::to_string);
            (clusters.collect::<String>(), refused.collect::<String>())
        };
        list.begin_list();
        for letter in ["b", "c", "d", "e"] {
            list.put(&large(letter, 1000));
        }
        list.end_list();
        let (clusters, refused) = names(&found);
        assert_eq!((&*clusters, list.counts()), ("bc", (2, 2)));
        assert!(
            refused.ends_with("before: 2 Secrets, such as d"),
            "{refused}"
        );
        // Told again and again, it is one still; gone, it is none.
        list.put(&large("d", 1000));
        list.delete(&key("e"));
        let (clusters, refused) = names(&found);
        assert_eq!((&*clusters, list.counts()), ("bc", (2, 1)));
        assert!(
            refused.ends_with("before: 1 Secret, such as d"),
            "{refused}"
        );
        // One that grows is as it was.
        list.put(&large("b", 1500));
        assert_eq!(names(&found).0, "bc");
        assert_eq!(list.counts(), (2, 2));
        list.put(&large("b", 1001));
        assert_eq!(list.counts(), (2, 1));
        // In a list too; and one that sorts first takes nobody's place.
        list.begin_list();
        list.put(&large("a", 1000));
        list.put(&large("b", 1500));
        list.put(&large("c", 1000));
        list.end_list();
        let (clusters, refused) = names(&found);
        assert_eq!((&*clusters, list.counts()), ("bc", (2, 2)));
        assert!(
            refused.ends_with("before: 2 Secrets, such as a"),
            "{refused}"
        );
        // There is room, and it is told again.
        list.delete(&key("b"));
        list.put(&large("a", 1000));
        assert_eq!(names(&found), ("ac".to_owned(), String::new()));
        assert_eq!(list.counts(), (2, 0));
    }

    #[test]
    fn of_the_secrets_of_one_cluster_the_one_with_the_key_counts() {
        let label = "cluster.x-k8s.io/cluster-name";
        let (mut list, found) = list_of(Some("value"), Some(label));
        let one = |name: &str, data: &Value| {
            Item::Read(json!({"data": data, "metadata": {
                "name": name, "namespace": "m", "creationTimestamp": "1", "labels": {label: "europe"},
            }}))
        };
        let others = json!({"tls.crt": "YQ==", "tls.key": "Yg=="});
        list.begin_list();
        for name in ["europe-ca", "europe-etcd", "europe-proxy", "europe-sa"] {
            list.put(&one(name, &others));
        }
        list.put(&one("europe-kubeconfig", &json!({"value": "Yw=="})));
        list.end_list();
        let expected = "europe Secret m/europe-kubeconfig, key value c";
        assert_eq!(
            (shown(&found), list.counts()),
            (expected.to_owned(), (1, 0))
        );
        list.put(&one("europe-ca", &others));
        assert_eq!(
            (shown(&found), list.counts()),
            (expected.to_owned(), (1, 0))
        );
        // The one that has had it has lost it: that is told, and takes no cluster away.
        list.put(&one("europe-kubeconfig", &json!({})));
        let lost = "; Secret m/europe-kubeconfig: value: has no key `value`";
        assert_eq!(shown(&found), format!("{expected}{lost}"));
    }
}
