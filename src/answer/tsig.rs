//! TSIG (RFC 8945) as far as a server without keys needs it: it tells the sender that the key is unknown.

use super::wire::{HEADER, Record, name_end, plain_name_end, u16_at};
use crate::model::RecordType;

/// Octets of the longest name.
const MAX_NAME: usize = 255;
/// Octets of TSIG's data beside the algorithm, the MAC and other data: time, fudge, three lengths, ID and error.
const FIXED: usize = 16;
/// Octets of the longest record written here: owner, type to length, algorithm and the rest, without a MAC.
const ROOM: usize = MAX_NAME + 10 + MAX_NAME + FIXED;
/// TSIG error 17: the server does not know the key (RFC 8945 section 3).
const BADKEY: [u8; 2] = [0, 17];

/// A record of few octets, held by value: no query is worth an allocation.
#[derive(Clone, Copy, Debug)]
pub struct BadKey {
    octets: [u8; ROOM],
    length: usize,
}

impl AsRef<[u8]> for BadKey {
    fn as_ref(&self) -> &[u8] {
        self.octets.get(..self.length).unwrap_or(&[])
    }
}

/// Makes the TSIG record of the answer to a message signed with a key that we do not know: that is all keys. It is unsigned,
/// with error BADKEY; key, algorithm, time, fudge and ID are the message's (RFC 8945 sections 5.2.1 and 5.3.2).
///
/// `None` when the message does not end in a TSIG record, or in one that is malformed. It is never longer than that one.
#[must_use]
#[cold]
pub fn bad_key(packet: &[u8]) -> Option<BadKey> {
    let (start, record) = last_record(packet)?;
    if record.rtype != RecordType::TSIG {
        return None;
    }
    let data = record.rdata;
    let algorithm_end = plain_name_end(data, 0)?;
    let (algorithm, rest) = data.split_at_checked(algorithm_end)?;
    let (time_and_fudge, rest) = rest.split_first_chunk::<8>()?;
    let (&mac, rest) = rest.split_first_chunk::<2>()?;
    let rest = rest.get(usize::from(u16::from_be_bytes(mac))..)?;
    let (original_id, rest) = rest.split_first_chunk::<2>()?;
    let (_error, rest) = rest.split_first_chunk::<2>()?;
    let (&other, rest) = rest.split_first_chunk::<2>()?;
    if rest.len() != usize::from(u16::from_be_bytes(other)) {
        return None;
    }
    let mut made = BadKey {
        octets: [0; ROOM],
        length: 0,
    };
    made.put_name(packet, start)?;
    made.put(&RecordType::TSIG.0.to_be_bytes())?;
    // Class ANY, TTL 0.
    made.put(&[0, 255, 0, 0, 0, 0])?;
    let length = u16::try_from(algorithm_end + FIXED).ok()?;
    made.put(&length.to_be_bytes())?;
    made.put(algorithm)?;
    made.put(time_and_fudge)?;
    made.put(&[0, 0])?;
    made.put(original_id)?;
    made.put(&BADKEY)?;
    made.put(&[0, 0])?;
    Some(made)
}

/// Finds the last record of a message by its counts, and where it begins.
fn last_record(packet: &[u8]) -> Option<(usize, Record<'_>)> {
    let mut at = HEADER;
    for _ in 0..u16_at(packet, 4)? {
        at = name_end(packet, at)? + 4;
    }
    let records: usize = [6, 8, 10]
        .into_iter()
        .filter_map(|place| u16_at(packet, place))
        .map(usize::from)
        .sum();
    let mut last = None;
    for _ in 0..records {
        let record = Record::read(packet, at)?;
        let start = std::mem::replace(&mut at, record.end);
        last = Some((start, record));
    }
    last.filter(|(_, record)| record.end == packet.len())
}

impl BadKey {
    fn put(&mut self, octets: &[u8]) -> Option<()> {
        let room = self.octets.get_mut(self.length..)?;
        room.get_mut(..octets.len())?.copy_from_slice(octets);
        self.length += octets.len();
        Some(())
    }

    /// Writes the name that stands at a place, its pointers followed: each leads further back than the one before.
    fn put_name(&mut self, packet: &[u8], start: usize) -> Option<()> {
        let (mut at, mut bound) = (start, start);
        loop {
            let length = *packet.get(at)?;
            if length >= super::wire::POINTER {
                let target = usize::from(u16_at(packet, at)? & 0x3fff);
                if target >= bound || target < HEADER {
                    return None;
                }
                (at, bound) = (target, target);
                continue;
            }
            let end = at + 1 + usize::from(length);
            self.put(packet.get(at..end)?)?;
            if self.length > MAX_NAME || length > 63 {
                return None;
            }
            if length == 0 {
                return Some(());
            }
            at = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A message with this owner of its TSIG, and these data.
    fn message(owner: &[u8], data: &[u8]) -> Vec<u8> {
        let mut packet = vec![7, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1];
        packet.extend(b"\x03www\x07example\x00\x00\x01\x00\x01");
        packet.extend(owner);
        packet.extend([0, 250, 0, 255, 0, 0, 0, 0, 0]);
        packet.push(u8::try_from(data.len()).unwrap());
        packet.extend(data);
        packet
    }

    const DATA: &[u8] =
        b"\x0bhmac-sha256\x00\x00\x00\x65\x43\x21\x00\x01\x2c\x00\x04MAC!\x07\x08\x00\x00\x00\x00";

    #[test]
    fn rfc8945_5_3_2_an_unsigned_error_names_the_key() {
        let bare: &[u8] =
            b"\x0bhmac-sha256\x00\x00\x00\x65\x43\x21\x00\x01\x2c\x00\x00\x07\x08\x00\x11\x00\x00";
        for (owner, name) in [
            (&b"\x01k\x00"[..], &b"\x01k\x00"[..]),
            (b"\x01K\xc0\x10", b"\x01K\x07example\x00"),
        ] {
            let packet = message(owner, DATA);
            let made = bad_key(&packet).unwrap();
            let head = [0, 250, 0, 255, 0, 0, 0, 0, 0, 29];
            assert_eq!(made.as_ref(), [name, &head, bare].concat());
        }
        // Not last, not TSIG, lengths that lie, an algorithm cut off.
        let whole = message(b"\x00", DATA);
        assert!(bad_key(&[&whole[..], &[0]].concat()).is_none());
        assert!(bad_key(&message(b"\xc0\x1d", DATA)).is_none());
        for cut in 0..DATA.len() {
            assert!(bad_key(&message(b"\x00", &DATA[..cut])).is_none(), "{cut}");
        }
        assert!(bad_key(&message(b"\x00", &[DATA, &[0]].concat())).is_none());
    }

    proptest! {
        #[test]
        fn any_octets_are_read_without_panic(tail in prop::collection::vec(any::<u8>(), 0..200), at in 0..60_usize) {
            let mut packet = message(b"\x01k\x00", DATA);
            let _ = bad_key(&[&packet[..12], &tail].concat());
            for (place, octet) in packet.iter_mut().skip(at).zip(&tail) {
                *place = *octet;
            }
            if let Some(made) = bad_key(&packet) {
                prop_assert!(made.as_ref().len() <= ROOM);
            }
        }
    }
}
