//! `$GENERATE`: one line for many records, in BIND's syntax.

use std::io::Write;

use super::cursor::digits;
use super::fault::Fault;
use super::lexer::Token;

/// Records that one line may make.
const MAX_STEPS: u32 = 65_536;
/// Octets that one generated line may have; as much as a record's data in hexadecimal digits.
const MAX_LINE: usize = 131_072;
/// The widest number: a label's length.
const MAX_WIDTH: usize = 63;

/// The numbers of `start-stop[/step]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    start: u32,
    stop: u32,
    step: u32,
}

impl Range {
    /// Reads a range; its count is bounded.
    pub(super) fn read(token: &Token<'_>) -> Result<Self, Fault> {
        let fail = |why: String| Fault::new(format!("{} {why}", token.shown()));
        let split = |raw: &[u8], mark| {
            let at = raw.iter().position(|octet| *octet == mark)?;
            Some((raw.get(..at)?.to_vec(), raw.get(at + 1..)?.to_vec()))
        };
        let (ends, step) = match split(token.raw, b'/') {
            Some((ends, step)) => (ends, digits(&step)),
            None => (token.raw.to_vec(), Some(1)),
        };
        let ends = split(&ends, b'-');
        let ends = ends.and_then(|(start, stop)| Some((digits(&start)?, digits(&stop)?)));
        let (Some((start, stop)), Some(step)) = (ends, step) else {
            return Err(fail("is no range; write `1-100` or `0-100/2`".to_owned()));
        };
        let range = Self { start, stop, step };
        if step == 0 || start > stop {
            return Err(fail("is empty; write the lesser number first".to_owned()));
        }
        if stop > i32::MAX.unsigned_abs() {
            return Err(fail("goes beyond 2147483647".to_owned()));
        }
        if (stop - start) / step >= MAX_STEPS {
            return Err(fail(format!("makes more than {MAX_STEPS} records")));
        }
        Ok(range)
    }

    /// Gives the numbers, in order.
    pub(super) fn numbers(self) -> impl Iterator<Item = u32> {
        (self.start..=self.stop).step_by(self.step as usize)
    }
}

/// Writes a line with its `$` replaced by `number`: `$` alone, `${offset[,width[,base]]}` with base d, o, x, X, n or N;
/// `$$` and `\$` stand for a dollar sign.
pub(super) fn expand(template: &[u8], number: u32, out: &mut Vec<u8>) -> Result<(), Fault> {
    out.clear();
    let mut rest = template;
    while let Some((octet, tail)) = rest.split_first() {
        rest = match (octet, tail) {
            (b'\\', [escaped, tail @ ..]) => {
                out.extend_from_slice(&[b'\\', *escaped]);
                tail
            }
            (b'$', [b'$', tail @ ..]) => {
                out.extend_from_slice(b"\\$");
                tail
            }
            (b'$', [b'{', tail @ ..]) => {
                let end = tail.iter().position(|octet| *octet == b'}');
                let end = end.ok_or_else(|| Fault::new("`${` without `}`"))?;
                modified(tail.get(..end).unwrap_or_default(), number, out)?;
                tail.get(end + 1..).unwrap_or_default()
            }
            (b'$', tail) => {
                write!(out, "{number}").map_err(|error| Fault::new(error.to_string()))?;
                tail
            }
            (octet, tail) => {
                out.push(*octet);
                tail
            }
        };
        if out.len() > MAX_LINE {
            return Err(Fault::new(format!(
                "a generated line of more than {MAX_LINE} octets"
            )));
        }
    }
    Ok(())
}

