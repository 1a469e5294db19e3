//! From text to logical lines: comments, parentheses, quoted strings (RFC 1035 section 5.1).

use super::fault::Fault;

/// Fields of one logical line: a TXT record of 65535 octets can have half as many strings. Further ones are refused.
const MAX_TOKENS: usize = 65_536;

/// One field as written: escapes are still in it, quotes are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    /// The octets.
    pub(super) raw: &'t [u8],
    /// It stood in quotes, so that `@` and `\#` have no meaning in it.
    pub(super) quoted: bool,
    /// Nothing stood between it and the token before: `key="value"` is two tokens, the second glued.
    pub(super) glued: bool,
    /// Where it begins, from 1.
    pub(super) line: u32,
}

impl Token<'_> {
    /// Gives the token for a message, shortened.
    pub(super) fn shown(&self) -> String {
        let start = self.raw.get(..64).unwrap_or(self.raw);
        let dots = if start.len() < self.raw.len() {
            "…"
        } else {
            ""
        };
        format!("`{}{dots}`", start.escape_ascii())
    }
}

/// What is known of a logical line beside its tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The physical line it begins on, from 1.
    pub(super) line: u32,
    /// It begins with a blank: its owner is the last one stated.
    pub(super) blank: bool,
}

/// Splits a text into logical lines. Time is linear in the text.
#[derive(Debug)]
pub(super) struct Lexer<'t> {
    text: &'t [u8],
    at: usize,
    line: u32,
    /// The first line on which a quoted string began that ran over a line end: where to look when quotes do not match.
    long_string: Option<u32>,
}

