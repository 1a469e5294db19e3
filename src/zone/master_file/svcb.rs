//! SVCB and HTTPS (RFC 9460): priority, target and parameters.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::cursor::{Cursor, digits};
use super::fault::Fault;
use super::lexer::Token;
use super::{field, scan};
use crate::model::NameRef;
use crate::zone::rrset::names_at;

const MANDATORY: u16 = 0;
const ALPN: u16 = 1;
const NO_DEFAULT_ALPN: u16 = 2;
const PORT: u16 = 3;
const IPV4HINT: u16 = 4;
const ECH: u16 = 5;
const IPV6HINT: u16 = 6;
const DOHPATH: u16 = 7;
const OHTTP: u16 = 8;
const GROUPS: u16 = 9;
/// Reserved as invalid (RFC 9460 section 14.3.2).
const INVALID: u16 = 65_535;

/// Keys by name (IANA registry of Service Parameter Keys).
const KEYS: [(&str, u16); 10] = [
    ("mandatory", MANDATORY),
    ("alpn", ALPN),
    ("no-default-alpn", NO_DEFAULT_ALPN),
    ("port", PORT),
    ("ipv4hint", IPV4HINT),
    ("ech", ECH),
    ("ipv6hint", IPV6HINT),
    ("dohpath", DOHPATH),
    ("ohttp", OHTTP),
    ("tls-supported-groups", GROUPS),
];

