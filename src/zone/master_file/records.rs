//! Record data of any type: which scanner reads it, and what is checked of all.

use super::cursor::Cursor;
use super::fault::Fault;
use super::lexer::Token;
use super::{SPF, loc, own, scan, svcb};
use crate::model::RecordType;
use crate::zone::rrset::{Rdata, names_at, plain_names};

/// The most octets of one record's data: RDLENGTH has 16 bits.
const MAX_RDATA: usize = 65_535;

/// Reads the data of one record, all fields of it; gives the wire form, names uncompressed and in lower case. A fault says
/// how the type is written.
pub(super) fn rdata(rtype: RecordType, cursor: &mut Cursor<'_>) -> Result<Rdata, Fault> {
    let is_generic = cursor.peek().is_some_and(is_generic_marker);
    let wire = if is_generic {
        generic(rtype, cursor)
    } else {
        text_form(rtype, cursor)
    };
    let checked = wire.and_then(|wire| {
        cursor.finish()?;
        check(rtype, &wire)?;
        Ok(wire.into())
    });
    checked.map_err(|fault| match (is_generic, usage(rtype)) {
        (false, Some(usage)) => Fault::new(format!("{fault}; {rtype} is written {usage}")),
        _ => fault,
    })
}

/// Tells whether a field is `\#` (RFC 3597 section 5).
fn is_generic_marker(token: &Token<'_>) -> bool {
    token.raw == b"\\#" && !token.quoted
}

