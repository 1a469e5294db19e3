//! Which files a text includes, and where they may lie.

use std::path::{Component, Path, PathBuf};

use super::fault::{Fault, Report};
use super::field;
use super::lexer::{Lexer, Token};
use crate::model::Rejection;

/// How deep files may include one another.
pub(super) const MAX_DEPTH: usize = 8;
/// How many files a zone may include, each counted as often as it is included.
pub(super) const MAX_FILES: usize = 256;

/// Reads the path of `$INCLUDE`: relative to the zone file's folder, in included files too, and never out of it.
pub(super) fn path(token: &Token<'_>) -> Result<PathBuf, Fault> {
    let octets = field::octets(token.raw)?;
    let text = String::from_utf8(octets)
        .ok()
        .filter(|text| !text.is_empty() && !text.contains('\0'));
    let text = text.ok_or_else(|| Fault::new(format!("{} is no path", token.shown())))?;
    let mut clean = PathBuf::new();
    for component in Path::new(&text).components() {
        match component {
            Component::Normal(part) => clean.push(part),
            Component::CurDir => {}
            _ => {
                return Err(Fault::new(format!(
                    "{} leads out of the zone file's folder; write a path relative to that folder, without `..`",
                    token.shown()
                )));
            }
        }
    }
    Ok(clean)
}

/// A file that a master file's text includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Include {
    /// Relative to the folder of the zone's file, without `..`.
    pub path: PathBuf,
    /// The line of the first `$INCLUDE` of it, from 1.
    pub line: u32,
}

/// Lists the files that a master file's text includes, for whoever reads them from disk: in the order written, none twice, at
/// most 256. The reader joins each to the folder of the *zone's* file, checks that no
/// symbolic link leads out of there, and asks again with the text it read; the results go into
/// [`ZoneFile::includes`](crate::zone::ZoneFile::includes).
///
/// `source` names the text in messages. Paths that lead out of the folder are refused; so are they when the zone is
/// compiled.
#[must_use]
pub fn includes(source: &str, text: &[u8]) -> (Vec<Include>, Vec<Rejection>) {
    let mut report = Report::new(source.to_owned());
    let file = report.add_file(source.to_owned());
    let mut found: Vec<Include> = Vec::new();
    let mut lexer = Lexer::new(text);
    let mut tokens = Vec::new();
    while let Some(line) = lexer.next_line(&mut tokens) {
        // Faults of other lines are told when the zone is compiled.
        let (Ok(head), [directive, argument, ..]) = (line, tokens.as_slice()) else {
            continue;
        };
        if head.blank || directive.quoted || !directive.raw.eq_ignore_ascii_case(b"$INCLUDE") {
            continue;
        }
        match path(argument) {
            Ok(path) if found.iter().any(|known| known.path == path) => {}
            Ok(path) if found.len() < MAX_FILES => {
                let line = head.line;
                found.push(Include { path, line });
            }
            Ok(_) => break,
            Err(fault) => report.add(Report::place(file, head.line), fault),
        }
    }
    (found, report.into_faults())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_folder() {
        let text = "$INCLUDE a.zone\n$include ./sub/b.zone x.\n$INCLUDE a.zone ; again\n www A 1 ( $INCLUDE no )\n\
                    $INCLUDE \"with space\"\n$INCLUDE /etc/passwd\n$INCLUDE sub/../../x\n$INCLUDE ..\n$INCLUDE \"\"\n\
                    $INCLUDE \\046\\046/x\n$INCLUDE\n";
        let (found, faults) = includes("z", text.as_bytes());
        let expected = [("a.zone", 1), ("sub/b.zone", 2), ("with space", 5)];
        let include = |(path, line)| Include {
            path: PathBuf::from(path),
            line,
        };
        assert_eq!(found, expected.map(include));
        let places: Vec<_> = faults.iter().map(|fault| fault.place.as_str()).collect();
        assert_eq!(places, ["line 6", "line 7", "line 8", "line 9", "line 10"]);
        assert!(faults[0].reason.contains("relative to that folder"));
    }

    #[test]
    fn the_list_is_bounded() {
        let text: String = (0..1000)
            .map(|number| format!("$INCLUDE f{number}\n"))
            .collect();
        assert_eq!(includes("z", text.as_bytes()).0.len(), MAX_FILES);
    }
}
