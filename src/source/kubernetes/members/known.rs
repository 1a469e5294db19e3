//! The objects of one kind that are known, as keys: how many there are, and how many there may be.

use std::collections::HashSet;

use crate::source::kubernetes::records::Key;

/// Objects of one kind in one cluster, at most, annotated or not. Clusters are not made for more Services or slices of them. What
/// is left out says nothing: a list without it ends by [`Event::LeftOut`](crate::source::kubernetes::records::Event::LeftOut).
pub(super) const MAX_OBJECTS: usize = 200_000;

/// Keys of what is known.
///
/// While a list is read, what was known before it stands: a new object counts beside all of it.
#[derive(Debug)]
pub(super) struct Known {
    keys: HashSet<Key>,
    /// Seen in the list that is being read.
    listed: Option<HashSet<Key>>,
    /// New ones in it.
    new: usize,
    /// Left out since the last list began.
    over: usize,
    max: usize,
}

impl Known {
    /// Starts with nothing; `max` objects may be known.
    pub(super) fn new(max: usize) -> Self {
        Self {
            keys: HashSet::new(),
            listed: None,
            new: 0,
            over: 0,
            max,
        }
    }

    /// A list begins.
    pub(super) fn begin_list(&mut self) {
        self.listed = Some(HashSet::new());
        self.new = 0;
        self.over = 0;
    }

    /// The list is at its end: what was known before and is not in it is gone, whatever was left out. Gives what is gone.
    pub(super) fn end_list(&mut self) -> Vec<Key> {
        let Some(listed) = self.listed.take() else {
            return Vec::new();
        };
        let before = std::mem::replace(&mut self.keys, listed);
        self.new = 0;
        let gone = before.into_iter();
        gone.filter(|key| !self.keys.contains(key)).collect()
    }

    /// All is gone.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.max);
    }

    /// Tells whether an object may be known, and counts it among those left out if not.
    pub(super) fn admits(&mut self, key: &Key) -> bool {
        let is_known = self.contains(key);
        let is_admitted = is_known || self.keys.len() + self.new < self.max;
        self.over += usize::from(!is_admitted);
        is_admitted
    }

    /// An object is there.
    pub(super) fn insert(&mut self, key: Key) {
        match &mut self.listed {
            Some(listed) => {
                let is_old = self.keys.contains(&key);
                self.new += usize::from(listed.insert(key) && !is_old);
            }
            None => {
                self.keys.insert(key);
            }
        }
    }

    /// An object is gone. Tells whether it was known.
    pub(super) fn remove(&mut self, key: &Key) -> bool {
        let was_known = self.keys.remove(key);
        let was_listed = self
            .listed
            .as_mut()
            .is_some_and(|listed| listed.remove(key));
        if was_listed && !was_known {
            self.new = self.new.saturating_sub(1);
        }
        was_known || was_listed
    }

    fn contains(&self, key: &Key) -> bool {
        let is_listed = |listed: &HashSet<Key>| listed.contains(key);
        self.keys.contains(key) || self.listed.as_ref().is_some_and(is_listed)
    }

    /// How many are known.
    pub(super) fn len(&self) -> usize {
        self.keys.len() + self.new
    }

    /// How many were left out.
    pub(super) fn over(&self) -> usize {
        self.over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key {
            namespace: "shop".into(),
            name: name.into(),
        }
    }

    /// Lets in what may be let in.
    fn put(known: &mut Known, names: &[&str]) -> Vec<bool> {
        let put = names.iter().map(|name| {
            let is_admitted = known.admits(&key(name));
            if is_admitted {
                known.insert(key(name));
            }
            is_admitted
        });
        put.collect()
    }

    #[test]
    fn what_a_list_does_not_have_is_gone_at_its_end_and_not_before() {
        let mut known = Known::new(10);
        known.begin_list();
        put(&mut known, &["a", "b", "a"]);
        assert_eq!(known.len(), 2);
        known.end_list();
        assert_eq!(known.len(), 2);
        known.begin_list();
        put(&mut known, &["b", "c"]);
        assert_eq!(known.len(), 3);
        // A list that breaks off begins anew.
        known.begin_list();
        put(&mut known, &["b"]);
        assert_eq!(known.len(), 2);
        assert_eq!(known.end_list(), [key("a")]);
        assert_eq!(known.len(), 1);
        assert!(known.remove(&key("b")));
        assert!(!known.remove(&key("b")));
        put(&mut known, &["d"]);
        assert_eq!(known.len(), 1);
        known.clear();
        assert_eq!(known.len(), 0);
    }

    #[test]
    fn beyond_the_limit_nothing_new_is_let_in_and_nothing_known_is_lost() {
        let mut known = Known::new(3);
        known.begin_list();
        assert_eq!(
            put(&mut known, &["x", "y", "z", "w"]),
            [true, true, true, false]
        );
        known.end_list();
        assert_eq!((known.len(), known.over()), (3, 1));
        assert_eq!(put(&mut known, &["v", "x"]), [false, true]);
        // New ones that sort before the known do not crowd them out.
        known.begin_list();
        let put_again = put(&mut known, &["a", "b", "x", "y", "z"]);
        assert_eq!(put_again, [false, false, true, true, true]);
        known.end_list();
        assert_eq!((known.len(), known.over()), (3, 2));
        // What is gone makes room.
        assert!(known.remove(&key("x")));
        assert_eq!(put(&mut known, &["a"]), [true]);
    }
}
