//! Single fields: escapes, names, TTLs, classes and types.

use super::fault::Fault;
use super::lexer::Token;
use crate::model::{LowerName, NameError, NameRef, RecordType, Ttl};

/// Units of time and their seconds.
const UNITS: [(u8, u32); 5] = [
    (b's', 1),
    (b'm', 60),
    (b'h', 3600),
    (b'd', 86_400),
    (b'w', 604_800),
];

/// Reads the octets of a field: `\DDD` and `\X` stand for one octet each (RFC 1035 section 5.1).
pub(super) fn octets(raw: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((octet, tail)) = take_octet(rest)? {
        out.push(octet);
        rest = tail;
    }
    Ok(out)
}

/// Reads one octet, escaped or not; `None` at the end.
fn take_octet(raw: &[u8]) -> Result<Option<(u8, &[u8])>, Fault> {
    match raw {
        [] => Ok(None),
        [
            b'\\',
            a @ b'0'..=b'9',
            b @ b'0'..=b'9',
            c @ b'0'..=b'9',
            tail @ ..,
        ] => {
            let value = u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0');
            let octet = u8::try_from(value).map_err(|_| bad_escape())?;
            Ok(Some((octet, tail)))
        }
        [b'\\', b'0'..=b'9', ..] | [b'\\'] => Err(bad_escape()),
        [b'\\', octet, tail @ ..] | [octet, tail @ ..] => Ok(Some((*octet, tail))),
    }
}

fn bad_escape() -> Fault {
    Fault::new(NameError::BadEscape.to_string())
}

/// Reads a domain name in lower case; a name without a last dot is relative to `origin`, `@` is the origin itself.
pub(super) fn name(token: &Token<'_>, origin: NameRef<'_>) -> Result<LowerName, Fault> {
    let fail = |error: NameError| Fault::new(format!("{} is no name: {error}", token.shown()));
    match (token.raw, token.quoted) {
        (b"@", false) => return Ok(origin.to_lower()),
        (b".", _) => return Ok(NameRef::ROOT.to_lower()),
        (b"", _) => return Err(fail(NameError::Empty)),
        _ => {}
    }
    let mut wire = Vec::with_capacity(token.raw.len() + 1 + origin.as_wire().len());
    // The length octet of the label being read.
    let mut head = 0;
    wire.push(0);
    let mut rest = token.raw;
    while let Some((octet, tail)) = take_octet(rest)? {
        let is_escaped = rest.first() == Some(&b'\\');
        rest = tail;
        if octet == b'.' && !is_escaped {
            close_label(&mut wire, head).map_err(fail)?;
            head = wire.len();
            wire.push(0);
        } else if !is_escaped && !(0x21..0x7f).contains(&octet) {
            return Err(fail(if octet < 0x80 {
                NameError::BadEscape
            } else {
                NameError::NotAscii
            }));
        } else {
            wire.push(octet);
        }
    }
    if wire.len() > head + 1 {
        close_label(&mut wire, head).map_err(fail)?;
        wire.extend_from_slice(origin.as_wire());
    }
    match NameRef::from_wire(&wire) {
        Ok(name) => Ok(name.to_lower()),
        Err(error) => Err(fail(error)),
    }
}

/// Writes the length of the label that begins at `head` and ends here.
fn close_label(wire: &mut [u8], head: usize) -> Result<(), NameError> {
    let length = match wire.len() - head - 1 {
        0 => return Err(NameError::EmptyLabel),
        length @ 1..=63 => u8::try_from(length).map_err(|_| NameError::LongLabel)?,
        _ => return Err(NameError::LongLabel),
    };
    if let Some(octet) = wire.get_mut(head) {
        *octet = length;
    }
    Ok(())
}

/// Reads a TTL or another time: seconds, or numbers with units (`1h30m`). At most 2^31-1 s (RFC 2181 section 8).
pub(super) fn ttl(token: &Token<'_>) -> Result<Ttl, Fault> {
    let bad = || {
        Fault::new(format!(
            "{} is no time; write seconds, or numbers with s, m, h, d or w as in `1h30m`",
            token.shown()
        ))
    };
    let mut total: u64 = 0;
    let mut rest = token.raw;
    loop {
        let digits = rest
            .iter()
            .take_while(|octet| octet.is_ascii_digit())
            .count();
        let (number, tail) = rest.split_at_checked(digits).ok_or_else(bad)?;
        if number.is_empty() || number.len() > 10 {
            return Err(bad());
        }
        let number = number
            .iter()
            .fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        let factor = match tail {
            [] if rest.len() == token.raw.len() => 1,
            [unit, ..] => UNITS
                .iter()
                .find(|(letter, _)| *letter == unit.to_ascii_lowercase())
                .map(|(_, seconds)| *seconds)
                .ok_or_else(bad)?,
            [] => return Err(bad()),
        };
        total = total.saturating_add(number * u64::from(factor));
        rest = tail.get(1..).unwrap_or_default();
        if rest.is_empty() {
            break;
        }
    }
    let ttl = u32::try_from(total).ok().and_then(Ttl::new);
    ttl.ok_or_else(|| {
        Fault::new(format!(
            "{} is more than 2147483647 s, the longest time there is (RFC 2181 section 8)",
            token.shown()
        ))
    })
}

/// Tells whether a field can only be a TTL: no type and no class begins with a digit.
pub(super) fn looks_like_ttl(token: &Token<'_>) -> bool {
    !token.quoted && token.raw.first().is_some_and(u8::is_ascii_digit)
}

