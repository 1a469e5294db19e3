//! Types that the `domain` crate does not scan, and SOA, whose times may have units.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::cursor::{Cursor, digits};
use super::fault::Fault;
use super::{scan, svcb};
use crate::model::{NameRef, RecordType};

/// Mnemonics of certificate types (RFC 4398 section 2.1).
const CERTIFICATES: [(&str, u16); 10] = [
    ("PKIX", 1),
    ("SPKI", 2),
    ("PGP", 3),
    ("IPKIX", 4),
    ("ISPKI", 5),
    ("IPGP", 6),
    ("ACPKIX", 7),
    ("IACPKIX", 8),
    ("URI", 253),
    ("OID", 254),
];

/// Reads the data of one of our own types; `None` for every other type.
pub(super) fn rdata(rtype: RecordType, cursor: &mut Cursor<'_>) -> Option<Result<Vec<u8>, Fault>> {
    Some(match rtype {
        RecordType::SOA => soa(cursor),
        RecordType::URI => uri(cursor),
        RecordType::AFSDB | RecordType::KX => numbered_name(cursor),
        RecordType::EUI48 => hyphenated(cursor, 6),
        RecordType::EUI64 => hyphenated(cursor, 8),
        RecordType::SMIMEA => scan::smimea(cursor),
        RecordType::DHCID => scan::base64_rest(cursor),
        RecordType::CERT => cert(cursor),
        RecordType::CSYNC => csync(cursor),
        RecordType::APL => apl(cursor),
        RecordType::HIP => hip(cursor),
        _ => return None,
    })
}

/// Tells whether octets are data of one of our own types, LOC, SVCB and HTTPS included; `None` for every other type.
pub(super) fn is_rdata(rtype: RecordType, wire: &[u8]) -> Option<bool> {
    let is_name = |octets: Option<&[u8]>| octets.is_some_and(|o| NameRef::from_wire(o).is_ok());
    Some(match rtype {
        RecordType::AFSDB | RecordType::KX => is_name(wire.get(2..)),
        RecordType::SVCB | RecordType::HTTPS => svcb::check(wire).is_ok(),
        // Version 0 is the only one there is (RFC 1876 section 2).
        RecordType::LOC => wire.len() == 16 && wire.first() == Some(&0),
        RecordType::EUI48 => wire.len() == 6,
        RecordType::EUI64 => wire.len() == 8,
        RecordType::URI | RecordType::HIP => wire.len() > 4,
        RecordType::SMIMEA => wire.len() > 3,
        RecordType::CERT => wire.len() > 5,
        RecordType::DHCID => wire.len() > 2,
        RecordType::CSYNC => wire.len() >= 6,
        _ => return None,
    })
}

