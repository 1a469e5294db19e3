//! Drains by an object's own word, or by its end.

use jiff::Timestamp;

use crate::source::kubernetes::Common;
use crate::source::kubernetes::annotations::Drain;

/// Whether an object is drained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Drained {
    /// It is, at this moment.
    pub(super) is_drained: bool,
    /// When that turns by itself.
    pub(super) edge: Option<Timestamp>,
}

/// Tells whether an object is drained. What is being deleted is, and stays so.
pub(super) fn drained(common: &Common, now: Timestamp) -> Drained {
    if common.is_deleting {
        return Drained {
            is_drained: true,
            edge: None,
        };
    }
    let Some(Drain::From(since, until)) = common.said.said.drain else {
        return Drained::default();
    };
    if until.is_some_and(|until| until <= now) {
        return Drained::default();
    }
    let is_drained = since.is_none_or(|since| since <= now);
    Drained {
        is_drained,
        edge: if is_drained { until } else { since },
    }
}
