//! Reading octets off the wire: names and records, within bounds whatever the octets.

use crate::model::RecordType;

/// Octets of a message header (RFC 1035 section 4.1.1).
pub(super) const HEADER: usize = 12;
/// Where the question's name stands: behind the header.
pub(super) const QUESTION_NAME: u16 = 12;
/// Longest name in octets, the root's zero included (RFC 1035 section 2.3.4).
const MAX_NAME: usize = 255;
/// Longest label in octets. Greater length octets are compression pointers, or mean nothing.
const MAX_LABEL: u8 = 63;
/// The two high bits that mark a compression pointer (RFC 1035 section 4.1.4).
pub(super) const POINTER: u8 = 0xc0;

/// Reads two octets at a place, big endian.
#[inline]
pub(super) fn u16_at(octets: &[u8], at: usize) -> Option<u16> {
    let pair = octets.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes(*pair))
}

/// Finds the end of an uncompressed name; `None` when it is compressed, too long or cut off.
#[inline]
pub(super) fn plain_name_end(packet: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        let length = *packet.get(at)?;
        if length > MAX_LABEL {
            return None;
        }
        at += usize::from(length) + 1;
        if length == 0 {
            return (at - start <= MAX_NAME).then_some(at);
        }
    }
}

/// Finds the end of a name that may end in a compression pointer.
///
/// The pointer is not followed: nobody reads the name. It must point backwards into the message (RFC 1035 section 4.1.4), so
/// that a loop is refused, and the cost stays linear in the message's length.
pub(super) fn name_end(packet: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        let length = *packet.get(at)?;
        if length >= POINTER {
            let target = usize::from(u16_at(packet, at)? & 0x3fff);
            let valid = (HEADER..start).contains(&target) && at - start < MAX_NAME;
            return valid.then_some(at + 2);
        }
        if length > MAX_LABEL {
            return None;
        }
        at += usize::from(length) + 1;
        if length == 0 {
            return (at - start <= MAX_NAME).then_some(at);
        }
    }
}

/// A resource record as it stands in a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'p> {
    /// The owner is the root, written as one zero octet.
    pub(super) root: bool,
    /// TYPE.
    pub(super) rtype: RecordType,
    /// CLASS; of OPT the payload size.
    pub(super) class: u16,
    /// TTL; of OPT the extended RCODE, the version and the flags.
    pub(super) ttl: [u8; 4],
    /// RDATA.
    pub(super) rdata: &'p [u8],
    /// Where the next record begins.
    pub(super) end: usize,
}

impl<'p> Record<'p> {
    /// Tells whether an OPT record begins here, owned by the root and whole but for its options.
    pub(super) fn is_opt_at(packet: &[u8], start: usize) -> bool {
        /// Owner, type, class, TTL and length.
        const FIXED: usize = 11;
        let [high, low] = RecordType::OPT.0.to_be_bytes();
        let fixed = packet.get(start..).and_then(|rest| rest.get(..FIXED));
        fixed.is_some_and(|fixed| fixed.starts_with(&[0, high, low]))
    }

    /// Reads the record at `start`; `None` when it does not fit the message.
    #[inline(always)]
    pub(super) fn read(packet: &'p [u8], start: usize) -> Option<Self> {
        let root = packet.get(start) == Some(&0);
        let fixed = if root {
            start + 1
        } else {
            name_end(packet, start)?
        };
        let head = packet.get(fixed..)?.first_chunk::<10>()?;
        let &[t0, t1, c0, c1, ttl0, ttl1, ttl2, ttl3, l0, l1] = head;
        let end = fixed + head.len() + usize::from(u16::from_be_bytes([l0, l1]));
        Some(Self {
            root,
            rtype: RecordType(u16::from_be_bytes([t0, t1])),
            class: u16::from_be_bytes([c0, c1]),
            ttl: [ttl0, ttl1, ttl2, ttl3],
            rdata: packet.get(fixed + head.len()..end)?,
            end,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_where_they_end() {
        let long = [[63; 64].as_slice(), &[63; 64], &[63; 64], &[61; 62], &[0]].concat();
        let longer = [[63; 64].as_slice(), &[63; 64], &[63; 64], &[62; 63], &[0]].concat();
        assert_eq!((long.len(), longer.len()), (255, 256));
        for (octets, plain, any) in [
            (&[0][..], Some(1), Some(1)),
            (&[1, 0, 0], Some(3), Some(3)),
            (&[], None, None),
            (&[1], None, None),
            (&[1, 2], None, None),
            (&[0x40, 0], None, None),
            (&[0x80, 0], None, None),
            (&[0xc0, 0], None, None),
            (&[0xc0, 12], None, None),
            (&long, Some(255), Some(255)),
            (&longer, None, None),
        ] {
            assert_eq!(plain_name_end(octets, 0), plain, "{octets:?}");
            assert_eq!(name_end(octets, 0), any, "{octets:?}");
        }
    }

    #[test]
    fn pointers_lead_backwards_into_the_message() {
        let mut packet = [0; 20];
        for (target, end) in [
            (0, None),
            (11, None),
            (12, Some(18)),
            (15, Some(18)),
            (16, None),
            (17, None),
        ] {
            packet[16..18].copy_from_slice(&[0xc0, target]);
            assert_eq!(name_end(&packet, 16), end, "{target}");
        }
    }
}
