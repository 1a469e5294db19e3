//! The fields of one record's data, read one after the other.

use super::fault::Fault;
use super::field;
use super::lexer::Token;
use crate::model::{LowerName, NameRef};

/// Where reading stands in the data of one record.
#[derive(Debug)]
pub(super) struct Cursor<'t> {
    tokens: &'t [Token<'t>],
    at: usize,
    origin: NameRef<'t>,
}

impl<'t> Cursor<'t> {
    /// Begins at the first field; relative names get `origin`.
    pub(super) fn new(tokens: &'t [Token<'t>], origin: NameRef<'t>) -> Self {
        Self {
            tokens,
            at: 0,
            origin,
        }
    }

    /// Gives the next field without taking it.
    pub(super) fn peek(&self) -> Option<&'t Token<'t>> {
        self.tokens.get(self.at)
    }

    /// Takes the next field.
    pub(super) fn next(&mut self) -> Result<&'t Token<'t>, Fault> {
        let token = self.peek();
        self.at += usize::from(token.is_some());
        token.ok_or_else(|| Fault::new("a field is missing at the end"))
    }

    /// Takes a field that is glued to the one before and in quotes: the value of `key="value"`.
    pub(super) fn next_glued(&mut self) -> Option<&'t Token<'t>> {
        let token = self.peek().filter(|token| token.glued && token.quoted);
        self.at += usize::from(token.is_some());
        token
    }

    /// Gives the field taken last; `None` before the first.
    pub(super) fn last(&self) -> Option<&'t Token<'t>> {
        self.tokens.get(self.at.checked_sub(1)?)
    }

    /// Takes a field's octets, escapes resolved.
    pub(super) fn octets(&mut self) -> Result<Vec<u8>, Fault> {
        field::octets(self.next()?.raw)
    }

    /// Takes a name, in lower case.
    pub(super) fn name(&mut self) -> Result<LowerName, Fault> {
        field::name(self.next()?, self.origin)
    }

    /// Takes a decimal number.
    pub(super) fn number<N: std::str::FromStr>(&mut self) -> Result<N, Fault> {
        let token = self.next()?;
        digits(token.raw).ok_or_else(|| {
            Fault::new(format!(
                "{} is no number from 0 to {}",
                token.shown(),
                greatest::<N>()
            ))
        })
    }

    /// Takes a time with or without units, as 32 bits.
    pub(super) fn time(&mut self) -> Result<u32, Fault> {
        field::ttl(self.next()?).map(crate::model::Ttl::seconds)
    }

    /// Refuses fields that were not taken.
    pub(super) fn finish(&self) -> Result<(), Fault> {
        match self.peek() {
            None => Ok(()),
            Some(token) => Err(Fault::new(format!(
                "{} is one field too many",
                token.shown()
            ))),
        }
    }
}

/// Reads a decimal number of digits only; the sign that Rust takes is no digit.
pub(super) fn digits<N: std::str::FromStr>(raw: &[u8]) -> Option<N> {
    let text = std::str::from_utf8(raw).ok()?;
    let all = !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

/// Gives the greatest number of an unsigned type, for messages.
fn greatest<N>() -> u64 {
    let bits = u32::try_from(size_of::<N>() * 8).unwrap_or(64).min(64);
    u64::MAX.checked_shr(64 - bits).unwrap_or(0)
}
