//! Bad input is data: what was refused, where, and why.

use std::fmt;

/// One refused piece of input. The rest of its source stays in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The file, database or object it came from, as an operator would name it.
    pub source: String,
    /// The place inside the source (`line 7, column 3`, a path of keys, a prefix); empty when it is the whole source.
    pub place: String,
    /// What is wrong and what would be right: lower-case, no period.
    pub reason: String,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() {
            write!(f, "{}: {}", self.source, self.reason)
        } else {
            write!(f, "{}: {}: {}", self.source, self.place, self.reason)
        }
    }
}
