//! EDNS(0) of a query: the OPT record (RFC 6891) and the options we know.

use super::ecs::{self, EcsQuery};
use super::wire::Record;

/// Option codes (IANA registry of DNS EDNS0 option codes).
pub(super) const NSID: u16 = 3;
const COOKIE: u16 = 10;
pub(super) const KEEPALIVE: u16 = 11;
pub(super) const EXTENDED_ERROR: u16 = 15;

/// The bit DO in the high octet of the flags (RFC 3225 section 3).
const DNSSEC_OK: u8 = 0x80;

/// What a query says of edns-tcp-keepalive (RFC 7828).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Keepalive {
    /// Nothing.
    #[default]
    Absent,
    /// It offers it.
    Offered,
    /// It sends a time, which only servers may.
    Malformed,
}

/// The OPT record of a query, checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Edns {
    /// The largest datagram the client takes; may be below 512.
    pub(super) payload: u16,
    /// The version; options are read in version 0 only.
    pub(super) version: u8,
    /// The bit DO.
    pub(super) dnssec_ok: bool,
    /// NSID was asked for (RFC 5001); data in the request means nothing.
    pub(super) nsid: bool,
    /// What was said of keepalive; the transport decides what it means.
    pub(super) keepalive: Keepalive,
    /// The client's network.
    pub(super) ecs: Option<EcsQuery>,
}

impl Edns {
    /// Reads an OPT record; `None` is FORMERR: its owner is not the root, or an option is malformed (RFC 6891 section 6.1.2).
    ///
    /// Of a higher version nothing but the version is read: it may write its options in another way.
    #[inline(always)]
    pub(super) fn read(record: &Record<'_>) -> Option<Self> {
        let [_, version, flags, _] = record.ttl;
        let mut edns = Self {
            payload: record.class,
            version,
            dnssec_ok: flags & DNSSEC_OK != 0,
            ..Self::default()
        };
        if !record.root {
            return None;
        }
        if version == 0 {
            edns.read_options(record)?;
        }
        Some(edns)
    }

    /// Reads the options. Those we do not know are skipped (RFC 6891 section 6.1.2).
    #[inline(always)]
    fn read_options(&mut self, record: &Record<'_>) -> Option<()> {
        let mut rest = record.rdata;
        while !rest.is_empty() {
            let (&[c0, c1, l0, l1], tail) = rest.split_first_chunk()?;
            let length = usize::from(u16::from_be_bytes([l0, l1]));
            let (data, next) = tail.split_at_checked(length)?;
            rest = next;
            match u16::from_be_bytes([c0, c1]) {
                // Two networks contradict each other.
                ecs::OPTION if self.ecs.is_some() => return None,
                ecs::OPTION => {
                    let at = record.end - rest.len() - length;
                    self.ecs = Some(EcsQuery::read(data, u16::try_from(at).ok()?)?);
                }
                NSID => self.nsid = true,
                // RFC 7873 section 5.2.2: 8 octets of the client, and none or 8 to 32 of the server.
                COOKIE if !matches!(length, 8 | 16..=40) => return None,
                KEEPALIVE if data.is_empty() => self.keepalive = Keepalive::Offered,
                KEEPALIVE => self.keepalive = Keepalive::Malformed,
                _ => {}
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RecordType;

    fn read(rdata: &[u8], ttl: [u8; 4]) -> Option<Edns> {
        Edns::read(&Record {
            root: true,
            rtype: RecordType::OPT,
            class: 1232,
            ttl,
            rdata,
            end: rdata.len(),
        })
    }

    #[test]
    fn rfc6891_6_1_2_options_are_well_formed_or_formerr() {
        for (rdata, good) in [
            (&[][..], true),
            (&[0xff, 0xfe, 0, 0], true),
            (&[0xff, 0xfe, 0, 2, 1, 2], true),
            (&[0xff, 0xfe, 0, 2, 1], false),
            (&[0xff, 0xfe, 0], false),
            (&[0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8], true),
            (&[0, 10, 0, 7, 1, 2, 3, 4, 5, 6, 7], false),
            (&[0, 10, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9], false),
            (&[0, 8, 0, 4, 0, 1, 0, 0], true),
            (&[0, 8, 0, 4, 0, 1, 0, 0, 0, 8, 0, 4, 0, 1, 0, 0], false),
        ] {
            assert_eq!(read(rdata, [0; 4]).is_some(), good, "{rdata:?}");
            assert!(read(rdata, [0, 1, 0, 0]).is_some(), "version 1: {rdata:?}");
        }
    }

    #[test]
    fn the_parts_are_read() {
        let edns = read(&[0, 3, 0, 0, 0, 11, 0, 0], [0, 0, 0xff, 0xff]).unwrap();
        assert!(edns.nsid && edns.dnssec_ok);
        assert_eq!((edns.payload, edns.keepalive), (1232, Keepalive::Offered));
        let edns = read(&[0, 11, 0, 2, 0, 1], [0, 0, 0x7f, 0xff]).unwrap();
        assert!(!edns.nsid && !edns.dnssec_ok);
        assert_eq!(edns.keepalive, Keepalive::Malformed);
    }
}
