//! What was done in a member, in the order in which it was done.

use std::fmt;

/// What became of one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It was not there, and is now.
    Created,
    /// It was there otherwise.
    Changed,
    /// It was there as wanted.
    Unchanged,
    /// It was there, and is no more.
    Deleted,
    /// It was not there.
    Absent,
}

impl Deed {
    /// Gives the word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::Deleted => "deleted",
            Self::Absent => "not there",
        }
    }
}

/// One thing, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The thing: kind and name of an object.
    pub what: String,
    /// What became of it.
    pub deed: Deed,
}

impl Step {
    /// Makes one.
    pub(super) fn new(what: impl fmt::Display, deed: Deed) -> Self {
        let what = what.to_string();
        Self { what, deed }
    }
}
