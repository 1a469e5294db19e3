//! The Secrets of one place by name: as many as there is room for.

use std::collections::BTreeMap;

use super::object::Secret;

/// Most Secrets of one place, as of a directory.
pub(super) const MAX: usize = 1000;
/// Most octets of all Secrets of one place.
pub(super) const MAX_OCTETS: usize = 64 << 20;

/// One that is kept.
struct Kept {
    secret: Secret,
    /// Octets that it takes, its name included.
    octets: usize,
}

/// Secrets by name, at most so many and so large.
pub(super) struct Store {
    all: BTreeMap<Box<str>, Kept>,
    /// Octets that they take.
    octets: usize,
    /// Octets that they may take.
    room: usize,
}

impl Store {
    /// Begins with nothing, and room for so many octets.
    pub(super) fn with_room(room: usize) -> Self {
        Self {
            all: BTreeMap::new(),
            octets: 0,
            room,
        }
    }

    /// Begins another one, with nothing and as much room.
    pub(super) fn another(&self) -> Self {
        Self::with_room(self.room)
    }

    /// Counts them.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Gives one.
    pub(super) fn get(&self, name: &str) -> Option<&Secret> {
        self.all.get(name).map(|kept| &kept.secret)
    }

    /// Lists them by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Secret)> {
        let all = self.all.iter();
        all.map(|(name, kept)| (&**name, &kept.secret))
    }

    /// Takes one out.
    pub(super) fn remove(&mut self, name: &str) {
        if let Some(kept) = self.all.remove(name) {
            self.octets = self.octets.saturating_sub(kept.octets);
        }
    }

    /// Takes one in, in the place of the one before. Tells whether there was room; where there was none, nothing changes.
    pub(super) fn put(&mut self, name: &str, secret: Secret) -> bool {
        let octets = octets_of(name, &secret);
        let fits = self.fits(name, octets);
        if fits {
            self.remove(name);
            self.octets = self.octets.saturating_add(octets);
            self.all.insert(name.into(), Kept { secret, octets });
        }
        fits
    }

    /// Takes in one of a list that is compared with a former one. Who was there goes before who is new, and stays as it was where
    /// there is no room for more: whoever makes another takes none away. Gives the names of those that are left out, or as before.
    pub(super) fn put_of_list(
        &mut self,
        name: &str,
        secret: Secret,
        former: &Self,
    ) -> Vec<Box<str>> {
        let mut out = Vec::new();
        let before = former.get(name);
        let octets = octets_of(name, &secret);
        if before.is_some() {
            while !self.fits(name, octets)
                && let Some(newcomer) = self.last_newcomer(former)
            {
                self.remove(&newcomer);
                out.push(newcomer);
            }
        }
        let is_as_before = before.is_some_and(|before| *before == secret);
        if self.put(name, secret) {
            return out;
        }
        if !is_as_before {
            out.push(name.into());
        }
        if let Some(before) = before {
            // All as they were have room together.
            while !self.put(name, before.clone())
                && let Some((grown, as_it_was)) = self.last_grown(former)
            {
                self.put(&grown, as_it_was);
                out.push(grown);
            }
        }
        out
    }

    /// Tells whether there is room for so many octets in the place of what has the name.
    fn fits(&self, name: &str, octets: usize) -> bool {
        let before = self.all.get(name);
        let others = before.map_or(self.octets, |kept| self.octets.saturating_sub(kept.octets));
        let has_place = before.is_some() || self.all.len() < MAX;
        has_place && others.saturating_add(octets) <= self.room
    }

    /// Finds one that was not there before.
    fn last_newcomer(&self, former: &Self) -> Option<Box<str>> {
        let mut names = self.all.keys().rev();
        names.find(|name| former.get(name).is_none()).cloned()
    }

    /// Finds one that is larger than before, and gives it as it was.
    fn last_grown(&self, former: &Self) -> Option<(Box<str>, Secret)> {
        self.all.iter().rev().find_map(|(name, kept)| {
            let before = former.all.get(name)?;
            let has_grown = kept.octets > before.octets;
            has_grown.then(|| (name.clone(), before.secret.clone()))
        })
    }
}

fn octets_of(name: &str, secret: &Secret) -> usize {
    name.len().saturating_add(secret.octets())
}

#[cfg(test)]
mod tests {
    use super::super::object::Entry;
    use super::*;

    /// A Secret that takes so many octets under a name of one letter.
    fn secret(octets: usize) -> Secret {
        let entry = |text: usize| Entry {
            id: Ok("a".parse().unwrap()),
            text: Some("x".repeat(text).into()),
            why: None,
        };
        let of = |text| Secret {
            entries: [("k".into(), entry(text))].into(),
            ..Secret::default()
        };
        let empty = octets_of("n", &of(0));
        let secret = of(octets - empty);
        assert_eq!(octets_of("n", &secret), octets);
        secret
    }

    fn store(rows: &[(&str, usize)]) -> Store {
        let mut store = Store::with_room(3000);
        for (name, octets) in rows {
            assert!(store.put(name, secret(*octets)), "{name}");
        }
        store
    }

    fn shown(store: &Store) -> Vec<(&str, usize)> {
        let all: Vec<_> = store
            .iter()
            .map(|(name, secret)| (name, octets_of(name, secret)))
            .collect();
        let sum: usize = all.iter().map(|(_, octets)| octets).sum();
        assert_eq!(store.octets, sum);
        assert!(sum <= store.room);
        all
    }

    #[test]
    fn what_has_no_room_changes_nothing() {
        let mut store = store(&[("a", 1000), ("b", 1000)]);
        assert!(!store.put("c", secret(1001)));
        assert!(!store.put("a", secret(2001)));
        assert_eq!(shown(&store), [("a", 1000), ("b", 1000)]);
        assert!(store.put("c", secret(1000)) && store.put("a", secret(1000)));
        store.remove("b");
        store.remove("b");
        assert!(store.put("a", secret(2000)));
        assert_eq!(shown(&store), [("a", 2000), ("c", 1000)]);
        assert_eq!(store.len(), 2);
    }

    #[test]
    fn who_was_there_goes_before_who_is_new_and_before_who_grows() {
        let former = store(&[("m", 1000), ("n", 1000), ("o", 1000)]);
        let mut list = former.another();
        let mut put = |name: &str, octets| {
            let out = list.put_of_list(name, secret(octets), &former);
            (out.join(" "), shown(&list).len())
        };
        assert_eq!(put("a", 900), (String::new(), 1));
        assert_eq!(put("b", 900), (String::new(), 2));
        assert_eq!(put("c", 1300), ("c".to_owned(), 2));
        // It grows, and the newcomers go, the last first.
        assert_eq!(put("m", 2000), ("b".to_owned(), 2));
        // It grows too much, and is as it was; and so is the one before it, for the last of all.
        assert_eq!(put("n", 1001), ("a n".to_owned(), 2));
        assert_eq!(put("o", 1000), ("m".to_owned(), 3));
        assert_eq!(shown(&list), [("m", 1000), ("n", 1000), ("o", 1000)]);
    }
}
