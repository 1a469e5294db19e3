//! A list in groups, copied by the group: what a change of one entry costs grows with a 64th of the list.

use std::fmt;
use std::sync::Arc;

/// Entries of one group. 64 keeps both the copy of a group and the copy of the list of groups short, up to millions.
const GROUP: usize = 64;

/// Entries by position. Cheap to clone: groups are shared.
pub(super) struct Grouped<T> {
    groups: Arc<[Arc<[T; GROUP]>]>,
}

impl<T> Clone for Grouped<T> {
    fn clone(&self) -> Self {
        Self {
            groups: Arc::clone(&self.groups),
        }
    }
}

impl<T> Default for Grouped<T> {
    fn default() -> Self {
        Self {
            groups: Arc::default(),
        }
    }
}

impl<T> fmt::Debug for Grouped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grouped")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl<T> Grouped<T> {
    /// Gives an entry; `None` beyond the last group.
    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.groups.get(at / GROUP)?.get(at % GROUP)
    }

    /// Counts the entries: those of whole groups.
    pub(super) fn len(&self) -> usize {
        self.groups.len() * GROUP
    }

    /// Iterates over all entries.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.groups.iter().flat_map(|group| group.iter())
    }

    /// Gives the octets of the lists themselves.
    pub(super) fn memory(&self) -> usize {
        self.groups.len() * size_of::<[T; GROUP]>() + size_of_val(&*self.groups)
    }

    /// Tells whether this is the same allocation as another list's.
    #[cfg(test)]
    pub(super) fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.groups, &other.groups)
    }

    /// Begins to change the list.
    pub(super) fn edit(&self) -> GroupedEdit<T> {
        GroupedEdit {
            groups: self.groups.to_vec(),
        }
    }
}

/// A list being changed. Groups are copied when they are first touched.
#[derive(Debug)]
pub(super) struct GroupedEdit<T> {
    groups: Vec<Arc<[T; GROUP]>>,
}

impl<T: Clone + Default> GroupedEdit<T> {
    /// Gives an entry as it stands now; `None` beyond the last group.
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.groups.get(at / GROUP)?.get(at % GROUP)
    }

    /// Gives an entry to change. The list grows as far as needed.
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        if at / GROUP >= self.groups.len() {
            self.groups.resize_with(at / GROUP + 1, || {
                Arc::new(std::array::from_fn(|_| T::default()))
            });
        }
        let group = self.groups.get_mut(at / GROUP).map(Arc::make_mut)?;
        group.get_mut(at % GROUP)
    }

    /// Freezes.
    pub(super) fn seal(self) -> Grouped<T> {
        Grouped {
            groups: self.groups.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_copies_one_group() {
        let mut edit = Grouped::<u32>::default().edit();
        for at in 0..200_u32 {
            *edit.get_mut(at as usize).unwrap() = at;
        }
        let first = edit.seal();
        assert_eq!(
            (first.len(), first.get(199), first.get(256)),
            (256, Some(&199), None)
        );
        let mut edit = first.edit();
        *edit.get_mut(70).unwrap() = 7;
        assert_eq!((edit.get(70), edit.get(999)), (Some(&7), None));
        let second = edit.seal();
        assert_eq!((first.get(70), second.get(70)), (Some(&70), Some(&7)));
        let shared = first.groups.iter().zip(second.groups.iter());
        let shared: Vec<bool> = shared.map(|(a, b)| Arc::ptr_eq(a, b)).collect();
        assert_eq!(shared, [true, false, true, true]);
        assert_eq!(second.iter().sum::<u32>(), (0..200).sum::<u32>() - 70 + 7);
    }
}