impl<'t> Lexer<'t> {
    /// Begins at a text's first octet; a byte order mark is skipped.
    pub(super) fn new(text: &'t [u8]) -> Self {
        Self {
            text: text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text),
            at: 0,
            line: 1,
            long_string: None,
        }
    }

    /// Counts lines from `line` on: for text that was generated out of one line.
    pub(super) fn at_line(mut self, line: u32) -> Self {
        self.line = line;
        self
    }

    /// Reads the next logical line that has tokens. `None` at the end. After a fault the next line can be read.
    pub(super) fn next_line(
        &mut self,
        tokens: &mut Vec<Token<'t>>,
    ) -> Option<Result<Head, (u32, Fault)>> {
        loop {
            tokens.clear();
            let head = Head {
                line: self.line,
                blank: matches!(self.peek()?, b' ' | b'\t' | b'\r'),
            };
            match self.collect(tokens) {
                Err(fault) => return Some(Err(fault)),
                Ok(()) if tokens.is_empty() => {}
                Ok(()) => return Some(Ok(head)),
            }
        }
    }

    /// Collects the tokens of one logical line, to its end even after a fault; the first fault is told.
    fn collect(&mut self, tokens: &mut Vec<Token<'t>>) -> Result<(), (u32, Fault)> {
        let mut state = State::default();
        while let Some(octet) = self.peek() {
            match octet {
                b'\n' | b' ' | b'\t' | b'\r' | b'(' | b')' => {
                    self.at += 1;
                    state.separate(octet, self.line);
                    self.line += u32::from(octet == b'\n');
                    if octet == b'\n' && state.depth == 0 {
                        break;
                    }
                }
                b';' => self.skip_comment(),
                _ => self.token(octet, tokens, &mut state),
            }
        }
        state.finish()
    }

    /// Reads one token, which begins with this octet.
    fn token(&mut self, octet: u8, tokens: &mut Vec<Token<'t>>, state: &mut State) {
        let line = self.line;
        let quoted = octet == b'"';
        let glued = std::mem::replace(&mut state.glued, true);
        let raw = if quoted { self.quoted() } else { self.word() };
        match raw {
            Ok(raw) if tokens.len() < MAX_TOKENS => tokens.push(Token {
                raw,
                quoted,
                glued,
                line,
            }),
            Ok(_) => {
                let text = format!("more than {MAX_TOKENS} fields on one line");
                state.note(line, Fault::new(text));
            }
            Err(fault) => state.note(line, fault),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Skips to the line end, which ends the logical line if no parenthesis is open.
    fn skip_comment(&mut self) {
        while self.peek().is_some_and(|octet| octet != b'\n') {
            self.at += 1;
        }
    }

    /// Gives what lies between `start` and here.
    fn since(&self, start: usize) -> &'t [u8] {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Reads up to the next blank, parenthesis, quote or comment.
    fn word(&mut self) -> Result<&'t [u8], Fault> {
        let start = self.at;
        let mut fault = None;
        while let Some(octet) = self.peek() {
            match octet {
                b' ' | b'\t' | b'\r' | b'\n' | b'(' | b')' | b';' | b'"' => break,
                0..0x20 | 0x7f => {
                    fault = fault.or_else(|| Some(unprintable(octet)));
                }
                b'\\' => {
                    if self.text.get(self.at + 1).is_none_or(|next| *next == b'\n') {
                        fault = fault
                            .or_else(|| Some(Fault::new("a backslash at the end of the line")));
                    } else {
                        self.at += 1;
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
        fault.map_or_else(|| Ok(self.since(start)), Err)
    }

    /// Reads a quoted string, from its opening quote past its closing one. It may hold line ends (RFC 1035 section 5.1).
    fn quoted(&mut self) -> Result<&'t [u8], Fault> {
        let opened = self.line;
        self.at += 1;
        let start = self.at;
        while let Some(octet) = self.peek() {
            match octet {
                b'"' => {
                    let raw = self.since(start);
                    self.at += 1;
                    return Ok(raw);
                }
                b'\n' => {
                    self.line += 1;
                    self.long_string.get_or_insert(opened);
                }
                b'\\'
                    if self
                        .text
                        .get(self.at + 1)
                        .is_some_and(|next| *next != b'\n') =>
                {
                    self.at += 1;
                }
                _ => {}
            }
            self.at += 1;
        }
        let first = self.long_string.unwrap_or(opened);
        Err(Fault::new(if first == opened {
            "a quoted string is never closed; write `\"` after it".to_owned()
        } else {
            format!(
                "a quoted string is never closed; look for a missing `\"` on line {first}, where the first string begins \
                 that runs over a line end"
            )
        }))
    }
}

/// What is remembered while one logical line is read.
#[derive(Debug, Default)]
struct State {
    /// How many parentheses are open, and the line of the outermost.
    depth: usize,
    opened: u32,
    /// Nothing stands between the last token and here.
    glued: bool,
    /// The first fault.
    fault: Option<(u32, Fault)>,
}

impl State {
    /// Takes note of what stands between tokens: blanks, line ends, parentheses.
    fn separate(&mut self, octet: u8, line: u32) {
        self.glued = false;
        match octet {
            b'(' => {
                if self.depth == 0 {
                    self.opened = line;
                }
                self.depth += 1;
            }
            b')' if self.depth == 0 => self.note(line, Fault::new("`)` without a `(` before it")),
            b')' => self.depth -= 1,
            _ => {}
        }
    }

    /// Keeps a fault if it is the first.
    fn note(&mut self, line: u32, fault: Fault) {
        self.fault.get_or_insert((line, fault));
    }

    /// Ends the line, or the text.
    fn finish(mut self) -> Result<(), (u32, Fault)> {
        if self.depth > 0 {
            let reason = "`(` is never closed; write `)` after it";
            self.note(self.opened, Fault::new(reason));
        }
        self.fault.map_or(Ok(()), Err)
    }
}

/// Refuses an octet that no editor shows.
fn unprintable(octet: u8) -> Fault {
    Fault::new(format!("an unprintable octet; write it as `\\{octet:03}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows each logical line as `line[*]: token|token`, faults as `line! reason`.
    fn lines(text: &str) -> Vec<String> {
        let mut lexer = Lexer::new(text.as_bytes());
        let mut tokens = Vec::new();
        let mut shown = Vec::new();
        while let Some(line) = lexer.next_line(&mut tokens) {
            shown.push(match line {
                Err((line, fault)) => format!("{line}! {fault}"),
                Ok(head) => {
                    let words: Vec<String> = tokens
                        .iter()
                        .map(|token| {
                            let raw = token.raw.escape_ascii().to_string();
                            let quote = if token.quoted { "'" } else { "" };
                            let glue = if token.glued { "+" } else { "" };
                            format!("{glue}{quote}{raw}{quote}")
                        })
                        .collect();
                    let blank = if head.blank { "*" } else { "" };
                    format!("{}{blank}: {}", head.line, words.join("|"))
                }
            });
        }
        shown
    }

    #[test]
    fn logical_lines() {
        for (text, expected) in [
            ("", &[][..]),
            ("\u{feff}a A 1\n", &["1: a|A|1"]),
            ("a A 1 ; comment ( \" \n\n  b\r\n", &["1: a|A|1", "3*: b"]),
            ("a ( b\n ; c\n d ) e\nf", &["1: a|b|d|e", "4: f"]),
            ("a ((b\n) c\n) d", &["1: a|b|c|d"]),
            ("a \"b c\" \"\"", &["1: a|'b c'|''"]),
            ("a \"b;()\\\"c\"", &["1: a|'b;()\\\\\\\"c'"]),
            ("k=\"v w\"x y", &["1: k=|+'v w'|+x|y"]),
            ("a\\;b \\( c\\ d", &["1: a\\\\;b|\\\\(|c\\\\ d"]),
            ("a \"b\nc\" d\ne", &["1: a|'b\\nc'|d", "3: e"]),
            ("   \n\t; only\n", &[]),
        ] {
            assert_eq!(lines(text), expected, "{text:?}");
        }
    }

    #[test]
    fn faults_have_their_line_and_the_rest_is_read() {
        for (text, expected) in [
            ("a ) b\nc", &["1! `)` without a `(` before it", "2: c"][..]),
            (
                "a\nb (\nc",
                &["1: a", "2! `(` is never closed; write `)` after it"],
            ),
            (
                "a\x01 (\nb\n)\nc",
                &["1! an unprintable octet; write it as `\\001`", "4: c"],
            ),
            (
                "a\nb\\\nc",
                &["1: a", "2! a backslash at the end of the line", "3: c"],
            ),
            (
                "x \"a",
                &["1! a quoted string is never closed; write `\"` after it"],
            ),
            (
                "x \"a\ny \"b\"\n",
                &[
                    "2! a quoted string is never closed; look for a missing `\"` on line 1, where the first string begins \
                     that runs over a line end",
                ],
            ),
        ] {
            assert_eq!(lines(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_line_has_a_bounded_number_of_fields() {
        let text = format!("{}\nb", "a ".repeat(MAX_TOKENS + 5));
        assert_eq!(
            lines(&text),
            ["1! more than 65536 fields on one line", "2: b"]
        );
    }
}