/// Reads `\# length hex` (RFC 3597 section 5). Of types we know the octets must be well-formed; names among them get their
/// lower case.
fn generic(rtype: RecordType, cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Fault> {
    cursor.next()?;
    let length: u16 = cursor.number()?;
    let mut wire = scan::hex_rest(cursor)?;
    if wire.len() != usize::from(length) {
        return Err(Fault::new(format!(
            "the data has {} octets, but {length} are announced after `\\#`",
            wire.len()
        )));
    }
    let like = if rtype == SPF { RecordType::TXT } else { rtype };
    // Domain takes a TXT without strings.
    let is_empty = wire.is_empty() && scan::knows(like);
    if is_empty || !own::is_rdata(like, &wire).unwrap_or_else(|| scan::is_rdata(like, &wire)) {
        return Err(Fault::new(format!(
            "these octets are no data of {rtype}; names in it must not be compressed"
        )));
    }
    let (start, count) = plain_names(rtype);
    let names: Vec<_> = names_at(&wire, start, count).collect();
    for range in names {
        // Length octets are below `A`, so lower-casing the whole name leaves them alone.
        wire.get_mut(range)
            .unwrap_or_default()
            .make_ascii_lowercase();
    }
    Ok(wire)
}

/// Reads the text form of a type.
fn text_form(rtype: RecordType, cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Fault> {
    match rtype {
        RecordType::LOC => loc::rdata(cursor),
        RecordType::SVCB | RecordType::HTTPS => svcb::rdata(cursor),
        SPF => scan::rdata(RecordType::TXT, cursor),
        _ if scan::knows(rtype) => scan::rdata(rtype, cursor),
        _ => own::rdata(rtype, cursor).unwrap_or_else(|| {
            Err(Fault::new(format!(
                "{rtype} has no text form here; write its data as `\\# 4 c0000201`: the number of octets, then \
                 hexadecimal digits (RFC 3597)"
            )))
        }),
    }
}

/// Checks what no scanner does: the length, and that a digest has the length of its kind.
fn check(rtype: RecordType, wire: &[u8]) -> Result<(), Fault> {
    if wire.len() > MAX_RDATA {
        return Err(Fault::new(format!(
            "{} octets of data; {MAX_RDATA} is the most",
            wire.len()
        )));
    }
    let Some((kind, digest)) = digest_of(rtype, wire) else {
        return Ok(());
    };
    let expected = match (rtype, kind) {
        // RFC 4034 appendix A.2, RFC 4509, RFC 6605.
        (RecordType::DS | RecordType::CDS, 1) => 20,
        (RecordType::DS | RecordType::CDS, 2) => 32,
        (RecordType::DS | RecordType::CDS, 4) => 48,
        // RFC 4255 section 3.1.2, RFC 6594.
        (RecordType::SSHFP, 1) => 20,
        (RecordType::SSHFP, 2) => 32,
        // RFC 6698 section 2.1.3.
        (RecordType::TLSA | RecordType::SMIMEA, 1) => 32,
        (RecordType::TLSA | RecordType::SMIMEA, 2) => 64,
        _ => return Ok(()),
    };
    if digest.len() == expected {
        Ok(())
    } else {
        Err(Fault::new(format!(
            "a digest of {} octets, where type {kind} has {expected}",
            digest.len()
        )))
    }
}

/// Gives the kind of digest and the digest, of types that have one.
fn digest_of(rtype: RecordType, wire: &[u8]) -> Option<(u8, &[u8])> {
    let at = match rtype {
        RecordType::DS | RecordType::CDS => 3,
        RecordType::SSHFP => 1,
        RecordType::TLSA | RecordType::SMIMEA => 2,
        _ => return None,
    };
    let (kind, digest) = wire.get(at..)?.split_first()?;
    Some((*kind, digest))
}

/// Shows how a type is written, for messages.
fn usage(rtype: RecordType) -> Option<&'static str> {
    Some(match rtype {
        RecordType::A => "`192.0.2.1`",
        RecordType::AAAA => "`2001:db8::1`",
        RecordType::NS => "`ns1.example.com.`",
        RecordType::CNAME | RecordType::DNAME | RecordType::PTR => "`target.example.com.`",
        RecordType::SOA => {
            "`ns1.example.com. hostmaster.example.com. 2026010100 1h 10m 2w 5m`: first name server, contact, serial, \
             refresh, retry, expire, minimum"
        }
        RecordType::MX => "`10 mail.example.com.`",
        RecordType::TXT | SPF => "`\"text\"`, each string with at most 255 octets",
        RecordType::SRV => "`10 5 443 host.example.com.`: priority, weight, port, target",
        RecordType::CAA => "`0 issue \"ca.example.net\"`",
        RecordType::SVCB | RecordType::HTTPS => {
            "`1 . alpn=h2,h3 port=8443 ipv4hint=192.0.2.1`: priority, target, parameters"
        }
        RecordType::NAPTR => {
            "`100 10 \"u\" \"E2U+sip\" \"!^.*$!sip:info@example.com!\" .`: order, preference, flags, services, regular \
             expression, replacement"
        }
        RecordType::SSHFP => "`4 2 0123ab…`: algorithm, digest type, digest in hexadecimal",
        RecordType::TLSA | RecordType::SMIMEA => {
            "`3 1 1 0123ab…`: usage, selector, matching type, data in hexadecimal"
        }
        RecordType::LOC => "`50 6 40 N 8 40 57 E 112m 10m 100m 10m`",
        RecordType::URI => "`10 1 \"https://www.example.com/\"`",
        RecordType::DS | RecordType::CDS => {
            "`60485 13 2 0123ab…`: key tag, algorithm, digest type, digest in hexadecimal"
        }
        RecordType::DNSKEY | RecordType::CDNSKEY => {
            "`257 3 13 base64…`: flags, protocol, algorithm, key"
        }
        RecordType::HINFO => "`\"CPU\" \"system\"`",
        RecordType::RP => "`mailbox.example.com. text.example.com.`",
        RecordType::AFSDB | RecordType::KX => "`1 host.example.com.`",
        RecordType::EUI48 => "`00-00-5e-00-53-2a`",
        RecordType::EUI64 => "`00-00-5e-ef-10-00-00-2a`",
        RecordType::APL => "`1:192.0.2.0/24 !2:2001:db8::/32`",
        RecordType::CERT => "`PKIX 0 0 base64…`: type, key tag, algorithm, certificate",
        RecordType::CSYNC => "`2026010100 3 A NS AAAA`: serial, flags, types",
        RecordType::HIP => {
            "`2 200100107b1a74df365639cc39f1d578 base64… [rendezvous.example.com. …]`"
        }
        _ => return None,
    })
}