/// Writes the number of `${offset[,width[,base]]}`.
fn modified(raw: &[u8], number: u32, out: &mut Vec<u8>) -> Result<(), Fault> {
    let bad = || {
        Fault::new(format!(
            "`${{{}}}` is no modifier; write `${{offset,width,base}}` with base d, o, x, X, n or N and a width up to {MAX_WIDTH}",
            raw.escape_ascii()
        ))
    };
    let mut parts = raw.split(|octet| *octet == b',');
    let offset = parts.next().and_then(signed).ok_or_else(bad)?;
    let width = parts.next().map_or(Some(0), digits).ok_or_else(bad)?;
    let base = parts.next().unwrap_or(b"d");
    if parts.next().is_some() || width > MAX_WIDTH {
        return Err(bad());
    }
    let value = u32::try_from(i64::from(number) + i64::from(offset));
    let value =
        value.map_err(|_| Fault::new(format!("{number} with offset {offset} is out of range")))?;
    let text = match base {
        b"d" => format!("{value:0width$}"),
        b"o" => format!("{value:0width$o}"),
        b"x" => format!("{value:0width$x}"),
        b"X" => format!("{value:0width$X}"),
        b"n" => nibbles(&format!("{value:x}"), width),
        b"N" => nibbles(&format!("{value:X}"), width),
        _ => return Err(bad()),
    };
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// Reads an offset, with or without a sign.
fn signed(raw: &[u8]) -> Option<i32> {
    let (sign, rest) = match raw {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        _ => (1, raw),
    };
    digits::<i32>(rest).map(|value| sign * value)
}

/// Writes hexadecimal digits as labels, the last digit first, as the reverse zones of IPv6 have them; zeros fill up to
/// `width` characters, dots counted.
fn nibbles(hex: &str, width: usize) -> String {
    let digits = hex.len().max(width.div_ceil(2));
    let padded = hex.chars().rev().chain(std::iter::repeat('0'));
    let mut text = String::with_capacity(digits * 2);
    for digit in padded.take(digits) {
        text.push(digit);
        text.push('.');
    }
    // A width of even length ends in a dot, which the text behind goes on from.
    let dots = usize::from(width % 2 == 1 || width < text.len());
    text.truncate(text.len() - dots);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> Result<Vec<u32>, String> {
        let token = Token {
            raw: text.as_bytes(),
            quoted: false,
            glued: false,
            line: 1,
        };
        let range = Range::read(&token).map_err(|fault| fault.to_string())?;
        Ok(range.numbers().collect())
    }

    #[test]
    fn ranges() {
        assert_eq!(range("1-3"), Ok(vec![1, 2, 3]));
        assert_eq!(range("0-10/4"), Ok(vec![0, 4, 8]));
        assert_eq!(range("7-7"), Ok(vec![7]));
        assert_eq!(range("1-65536").map(|all| all.len()), Ok(65536));
        for (text, part) in [
            ("3-1", "lesser"),
            ("1-3/0", "empty"),
            ("1-65537", "more than 65536"),
            ("0-2147483648/2147483647", "beyond"),
            ("1", "no range"),
            ("a-b", "no range"),
            ("1-2/x", "no range"),
            ("-1-2", "no range"),
        ] {
            let fault = range(text).unwrap_err();
            assert!(fault.contains(part), "{text}: {fault}");
        }
    }

    #[test]
    fn numbers_are_put_in() {
        for (template, number, expected) in [
            ("host$ A 192.0.2.$", 7, Ok("host7 A 192.0.2.7")),
            ("${0,3}", 7, Ok("007")),
            ("${-1}x${+10}", 7, Ok("6x17")),
            ("${0,4,x}/${0,0,X}/${0,3,o}", 171, Ok("00ab/AB/253")),
            ("${0,0,d}", 5, Ok("5")),
            ("$$ \\$ \\\\$", 5, Ok("\\$ \\$ \\\\5")),
            ("${0,0,n}", 0x1a, Ok("a.1")),
            ("${0,7,n}", 0x1a, Ok("a.1.0.0")),
            ("${0,8,n}ip6", 0x1a, Ok("a.1.0.0.ip6")),
            ("${0,1,N}", 0xb, Ok("B")),
            ("${0,3,n}", 0x123, Ok("3.2.1")),
            ("${-8}", 7, Err("out of range")),
            ("${0", 7, Err("without")),
            ("${}", 7, Err("no modifier")),
            ("${0,64}", 7, Err("no modifier")),
            ("${0,1,q}", 7, Err("no modifier")),
            ("${0,1,d,1}", 7, Err("no modifier")),
        ] {
            let mut out = Vec::new();
            match (expand(template.as_bytes(), number, &mut out), expected) {
                (Ok(()), Ok(expected)) => {
                    assert_eq!(String::from_utf8(out).unwrap(), expected, "{template}");
                }
                (Err(fault), Err(part)) => {
                    assert!(fault.to_string().contains(part), "{template}: {fault}");
                }
                (got, _) => panic!("{template}: {got:?}"),
            }
        }
        let long = "${0,63}".repeat(3000);
        assert!(expand(long.as_bytes(), 1, &mut Vec::new()).is_err());
    }
}
