//! One octet an endpoint: verdict, drained, forced, in doubt. A flip copies one chunk of them and nothing else.

use crate::model::{EndpointIndex, EndpointState};
use crate::steering::States;

/// The table of endpoint states. Indices beyond its end are Up.
#[derive(Clone, Debug, Default)]
pub struct UsableTable {
    todo: (),
}

impl States for UsableTable {
    #[inline]
    fn state(&self, endpoint: EndpointIndex) -> EndpointState {
        let _ = endpoint;
        todo!()
    }
}
