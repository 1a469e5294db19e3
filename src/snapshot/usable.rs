//! One octet an endpoint: verdict, drained, forced, in doubt. A flip copies one chunk of them and nothing else.

use crate::model::{Chunked, EndpointIndex, EndpointState};
use crate::steering::States;

/// The table of endpoint states. Indices beyond its end are Up. Cheap to clone: chunks are shared.
#[derive(Clone, Debug, Default)]
pub struct UsableTable(Chunked<EndpointState>);

impl UsableTable {
    /// Gives a table with other states in it. Of two entries for one endpoint the later wins.
    pub(super) fn with(
        &self,
        states: impl Iterator<Item = (EndpointIndex, EndpointState)>,
    ) -> Self {
        Self(
            self.0
                .with(states.map(|(index, state)| (index.get(), state))),
        )
    }

    /// Gives the octets held.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.0.memory()
    }
}

impl States for UsableTable {
    #[inline]
    fn state(&self, endpoint: EndpointIndex) -> EndpointState {
        self.0.get(endpoint.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Verdict;

    #[test]
    fn what_nobody_spoke_of_is_up() {
        let down = EndpointState::UP.with_verdict(Verdict::Down);
        let states = UsableTable::default().with([(EndpointIndex(9000), down)].into_iter());
        assert_eq!(states.state(EndpointIndex(9000)), down);
        for index in [0, 8999, 9001, 100_000] {
            assert_eq!(states.state(EndpointIndex(index)), EndpointState::UP);
        }
        // One octet an endpoint, in chunks of 4096.
        assert_eq!(states.memory(), 3 * 4096);
    }
}
