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
        self.numbers().map(|(line, _)| line)
    }

    /// Gives line and column, as far as the place has them.
    fn numbers(&self) -> Option<(usize, Option<usize>)> {
        let numbers = self.place.strip_prefix("line ")?;
        let Some((line, column)) = numbers.split_once(", column ") else {
            return Some((numbers.parse().ok()?, None));
        };
        Some((line.parse().ok()?, Some(column.parse().ok()?)))
    }

    /// Gives the place as compilers do, `file:line` or `file:line:column`, where it is a line; the source, where it is all of
    /// that.
    #[must_use]
    pub fn spot(&self) -> String {
        let source = &self.source;
        match self.numbers() {
            Some((line, Some(column))) => format!("{source}:{line}:{column}"),
            Some((line, None)) => format!("{source}:{line}"),
            None if self.place.is_empty() => source.clone(),
            None => self.place.clone(),
        }
    }

    /// Shows it as compilers do, `file:line: reason`, where its place is a line; else as [`fmt::Display`].
    #[must_use]
    pub fn located(&self) -> String {
        match self.line() {
            Some(_) => format!("{}: {}", self.spot(), self.reason),
            None => self.to_string(),
        }
    }
}

/// Reasons kept of one source; the others are counted.
const KEPT: usize = 50;

/// Why a source was refused at its last reading; empty when it was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    kept: Vec<Rejection>,
    count: usize,
}

impl Refusals {
    /// Tells whether nothing was refused.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Tells whether the source of the name is refused as such, and not something that it has.
    #[must_use]
    pub fn is_whole(&self, name: &str) -> bool {
        self.kept.iter().any(|one| one.source == name)
    }

    /// Counts all reasons.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Gives the first reasons.
    #[must_use]
    pub fn kept(&self) -> &[Rejection] {
        &self.kept
    }
}

impl Extend<Rejection> for Refusals {
    fn extend<T: IntoIterator<Item = Rejection>>(&mut self, reasons: T) {
        for reason in reasons {
            self.count += 1;
            if self.kept.len() < KEPT {
                self.kept.push(reason);
            }
        }
    }
}

impl FromIterator<Rejection> for Refusals {
    fn from_iter<T: IntoIterator<Item = Rejection>>(reasons: T) -> Self {
        let mut refusals = Self::default();
        refusals.extend(reasons);
        refusals
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

    /// Makes one of a zone file.
    fn rejection(place: &str) -> Rejection {
        Rejection {
            source: "x.zone".to_owned(),
            place: place.to_owned(),
            reason: "wrong".to_owned(),
        }
    }

    #[test]
    fn places_that_are_lines_are_shown_as_compilers_do() {
        for (place, line, spot, shown) in [
            ("line 7", Some(7), "x.zone:7", "x.zone:7: wrong"),
            (
                "line 7, column 3",
                Some(7),
                "x.zone:7:3",
                "x.zone:7:3: wrong",
            ),
            ("", None, "x.zone", "x.zone: wrong"),
            ("line of 7", None, "line of 7", "x.zone: line of 7: wrong"),
            (
                "line 7, column",
                None,
                "line 7, column",
                "x.zone: line 7, column: wrong",
            ),
            (
                "10.0.0.0/8",
                None,
                "10.0.0.0/8",
                "x.zone: 10.0.0.0/8: wrong",
            ),
        ] {
            let rejection = rejection(place);
            assert_eq!(
                (rejection.line(), &*rejection.spot(), &*rejection.located()),
                (line, spot, shown)
            );
        }
    }

    #[test]
    fn the_first_reasons_are_kept_and_all_are_counted() {
        let mut refusals = Refusals::default();
        assert!(refusals.is_empty());
        refusals.extend((1..=KEPT + 7).map(|line| rejection(&format!("line {line}"))));
        assert_eq!((refusals.count(), refusals.kept().len()), (KEPT + 7, KEPT));
        assert_eq!(refusals.kept()[0].line(), Some(1));
        assert_eq!(refusals.kept()[KEPT - 1].line(), Some(KEPT));
        assert!(!refusals.is_empty());
    }
}
