//! Faults of master files: collected with their place, bounded in number.

use std::fmt;

use crate::model::Rejection;

/// How many faults of one zone are told; further ones are only counted.
const MAX_FAULTS: usize = 100;

/// What is wrong with one field or line, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault(String);

impl Fault {
    /// Makes a fault of a reason: lower-case, no period.
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// Tells whether the reason begins with the field it is about.
    pub(super) fn names_field(&self) -> bool {
        self.0.starts_with('`')
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

/// Where a record was written: a file of the zone, by its number in the [`Report`], and a line from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::zone) struct Place {
    /// The file; [`Place::CONFIGURED`] has none.
    file: u32,
    line: u32,
}

impl Place {
    /// Records that configuration gave.
    pub(in crate::zone) const CONFIGURED: Self = Self {
        file: u32::MAX,
        line: 0,
    };

    /// Gives the line, from 1; 0 for what was configured.
    pub(in crate::zone) fn line(self) -> u32 {
        self.line
    }
}

/// The names of the files that a zone was read from, and what was wrong in them.
#[derive(Debug)]
pub(in crate::zone) struct Report {
    /// What faults without a file are reported against.
    zone: String,
    files: Vec<String>,
    faults: Vec<Rejection>,
    untold: usize,
}

impl Report {
    /// Begins a report on a zone, named as an operator would.
    pub(in crate::zone) fn new(zone: String) -> Self {
        Self {
            zone,
            files: Vec::new(),
            faults: Vec::new(),
            untold: 0,
        }
    }

    /// Adds a file; gives its number for [`Report::place`].
    pub(super) fn add_file(&mut self, name: String) -> u32 {
        let number = u32::try_from(self.files.len()).expect("includes are bounded");
        self.files.push(name);
        number
    }

    /// Makes the place of a line in a file.
    pub(super) fn place(file: u32, line: u32) -> Place {
        Place { file, line }
    }

    /// Notes a fault.
    pub(in crate::zone) fn add(&mut self, place: Place, reason: impl fmt::Display) {
        if self.faults.len() >= MAX_FAULTS {
            self.untold += 1;
            return;
        }
        let file = self.files.get(place.file as usize);
        self.faults.push(Rejection {
            source: file.unwrap_or(&self.zone).clone(),
            place: file.map_or_else(String::new, |_| format!("line {}", place.line)),
            reason: reason.to_string(),
        });
    }

    /// Tells whether nothing was wrong so far.
    pub(in crate::zone) fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }

    /// Counts the faults so far.
    pub(super) fn count(&self) -> usize {
        self.faults.len() + self.untold
    }

    /// Gives the faults in the order found; a last one counts those left out.
    pub(in crate::zone) fn into_faults(mut self) -> Vec<Rejection> {
        if self.untold > 0 {
            self.faults.push(Rejection {
                source: self.zone,
                place: String::new(),
                reason: format!("{} more faults are not listed", self.untold),
            });
        }
        self.faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_bounded_and_counted() {
        let mut report = Report::new("zone x".to_owned());
        let file = report.add_file("x.zone".to_owned());
        assert!(report.is_clean());
        report.add(Place::CONFIGURED, "no name server");
        for line in 1..=150 {
            report.add(Report::place(file, line), "wrong");
        }
        let faults = report.into_faults();
        assert_eq!(faults.len(), MAX_FAULTS + 1);
        assert_eq!(faults[0].to_string(), "zone x: no name server");
        assert_eq!(faults[1].to_string(), "x.zone: line 1: wrong");
        assert_eq!(
            faults[MAX_FAULTS].to_string(),
            "zone x: 51 more faults are not listed"
        );
    }
}