/// Reads a class: `None` when the field is none, a fault when it is another one than IN.
pub(super) fn class(token: &Token<'_>) -> Option<Result<(), Fault>> {
    let is = |text: &str| token.raw.eq_ignore_ascii_case(text.as_bytes());
    if token.quoted {
        return None;
    }
    if is("IN") || is("CLASS1") {
        return Some(Ok(()));
    }
    let number = token
        .raw
        .split_at_checked(5)
        .is_some_and(|(start, digits)| {
            start.eq_ignore_ascii_case(b"CLASS")
                && !digits.is_empty()
                && digits.iter().all(u8::is_ascii_digit)
        });
    (number || is("CH") || is("HS") || is("CS")).then(|| {
        Err(Fault::new(format!(
            "class {} is not served; the class must be IN",
            token.shown()
        )))
    })
}

/// Reads an RR type that may stand in a zone.
pub(super) fn rtype(token: &Token<'_>) -> Result<RecordType, Fault> {
    let text = std::str::from_utf8(token.raw)
        .ok()
        .filter(|_| !token.quoted);
    let known = match text {
        // Obsolete, but still in many files (RFC 7208 section 3.1).
        Some(text) if text.eq_ignore_ascii_case("SPF") => Some(super::SPF),
        Some(text) => text.parse().ok(),
        None => None,
    };
    let rtype: RecordType = known.ok_or_else(|| {
        Fault::new(format!(
            "{} is no RR type; write a mnemonic such as A, or TYPE and a number",
            token.shown()
        ))
    })?;
    match rtype {
        RecordType::RRSIG | RecordType::NSEC | RecordType::NSEC3 | RecordType::NSEC3PARAM => {
            Err(Fault::new(format!(
                "{rtype} records cannot be loaded: steered answers differ from client to client, so signatures of a file do \
                 not hold; take the unsigned zone"
            )))
        }
        _ if rtype.is_meta() || rtype == RecordType(0) => Err(Fault::new(format!(
            "{rtype} can stand in questions only, never in a zone (RFC 6895 section 3.1)"
        ))),
        _ => Ok(rtype),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> Token<'_> {
        Token {
            raw: text.as_bytes(),
            quoted: false,
            glued: false,
            line: 1,
        }
    }

    #[test]
    fn escapes() {
        for (text, expected) in [
            ("abc", Some(&b"abc"[..])),
            ("a\\046b\\.\\000\\255", Some(b"a.b.\0\xff")),
            ("\\\\", Some(b"\\")),
            ("\\25", None),
            ("\\256", None),
            ("\\999", None),
            ("\\1a0", None),
        ] {
            assert_eq!(octets(text.as_bytes()).ok().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn names_end_in_a_dot_or_the_origin() {
        let origin: LowerName = "example.com".parse().unwrap();
        for (text, expected) in [
            ("@", Ok("example.com")),
            ("\\@", Ok("\\@.example.com")),
            ("WWW", Ok("www.example.com")),
            ("www.", Ok("www")),
            (".", Ok(".")),
            ("a\\.b", Ok("a\\.b.example.com")),
            ("\\000\\032.x.", Ok("\\000\\032.x")),
            ("*", Ok("*.example.com")),
            ("a..b", Err("a label must not be empty")),
            (".a", Err("a label must not be empty")),
            ("..", Err("a label must not be empty")),
            ("", Err("must not be empty")),
            ("bücher", Err("punycode")),
            ("a\\3", Err("three digits")),
        ] {
            match (name(&token(text), origin.as_ref()), expected) {
                (Ok(name), Ok(expected)) => assert_eq!(name.to_string(), expected, "{text}"),
                (Err(fault), Err(part)) => {
                    assert!(fault.to_string().contains(part), "{text}: {fault}");
                }
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
    }

    #[test]
    fn name_limits_are_exact() {
        // RFC 1035 section 2.3.4.
        let label = "a".repeat(63);
        let origin: LowerName = format!("{label}.{label}.{label}").parse().unwrap();
        for (length, is_good) in [(61, true), (62, false)] {
            let text = "b".repeat(length);
            assert_eq!(
                name(&token(&text), origin.as_ref()).is_ok(),
                is_good,
                "{length}"
            );
        }
        let long = "a".repeat(64);
        assert!(name(&token(&long), NameRef::ROOT).is_err());
        assert!(name(&token(&label), NameRef::ROOT).is_ok());
    }

    #[test]
    fn times() {
        for (text, expected) in [
            ("0", Some(0)),
            ("3600", Some(3600)),
            ("1h30m", Some(5400)),
            ("1W2D3H4M5S", Some(788_645)),
            ("2147483647", Some(2_147_483_647)),
            ("2147483648", None),
            ("4294967295", None),
            ("3551w", None),
            ("99999999999999999999", None),
            ("1h30", None),
            ("h", None),
            ("1x", None),
            ("1h-1m", None),
            ("", None),
        ] {
            assert_eq!(ttl(&token(text)).ok().map(Ttl::seconds), expected, "{text}");
        }
    }

    #[test]
    fn classes_and_types() {
        for (text, expected) in [
            ("in", Some(true)),
            ("CLASS1", Some(true)),
            ("CH", Some(false)),
            ("class3", Some(false)),
            ("A", None),
            ("CLASS", None),
        ] {
            assert_eq!(
                class(&token(text)).map(|class| class.is_ok()),
                expected,
                "{text}"
            );
        }
        for (text, expected) in [
            ("aaaa", Some(28)),
            ("TYPE65280", Some(65280)),
            ("type1", Some(1)),
            ("spf", Some(99)),
            ("ANY", None),
            ("AXFR", None),
            ("OPT", None),
            ("TYPE0", None),
            ("TYPE128", None),
            ("TYPE200", None),
            ("TYPE65536", None),
            ("RRSIG", None),
            ("NSEC", None),
            ("FOO", None),
        ] {
            assert_eq!(
                rtype(&token(text)).ok().map(|rtype| rtype.0),
                expected,
                "{text}"
            );
        }
    }
}
