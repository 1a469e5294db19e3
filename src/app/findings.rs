//! What is wrong, with the place in the configuration that leads there.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::config::{self, Fault, Place, Places, Severity};
use crate::controller::content_hash;
use crate::model::Rejection;
use crate::source::read_bounded;

/// One finding, as `--output json` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) level: &'static str,
    /// The file that is wrong.
    pub(super) source: String,
    pub(super) line: Option<usize>,
    pub(super) column: Option<usize>,
    /// The path of keys in a configuration, the place in any other file.
    pub(super) path: String,
    pub(super) message: String,
    /// Where the configuration names the file, when it is not the configuration that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<From>,
}

/// A place in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct From {
    source: String,
    line: usize,
    column: usize,
    path: String,
}

impl Finding {
    /// Takes a fault or warning of the configuration itself.
    pub(super) fn of_fault(source: &Path, fault: &Fault) -> Self {
        Self {
            level: match fault.severity {
                Severity::Fault => "error",
                Severity::Warning => "warning",
            },
            source: source.display().to_string(),
            line: (fault.line > 0).then_some(fault.line),
            column: (fault.column > 0).then_some(fault.column),
            path: fault.path.clone(),
            message: fault.message.clone(),
            from: None,
        }
    }

    /// Refuses something of the configuration that no reader of its text refuses, at a place in it if that is known. The
    /// message names the key.
    pub(super) fn error(source: &Path, place: Option<&Place>, message: String) -> Self {
        Self {
            level: "error",
            path: String::new(),
            ..Self::warning(source, place, message)
        }
    }

    /// Warns of something that the configuration leads to, at a place in it if that is known.
    pub(super) fn warning(source: &Path, place: Option<&Place>, message: String) -> Self {
        Self {
            level: "warning",
            source: source.display().to_string(),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
            path: place.map_or_else(String::new, |place| place.path.clone()),
            message,
            from: None,
        }
    }

    /// Takes what a file or a claim was refused for. A file that is wrong as a whole and a claim are faults of the line
    /// that names them.
    fn of_rejection(source: &Path, rejection: &Rejection, places: &Places) -> Self {
        let bare = Self {
            level: "error",
            source: rejection.source.clone(),
            line: rejection.line(),
            column: None,
            path: rejection
                .line()
                .map_or_else(|| rejection.place.clone(), |_| String::new()),
            message: rejection.reason.clone(),
            from: None,
        };
        let configuration = source.display().to_string();
        let claim = places.hostnames.get(&key(rejection));
        match (claim, file_place(rejection, places)) {
            (Some(place), _) => Self {
                source: configuration,
                message: rejection.to_string(),
                ..bare.at(place)
            },
            (None, Some(place)) if rejection.place.is_empty() => Self {
                source: configuration,
                message: rejection.to_string(),
                ..bare.at(place)
            },
            (None, Some(place)) => Self {
                from: Some(From {
                    source: configuration,
                    line: place.line,
                    column: place.column,
                    path: place.path.clone(),
                }),
                ..bare
            },
            (None, None) => bare,
        }
    }

    /// Puts it at a place of the configuration.
    fn at(self, place: &Place) -> Self {
        Self {
            line: Some(place.line),
            column: Some(place.column),
            path: place.path.clone(),
            ..self
        }
    }

    /// Gives file, line and column as compilers do.
    pub(super) fn place(&self) -> String {
        let mut place = self.source.clone();
        for number in [self.line, self.column].into_iter().flatten() {
            place.push_str(&format!(":{number}"));
        }
        place
    }

    /// Gives the message, with the place in the configuration that leads to it.
    pub(super) fn words(&self) -> String {
        let from = self.from.as_ref().map_or_else(String::new, |from| {
            let From {
                source,
                line,
                column,
                path,
            } = from;
            format!(" (named by {source}:{line}:{column}: {path})")
        });
        format!("{}{from}", self.message)
    }
}

impl Finding {
    /// Gives it as something refused, for those who show files and not configurations.
    pub(super) fn rejection(&self) -> Rejection {
        let words = self.words();
        let Some(line) = self.line else {
            return Rejection {
                source: self.source.clone(),
                place: self.path.clone(),
                reason: words,
            };
        };
        let column = self.column.map(|column| format!(", column {column}"));
        Rejection {
            source: self.source.clone(),
            place: format!("line {line}{}", column.unwrap_or_default()),
            reason: if self.path.is_empty() {
                words
            } else {
                format!("{}: {words}", self.path)
            },
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place())?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.words())
    }
}

/// Gives what a refused claim is found by.
fn key(rejection: &Rejection) -> (String, String) {
    let source = &rejection.source;
    let service = source.strip_prefix("service ").unwrap_or(source);
    (service.to_owned(), rejection.place.clone())
}

/// Finds where a file, or a zone without one, is named.
fn file_place<'p>(rejection: &Rejection, places: &'p Places) -> Option<&'p Place> {
    let source = &rejection.source;
    let mut files = places.databases.iter().chain(&places.admin);
    let file = files.find(|(path, _)| path.display().to_string() == *source);
    let zone = || {
        let is_it = |zone: &&config::ZonePlace| match &zone.file {
            Some(file) if file.display().to_string() == *source => true,
            _ => source.strip_prefix("zone ") == Some(zone.apex.to_string().as_str()),
        };
        places.zones.iter().find(is_it).map(|zone| &zone.place)
    };
    file.map(|(_, place)| place).or_else(zone)
}

/// Finds the places of what was refused. The configuration is read once more: `hash` tells that it is still the same text,
/// without which there are no places.
pub(super) fn places(path: &Path, hash: &str, rejections: &[Rejection]) -> Places {
    let wanted: BTreeSet<(String, String)> = rejections.iter().map(key).collect();
    let octets = read_bounded(path, config::MAX_BYTES as u64).unwrap_or_default();
    if content_hash(&octets) != hash {
        return Places::default();
    }
    std::str::from_utf8(&octets)
        .map(|text| Places::find(text, path, &wanted))
        .unwrap_or_default()
}

/// Turns what was refused into findings with their places.
pub(super) fn of_rejections(path: &Path, hash: &str, rejections: &[Rejection]) -> Vec<Finding> {
    if rejections.is_empty() {
        return Vec::new();
    }
    let places = places(path, hash, rejections);
    let mut findings: Vec<Finding> = Vec::with_capacity(rejections.len());
    for rejection in rejections {
        let finding = Finding::of_rejection(path, rejection, &places);
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_refused_at_its_line_and_column() {
        let finding = |line, column, path: &str| Finding {
            level: "error",
            source: "m.yaml".to_owned(),
            line,
            column,
            path: path.to_owned(),
            message: "wrong".to_owned(),
            from: None,
        };
        for (finding, spot) in [
            (finding(Some(7), Some(3), "zones[0].ttl"), "m.yaml:7:3"),
            (finding(Some(7), None, ""), "m.yaml:7"),
            (finding(None, None, "10.0.0.0/8"), "10.0.0.0/8"),
            (finding(None, None, ""), "m.yaml"),
        ] {
            let rejection = finding.rejection();
            assert_eq!(rejection.spot(), spot);
            // The log says it as `check` does.
            assert_eq!(rejection.located(), finding.to_string());
        }
    }
}
