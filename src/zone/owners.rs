//! The owner names of one zone, sorted, in one allocation.

use crate::model::{LowerName, NameRef};

/// Sorted names: wire forms one after the other, found by binary search. Sorted by octets of the wire form, which is no
/// order of DNS but all that a search needs.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners {
    wire: Box<[u8]>,
    /// Where each name ends.
    ends: Box<[u32]>,
}

impl Owners {
    /// Takes names in ascending order of their wire forms.
    pub(super) fn new<'n>(sorted: impl Iterator<Item = &'n LowerName>) -> Self {
        let mut wire = Vec::new();
        let mut ends = Vec::new();
        for name in sorted {
            wire.extend_from_slice(name.as_wire());
            ends.push(u32::try_from(wire.len()).expect("a zone's text is bounded at 64 MiB"));
        }
        Self {
            wire: wire.into(),
            ends: ends.into(),
        }
    }

    /// Counts the names.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Gives the name at a position.
    pub(super) fn get(&self, position: usize) -> Option<NameRef<'_>> {
        let end = *self.ends.get(position)? as usize;
        let start = match position.checked_sub(1) {
            Some(before) => *self.ends.get(before)? as usize,
            None => 0,
        };
        self.wire.get(start..end).map(NameRef::from_checked)
    }

    /// Finds a name's position.
    pub(super) fn find(&self, name: NameRef<'_>) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.get(middle)?.as_wire().cmp(name.as_wire()) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Iterates over all names in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = NameRef<'_>> {
        (0..self.len()).filter_map(|position| self.get(position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_no_other() {
        let mut names: Vec<LowerName> = ["b.x", "a.x", "x", ".", "*.x", "a.b.x", "aa.x"]
            .map(|text| text.parse().unwrap())
            .to_vec();
        names.sort();
        let owners = Owners::new(names.iter());
        for (position, name) in names.iter().enumerate() {
            assert_eq!(owners.find(name.as_ref()), Some(position));
            assert_eq!(owners.get(position), Some(name.as_ref()));
        }
        for text in ["c.x", "b", "a.a.x"] {
            assert_eq!(
                owners.find(text.parse::<LowerName>().unwrap().as_ref()),
                None
            );
        }
        assert_eq!(owners.iter().count(), names.len());
        assert_eq!(Owners::default().find(NameRef::ROOT), None);
    }
}
