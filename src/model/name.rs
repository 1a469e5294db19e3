//! Domain names in wire form (RFC 1035 section 3.1), lower-cased for lookup.

use std::fmt;
use std::str::FromStr;

/// Longest name in octets, the root's zero included (RFC 1035 section 2.3.4).
const MAX_NAME: usize = 255;
/// Longest label in octets (RFC 1035 section 2.3.4).
const MAX_LABEL: usize = 63;
/// The label above names of services, in Kubernetes as in its federations and cluster sets.
pub const SERVICE_LABEL: &[u8] = b"svc";

/// Why a domain name was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing was written.
    #[error("a domain name must not be empty; the root is `.`")]
    Empty,
    /// Two dots in a row, or a leading dot.
    #[error("a label must not be empty")]
    EmptyLabel,
    /// A label above 63 octets.
    #[error("a label has at most 63 octets")]
    LongLabel,
    /// More than 255 octets in wire form.
    #[error("a domain name has at most 255 octets in wire form")]
    LongName,
    /// A backslash that starts no escape of RFC 1035 section 5.1.
    #[error("a backslash must be followed by one character or three digits up to 255")]
    BadEscape,
    /// A character outside ASCII; such names must be written as A-labels (RFC 5891).
    #[error("characters outside ASCII must be written in punycode (`xn--…`)")]
    NotAscii,
    /// Octets that are no uncompressed wire-form name.
    #[error("not a domain name in wire form")]
    BadWire,
}

/// A name in wire form, borrowed: labels with their length octets, the root's zero last, no compression.
///
/// May be of any case: only [`LowerName`] promises lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameRef<'a>(&'a [u8]);

impl<'a> NameRef<'a> {
    /// The root.
    pub const ROOT: NameRef<'static> = NameRef(&[0]);

    /// Takes octets that a parser already proved to be one whole uncompressed name.
    #[must_use]
    pub fn from_checked(wire: &'a [u8]) -> Self {
        debug_assert!(check_wire(wire).is_ok());
        Self(wire)
    }

    /// Checks octets to be one whole uncompressed name.
    ///
    /// # Errors
    /// When a label or the name is too long, or octets are missing or left over.
    pub fn from_wire(wire: &'a [u8]) -> Result<Self, NameError> {
        check_wire(wire)?;
        Ok(Self(wire))
    }

    /// Gives the wire form.
    #[must_use]
    pub fn as_wire(self) -> &'a [u8] {
        self.0
    }

    /// Tells whether this is the root.
    #[must_use]
    pub fn is_root(self) -> bool {
        self.0.len() <= 1
    }

    /// Gives the name without its first label; `None` for the root.
    #[must_use]
    pub fn parent(self) -> Option<Self> {
        let length = usize::from(*self.0.first()?);
        if length == 0 {
            None
        } else {
            self.0.get(length + 1..).map(NameRef)
        }
    }

    /// Gives the first label's octets; `None` for the root.
    #[must_use]
    pub fn first_label(self) -> Option<&'a [u8]> {
        let length = usize::from(*self.0.first()?);
        if length == 0 {
            None
        } else {
            self.0.get(1..=length)
        }
    }

    /// Counts the labels, the root not counted: 0 for the root.
    #[must_use]
    pub fn label_count(self) -> usize {
        std::iter::successors(Some(self), |name| name.parent()).count() - 1
    }

    /// Tells whether this name is `ancestor` or lies below it. Both must be in lower case.
    #[must_use]
    pub fn is_at_or_below(self, ancestor: NameRef<'_>) -> bool {
        self.0.len() >= ancestor.0.len()
            && std::iter::successors(Some(self), |name| name.parent())
                .any(|name| name.0 == ancestor.0)
    }

    /// Iterates over the labels, leftmost first, the root's left out.
    pub fn labels(self) -> impl Iterator<Item = &'a [u8]> {
        std::iter::successors(Some(self), |name| name.parent()).filter_map(Self::first_label)
    }

    /// Tells why it is not the name of a host: letters, digits, `-` and `_` (RFC 1123 section 2.1, RFC 8552). `None`: it is.
    #[must_use]
    pub fn host_fault(self) -> Option<&'static str> {
        let fits = |octet: &u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_');
        let fault = |label: &[u8]| {
            if label.contains(&b'*') {
                Some("`*` may only be the whole leftmost label of a service's hostname")
            } else if !label.iter().all(fits) {
                Some("a host name has letters, digits, `-` and `_`")
            } else if label.starts_with(b"-") || label.ends_with(b"-") {
                Some("a label neither begins nor ends with `-`")
            } else {
                None
            }
        };
        if self.is_root() {
            return Some("the root is no host");
        }
        self.labels().find_map(fault)
    }

    /// Tells whether the first label is `*` (RFC 4592 section 2.1.1).
    #[must_use]
    pub fn is_wildcard(self) -> bool {
        self.0.starts_with(&[1, b'*'])
    }

    /// Makes the owned, lower-case form.
    #[must_use]
    pub fn to_lower(self) -> LowerName {
        // Length octets are at most 63, below `A`, so lower-casing the whole wire form leaves them alone.
        LowerName(self.0.to_ascii_lowercase().into())
    }
}

