//! Name compression (RFC 1035 section 4.1.4): which suffix of a name stands in the message already.

use super::wire::{POINTER, QUESTION_NAME, u16_at};
use crate::model::NameRef;

/// Names remembered. A referral with 13 name servers and their glue has 14; the rest goes uncompressed.
const ROOM: usize = 24;
/// The greatest offset a pointer can say.
const MAX_OFFSET: usize = 0x3fff;

/// Where names begin in a message, in the order written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    offsets: [u16; ROOM],
    count: usize,
}

impl Written {
    /// The question's name alone. A constant: filled in afterwards, it would be read back before its octets are in the cache.
    pub(super) const QUESTION: Self = {
        let mut offsets = [0; ROOM];
        if let Some((first, _)) = offsets.split_first_mut() {
            *first = QUESTION_NAME;
        }
        Self { offsets, count: 1 }
    };

    /// Remembers a name, if there is room and a pointer can reach it.
    pub(super) fn add(&mut self, offset: usize) {
        let offset = u16::try_from(offset)
            .ok()
            .filter(|&at| usize::from(at) <= MAX_OFFSET);
        if let (Some(offset), Some(slot)) = (offset, self.offsets.get_mut(self.count)) {
            *slot = offset;
            self.count += 1;
        }
    }

    /// Counts the names, to forget later ones.
    pub(super) fn mark(&self) -> usize {
        self.count
    }

    /// Forgets the names after a mark: their octets were taken back.
    pub(super) fn forget(&mut self, mark: usize) {
        self.count = self.count.min(mark);
    }

    /// Finds the longest suffix of `name` that is written: the labels before it, and its offset. The root is never pointed to.
    pub(super) fn find<'n>(&self, message: &[u8], name: NameRef<'n>) -> Option<(&'n [u8], u16)> {
        let whole = name.as_wire();
        let suffixes = std::iter::successors(Some(name), |name| name.parent());
        for suffix in suffixes.take_while(|suffix| !suffix.is_root()) {
            let offsets = self.offsets.get(..self.count).unwrap_or(&[]);
            let found = offsets
                .iter()
                .find_map(|&offset| find_in(message, offset, suffix));
            if let Some(offset) = found {
                return Some((whole.get(..whole.len() - suffix.as_wire().len())?, offset));
            }
        }
        None
    }
}

/// Finds `suffix` among the suffixes of the name written at `start`. Stops at a pointer: what it leads to was searched with
/// the name that wrote it.
fn find_in(message: &[u8], start: u16, suffix: NameRef<'_>) -> Option<u16> {
    let mut at = usize::from(start);
    loop {
        let length = *message.get(at)?;
        if length == 0 || length >= POINTER {
            return None;
        }
        if is_name_at(message, at, suffix) {
            return u16::try_from(at)
                .ok()
                .filter(|&at| usize::from(at) <= MAX_OFFSET);
        }
        at += usize::from(length) + 1;
    }
}

/// Tells whether the name written at `at` is `name`, whatever the case (RFC 4343). Pointers are followed: we wrote them, and
/// they lead backwards only.
pub(super) fn is_name_at(message: &[u8], at: usize, name: NameRef<'_>) -> bool {
    labels_match(message, at, name) == Some(true)
}

/// Compares label by label; `None` when the message ends early.
fn labels_match(message: &[u8], mut at: usize, name: NameRef<'_>) -> Option<bool> {
    let mut rest = name;
    loop {
        let length = *message.get(at)?;
        if length >= POINTER {
            let target = usize::from(u16_at(message, at)? & 0x3fff);
            if target >= at {
                return None;
            }
            at = target;
            continue;
        }
        let Some(label) = rest.first_label() else {
            return Some(length == 0);
        };
        let end = at + 1 + usize::from(length);
        if !message.get(at + 1..end)?.eq_ignore_ascii_case(label) {
            return Some(false);
        }
        at = end;
        rest = rest.parent()?;
    }
}
