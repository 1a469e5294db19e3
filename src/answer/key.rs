//! The key of a lookup: a name in lower case, copied only when it must be.

use crate::model::NameRef;

/// Octets of scratch: the longest name has 255.
const ROOM: usize = 256;

/// A name of at most 255 octets, held by value.
#[derive(Clone, Copy, Debug)]
pub(super) struct NameBuf {
    octets: [u8; ROOM],
    length: usize,
}

impl NameBuf {
    /// Copies a name in lower case. Length octets are at most 63, below `A`: lower-casing leaves them alone (RFC 4343).
    pub(super) fn lowered(name: NameRef<'_>) -> Self {
        Self::joined(&[], name).unwrap_or(Self {
            octets: [0; ROOM],
            length: 1,
        })
    }

    /// Joins labels (in wire form, without the root) and a name, in lower case. `None` above 255 octets.
    pub(super) fn joined(labels: &[u8], name: NameRef<'_>) -> Option<Self> {
        let mut octets = [0; ROOM];
        let length = labels.len() + name.as_wire().len();
        if length >= ROOM {
            return None;
        }
        let (front, back) = octets
            .get_mut(..length)?
            .split_at_mut_checked(labels.len())?;
        front.copy_from_slice(labels);
        back.copy_from_slice(name.as_wire());
        octets.make_ascii_lowercase();
        Some(Self { octets, length })
    }

    /// Gives the name.
    pub(super) fn name(&self) -> NameRef<'_> {
        self.octets
            .get(..self.length)
            .map_or(NameRef::ROOT, NameRef::from_checked)
    }
}

/// The name of a question, in lower case.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a lookup holds its scratch: the hot path allocates nothing"
)]
pub(super) enum Key<'p> {
    /// The packet has it in lower case already.
    AsAsked(NameRef<'p>),
    /// Lower-cased here.
    Lowered(NameBuf),
}

impl<'p> Key<'p> {
    /// Makes the key of a name.
    #[inline]
    pub(super) fn new(name: NameRef<'p>) -> Self {
        if has_upper(name.as_wire()) {
            Self::Lowered(NameBuf::lowered(name))
        } else {
            Self::AsAsked(name)
        }
    }

    /// Gives the name.
    #[inline]
    pub(super) fn name(&self) -> NameRef<'_> {
        match self {
            Self::AsAsked(name) => *name,
            Self::Lowered(buf) => buf.name(),
        }
    }
}

/// Tells whether an octet is an upper-case ASCII letter: eight at a time, the last eight once more.
#[inline]
fn has_upper(octets: &[u8]) -> bool {
    let (chunks, rest) = octets.as_chunks::<8>();
    let upper = |chunk: &[u8; 8]| upper_bits(u64::from_le_bytes(*chunk));
    match octets.last_chunk() {
        Some(last) => {
            chunks
                .iter()
                .fold(upper(last), |bits, chunk| bits | upper(chunk))
                != 0
        }
        None => rest.iter().any(u8::is_ascii_uppercase),
    }
}

/// Sets the high bit of each octet that is in `A..=Z`, clears all others.
#[inline]
fn upper_bits(octets: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = ONES << 7;
    // With the high bits off, adding 0x80 - `A` carries into the high bit from `A` on, 0x7f - `Z` from behind `Z` on.
    let low = octets & !HIGH;
    let from_a = low + (0x80 - b'A' as u64) * ONES;
    let above_z = low + (0x7f - b'Z' as u64) * ONES;
    from_a & !above_z & !octets & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_octet_is_judged_alone() {
        for octet in 0..=255_u8 {
            for at in 0..11 {
                let mut octets = [0xff, b'@', b'[', 0x80, b'a', b'z', 0, 1, 63, b'`', b'{'];
                octets[at] = octet;
                let expected = octets.iter().any(u8::is_ascii_uppercase);
                assert_eq!(has_upper(&octets), expected, "{octets:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_key_is_the_lower_case_of_its_name(
            labels in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..64), 0..4),
        ) {
            let mut wire = Vec::new();
            for label in &labels {
                wire.push(u8::try_from(label.len()).unwrap());
                wire.extend_from_slice(label);
            }
            wire.push(0);
            prop_assume!(wire.len() <= 255);
            let name = NameRef::from_wire(&wire).unwrap();
            let lower = name.to_lower();
            let key = Key::new(name);
            prop_assert_eq!(key.name(), lower.as_ref());
        }
    }

    #[test]
    fn joining_stops_at_255_octets() {
        let tail = [[63; 64].as_slice(), &[63; 64], &[63; 64], &[0]].concat();
        let tail = NameRef::from_wire(&tail).unwrap();
        let label = |length: u8| {
            let mut label = vec![length];
            label.resize(usize::from(length) + 1, b'X');
            label
        };
        let joined = NameBuf::joined(&label(61), tail).unwrap();
        assert_eq!(joined.name().as_wire().len(), 255);
        assert_eq!(joined.name().first_label(), Some(&[b'x'; 61][..]));
        assert!(NameBuf::joined(&label(62), tail).is_none());
    }
}