impl fmt::Display for NameRef<'_> {
    /// Shows the presentation form (RFC 1035 section 5.1, RFC 4343 section 2.1), without the last dot but for the root.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.write_str(".");
        }
        let mut rest = *self;
        let mut first = true;
        while let (Some(label), Some(parent)) = (rest.first_label(), rest.parent()) {
            if !first {
                f.write_str(".")?;
            }
            first = false;
            for &octet in label {
                match octet {
                    b'.' | b'\\' | b'"' | b'(' | b')' | b';' | b'@' | b'$' => {
                        write!(f, "\\{}", char::from(octet))?
                    }
                    0x21..=0x7e => write!(f, "{}", char::from(octet))?,
                    _ => write!(f, "\\{octet:03}")?,
                }
            }
            rest = parent;
        }
        Ok(())
    }
}

impl fmt::Debug for NameRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Checks `wire` to be exactly one uncompressed name.
fn check_wire(wire: &[u8]) -> Result<(), NameError> {
    if wire.len() > MAX_NAME {
        return Err(NameError::LongName);
    }
    let mut rest = wire;
    loop {
        match rest.split_first() {
            Some((0, [])) => return Ok(()),
            Some((&length, tail)) if (1..=63).contains(&length) => {
                rest = tail.get(usize::from(length)..).ok_or(NameError::BadWire)?;
            }
            _ => return Err(NameError::BadWire),
        }
    }
}

/// A name in wire form, ASCII letters in lower case (RFC 4343): the key of every lookup.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LowerName(Box<[u8]>);

impl LowerName {
    /// Borrows the name.
    #[must_use]
    pub fn as_ref(&self) -> NameRef<'_> {
        NameRef(&self.0)
    }

    /// Gives the wire form, in lower case.
    #[must_use]
    pub fn as_wire(&self) -> &[u8] {
        &self.0
    }

    /// Puts one label in front.
    ///
    /// # Errors
    /// When the label has 0 or more than 63 octets, or the whole name more than 255.
    pub fn prepend(&self, label: &[u8]) -> Result<Self, NameError> {
        if label.is_empty() {
            return Err(NameError::EmptyLabel);
        }
        let length = u8::try_from(label.len())
            .ok()
            .filter(|&length| usize::from(length) <= MAX_LABEL);
        let length = length.ok_or(NameError::LongLabel)?;
        let mut wire = Vec::with_capacity(self.0.len() + label.len() + 1);
        wire.push(length);
        wire.extend(label.iter().map(u8::to_ascii_lowercase));
        wire.extend_from_slice(&self.0);
        if wire.len() > MAX_NAME {
            Err(NameError::LongName)
        } else {
            Ok(Self(wire.into()))
        }
    }
}

impl FromStr for LowerName {
    type Err = NameError;

    /// Parses the presentation form (RFC 1035 section 5.1): always taken as absolute, with or without the last dot.
    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text == "." {
            return Ok(Self([0].into()));
        }
        if !text.is_ascii() {
            return Err(NameError::NotAscii);
        }
        let mut wire = Vec::with_capacity(text.len() + 2);
        let mut label = Vec::with_capacity(MAX_LABEL);
        let mut octets = text.bytes().peekable();
        while let Some(octet) = octets.next() {
            match octet {
                b'.' => {
                    close_label(&mut wire, &mut label)?;
                }
                b'\\' => label.push(escaped(&mut octets)?),
                _ => label.push(octet.to_ascii_lowercase()),
            }
        }
        if !label.is_empty() {
            close_label(&mut wire, &mut label)?;
        }
        wire.push(0);
        if wire.len() > MAX_NAME {
            Err(NameError::LongName)
        } else {
            Ok(Self(wire.into()))
        }
    }
}

/// Appends one finished label to the wire form.
fn close_label(wire: &mut Vec<u8>, label: &mut Vec<u8>) -> Result<(), NameError> {
    if label.is_empty() {
        return Err(NameError::EmptyLabel);
    }
    let length = u8::try_from(label.len())
        .ok()
        .filter(|&length| usize::from(length) <= MAX_LABEL);
    wire.push(length.ok_or(NameError::LongLabel)?);
    wire.append(label);
    Ok(())
}

