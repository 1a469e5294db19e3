//! Names in lower case, copied only when they must be.

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

/// Tells whether an octet of a name is an upper-case ASCII letter.
#[inline]
pub(super) fn has_upper(name: NameRef<'_>) -> bool {
    any_upper(name.as_wire())
}

/// Tells whether an octet is an upper-case ASCII letter: sixteen or eight at a time, the last ones once more.
#[inline]
fn any_upper(octets: &[u8]) -> bool {
    if let Some(last) = octets.last_chunk::<16>() {
        let (chunks, _) = octets.as_chunks::<16>();
        chunks
            .iter()
            .fold(upper_of(last), |upper, chunk| upper | upper_of(chunk))
    } else if let (Some(first), Some(last)) = (octets.first_chunk(), octets.last_chunk()) {
        upper_of::<8>(first) | upper_of::<8>(last)
    } else {
        octets.iter().any(u8::is_ascii_uppercase)
    }
}

/// Tells whether one of so many octets is an upper-case letter. Without a branch, so that the compiler looks at all of them at once.
#[inline]
fn upper_of<const N: usize>(octets: &[u8; N]) -> bool {
    octets
        .iter()
        .fold(false, |upper, octet| upper | octet.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_octet_is_judged_alone() {
        let octets = [0xff, b'@', b'[', 0x80, b'a', b'z', 0, 1, 63, b'`', b'{'];
        for length in [1, 7, 8, 9, 15, 16, 17, 32, 40] {
            let octets: Vec<u8> = octets.iter().copied().cycle().take(length).collect();
            for octet in 0..=255_u8 {
                for at in 0..length {
                    let mut octets = octets.clone();
                    octets[at] = octet;
                    assert_eq!(any_upper(&octets), octet.is_ascii_uppercase(), "{octets:?}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_name_is_lowered_where_it_has_capitals(
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
            let lowered = NameBuf::lowered(name);
            prop_assert_eq!(lowered.name(), lower.as_ref());
            prop_assert_eq!(has_upper(name), name != lower.as_ref());
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
