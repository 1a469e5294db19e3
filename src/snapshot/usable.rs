//! One octet an endpoint: verdict, drained, forced, in doubt. A flip copies one chunk of them and nothing else.

use std::sync::Arc;

use crate::model::{EndpointIndex, EndpointState};
use crate::steering::States;

/// Endpoints of one chunk.
const CHUNK: usize = 4096;

/// The table of endpoint states. Indices beyond its end are Up. Cheap to clone: chunks are shared.
#[derive(Clone, Debug, Default)]
pub struct UsableTable {
    chunks: Arc<[Arc<[EndpointState; CHUNK]>]>,
}

impl UsableTable {
    /// Gives a table with other states in it. Of two entries for one endpoint the later wins. The table ends with the last
    /// chunk in which an endpoint ever was not Up.
    pub(super) fn with(
        &self,
        states: impl Iterator<Item = (EndpointIndex, EndpointState)>,
    ) -> Self {
        let mut chunks: Option<Vec<Arc<[EndpointState; CHUNK]>>> = None;
        for (index, state) in states {
            let (chunk, at) = split(index);
            let held = chunks
                .as_deref()
                .unwrap_or(&self.chunks)
                .get(chunk)
                .and_then(|chunk| chunk.get(at).copied());
            if held.unwrap_or(EndpointState::UP) == state {
                continue;
            }
            let chunks = chunks.get_or_insert_with(|| self.chunks.to_vec());
            if chunk >= chunks.len() {
                chunks.resize_with(chunk + 1, || Arc::new([EndpointState::UP; CHUNK]));
            }
            let chunk = chunks.get_mut(chunk).map(Arc::make_mut);
            if let Some(place) = chunk.and_then(|chunk| chunk.get_mut(at)) {
                *place = state;
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
        self.chunks.len() * CHUNK
    }
}

impl States for UsableTable {
    #[inline]
    fn state(&self, endpoint: EndpointIndex) -> EndpointState {
        let (chunk, at) = split(endpoint);
        self.chunks
            .get(chunk)
            .and_then(|chunk| chunk.get(at))
            .copied()
            .unwrap_or(EndpointState::UP)
    }
}

/// Splits an index into chunk and position.
#[inline]
fn split(index: EndpointIndex) -> (usize, usize) {
    (index.get() / CHUNK, index.get() % CHUNK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Verdict;

    #[test]
    fn a_flip_copies_one_chunk() {
        let down = EndpointState::UP.with_verdict(Verdict::Down);
        let flips = |list: &[(u32, EndpointState)]| {
            list.iter()
                .map(|&(index, state)| (EndpointIndex(index), state))
                .collect::<Vec<_>>()
                .into_iter()
        };
        let empty = UsableTable::default();
        assert_eq!(empty.state(EndpointIndex(5)), EndpointState::UP);
        let same = empty.with(flips(&[(9_999_999, EndpointState::UP)]));
        assert_eq!(same.memory(), 0);
        let first = empty.with(flips(&[
            (1, down),
            (9000, down),
            (2, down),
            (2, EndpointState::UP),
        ]));
        let second = first.with(flips(&[(1, EndpointState::UP)]));
        for (index, before, after) in [
            (0, EndpointState::UP, EndpointState::UP),
            (1, down, EndpointState::UP),
            (2, EndpointState::UP, EndpointState::UP),
            (9000, down, down),
            (100_000, EndpointState::UP, EndpointState::UP),
        ] {
            let index = EndpointIndex(index);
            assert_eq!((first.state(index), second.state(index)), (before, after));
        }
        let shared: Vec<bool> = first
            .chunks
            .iter()
            .zip(second.chunks.iter())
            .map(|(a, b)| Arc::ptr_eq(a, b))
            .collect();
        assert_eq!(shared, [false, true, true]);
    }
}
