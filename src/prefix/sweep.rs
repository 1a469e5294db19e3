//! From prefixes to runs: one pass over the sorted prefixes with a stack of those that are open.

use super::family::{Bits, Runs};

/// A prefix of one family and its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prefix<A> {
    /// The first address; the bits beyond `len` are zero.
    pub(super) start: A,
    /// Leading bits.
    pub(super) len: u8,
    /// What addresses inside have, unless a longer prefix holds them.
    pub(super) value: u32,
}

/// Turns prefixes into runs. The longest wins, of equal ones the later; what none covers has `default`.
///
/// Sorting dominates: n log n, and linear when they come sorted already.
pub(super) fn sweep<A: Bits>(mut prefixes: Vec<Prefix<A>>, default: u32) -> Runs<A> {
    // Stable, so that of equal prefixes the later one comes later and overwrites. A wider prefix comes before those inside.
    prefixes.sort_by_key(|prefix| (prefix.start, prefix.len));
    let mut runs = Runs::new(default);
    let mut open: Vec<(A, u32)> = Vec::new();
    for prefix in prefixes {
        close(&mut runs, &mut open, Some(prefix.start), default);
        runs.push(prefix.start, prefix.value);
        open.push((prefix.start.last_of(prefix.len), prefix.value));
    }
    close(&mut runs, &mut open, None, default);
    runs
}

/// Closes the open prefixes that end before `next`, or all: after each its parent's value goes on.
fn close<A: Bits>(runs: &mut Runs<A>, open: &mut Vec<(A, u32)>, next: Option<A>, default: u32) {
    while let Some((last, _)) = open.pop_if(|(last, _)| next.is_none_or(|next| *last < next)) {
        let parent = open.last().map_or(default, |&(_, value)| value);
        if let Some(after) = last.after() {
            runs.push(after, parent);
        }
    }
}
