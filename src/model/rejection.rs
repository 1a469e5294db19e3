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

impl Rejection {
    /// Gives the line, where the place is one of a file; from 1.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.place.strip_prefix("line ")?.parse().ok()
    }

    /// Shows it as compilers do, `file:line: reason`, where its place is a line; else as [`fmt::Display`].
    #[must_use]
    pub fn located(&self) -> String {
        match self.line() {
            Some(line) => format!("{}:{line}: {}", self.source, self.reason),
            None => self.to_string(),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_are_lines_are_shown_as_compilers_do() {
        for (place, line, shown) in [
            ("line 7", Some(7), "x.zone:7: wrong"),
            ("", None, "x.zone: wrong"),
            ("10.0.0.0/8", None, "x.zone: 10.0.0.0/8: wrong"),
        ] {
            let rejection = Rejection {
                source: "x.zone".to_owned(),
                place: place.to_owned(),
                reason: "wrong".to_owned(),
            };
            assert_eq!(
                (rejection.line(), rejection.located()),
                (line, shown.to_owned())
            );
        }
    }
}
