//! A configuration file as read: one tape for all but the services, and the services one after the other.
//!
//! A file may hold a million services of half a kilobyte. Where `services:` is an ordinary block list, its lines are cut out:
//! the rest is read whole, and each item by itself, by the fast lane if it can ([`super::scan`]), else by the YAML parser.
//! Where it is anything else, the file is read whole by the YAML parser, up to [`MAX_WHOLE`].

use super::scan::scan_line;
use super::tape::{Flaw, Kind, Node, Place, Root, Tape};
use super::yaml::{self, Lines, Top};

/// Largest text that is given to the YAML parser in one piece: it keeps all of a flow list in memory.
const MAX_WHOLE: usize = 64 << 20;

/// How a file is read; tests compare the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Services item by item where possible.
    Auto,
    /// Everything in one piece.
    #[cfg(test)]
    Whole,
}

/// The text of a file, with the lines of its services found.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    text: &'a str,
    cut: Option<Cut<'a>>,
}

/// A file cut in two.
#[derive(Debug)]
struct Cut<'a> {
    /// The text without the lines of the services.
    rest: String,
    /// The line of the key `services`.
    key_line: u32,
    services: Services<'a>,
}

/// The lines of a block list of services.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Services<'a> {
    text: &'a str,
    /// The number of the first line.
    line: u32,
    lines: u32,
    /// Spaces before each dash.
    indent: usize,
    /// The index of the next item.
    index: usize,
}

impl<'a> Source<'a> {
    /// Takes a text and looks for services.
    pub(crate) fn new(text: &'a str, lane: Lane) -> Self {
        let cut = match lane {
            Lane::Auto => find_cut(text),
            #[cfg(test)]
            Lane::Whole => None,
        };
        Self { text, cut }
    }

    /// Reads all but the services into the tape. The result: the services, unless they are on the tape as well.
    ///
    /// # Errors
    /// What cannot be read at all.
    pub(crate) fn read<'t>(
        &'t self,
        tape: &mut Tape<'t>,
    ) -> Result<Option<Services<'a>>, Vec<Flaw>> {
        if let Some(cut) = &self.cut {
            let lines = Lines {
                after: cut.key_line,
                shift: cut.services.lines,
            };
            let result = read_whole(&cut.rest, lines, tape);
            let confirmed = is_services_key(tape, cut.key_line);
            // A flaw before the key is one of the whole file too; one after it only if the key is what it seemed to be.
            let before =
                |flaws: &Vec<Flaw>| flaws.iter().all(|flaw| flaw.place.line < cut.key_line);
            match result {
                Ok(()) if confirmed => return Ok(Some(cut.services)),
                Err(flaws) if confirmed || before(&flaws) => return Err(flaws),
                _ => {}
            }
        }
        read_whole(self.text, Lines::default(), tape).map(|()| None)
    }
}

/// Reads a text in one piece.
fn read_whole<'t>(text: &'t str, lines: Lines, tape: &mut Tape<'t>) -> Result<(), Vec<Flaw>> {
    tape.clear(Root::File);
    if text.len() > MAX_WHOLE {
        let message = format!(
            "more than {} MiB beside the services; write `services:` as a block list, one service after the other",
            MAX_WHOLE >> 20
        );
        return Err(vec![Flaw::of_file(message)]);
    }
    yaml::read(text, lines, Top::Document, tape)
}

/// Tells whether the tape is a block map with the key `services`, without a value, on this line.
fn is_services_key(tape: &Tape<'_>, line: u32) -> bool {
    let place = Place { line, column: 1 };
    let Some(root) = tape.root().filter(|root| root.kind() == Kind::Map) else {
        return false;
    };
    // A block map begins where its first key does; a flow map one brace earlier.
    let is_block = root
        .entries()
        .next()
        .is_some_and(|(key, _)| key.place() == root.place());
    let is_it = |(key, value): (Node<'_, '_>, Node<'_, '_>)| {
        key.place() == place
            && key.kind() == Kind::Plain
            && key.text() == "services"
            && value.is_null()
    };
    is_block && root.entries().any(is_it)
}

/// Finds the lines of a block list below a line `services:` at the left edge.
fn find_cut(text: &str) -> Option<Cut<'_>> {
    let mut at = 0;
    let mut number: u32 = 0;
    for line in text.split_inclusive('\n') {
        number = number.checked_add(1)?;
        at += line.len();
        if is_services_line(line) {
            let (before, after) = text.split_at_checked(at)?;
            let services = Services::find(after, number.checked_add(1)?)?;
            let rest = after.get(services.text.len()..)?;
            return Some(Cut {
                rest: [before, rest].concat(),
                key_line: number,
                services,
            });
        }
    }
    None
}

