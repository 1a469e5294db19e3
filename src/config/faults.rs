//! What is wrong with a configuration, and where.

use std::fmt;
use std::path::Path;

use crate::config::spec::{Flaw, Node};
use crate::model::counted;

/// Most faults, and most warnings, that one load reports; how many more there were is said in one line.
const MAX_REPORTED: usize = 1000;
/// Longest message in characters: values that are quoted in it may be of any size.
const MAX_MESSAGE: usize = 500;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The configuration is refused.
    Fault,
    /// It would be accepted.
    Warning,
}

/// One fault, with its place and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The path of keys, such as `services[3].endpoints[0].cluster`; empty for the whole file.
    pub path: String,
    /// The line, from 1; 0 when there is none.
    pub line: usize,
    /// The column in characters, from 1; 0 when there is none.
    pub column: usize,
    /// What is wrong and what would be right: lower-case, no period, no control characters.
    pub message: String,
    /// Whether it is the reason of a refusal, or a remark beside it.
    pub severity: Severity,
}

/// A remark: the configuration is accepted, but perhaps not what was meant.
pub type Warning = Fault;

impl Fault {
    /// Makes a fault of the whole file.
    pub(super) fn of_file(message: impl fmt::Display) -> Self {
        Self {
            path: String::new(),
            line: 0,
            column: 0,
            message: clean(&message.to_string()),
            severity: Severity::Fault,
        }
    }

    /// Makes a fault of one node.
    fn of_node(node: Node<'_, '_>, message: impl fmt::Display) -> Self {
        let place = node.place();
        Self {
            path: clean(&node.path()),
            line: place.line as usize,
            column: place.column as usize,
            message: clean(&message.to_string()),
            severity: Severity::Fault,
        }
    }
}

impl Fault {
    /// Shows it as compilers do: `file:line:column: path: message`.
    #[must_use]
    pub fn located(&self, file: &Path) -> String {
        let file = file.display();
        if self.line > 0 {
            format!("{file}:{self}")
        } else {
            format!("{file}: {self}")
        }
    }
}

/// `line:column: path: message`, each as far as there is one.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "{}:{}: ", self.line, self.column)?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// Escapes control characters and cuts what is too long: messages quote what was written, and go to logs and terminals.
fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(MAX_MESSAGE));
    for (count, c) in text.chars().enumerate() {
        if count == MAX_MESSAGE {
            out.push('…');
            break;
        }
        // Beside the control characters, those that change the direction of what follows.
        if c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Collects faults and warnings.
#[derive(Debug, Default)]
pub(super) struct Report {
    faults: Vec<Fault>,
    warnings: Vec<Warning>,
    faults_left_out: usize,
    warnings_left_out: usize,
}

impl Report {
    /// Notes a fault of one node.
    pub(super) fn fault(&mut self, node: Node<'_, '_>, message: impl fmt::Display) {
        if self.faults.len() < MAX_REPORTED {
            self.faults.push(Fault::of_node(node, message));
        } else {
            self.faults_left_out += 1;
        }
    }

    /// Notes a warning about one node.
    pub(super) fn warn(&mut self, node: Node<'_, '_>, message: impl fmt::Display) {
        if self.warnings.len() < MAX_REPORTED {
            self.warnings.push(Fault {
                severity: Severity::Warning,
                ..Fault::of_node(node, message)
            });
        } else {
            self.warnings_left_out += 1;
        }
    }

    /// Notes a fault that is in the way of reading at all.
    pub(super) fn flaw(&mut self, path: &str, flaw: Flaw) {
        if self.faults.len() < MAX_REPORTED {
            self.faults.push(Fault {
                path: path.to_owned(),
                line: flaw.place.line as usize,
                column: flaw.place.column as usize,
                message: clean(&flaw.message),
                severity: Severity::Fault,
            });
        } else {
            self.faults_left_out += 1;
        }
    }

    /// Tells whether further faults are only counted: no need to think of a good message.
    pub(super) fn is_full(&self) -> bool {
        self.faults.len() >= MAX_REPORTED
    }

    /// Counts the faults so far: unchanged after a step means that the step found none.
    pub(super) fn count(&self) -> usize {
        self.faults.len() + self.faults_left_out
    }

    /// Hands over: `Ok` with the warnings when there is no fault, else all faults by line, and the warnings behind them.
    pub(super) fn finish(mut self) -> Result<Vec<Warning>, Vec<Fault>> {
        let left_out = |count: usize, what: &str| Fault::of_file(counted(count, what));
        self.warnings
            .sort_by_key(|warning| (warning.line, warning.column));
        if self.warnings_left_out > 0 {
            self.warnings.push(Fault {
                severity: Severity::Warning,
                ..left_out(self.warnings_left_out, "more warning")
            });
        }
        if self.faults.is_empty() {
            return Ok(self.warnings);
        }
        self.faults.sort_by_key(|fault| (fault.line, fault.column));
        if self.faults_left_out > 0 {
            self.faults
                .push(left_out(self.faults_left_out, "more fault"));
        }
        self.faults.append(&mut self.warnings);
        Err(self.faults)
    }
}
