//! Data of records in their own presentation form, for types that hold no compressed name.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::answer::wire::u16_at;
use crate::model::{NameRef, RecordType};

/// Shows the data of a type that we know; `None` for others, and for data that is not of its type's form.
pub(super) fn show(rtype: RecordType, octets: &[u8]) -> Option<String> {
    match rtype {
        // RFC 4034 section 5.3, RFC 7344.
        RecordType::DS | RecordType::CDS => {
            let (&[key0, key1, algorithm, digest_type], digest) = octets.split_first_chunk()?;
            let key = u16::from_be_bytes([key0, key1]);
            Some(format!("{key} {algorithm} {digest_type} {}", hex(digest)))
        }
        // RFC 6698 section 2.2, RFC 8162.
        RecordType::TLSA | RecordType::SMIMEA => {
            let (&[usage, selector, matching], data) = octets.split_first_chunk()?;
            Some(format!("{usage} {selector} {matching} {}", hex(data)))
        }
        // RFC 4255 section 3.2.
        RecordType::SSHFP => {
            let (&[algorithm, kind], data) = octets.split_first_chunk()?;
            Some(format!("{algorithm} {kind} {}", hex(data)))
        }
        // RFC 8659 section 4.1.1.
        RecordType::CAA => {
            let (&[flags, length], rest) = octets.split_first_chunk()?;
            let (tag, value) = rest.split_at_checked(usize::from(length))?;
            let tag = std::str::from_utf8(tag).ok()?;
            Some(format!("{flags} {tag} {}", quoted(value)))
        }
        RecordType::SVCB | RecordType::HTTPS => service_binding(octets),
        _ => None,
    }
}

/// Shows data of any type (RFC 3597 section 5).
pub(super) fn unknown(octets: &[u8]) -> String {
    let gap = if octets.is_empty() { "" } else { " " };
    format!("\\# {}{gap}{}", octets.len(), hex(octets))
}

/// Shows octets as digits.
fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut text, octet| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{octet:02x}");
        text
    })
}

/// Shows SVCB and HTTPS (RFC 9460 section 2.1).
fn service_binding(octets: &[u8]) -> Option<String> {
    let priority = u16_at(octets, 0)?;
    let mut end = 2;
    // The target is not compressed (section 2.2).
    while *octets.get(end)? != 0 {
        end += usize::from(*octets.get(end)?) + 1;
    }
    end += 1;
    let target = NameRef::from_wire(octets.get(2..end)?).ok()?.to_string();
    let dot = if target == "." { "" } else { "." };
    let mut text = format!("{priority} {target}{dot}");
    let mut rest = octets.get(end..)?;
    while !rest.is_empty() {
        let (key, length) = (u16_at(rest, 0)?, usize::from(u16_at(rest, 2)?));
        let value = rest.get(4..4 + length)?;
        // Writing to a String cannot fail.
        let _ = write!(text, " {}", parameter(key, value)?);
        rest = rest.get(4 + length..)?;
    }
    Some(text)
}

/// Shows one parameter (RFC 9460 sections 7 and 8, RFC 9461, RFC 9540).
fn parameter(key: u16, value: &[u8]) -> Option<String> {
    let list = |parts: Option<Vec<String>>| parts.map(|parts| parts.join(","));
    Some(match key {
        0 => {
            let keys = value.as_chunks::<2>();
            let names = keys.0.iter().map(|key| key_name(u16::from_be_bytes(*key)));
            format!("mandatory={}", names.collect::<Vec<_>>().join(","))
        }
        1 => format!("alpn={}", list(alpn(value))?),
        2 | 8 if value.is_empty() => key_name(key),
        3 => format!("port={}", u16_at(value, 0)?),
        4 => {
            let hints = value.as_chunks::<4>().0.iter();
            let hints = hints.map(|octets| Ipv4Addr::from(*octets).to_string());
            format!("ipv4hint={}", hints.collect::<Vec<_>>().join(","))
        }
        6 => {
            let hints = value.as_chunks::<16>().0.iter();
            let hints = hints.map(|octets| Ipv6Addr::from(*octets).to_string());
            format!("ipv6hint={}", hints.collect::<Vec<_>>().join(","))
        }
        _ if value.is_empty() => key_name(key),
        // ech is shown in base64 elsewhere; as the text it is in octets it reads back all the same (section 2.1).
        _ => format!("key{key}={}", quoted(value)),
    })
}

/// Names a key (IANA registry of service parameter keys).
fn key_name(key: u16) -> String {
    match key {
        0 => "mandatory",
        1 => "alpn",
        2 => "no-default-alpn",
        3 => "port",
        4 => "ipv4hint",
        5 => "ech",
        6 => "ipv6hint",
        7 => "dohpath",
        8 => "ohttp",
        other => return format!("key{other}"),
    }
    .to_owned()
}

/// Reads protocol names; `None` where one needs escapes, which its two layers of quoting make unreadable.
fn alpn(mut value: &[u8]) -> Option<Vec<String>> {
    let mut names = Vec::new();
    while let Some((&length, rest)) = value.split_first() {
        let (name, next) = rest.split_at_checked(usize::from(length))?;
        let is_plain =
            |octet: &u8| octet.is_ascii_graphic() && !matches!(octet, b',' | b'"' | b'\\');
        if !name.iter().all(is_plain) {
            return None;
        }
        names.push(name.iter().copied().map(char::from).collect());
        value = next;
    }
    Some(names)
}

/// Shows octets in quotes (RFC 1035 section 5.1).
pub(super) fn quoted(octets: &[u8]) -> String {
    let text: String = octets
        .iter()
        .map(|&octet| match octet {
            b'"' | b'\\' => format!("\\{}", char::from(octet)),
            0x20..=0x7e => char::from(octet).to_string(),
            _ => format!("\\{octet:03}"),
        })
        .collect();
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_types_have_their_own_form() {
        for (rtype, octets, shown) in [
            (
                RecordType::DS,
                &b"\xec\x45\x0d\x02\x01\xab"[..],
                "60485 13 2 01ab",
            ),
            (RecordType::TLSA, b"\x03\x01\x01\xff", "3 1 1 ff"),
            (RecordType::SSHFP, b"\x04\x02\x0a", "4 2 0a"),
            (
                RecordType::CAA,
                b"\0\x05issueca.example",
                "0 issue \"ca.example\"",
            ),
            (
                RecordType::HTTPS,
                b"\0\x00\x03www\x07example\0",
                "0 www.example.",
            ),
            (
                RecordType::HTTPS,
                b"\0\x01\0\0\x01\0\x06\x02h2\x02h3\0\x03\0\x02\x20\xfb\0\x04\0\x04\xc0\0\x02\x01",
                "1 . alpn=h2,h3 port=8443 ipv4hint=192.0.2.1",
            ),
            (
                RecordType::SVCB,
                b"\0\x01\0\0\x07\0\x02/q\0\x08\0\0",
                "1 . key7=\"/q\" ohttp",
            ),
        ] {
            assert_eq!(show(rtype, octets).as_deref(), Some(shown));
        }
        for (rtype, octets) in [
            (RecordType::DS, &b"\x01"[..]),
            (RecordType::HTTPS, b"\0\x01\x05ab"),
            (RecordType::HTTPS, b"\0\x01\0\0\x01\0\x09\x02h2"),
            (RecordType(65280), b"\x01"),
        ] {
            assert_eq!(show(rtype, octets), None, "{rtype}");
        }
        assert_eq!(unknown(&[]), "\\# 0");
        assert_eq!(unknown(&[1, 255]), "\\# 2 01ff");
    }
}
