//! Cache lines of a shard: a name and what stands there, with what a query reads of a steered service, in one line.

use super::shard::Record;
use crate::model::{NameRef, NodeIndex, PolicyIndex, Pools, ServiceIndex, Ttl, ZoneIndex};
use crate::prefix::prefetch;

/// Octets of a name that stand beside the rest of its entry.
pub(super) const START: usize = 31;
/// Octets of a name that a further line has.
const MORE: usize = 63;
/// Octets of a cache line.
const LINE: usize = 64;
/// The longest name (RFC 1035 section 2.3.4).
const NAME: usize = 255;
/// The bit of the service word that says CNAME.
const CNAME: u32 = 1 << 31;

/// What a query reads of a service, unless it is one of the few that have more: see [`super::super::ServiceSlot`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steered {
    /// Its endpoints.
    pub pools: Pools,
    /// Its compiled policy.
    pub policy: PolicyIndex,
    /// Its own TTL; `None`: that of the zone of the name answered, for a service may have names in several.
    pub ttl: Option<Ttl>,
}

/// One line.
#[derive(Clone, Debug)]
pub(super) enum Line {
    /// A name, whole or its beginning, and what stands there.
    Entry(Entry),
    /// What a long name goes on with; zeros after its end.
    More([u8; MORE]),
}

/// A name and what stands there. Laid out as written, so that its mark is the last octet: the one that other lines leave free.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Entry {
    /// Of its service; `None` also where that has more than this.
    steered: Option<Steered>,
    zone: u32,
    /// 0 none, else one more than the index.
    node: u32,
    /// 0 none, else one more than the index; the top bit: answered as a CNAME.
    service: u32,
    /// Names that are one label longer.
    children: u32,
    /// Wire form; zeros after its end.
    name: [u8; START],
    /// What tells it from the other kind of line, within its own octets.
    mark: Mark,
}

/// The one thing that an entry's mark can be: all other values of its octet are free.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
enum Mark {
    Entry,
}

impl Entry {
    /// Reads what stands at the name.
    #[inline]
    pub(super) fn record(&self) -> Record {
        Record {
            zone: ZoneIndex(self.zone),
            node: self.node.checked_sub(1).map(NodeIndex),
            service: (self.service & !CNAME)
                .checked_sub(1)
                .map(|index| (ServiceIndex(index), self.service & CNAME != 0)),
            children: self.children,
        }
    }

    /// Gives what a query reads of its service.
    #[inline]
    pub(super) fn steered(&self) -> Option<&Steered> {
        self.steered.as_ref()
    }
}

/// Writes a name and what stands there behind other lines.
pub(super) fn push(
    lines: &mut Vec<Line>,
    name: NameRef<'_>,
    record: &Record,
    steered: Option<Steered>,
) {
    let octets = name.as_wire();
    let (start, rest) = octets.split_at_checked(START).unwrap_or((octets, &[]));
    lines.push(Line::Entry(Entry {
        steered,
        zone: record.zone.0,
        node: record.node.map_or(0, |node| node.0.wrapping_add(1)),
        service: record.service.map_or(0, |(index, is_cname)| {
            (index.0.wrapping_add(1) & !CNAME) | if is_cname { CNAME } else { 0 }
        }),
        children: record.children,
        name: padded(start),
        mark: Mark::Entry,
    }));
    lines.extend(rest.chunks(MORE).map(|more| Line::More(padded(more))));
}

/// Fills up with zeros.
fn padded<const N: usize>(octets: &[u8]) -> [u8; N] {
    let mut padded = [0; N];
    for (to, octet) in padded.iter_mut().zip(octets) {
        *to = *octet;
    }
    padded
}

/// Hints that a name of that many octets will be read, with what stands there.
#[inline]
pub(super) fn prefetch_entry(lines: &[Line], at: usize, octets: usize) {
    prefetch(lines, at);
    if octets > START {
        prefetch(lines, at + 1);
    }
}

/// Gives the entry at a position, if it is that of a name. A wire form ends in its own zero and none begins with another, so that
/// as many octets are compared as the name has.
#[inline]
pub(super) fn entry_of<'l>(lines: &'l [Line], at: usize, name: NameRef<'_>) -> Option<&'l Entry> {
    let Some(Line::Entry(entry)) = lines.get(at) else {
        return None;
    };
    let octets = name.as_wire();
    let is_it = match octets.split_at_checked(START) {
        None => begins_with(&entry.name, octets),
        Some((start, rest)) => entry.name == *start && goes_on(lines, at + 1, rest),
    };
    is_it.then_some(entry)
}

/// Tells whether a name goes on with these octets.
#[inline]
fn goes_on(lines: &[Line], from: usize, octets: &[u8]) -> bool {
    let lines = lines.get(from..).unwrap_or(&[]);
    let count = octets.len().div_ceil(MORE);
    let is_same = |(line, chunk): (&Line, &[u8])| match line {
        Line::More(more) => begins_with(more, chunk),
        Line::Entry(_) => false,
    };
    lines.len() >= count && lines.iter().zip(octets.chunks(MORE)).all(is_same)
}

/// Tells whether octets begin with others: eight at a time, the last eight once more. For names of common length a call of the
/// system's comparison costs more than this.
#[inline]
fn begins_with(octets: &[u8], start: &[u8]) -> bool {
    let Some(octets) = octets.get(..start.len()) else {
        return false;
    };
    match (octets.last_chunk::<8>(), start.last_chunk::<8>()) {
        (Some(last), Some(end)) => {
            let differs = |one: &[u8; 8], other: &[u8; 8]| {
                u64::from_ne_bytes(*one) ^ u64::from_ne_bytes(*other)
            };
            let (chunks, _) = octets.as_chunks();
            let (others, _) = start.as_chunks();
            let pairs = chunks.iter().zip(others);
            pairs.fold(differs(last, end), |bits, (one, other)| {
                bits | differs(one, other)
            }) == 0
        }
        _ => octets == start,
    }
}

/// A name put together out of its lines.
#[derive(Debug)]
pub(super) struct Joined {
    octets: [u8; NAME + MORE],
    length: usize,
}

impl Joined {
    /// Gives the name.
    pub(super) fn name(&self) -> NameRef<'_> {
        let octets = self.octets.get(..self.length).unwrap_or(&[0]);
        NameRef::from_checked(octets)
    }

    fn add(&mut self, octets: &[u8]) {
        let place = self.octets.get_mut(self.length..self.length + octets.len());
        if let Some(place) = place {
            place.copy_from_slice(octets);
            self.length += octets.len();
        }
    }

    /// Cuts off what stands behind the name's own end.
    fn end(&mut self) {
        let mut end = 0;
        while let Some(&length) = self.octets.get(end) {
            end += usize::from(length) + 1;
            if length == 0 {
                break;
            }
        }
        self.length = end.min(self.length);
    }
}

/// Walks over the entries, with their names.
pub(super) fn entries(lines: &[Line]) -> impl Iterator<Item = (Joined, &Entry)> {
    let mut lines = lines.iter().peekable();
    std::iter::from_fn(move || {
        let entry = lines.find_map(|line| match line {
            Line::Entry(entry) => Some(entry),
            Line::More(_) => None,
        })?;
        let mut name = Joined {
            octets: [0; NAME + MORE],
            length: 0,
        };
        name.add(&entry.name);
        while let Some(Line::More(more)) = lines.next_if(|line| matches!(line, Line::More(_))) {
            name.add(more);
        }
        name.end();
        Some((name, entry))
    })
}

const _: () = assert!(size_of::<Line>() == LINE && size_of::<Option<Steered>>() == 16);