/// Reads `priority target [key[=value] …]` (RFC 9460 section 2.1). Parameters are sorted by key.
pub(super) fn rdata(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Fault> {
    let mut wire = cursor.number::<u16>()?.to_be_bytes().to_vec();
    wire.extend_from_slice(cursor.name()?.as_wire());
    let mut params = BTreeMap::new();
    while cursor.peek().is_some() {
        let token = cursor.next()?;
        let (key, value) = param(token, cursor.next_glued())?;
        if params.insert(key, value).is_some() {
            return Err(Fault::new(format!("the parameter {} twice", shown(key))));
        }
    }
    for (key, value) in &params {
        let length = u16::try_from(value.len());
        let length = length.map_err(|_| Fault::new("a parameter of more than 65535 octets"))?;
        wire.extend_from_slice(&key.to_be_bytes());
        wire.extend_from_slice(&length.to_be_bytes());
        wire.extend_from_slice(value);
    }
    check(&wire)?;
    Ok(wire)
}

/// Checks data in wire form (section 2.2): keys ascending, mandatory ones there, values well-formed.
pub(super) fn check(wire: &[u8]) -> Result<(), Fault> {
    let broken = || Fault::new("the data is cut off");
    let (priority, _) = wire.split_first_chunk().ok_or_else(broken)?;
    let target = names_at(wire, 2, 1).next().ok_or_else(broken)?;
    let name = wire.get(target.clone()).ok_or_else(broken)?;
    NameRef::from_wire(name).map_err(|error| Fault::new(error.to_string()))?;
    let mut rest = wire.get(target.end..).unwrap_or_default();
    let mut params: BTreeMap<u16, &[u8]> = BTreeMap::new();
    while !rest.is_empty() {
        let (key, tail) = rest.split_first_chunk().ok_or_else(broken)?;
        let (length, tail) = tail.split_first_chunk().ok_or_else(broken)?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (value, tail) = tail.split_at_checked(length).ok_or_else(broken)?;
        let key = u16::from_be_bytes(*key);
        if params
            .last_key_value()
            .is_some_and(|(last, _)| *last >= key)
            || key == INVALID
        {
            return Err(Fault::new("parameters that are not in ascending order"));
        }
        check_value(key, value)?;
        params.insert(key, value);
        rest = tail;
    }
    // AliasMode (section 2.4.2): clients would ignore them.
    if *priority == [0, 0] && !params.is_empty() {
        return Err(Fault::new(
            "priority 0 is an alias, which has no parameters",
        ));
    }
    if params.contains_key(&NO_DEFAULT_ALPN) && !params.contains_key(&ALPN) {
        return Err(Fault::new(
            "no-default-alpn needs alpn beside it (section 7.1.1)",
        ));
    }
    let listed = params.get(&MANDATORY).copied().unwrap_or_default();
    match numbers(listed).find(|key| !params.contains_key(key)) {
        Some(key) => Err(Fault::new(format!(
            "the mandatory key {} is missing",
            shown(key)
        ))),
        None => Ok(()),
    }
}

/// Checks one value in wire form.
fn check_value(key: u16, value: &[u8]) -> Result<(), Fault> {
    let whole = |size: usize| !value.is_empty() && value.len().is_multiple_of(size);
    let is_good = match key {
        // Ascending, so without doubles; never itself (section 8).
        MANDATORY => {
            whole(2)
                && numbers(value).is_sorted_by(|a, b| a < b)
                && numbers(value).all(|key| key != MANDATORY)
        }
        ALPN => is_alpn(value),
        NO_DEFAULT_ALPN | OHTTP => value.is_empty(),
        PORT => value.len() == 2,
        IPV4HINT => whole(4),
        IPV6HINT => whole(16),
        ECH => !value.is_empty(),
        // A relative URI template with the variable dns (RFC 9461 section 5).
        DOHPATH => std::str::from_utf8(value).is_ok_and(|text| {
            text.starts_with('/') && text.split('{').skip(1).any(|part| part.contains("dns"))
        }),
        GROUPS => whole(2),
        _ => true,
    };
    if is_good {
        Ok(())
    } else {
        Err(Fault::new(format!("a wrong value of {}", shown(key))))
    }
}

/// Tells whether octets are a list of protocol names, none empty (section 7.1.1).
fn is_alpn(value: &[u8]) -> bool {
    let mut rest = value;
    while let Some((length, tail)) = rest.split_first() {
        let Some(tail) = tail.get(usize::from(*length)..).filter(|_| *length > 0) else {
            return false;
        };
        rest = tail;
    }
    !value.is_empty()
}

/// Gives the 16-bit numbers of a value.
fn numbers(value: &[u8]) -> impl Iterator<Item = u16> {
    value.chunks_exact(2).map(|pair| {
        pair.iter()
            .fold(0, |number, octet| number << 8 | u16::from(*octet))
    })
}

/// Reads `key`, `key=value` or `key="value"`; `quoted` is the field glued behind.
fn param(token: &Token<'_>, quoted: Option<&Token<'_>>) -> Result<(u16, Vec<u8>), Fault> {
    if token.quoted {
        return Err(Fault::new(format!(
            "{} is no parameter; only its value may be in quotes",
            token.shown()
        )));
    }
    let equals = token.raw.iter().position(|octet| *octet == b'=');
    let (name, value) = match (equals, quoted) {
        (None, None) => (token.raw, None),
        (Some(at), None) => (
            token.raw.get(..at).unwrap_or_default(),
            token.raw.get(at + 1..),
        ),
        (Some(at), Some(quoted)) if at + 1 == token.raw.len() => {
            (token.raw.get(..at).unwrap_or_default(), Some(quoted.raw))
        }
        _ => return Err(Fault::new(format!("{} is no parameter", token.shown()))),
    };
    let number = key(name).ok_or_else(|| {
        Fault::new(format!(
            "{} has no key that is known; write `key` and its number",
            token.shown()
        ))
    })?;
    let octets = field::octets(value.unwrap_or_default())?;
    let wire = value_of(number, &octets, value.is_some());
    let wire = wire.ok_or_else(|| Fault::new(format!("{} has a wrong value", token.shown())))?;
    Ok((number, wire))
}

/// Finds a key by name or as `key` and its number, without leading zeros (section 2.1).
fn key(name: &[u8]) -> Option<u16> {
    let known = KEYS.iter().find(|(text, _)| text.as_bytes() == name);
    known.map(|(_, number)| *number).or_else(|| {
        let number = name.strip_prefix(b"key")?;
        let is_short = number == b"0" || number.first() != Some(&b'0');
        digits(number).filter(|key| is_short && *key != INVALID)
    })
}

/// Shows a key.
fn shown(key: u16) -> String {
    let known = KEYS.iter().find(|(_, number)| *number == key);
    known.map_or_else(|| format!("key{key}"), |(text, _)| (*text).to_owned())
}

/// Makes the wire form of a value; `None` when it is wrong. The rest is checked by [`check_value`].
fn value_of(number: u16, octets: &[u8], is_there: bool) -> Option<Vec<u8>> {
    let items = || octets.split(|octet| *octet == b',');
    let text = |item| std::str::from_utf8(item).ok();
    let wire = match number {
        NO_DEFAULT_ALPN | OHTTP => (!is_there).then(Vec::new)?,
        MANDATORY => {
            let keys: Option<Vec<u16>> = items().map(key).collect();
            let mut keys = keys?;
            keys.sort_unstable();
            keys.into_iter().flat_map(u16::to_be_bytes).collect()
        }
        ALPN => alpn(octets)?,
        PORT => digits::<u16>(octets)?.to_be_bytes().to_vec(),
        IPV4HINT => {
            concat(items().map(|item| Some(text(item)?.parse::<Ipv4Addr>().ok()?.octets())))?
        }
        IPV6HINT => {
            concat(items().map(|item| Some(text(item)?.parse::<Ipv6Addr>().ok()?.octets())))?
        }
        ECH => scan::base64_octets(octets)?,
        GROUPS => concat(items().map(|item| Some(digits::<u16>(item)?.to_be_bytes())))?,
        _ => octets.to_vec(),
    };
    Some(wire)
}

/// Joins items of equal length; `None` when one is.
fn concat<const N: usize>(items: impl Iterator<Item = Option<[u8; N]>>) -> Option<Vec<u8>> {
    let items: Option<Vec<[u8; N]>> = items.collect();
    Some(items?.concat())
}

/// Reads a list of protocol names: commas part them, `\,` and `\\` stand for the second character (appendix A.1).
fn alpn(octets: &[u8]) -> Option<Vec<u8>> {
    let mut items = vec![Vec::new()];
    let mut rest = octets.iter();
    while let Some(octet) = rest.next() {
        match octet {
            b',' => items.push(Vec::new()),
            b'\\' => items.last_mut()?.push(*rest.next()?),
            _ => items.last_mut()?.push(*octet),
        }
    }
    let mut wire = Vec::new();
    for item in items {
        wire.push(u8::try_from(item.len()).ok()?);
        wire.extend_from_slice(&item);
    }
    Some(wire)
}
