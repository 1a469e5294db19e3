//! EDNS(0) of a query: the OPT record (RFC 6891) and the options we know.

use super::ecs::{self, EcsQuery};
use super::wire::Record;
use crate::model::RecordType;

/// Option codes (IANA registry of DNS EDNS0 option codes).
pub(super) const NSID: u16 = 3;
const COOKIE: u16 = 10;
pub(super) const KEEPALIVE: u16 = 11;
pub(super) const EXTENDED_ERROR: u16 = 15;

/// The bit DO in the high octet of the flags (RFC 3225 section 3).
const DNSSEC_OK: u8 = 0x80;
/// Octets of an OPT record before its options, with the root as its owner.
const FIXED: usize = 11;

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

/// What a query asks for beside data, as bits.
mod asks {
    /// The bit DO (RFC 3225).
    pub(super) const DNSSEC_OK: u8 = 1;
    /// NSID.
    pub(super) const NSID: u8 = 2;
    /// edns-tcp-keepalive, as a client may.
    pub(super) const KEEPALIVE: u8 = 4;
    /// edns-tcp-keepalive with a time.
    pub(super) const BAD_KEEPALIVE: u8 = 8;
}

/// The OPT record of a query, checked. Eight octets, as a batch holds one a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Edns {
    /// The largest datagram the client takes; may be below 512.
    pub(super) payload: u16,
    /// The version; options are read in version 0 only.
    pub(super) version: u8,
    /// What it asks for: bits of [`asks`].
    asks: u8,
    /// The client's network.
    pub(super) ecs: Option<EcsQuery>,
}

impl Edns {
    /// Reads an OPT record that is all there is from `at` to the packet's end, as in nearly every query. `None`: there is something
    /// else, or it is malformed.
    #[inline(never)]
    pub(super) fn alone(packet: &[u8], at: usize) -> Option<Self> {
        let [high, low] = RecordType::OPT.0.to_be_bytes();
        let (head, options) = packet.get(at..)?.split_first_chunk::<FIXED>()?;
        let &[root, t0, t1, p0, p1, _, version, flags, _, l0, l1] = head;
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        if [root, t0, t1] != [0, high, low] || options.len() != length {
            return None;
        }
        Self::of(
            u16::from_be_bytes([p0, p1]),
            (version, flags),
            options,
            packet.len(),
        )
    }

    /// Reads an OPT record; `None` is FORMERR: its owner is not the root, or an option is malformed (RFC 6891 section 6.1.2).
    pub(super) fn read(record: &Record<'_>) -> Option<Self> {
        let [_, version, flags, _] = record.ttl;
        if !record.root {
            return None;
        }
        Self::of(record.class, (version, flags), record.rdata, record.end)
    }

    /// Reads the parts of an OPT record whose options end at `end` in the packet.
    ///
    /// Of a higher version nothing but the version is read: it may write its options in another way.
    #[inline(always)]
    fn of(payload: u16, (version, flags): (u8, u8), options: &[u8], end: usize) -> Option<Self> {
        let mut edns = Self {
            payload,
            version,
            asks: u8::from(flags & DNSSEC_OK != 0),
            ecs: None,
        };
        if version == 0 {
            edns.read_options(options, end)?;
        }
        Some(edns)
    }

    /// Reads the options. Those we do not know are skipped (RFC 6891 section 6.1.2).
    #[inline(always)]
    fn read_options(&mut self, options: &[u8], end: usize) -> Option<()> {
        let mut rest = options;
        while !rest.is_empty() {
            let (&[c0, c1, l0, l1], tail) = rest.split_first_chunk()?;
            let length = usize::from(u16::from_be_bytes([l0, l1]));
            let (data, next) = tail.split_at_checked(length)?;
            rest = next;
            match u16::from_be_bytes([c0, c1]) {
                // Two networks contradict each other.
                ecs::OPTION if self.ecs.is_some() => return None,
                ecs::OPTION => self.ecs = Some(EcsQuery::read(data, end - next.len() - length)?),
                code => self.read_other(code, data)?,
            }
        }
        Some(())
    }

    /// Reads an option other than the client's network.
    #[inline(never)]
    fn read_other(&mut self, code: u16, data: &[u8]) -> Option<()> {
        match code {
            NSID => self.asks |= asks::NSID,
            // RFC 7873 section 5.2.2: 8 octets of the client, and none or 8 to 32 of the server.
            COOKIE if !matches!(data.len(), 8 | 16..=40) => return None,
            // The last one counts.
            KEEPALIVE => {
                self.asks &= !(asks::KEEPALIVE | asks::BAD_KEEPALIVE);
                self.asks |= if data.is_empty() {
                    asks::KEEPALIVE
                } else {
                    asks::BAD_KEEPALIVE
                };
            }
            _ => {}
        }
        Some(())
    }

    /// Tells whether the reply's OPT carries no option but the client's network.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.asks <= asks::DNSSEC_OK
    }

    /// Gives the bit DO.
    #[inline]
    pub(super) fn dnssec_ok(&self) -> bool {
        self.asks & asks::DNSSEC_OK != 0
    }

    /// Tells whether NSID was asked for (RFC 5001); data in the request means nothing.
    #[inline]
    pub(super) fn wants_nsid(&self) -> bool {
        self.asks & asks::NSID != 0
    }

    /// Gives what was said of keepalive; the transport decides what it means.
    #[inline]
    pub(super) fn keepalive(&self) -> Keepalive {
        if self.asks & asks::KEEPALIVE != 0 {
            Keepalive::Offered
        } else if self.asks & asks::BAD_KEEPALIVE != 0 {
            Keepalive::Malformed
        } else {
            Keepalive::Absent
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(edns.wants_nsid() && edns.dnssec_ok() && !edns.is_plain());
        assert_eq!((edns.payload, edns.keepalive()), (1232, Keepalive::Offered));
        let edns = read(&[0, 11, 0, 2, 0, 1], [0, 0, 0x7f, 0xff]).unwrap();
        assert!(!edns.wants_nsid() && !edns.dnssec_ok() && !edns.is_plain());
        assert_eq!(edns.keepalive(), Keepalive::Malformed);
        let edns = read(&[], [0, 0, 0x80, 0]).unwrap();
        assert!(edns.dnssec_ok() && edns.is_plain());
        assert_eq!(edns.keepalive(), Keepalive::Absent);
        assert_eq!(size_of::<Option<Edns>>(), 8);
    }
}
