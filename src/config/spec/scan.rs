//! The fast lane: one service written as a flow map on one line.
//!
//! A strict subset of YAML in printable ASCII, read some ten times faster than by a whole YAML parser into the very same
//! nodes. Whatever is not surely inside the subset is left to `yaml`; a property test holds the two together.

use std::borrow::Cow;

use super::tape::{Kind, Place, Tape};
use super::yaml::MAX_DEPTH;

/// Reads the flow map of one line into an empty tape.
///
/// `line` has no line break; `start` is the octet at which the map must begin. False when the line is outside the subset;
/// the tape then holds rubbish.
pub(super) fn scan_line<'a>(line: &'a str, start: usize, number: u32, tape: &mut Tape<'a>) -> bool {
    let mut scanner = Scanner {
        line,
        at: start,
        number,
        depth: 0,
        tape,
    };
    scanner.peek() == Some(b'{') && scanner.value().is_some() && scanner.ends()
}

/// Reads one line. `None` everywhere means: outside the subset.
struct Scanner<'t, 'a> {
    line: &'a str,
    at: usize,
    number: u32,
    depth: usize,
    tape: &'t mut Tape<'a>,
}

impl Scanner<'_, '_> {
    fn peek(&self) -> Option<u8> {
        self.line.as_bytes().get(self.at).copied()
    }

    /// Takes one octet if it is this one.
    fn take(&mut self, octet: u8) -> Option<()> {
        if self.peek()? == octet {
            self.at += 1;
            Some(())
        } else {
            None
        }
    }

    fn skip_spaces(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    /// Gives the place of the next octet. Only ASCII was passed, so octets are characters.
    fn place(&self) -> Place {
        let column = u32::try_from(self.at + 1).unwrap_or(u32::MAX);
        Place {
            line: self.number,
            column,
        }
    }

    /// Tells whether nothing but spaces, or spaces and a comment, is left.
    fn ends(&mut self) -> bool {
        let rest = self.line.as_bytes().get(self.at..).unwrap_or_default();
        let rest = rest.strip_suffix(b"\r").unwrap_or(rest);
        match rest.iter().position(|&octet| octet != b' ') {
            None => true,
            Some(spaces) => {
                spaces > 0
                    && rest.get(spaces) == Some(&b'#')
                    && rest.iter().all(|octet| matches!(octet, 0x20..=0x7e))
            }
        }
    }

    fn value(&mut self) -> Option<()> {
        match self.peek()? {
            b'{' => self.collection(Kind::Map, b'}'),
            b'[' => self.collection(Kind::List, b']'),
            _ => self.scalar(),
        }
    }

    /// Reads a flow list or map, whose bracket is next. A comma before the closing bracket is outside the subset.
    fn collection(&mut self, kind: Kind, closing: u8) -> Option<()> {
        // The list of services is one level above.
        if self.depth + 1 >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let open = self.tape.open(kind, self.place());
        self.at += 1;
        self.skip_spaces();
        if self.take(closing).is_none() {
            loop {
                if kind == Kind::Map {
                    self.scalar()?;
                    self.take(b':')?;
                    self.take(b' ')?;
                    self.skip_spaces();
                }
                self.value()?;
                self.skip_spaces();
                if self.take(closing).is_some() {
                    break;
                }
                self.take(b',')?;
                self.skip_spaces();
            }
        }
        self.tape.close(open);
        self.depth -= 1;
        Some(())
    }

    fn scalar(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.quoted(b'"'),
            b'\'' => self.quoted(b'\''),
            _ => self.plain(),
        }
    }

    /// Reads a scalar in quotes that holds neither escapes nor quotes.
    fn quoted(&mut self, quote: u8) -> Option<()> {
        let place = self.place();
        let rest = self.line.as_bytes().get(self.at + 1..)?;
        let length = rest
            .iter()
            .position(|&octet| octet == quote || !matches!(octet, b' '..=b'~') || octet == b'\\')?;
        if *rest.get(length)? != quote {
            return None;
        }
        let text = self.line.get(self.at + 1..self.at + 1 + length)?;
        self.at += length + 2;
        // Two quotes in a row are an escaped one.
        if self.peek() == Some(quote) {
            return None;
        }
        self.tape.scalar(Kind::Quoted, Cow::Borrowed(text), place);
        Some(())
    }

    /// Reads one word without quotes.
    fn plain(&mut self) -> Option<()> {
        let place = self.place();
        let rest = self.line.as_bytes().get(self.at..)?;
        let mut length = 0;
        loop {
            let tail = rest.get(length..)?;
            length += tail
                .iter()
                .position(|&octet| !is_word(octet))
                .unwrap_or(tail.len());
            let next = rest.get(length + 1).copied().unwrap_or(b' ');
            let goes_on = match rest.get(length) {
                Some(b':') => length > 0 && (is_word(next) || next == b':'),
                // A dash alone, or before a bracket or comma, means something else.
                Some(b'-') => is_word(next) || (next == b'-' && length > 0),
                _ => false,
            };
            if !goes_on {
                break;
            }
            length += 1;
        }
        if length == 0 {
            return None;
        }
        let text = self.line.get(self.at..self.at + length)?;
        self.at += length;
        self.tape.scalar(Kind::Plain, Cow::Borrowed(text), place);
        Some(())
    }
}

/// The octets that are harmless anywhere in a plain scalar.
static WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut octet: u8 = 0;
    while octet < 128 {
        #[expect(
            clippy::indexing_slicing,
            reason = "evaluated while compiling; an octet is below 256"
        )]
        {
            table[octet as usize] = matches!(octet, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'/' | b'+' | b'~');
        }
        octet += 1;
    }
    table
};

/// Tells whether an octet is harmless anywhere in a plain scalar.
fn is_word(octet: u8) -> bool {
    WORD.get(usize::from(octet)).copied().unwrap_or(false)
}
