//! From YAML to a tape: the only file that knows saphyr-parser.
//!
//! A configuration needs no anchors, aliases, tags or second documents: they are refused, so that a short file is never a
//! long one in disguise.

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span};

use super::tape::{Flaw, Kind, Place, Tape};

/// Deepest nesting of lists and maps; the contract needs 8.
pub(super) const MAX_DEPTH: usize = 32;
/// Most nodes of one tape: some 400 MB. Services read one by one never come near.
const MAX_NODES: usize = 10_000_000;

/// Where the lines of a cut text lie in the file: each line after `after` is `shift` further down.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lines {
    /// The last line that is in its place.
    pub(super) after: u32,
    /// How far the others moved.
    pub(super) shift: u32,
}

impl Lines {
    /// Turns a mark of the parser into a place of the file.
    fn place(self, mark: Marker) -> Place {
        self.at(mark.line(), mark.col())
    }

    /// Turns a line, from 1, and a column, from 0, into a place of the file.
    fn at(self, line: usize, column: usize) -> Place {
        let line = u32::try_from(line).unwrap_or(u32::MAX);
        let column = u32::try_from(column + 1).unwrap_or(u32::MAX);
        let line = if line > self.after {
            line.saturating_add(self.shift)
        } else {
            line
        };
        Place { line, column }
    }
}

/// Which node of the text becomes the root of the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Top {
    /// The document's own.
    Document,
    /// The only item of the document's list.
    OnlyItem,
}

/// Reads one text into an empty tape.
///
/// # Errors
/// What YAML, or our limits, forbid. Where reading could go on it did, so there may be several.
pub(super) fn read<'a>(
    text: &'a str,
    lines: Lines,
    top: Top,
    tape: &mut Tape<'a>,
) -> Result<(), Vec<Flaw>> {
    let mut builder = Builder {
        text,
        tape,
        lines,
        top,
        open: Vec::new(),
        documents: 0,
        flaws: Vec::new(),
    };
    let mut parser = Parser::new_from_str(text);
    while let Some(next) = parser.next_event() {
        match next {
            Ok((Event::StreamEnd, _)) => break,
            Ok((event, span)) => {
                if !builder.take(event, span) {
                    break;
                }
            }
            Err(error) => {
                builder.syntax(&error);
                break;
            }
        }
    }
    if builder.flaws.is_empty() {
        Ok(())
    } else {
        Err(builder.flaws)
    }
}

/// A list or map not yet closed.
struct Open {
    /// Its position on the tape; `None` for the list that [`Top::OnlyItem`] leaves out.
    at: Option<usize>,
    kind: Kind,
    /// Children so far.
    children: usize,
}

/// Turns events into nodes.
struct Builder<'t, 'a> {
    text: &'a str,
    tape: &'t mut Tape<'a>,
    lines: Lines,
    top: Top,
    open: Vec<Open>,
    documents: usize,
    flaws: Vec<Flaw>,
}

impl<'a> Builder<'_, 'a> {
    /// Notes a flaw.
    fn flaw(&mut self, mark: Marker, message: impl Into<String>) {
        let place = self.lines.place(mark);
        self.flaws.push(Flaw {
            place,
            message: message.into(),
        });
    }

    /// Notes what the parser says; its words, our place.
    fn syntax(&mut self, error: &ScanError) {
        let mark = *error.marker();
        let message = format!("this is not YAML: {}", error.info());
        let is_tab = error.info().contains("tab");
        match self.tab_after(mark).filter(|_| is_tab) {
            Some(place) => self.flaws.push(Flaw {
                place,
                message: "this is not YAML: a tab indents here; use spaces".to_owned(),
            }),
            None => self.flaw(mark, message),
        }
    }

    /// Finds the tab that indents the line after a mark: the parser marks the scalar before it.
    fn tab_after(&self, mark: Marker) -> Option<Place> {
        let next = self.text.lines().nth(mark.line())?;
        let spaces = next.len() - next.trim_start_matches(' ').len();
        if !next.get(spaces..)?.starts_with('\t') {
            return None;
        }
        Some(self.lines.at(mark.line() + 1, spaces))
    }

    /// Takes one event; false when reading cannot go on.
    fn take(&mut self, event: Event<'a>, span: Span) -> bool {
        let anchor = match &event {
            Event::Scalar(_, _, anchor, tag) => (*anchor, tag.is_some()),
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => {
                (*anchor, tag.is_some())
            }
            _ => (0, false),
        };
        if anchor.0 != 0 {
            self.flaw(
                span.start,
                "anchors (`&name`) are not allowed; write the value out at each place",
            );
        }
        if anchor.1 {
            self.flaw(span.start, "tags (`!name`) are not allowed; leave it out");
        }
        match event {
            Event::DocumentStart(_) => return self.document(span.start),
            Event::Alias(_) => {
                self.flaw(span.start, "aliases (`*name`) are not allowed; write the value out, or quote a text that begins with `*`");
                return self.scalar(Kind::Plain, "".into(), span.start);
            }
            Event::Scalar(text, style, _, _) => {
                let kind = if style == ScalarStyle::Plain {
                    Kind::Plain
                } else {
                    Kind::Quoted
                };
                return self.scalar(kind, text, span.start);
            }
            Event::SequenceStart(..) => return self.start(Kind::List, span.start),
            Event::MappingStart(..) => return self.start(Kind::Map, span.start),
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(Open { at: Some(at), .. }) = self.open.pop() {
                    self.tape.close(at);
                }
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        true
    }

    /// Counts documents.
    fn document(&mut self, mark: Marker) -> bool {
        self.documents += 1;
        if self.documents > 1 {
            self.flaw(
                mark,
                "a second document begins here; one file holds one configuration",
            );
            return false;
        }
        true
    }

    /// Counts a child of what is open; false for a key that is no scalar, or a node too many.
    fn child(&mut self, kind: Kind, mark: Marker) -> bool {
        if self.tape.len() >= MAX_NODES {
            self.flaw(mark, format!("more than {MAX_NODES} keys and values; write `services:` with one item per line"));
            return false;
        }
        let Some(open) = self.open.last_mut() else {
            return true;
        };
        open.children += 1;
        let (children, left_out) = (open.children, open.at.is_none());
        if open.kind == Kind::Map && children % 2 == 1 && matches!(kind, Kind::List | Kind::Map) {
            self.flaw(mark, "a key must be a word, not a list or map; a text in braces or brackets needs quotes");
            return false;
        }
        if left_out && children > 1 {
            self.flaw(mark, "this is not YAML: a second item within the first");
            return false;
        }
        true
    }

    /// Appends a scalar.
    fn scalar(&mut self, kind: Kind, text: std::borrow::Cow<'a, str>, mark: Marker) -> bool {
        let fits = self.child(kind, mark);
        self.tape.scalar(kind, text, self.lines.place(mark));
        fits
    }

    /// Opens a list or map.
    fn start(&mut self, kind: Kind, mark: Marker) -> bool {
        if !self.child(kind, mark) {
            return false;
        }
        if self.open.len() > MAX_DEPTH {
            self.flaw(mark, format!("nested more than {MAX_DEPTH} levels deep"));
            return false;
        }
        let leave_out = self.top == Top::OnlyItem && self.open.is_empty() && kind == Kind::List;
        let place = self.lines.place(mark);
        let at = (!leave_out).then(|| self.tape.open(kind, place));
        self.open.push(Open {
            at,
            kind,
            children: 0,
        });
        true
    }
}