/// RFC 1035 section 3.3.13.
fn soa(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Fault> {
    let mut wire = cursor.name()?.as_wire().to_vec();
    wire.extend_from_slice(cursor.name()?.as_wire());
    wire.extend_from_slice(&cursor.number::<u32>()?.to_be_bytes());
    for _ in 0..4 {
        wire.extend_from_slice(&cursor.time()?.to_be_bytes());
    }
    Ok(wire)
}

/// RFC 7553 section 4: the target is the rest of the data, without a length.
fn uri(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Fault> {
    let mut wire = cursor.number::<u16>()?.to_be_bytes().to_vec();
    wire.extend_from_slice(&cursor.number::<u16>()?.to_be_bytes());
    let target = cursor.octets()?;
    if target.is_empty() {
        return Err(Fault::new("an empty URI"));
    }
    wire.extend_from_slice(&target);
    Ok(wire)
}

/// RFC 1183 section 1, RFC 2230 section 3.
fn numbered_name(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Fault> {
    let mut wire = cursor.number::<u16>()?.to_be_bytes().to_vec();
    wire.extend_from_slice(cursor.name()?.as_wire());
    Ok(wire)
}

/// RFC 7043 sections 3.2 and 4.2: `count` octets, each of two hexadecimal digits, with hyphens between.
fn hyphenated(cursor: &mut Cursor<'_>, count: usize) -> Result<Vec<u8>, Fault> {
    let token = cursor.next()?;
    let octet = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok()?;
        let is_hex = text.len() == 2 && text.bytes().all(|octet| octet.is_ascii_hexdigit());
        is_hex.then(|| u8::from_str_radix(text, 16).ok()).flatten()
    };
    let wire: Option<Vec<u8>> = token.raw.split(|octet| *octet == b'-').map(octet).collect();
    wire.filter(|wire| wire.len() == count)
        .ok_or_else(|| Fault::new(format!("{} is no address of {count} octets", token.shown())))
}

/// RFC 4398 section 2.
fn cert(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Fault> {
    let token = cursor.next()?;
    let known = CERTIFICATES
        .iter()
        .find(|(text, _)| token.raw.eq_ignore_ascii_case(text.as_bytes()));
    let kind = known
        .map(|(_, number)| *number)
        .or_else(|| digits(token.raw));
    let kind: u16 =
        kind.ok_or_else(|| Fault::new(format!("{} is no type of certificate", token.shown())))?;
    let mut wire = kind.to_be_bytes().to_vec();
    wire.extend_from_slice(&cursor.number::<u16>()?.to_be_bytes());
    wire.push(cursor.number()?);
    wire.extend_from_slice(&scan::base64_rest(cursor)?);
    Ok(wire)
}

/// RFC 7477 section 2.1.
fn csync(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Fault> {
    let mut wire = cursor.number::<u32>()?.to_be_bytes().to_vec();
    wire.extend_from_slice(&cursor.number::<u16>()?.to_be_bytes());
    wire.extend_from_slice(&scan::type_bitmap(cursor)?);
    Ok(wire)
}

/// RFC 3123 sections 4 and 5. The list may be empty.
fn apl(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Fault> {
    let mut wire = Vec::new();
    while cursor.peek().is_some() {
        let token = cursor.next()?;
        let item = std::str::from_utf8(token.raw).ok().and_then(apl_item);
        let item = item
            .ok_or_else(|| Fault::new(format!("{} is no prefix with its family", token.shown())))?;
        wire.extend_from_slice(&item);
    }
    Ok(wire)
}

/// Reads `[!]family:address/prefix`.
fn apl_item(text: &str) -> Option<Vec<u8>> {
    let (negation, text) = text
        .strip_prefix('!')
        .map_or((0, text), |rest| (0x80, rest));
    let (family, text) = text.split_once(':')?;
    let (address, prefix) = text.split_once('/')?;
    let prefix: u8 = digits(prefix.as_bytes())?;
    let (family, mut octets): (u16, Vec<u8>) = match family {
        "1" if prefix <= 32 => (1, address.parse::<Ipv4Addr>().ok()?.octets().into()),
        "2" if prefix <= 128 => (2, address.parse::<Ipv6Addr>().ok()?.octets().into()),
        _ => return None,
    };
    // Trailing zero octets must not be sent (section 4).
    while octets.last() == Some(&0) {
        octets.pop();
    }
    let mut wire = family.to_be_bytes().to_vec();
    wire.push(prefix);
    wire.push(negation | u8::try_from(octets.len()).ok()?);
    wire.extend_from_slice(&octets);
    Some(wire)
}

/// RFC 8005 sections 5 and 6.
fn hip(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Fault> {
    let algorithm: u8 = cursor.number()?;
    let tag = scan::hex_token(cursor)?;
    let key = scan::base64_token(cursor)?;
    let too_long = || Fault::new("a host identity tag has at most 255 octets, a key 65535");
    let mut wire = vec![u8::try_from(tag.len()).map_err(|_| too_long())?, algorithm];
    let length = u16::try_from(key.len()).map_err(|_| too_long())?;
    wire.extend_from_slice(&length.to_be_bytes());
    wire.extend_from_slice(&tag);
    wire.extend_from_slice(&key);
    while cursor.peek().is_some() {
        wire.extend_from_slice(cursor.name()?.as_wire());
    }
    Ok(wire)
}
