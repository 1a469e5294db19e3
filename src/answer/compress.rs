//! Name compression (RFC 1035 section 4.1.4): which suffix of a name stands in the message already.

use super::wire::{POINTER, QUESTION_NAME, u16_at};
use crate::model::NameRef;

/// Names remembered. A referral with 13 name servers and their glue has 14; the rest goes uncompressed.
const ROOM: usize = 24;
/// Most labels of a name, the root's left out: each takes two octets or more of 255 (RFC 1035 section 2.3.4).
const MAX_LABELS: usize = 127;
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
        self.search(message, name, &mut || {})
    }

    /// Finds the suffix, and calls `step` once for each label looked at: at most three times the labels of each name written.
    /// Names are compared from the right, so that equal labels on the left cost nothing more.
    fn search<'n>(
        &self,
        message: &[u8],
        name: NameRef<'n>,
        step: &mut impl FnMut(),
    ) -> Option<(&'n [u8], u16)> {
        let wire = name.as_wire();
        let own = Labels::read(wire, 0, step)?;
        let mut best: Option<(usize, u16)> = None;
        for &offset in self.offsets.get(..self.count).unwrap_or(&[]) {
            let Some(other) = Labels::read(message, offset.into(), step) else {
                continue;
            };
            let pairs = own.starts().iter().rev().zip(other.starts().iter().rev());
            for (count, (&ours, &theirs)) in (1..).zip(pairs) {
                step();
                let label = label_at(message, theirs);
                if !label.is_some_and(|label| is_label_at(wire, ours, label)) {
                    break;
                }
                // Of two as long the first written is taken.
                let is_longer = best.is_none_or(|(longest, _)| count > longest);
                if is_longer && usize::from(theirs) <= MAX_OFFSET {
                    best = Some((count, theirs));
                }
            }
        }
        let (count, offset) = best?;
        let front = own.starts().len().checked_sub(count)?;
        let front = *own.starts().get(front)?;
        Some((wire.get(..front.into())?, offset))
    }
}

/// Where the labels of one name begin, the first one first; the root's is left out.
struct Labels {
    starts: [u16; MAX_LABELS],
    count: usize,
}

impl Labels {
    /// Reads a name and follows its pointers: we wrote them, and they lead backwards only. `None` when it is cut off or too long.
    fn read(message: &[u8], start: usize, step: &mut impl FnMut()) -> Option<Self> {
        let mut labels = Self {
            starts: [0; MAX_LABELS],
            count: 0,
        };
        let mut at = start;
        loop {
            step();
            let length = *message.get(at)?;
            if length >= POINTER {
                let target = usize::from(u16_at(message, at)? & 0x3fff);
                at = Some(target).filter(|target| *target < at)?;
                continue;
            }
            if length == 0 {
                return Some(labels);
            }
            *labels.starts.get_mut(labels.count)? = u16::try_from(at).ok()?;
            labels.count += 1;
            at += usize::from(length) + 1;
        }
    }

    /// Gives the places.
    fn starts(&self) -> &[u16] {
        self.starts.get(..self.count).unwrap_or(&[])
    }
}

/// Gives the label that begins at a place.
fn label_at(octets: &[u8], start: u16) -> Option<&[u8]> {
    let rest = octets.get(start.into()..)?;
    let (&length, rest) = rest.split_first()?;
    rest.get(..length.into())
}

/// Tells whether this label begins at a place, whatever the case (RFC 4343).
fn is_label_at(octets: &[u8], start: u16, label: &[u8]) -> bool {
    label_at(octets, start).is_some_and(|own| own.eq_ignore_ascii_case(label))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LowerName;

    /// Writes names one after the other without compression, and remembers each.
    fn write(names: &[&str]) -> (Vec<u8>, Written) {
        let mut message = vec![0; usize::from(QUESTION_NAME)];
        let mut written = Written::default();
        for name in names {
            written.add(message.len());
            message.extend(name.parse::<LowerName>().unwrap().as_wire());
        }
        (message, written)
    }

    #[test]
    fn rfc1035_4_1_4_the_longest_suffix_is_found() {
        let (message, written) = write(&["a.b.example", "c.example", "b.example.net"]);
        for (name, front, offset) in [
            ("a.b.example", 0, Some(12)),
            ("B.EXAMPLE", 0, Some(14)),
            ("x.b.example", 2, Some(14)),
            ("c.example", 0, Some(25)),
            ("d.c.example", 2, Some(25)),
            ("example", 0, Some(16)),
            ("net", 0, Some(46)),
            ("c.b.example.net", 2, Some(36)),
            ("example.org", 0, None),
            (".", 0, None),
        ] {
            let name: LowerName = name.parse().unwrap();
            let found = written.find(&message, name.as_ref());
            let found = found.map(|(labels, offset)| (labels.len(), offset));
            assert_eq!(found, offset.map(|offset| (front, offset)), "{name}");
        }
    }

    /// 24 names that differ in their last labels only: the worst case that a question can bring about.
    #[test]
    fn rfc1035_4_1_4_the_cost_grows_with_the_labels_written() {
        let equal = ["a"; 116].join(".");
        let names: Vec<String> = (0..ROOM).map(|n| format!("{equal}.d{n}.test")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (message, written) = write(&names);
        let mut most = 0;
        for name in [format!("{equal}.none.test"), names[ROOM - 1].to_owned()] {
            let name: LowerName = name.parse().unwrap();
            let mut steps = 0;
            let found = written.search(&message, name.as_ref(), &mut || steps += 1);
            assert!(found.is_some());
            most = most.max(steps);
        }
        let labels = name_labels(&names);
        assert!(most <= 3 * labels, "{most} steps for {labels} labels");
    }

    fn name_labels(names: &[&str]) -> usize {
        names.iter().map(|name| name.split('.').count() + 1).sum()
    }
}
