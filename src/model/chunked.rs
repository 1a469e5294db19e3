//! A long table that many hold at a time: a change copies one chunk and nothing else.

use std::sync::Arc;

/// Entries of one chunk.
const CHUNK: usize = 4096;

/// A table by index. What lies beyond its end is the default. Cheap to clone: chunks are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunked<T> {
    chunks: Arc<[Arc<[T; CHUNK]>]>,
}

impl<T> Default for Chunked<T> {
    fn default() -> Self {
        Self {
            chunks: Arc::default(),
        }
    }
}

impl<T: Copy + Default + PartialEq> Chunked<T> {
    /// Gives one entry.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> T {
        let chunk = self.chunks.get(index / CHUNK);
        let entry = chunk.and_then(|chunk| chunk.get(index % CHUNK));
        entry.copied().unwrap_or_default()
    }

    /// Gives a table with other entries in it. Of two for one index the later wins. The table ends with the last chunk in which an
    /// entry ever was not the default.
    #[must_use]
    pub fn with(&self, entries: impl Iterator<Item = (usize, T)>) -> Self {
        let mut chunks: Option<Vec<Arc<[T; CHUNK]>>> = None;
        for (index, entry) in entries {
            let (chunk, at) = (index / CHUNK, index % CHUNK);
            let held = chunks
                .as_deref()
                .unwrap_or(&self.chunks)
                .get(chunk)
                .and_then(|chunk| chunk.get(at).copied());
            if held.unwrap_or_default() == entry {
                continue;
            }
            let chunks = chunks.get_or_insert_with(|| self.chunks.to_vec());
            if chunk >= chunks.len() {
                chunks.resize_with(chunk + 1, || Arc::new([T::default(); CHUNK]));
            }
            let chunk = chunks.get_mut(chunk).map(Arc::make_mut);
            if let Some(place) = chunk.and_then(|chunk| chunk.get_mut(at)) {
                *place = entry;
            }
        }
        chunks.map_or_else(
            || self.clone(),
            |chunks| Self {
                chunks: chunks.into(),
            },
        )
    }

    /// Gives the octets held.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.chunks.len() * CHUNK * size_of::<T>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_copies_one_chunk() {
        let change = |table: &Chunked<u8>, entries: &[(usize, u8)]| {
            let entries = entries.to_vec();
            table.with(entries.into_iter())
        };
        let empty = Chunked::default();
        assert_eq!(empty.get(5), 0);
        assert_eq!(change(&empty, &[(9_999_999, 0)]).memory(), 0);
        let first = change(&empty, &[(1, 7), (9000, 7), (2, 7), (2, 0)]);
        let second = change(&first, &[(1, 0)]);
        for (index, before, after) in [
            (0, 0, 0),
            (1, 7, 0),
            (2, 0, 0),
            (9000, 7, 7),
            (100_000, 0, 0),
        ] {
            assert_eq!((first.get(index), second.get(index)), (before, after));
        }
        let shared = first.chunks.iter().zip(second.chunks.iter());
        let shared: Vec<bool> = shared.map(|(a, b)| Arc::ptr_eq(a, b)).collect();
        assert_eq!(shared, [false, true, true]);
    }
}