/// Reads what follows a backslash: `\DDD` or `\X`.
fn escaped(octets: &mut impl Iterator<Item = u8>) -> Result<u8, NameError> {
    let first = octets.next().ok_or(NameError::BadEscape)?;
    if !first.is_ascii_digit() {
        return Ok(first.to_ascii_lowercase());
    }
    let mut value = u16::from(first - b'0');
    for _ in 0..2 {
        let digit = octets
            .next()
            .filter(u8::is_ascii_digit)
            .ok_or(NameError::BadEscape)?;
        value = value * 10 + u16::from(digit - b'0');
    }
    let octet = u8::try_from(value).map_err(|_| NameError::BadEscape)?;
    Ok(octet.to_ascii_lowercase())
}

impl fmt::Display for LowerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_ref(), f)
    }
}

impl fmt::Debug for LowerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A few names in one allocation: wire forms one after the other. May be empty. Services hold their hostnames so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(Box<[u8]>);

impl Names {
    /// Counts them.
    #[must_use]
    pub fn count(&self) -> usize {
        self.iter().count()
    }

    /// Iterates over the names, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = NameRef<'_>> {
        let mut rest: &[u8] = &self.0;
        std::iter::from_fn(move || {
            let mut end = 0;
            loop {
                let length = usize::from(*rest.get(end)?);
                end += length + 1;
                if length == 0 {
                    break;
                }
            }
            let (name, tail) = rest.split_at_checked(end)?;
            rest = tail;
            Some(NameRef(name))
        })
    }
}

impl<'a> FromIterator<&'a LowerName> for Names {
    fn from_iter<I: IntoIterator<Item = &'a LowerName>>(names: I) -> Self {
        let mut wire = Vec::new();
        for name in names {
            wire.extend_from_slice(&name.0);
        }
        Self(wire.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_wire_agree() {
        for (text, shown) in [
            (".", "."),
            ("Example.COM.", "example.com"),
            ("a\\.b.c", "a\\.b.c"),
            ("\\000\\032\\255.x", "\\000\\032\\255.x"),
            ("*.x", "*.x"),
        ] {
            let name: LowerName = text.parse().unwrap();
            assert_eq!(name.to_string(), shown);
            assert!(NameRef::from_wire(name.as_wire()).is_ok());
            assert_eq!(shown.parse::<LowerName>().unwrap(), name);
        }
    }

    #[test]
    fn limits_are_exact() {
        let label63 = "a".repeat(63);
        assert!(label63.parse::<LowerName>().is_ok());
        assert_eq!(
            "a".repeat(64).parse::<LowerName>(),
            Err(NameError::LongLabel)
        );
        let name255 = format!("{label63}.{label63}.{label63}.{}", "a".repeat(61));
        assert_eq!(name255.parse::<LowerName>().unwrap().as_wire().len(), 255);
        let name256 = format!("{label63}.{label63}.{label63}.{}", "a".repeat(62));
        assert_eq!(name256.parse::<LowerName>(), Err(NameError::LongName));
        for (text, error) in [
            ("", NameError::Empty),
            ("a..b", NameError::EmptyLabel),
            (".a", NameError::EmptyLabel),
            ("a\\25", NameError::BadEscape),
            ("a\\256", NameError::BadEscape),
            ("a\\", NameError::BadEscape),
            ("bücher.example", NameError::NotAscii),
        ] {
            assert_eq!(text.parse::<LowerName>(), Err(error), "{text}");
        }
    }

    #[test]
    fn ancestors() {
        let name: LowerName = "a.b.c".parse().unwrap();
        let zone: LowerName = "b.c".parse().unwrap();
        assert!(name.as_ref().is_at_or_below(zone.as_ref()));
        assert!(zone.as_ref().is_at_or_below(zone.as_ref()));
        assert!(!zone.as_ref().is_at_or_below(name.as_ref()));
        assert!(name.as_ref().is_at_or_below(NameRef::ROOT));
        assert_eq!(name.as_ref().label_count(), 3);
        assert!(
            !"ab.c"
                .parse::<LowerName>()
                .unwrap()
                .as_ref()
                .is_at_or_below("b.c".parse::<LowerName>().unwrap().as_ref())
        );
    }

    #[test]
    fn several_names_in_one_allocation() {
        let list = ["a.b", "*.c", "."].map(|text| text.parse::<LowerName>().unwrap());
        let names: Names = list.iter().collect();
        assert_eq!(
            names
                .iter()
                .map(|name| name.to_string())
                .collect::<Vec<_>>(),
            ["a.b", "*.c", "."]
        );
        assert_eq!(Names::default().iter().count(), 0);
    }
}