/// Tells whether a line is `services:` and nothing else but a comment.
fn is_services_line(line: &str) -> bool {
    line.strip_prefix("services:").is_some_and(|rest| {
        let value = rest.trim_ascii();
        value.is_empty() || (value.starts_with('#') && rest.starts_with([' ', '\t']))
    })
}

/// Gives the octets of the first line, its break included.
fn line_length(text: &str) -> usize {
    text.find('\n').map_or(text.len(), |at| at + 1)
}

/// Tells whether a line is blank or a comment.
fn is_idle(line: &str) -> bool {
    let content = line.trim_ascii_start();
    content.is_empty() || content.starts_with('#')
}

/// Tells whether a text begins with a line that is a dash after `indent` spaces, with something or nothing after it.
fn is_item(line: &str, indent: usize) -> bool {
    let octets = line.as_bytes();
    octets.get(indent) == Some(&b'-')
        && octets
            .get(..indent)
            .is_some_and(|spaces| spaces.iter().all(|&octet| octet == b' '))
        && octets
            .get(indent + 1)
            .is_none_or(|octet| matches!(octet, b' ' | b'\n' | b'\r'))
}

/// Tells whether a line can belong to a value of a key at the left edge.
fn is_inside(line: &str) -> bool {
    line.starts_with([' ', '#', '\t', '\n', '\r']) || is_item(line, 0)
}

impl<'a> Services<'a> {
    /// Finds the list at the beginning of `text`; `None` when there is none.
    fn find(text: &'a str, line: u32) -> Option<Self> {
        let first = text.split_inclusive('\n').find(|line| !is_idle(line))?;
        let indent = first.len() - first.trim_start_matches(' ').len();
        if !is_item(first, indent) {
            return None;
        }
        let (mut length, mut lines) = (0, 0_u32);
        for inside in text
            .split_inclusive('\n')
            .take_while(|line| is_inside(line))
        {
            length += inside.len();
            lines = lines.checked_add(1)?;
        }
        line.checked_add(lines)?;
        Some(Self {
            text: text.get(..length)?,
            line,
            lines,
            indent,
            index: 0,
        })
    }

    /// Guesses the number of items: no more than lines, and none shorter than the shortest that says something. What goes
    /// beyond a million grows as it comes.
    pub(crate) fn expected(&self) -> usize {
        const SHORTEST: usize = 64;
        const MOST: usize = 1 << 20;
        (self.lines as usize)
            .min(self.text.len() / SHORTEST)
            .min(MOST)
    }

    /// Takes the next item's text off the front: its index, first line and text; the flag says that all but the first line
    /// is blank or comment.
    fn take(&mut self) -> Option<(usize, u32, &'a str, bool)> {
        // What stands before the first dash is blank or comment, and belongs to no item.
        while !self.text.is_empty() && !is_item(self.text, self.indent) {
            self.text = self.text.get(line_length(self.text)..)?;
            self.line += 1;
        }
        let mut length = 0;
        let mut lines: u32 = 0;
        let mut is_single = true;
        // A line that begins an item is told by its first octets: each line is walked to its end only once.
        while let Some(rest) = self.text.get(length..).filter(|rest| !rest.is_empty()) {
            if lines > 0 && is_item(rest, self.indent) {
                break;
            }
            let line = rest.get(..line_length(rest))?;
            is_single &= lines == 0 || is_idle(line);
            length += line.len();
            lines += 1;
        }
        let (item, rest) = self.text.split_at_checked(length)?;
        if item.is_empty() {
            return None;
        }
        let taken = (self.index, self.line, item, is_single);
        self.text = rest;
        self.line += lines;
        self.index += 1;
        Some(taken)
    }

    /// Reads the next item into the tape; `None` after the last. Each item stands alone: the others are read whatever is
    /// wrong with one.
    pub(crate) fn next(&mut self, tape: &mut Tape<'a>) -> Option<Result<(), Vec<Flaw>>> {
        let (index, number, item, is_single) = self.take()?;
        tape.clear(Root::Service(index));
        let line = item.get(..line_length(item)).unwrap_or_default();
        let line = line.strip_suffix('\n').unwrap_or(line);
        let after_dash = line.get(self.indent + 1..).unwrap_or_default();
        let start = line.len() - after_dash.trim_start_matches(' ').len();
        if is_single && scan_line(line, start, number, tape) {
            return Some(Ok(()));
        }
        tape.clear(Root::Service(index));
        if item.len() > MAX_WHOLE {
            let place = Place {
                line: number,
                column: 0,
            };
            let message = format!("one service is longer than {} MiB", MAX_WHOLE >> 20);
            return Some(Err(vec![Flaw { place, message }]));
        }
        let lines = Lines {
            after: 0,
            shift: number.saturating_sub(1),
        };
        Some(yaml::read(item, lines, Top::OnlyItem, tape))
    }

    /// Gives the index of the item read last.
    pub(crate) fn last_index(&self) -> usize {
        self.index.saturating_sub(1)
    }
}
