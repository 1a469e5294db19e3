//! A growing list with holes: dense indices without one huge allocation, so that growing never copies what is there.

/// Entries of one page: growing costs one page, never a copy of the whole.
const PAGE: usize = 1024;

/// Values by dense index, in pages. A taken index stays out of use until it is given back.
#[derive(Debug)]
pub struct Slab<T> {
    pages: Vec<Box<[Option<T>]>>,
    /// Indices to be used again, the last one first.
    free: Vec<u32>,
    /// One more than the highest index ever given.
    end: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            pages: Vec::new(),
            free: Vec::new(),
            end: 0,
        }
    }
}

impl<T> Slab<T> {
    /// Gives a value; `None` for a hole.
    #[inline]
    #[must_use]
    pub fn get(&self, index: u32) -> Option<&T> {
        let (page, at) = split(index);
        self.pages.get(page)?.get(at)?.as_ref()
    }

    /// Gives a value to change; `None` for a hole.
    pub fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        let (page, at) = split(index);
        self.pages.get_mut(page)?.get_mut(at)?.as_mut()
    }

    /// Puts a value into a free index, else at the end.
    ///
    /// # Panics
    /// After 2^32 - 1 entries, which no machine holds.
    pub fn insert(&mut self, value: T) -> u32 {
        let index = self.free.pop().unwrap_or(self.end);
        let (page, at) = split(index);
        if page >= self.pages.len() {
            self.pages
                .push(std::iter::repeat_with(|| None).take(PAGE).collect());
        }
        if let Some(slot) = self.pages.get_mut(page).and_then(|page| page.get_mut(at)) {
            *slot = Some(value);
        }
        if index == self.end {
            self.end = index
                .checked_add(1)
                .expect("2^32 entries do not fit into memory");
        }
        index
    }

    /// Takes a value out. Its index is not used again before [`Slab::give_back`].
    pub fn take(&mut self, index: u32) -> Option<T> {
        let (page, at) = split(index);
        self.pages.get_mut(page)?.get_mut(at)?.take()
    }

    /// Lets an index be used again. It must have been taken, and given back once only.
    pub fn give_back(&mut self, index: u32) {
        debug_assert!(self.get(index).is_none(), "index {index} is in use");
        self.free.push(index);
    }

    /// Iterates over the values by ascending index.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..self.end)
            .zip(self.pages.iter().flat_map(|page| page.iter()))
            .filter_map(|(index, value)| Some((index, value.as_ref()?)))
    }

    /// Gives one more than the highest index ever given.
    #[must_use]
    pub fn end(&self) -> u32 {
        self.end
    }
}

/// Splits an index into page and position.
#[inline]
fn split(index: u32) -> (usize, usize) {
    (index as usize / PAGE, index as usize % PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_dense_and_reused_only_when_given_back() {
        let mut slab = Slab::default();
        for n in 0..3000_u32 {
            assert_eq!(slab.insert(n), n);
        }
        assert_eq!(slab.take(1500), Some(1500));
        assert_eq!((slab.take(1500), slab.get(1500)), (None, None));
        assert_eq!(slab.insert(0), 3000);
        slab.give_back(1500);
        assert_eq!(slab.insert(7), 1500);
        assert_eq!(slab.end(), 3001);
        *slab.get_mut(2).unwrap() = 9;
        let all: Vec<(u32, u32)> = slab.iter().map(|(index, value)| (index, *value)).collect();
        assert_eq!(all.len(), 3001);
        assert_eq!(
            (all[2], all[1500], all[3000]),
            ((2, 9), (1500, 7), (3000, 0))
        );
        assert_eq!(slab.get(99_999), None);
    }
}
