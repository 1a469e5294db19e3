//! One address family: sorted runs of equal value under an index by leading bits.

use std::collections::HashMap;

use super::prefetch::prefetch;

/// An address as a number.
pub(super) trait Bits: Copy + Ord + Default {
    /// The buckets of the index at its finest.
    const BUCKETS: usize;

    /// Gives the finest bucket of an address, below [`Bits::BUCKETS`]; never falls while addresses rise.
    fn bucket(self) -> usize;
    /// Counts the leading bits in which two addresses agree.
    fn common_bits(self, other: Self) -> u8;
    /// Gives the address before; of the lowest, the highest.
    fn before(self) -> Self;
    /// Gives the address after, if there is one.
    fn after(self) -> Option<Self>;
    /// Gives the last address of the prefix of `len` bits that starts here.
    fn last_of(self, len: u8) -> Self;
}

/// What is the same for both widths.
macro_rules! common {
    () => {
        #[inline]
        #[expect(clippy::cast_possible_truncation, reason = "at most 128")]
        fn common_bits(self, other: Self) -> u8 {
            (self ^ other).leading_zeros() as u8
        }

        #[inline]
        fn before(self) -> Self {
            self.wrapping_sub(1)
        }

        fn after(self) -> Option<Self> {
            self.checked_add(1)
        }

        fn last_of(self, len: u8) -> Self {
            self | Self::MAX.checked_shr(len.into()).unwrap_or(0)
        }
    };
}

impl Bits for u32 {
    const BUCKETS: usize = 1 << 16;

    #[inline]
    fn bucket(self) -> usize {
        (self >> 16) as usize
    }

    common!();
}

/// The bits below those that choose a bucket of an IPv6 address: buckets are /20 networks.
const V6_SHIFT: u32 = 108;
/// The first bucket of 2000::/3, all the global unicast space that is in use (RFC 4291 section 2.4).
const V6_GLOBAL: u128 = 0x2000_u128 << 4;
/// The buckets of 2000::/3.
const V6_GLOBAL_BUCKETS: u128 = 1 << 17;

impl Bits for u128 {
    // Everything below 2000::/3 shares one bucket, and everything above it another.
    const BUCKETS: usize = (1 << 17) + 2;

    #[inline]
    fn bucket(self) -> usize {
        ((self >> V6_SHIFT) + 1)
            .saturating_sub(V6_GLOBAL)
            .min(V6_GLOBAL_BUCKETS + 1) as usize
    }

    common!();
}

/// Where a run starts, and its value: side by side, so that a lookup reads one cache line. Packed, for IPv6 would else take 32
/// octets in place of 20.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
struct Run<A: Copy> {
    start: A,
    value: u32,
}

/// A list of runs while it is being made.
#[derive(Debug)]
pub(super) struct Runs<A: Copy> {
    runs: Vec<Run<A>>,
}

impl<A: Bits> Runs<A> {
    /// Begins with one run of `default` over the whole family.
    pub(super) fn new(default: u32) -> Self {
        Self {
            runs: vec![Run {
                start: A::default(),
                value: default,
            }],
        }
    }

    /// Says that from `start` on everything has `value`. What was said of `start` and beyond is forgotten.
    ///
    /// Cheap when starts never fall, as from a sweep: then each call touches the end only.
    pub(super) fn push(&mut self, start: A, value: u32) {
        while self.runs.last().is_some_and(|last| { last.start } >= start) {
            self.runs.pop();
        }
        if self.runs.last().is_none_or(|last| { last.value } != value) {
            self.runs.push(Run { start, value });
        }
    }
}

/// The runs of one family, frozen, and the index over them.
///
/// Starts rise strictly and begin with 0; no two neighbors have the same value.
#[derive(Clone, Debug)]
pub(super) struct Family<A: Copy> {
    runs: Box<[Run<A>]>,
    /// Bucket -> how many runs start in lower buckets; one entry more than buckets.
    index: Box<[u32]>,
    /// The finest buckets are joined by 2^shift, so that a small table has a small index.
    shift: u32,
}

impl<A: Bits> Default for Family<A> {
    fn default() -> Self {
        Runs::new(0).into()
    }
}

impl<A: Bits> From<Runs<A>> for Family<A> {
    /// Freezes runs and builds the index: linear.
    fn from(Runs { runs }: Runs<A>) -> Self {
        let mut shift = 0;
        // Four buckets a run are plenty; at least a handful, so that small tables are not searched whole.
        while A::BUCKETS >> shift > runs.len().max(16) * 4 {
            shift += 1;
        }
        let buckets = ((A::BUCKETS - 1) >> shift) + 1;
        let mut index = vec![0_u32; buckets + 1];
        for run in &runs {
            if let Some(count) = index.get_mut(({ run.start }.bucket() >> shift) + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for count in &mut index {
            sum += *count;
            *count = sum;
        }
        Self {
            runs: runs.into(),
            index: index.into(),
            shift,
        }
    }
}

impl<A: Bits> Family<A> {
    /// Finds the value of an address and the widest prefix around it that stays in its run.
    #[inline]
    pub(super) fn lookup(&self, address: A) -> (u32, u8) {
        let (from, to) = self.candidates(address);
        let inside = self.runs.get(from..to).unwrap_or(&[]);
        // The number of runs that start at or before the address: at least 1, for the first starts at 0.
        let next = from + inside.partition_point(|run| { run.start } <= address);
        let Some(&Run { start, value }) = self.runs.get(next.wrapping_sub(1)) else {
            return (0, 0);
        };
        // A prefix that leaves out a neighbor is longer by one bit than what the address shares with that neighbor.
        let below = if start > A::default() {
            address.common_bits(start.before()) + 1
        } else {
            0
        };
        let above = match self.runs.get(next) {
            Some(&Run { start, .. }) => address.common_bits(start) + 1,
            None => 0,
        };
        (value, below.max(above))
    }

    /// Gives the runs that start in the address's bucket; the run before them may reach into it.
    #[inline]
    fn candidates(&self, address: A) -> (usize, usize) {
        let bucket = address.bucket() >> self.shift;
        let at = |bucket: usize| self.index.get(bucket).map_or(0, |&run| run as usize);
        (at(bucket), at(bucket + 1))
    }

    /// Hints that the index entry of an address will be read soon.
    #[inline]
    pub(super) fn prefetch_index(&self, address: A) {
        prefetch(&self.index, address.bucket() >> self.shift);
    }

    /// Reads the index entry of an address and hints that the middle of its runs will be read soon.
    #[inline]
    pub(super) fn prefetch_runs(&self, address: A) {
        let (from, to) = self.candidates(address);
        let middle = usize::midpoint(from, to);
        prefetch(&self.runs, middle);
    }

    /// Lists the runs by address: first address and value.
    pub(super) fn runs(&self) -> impl Iterator<Item = (A, u32)> {
        self.runs.iter().map(|run| (run.start, run.value))
    }

    /// Replaces values and merges neighbors that became equal.
    pub(super) fn map(&self, f: &mut impl FnMut(u32) -> u32) -> Self {
        let mut out = Runs::new(0);
        for (start, value) in self.runs() {
            out.push(start, f(value));
        }
        out.into()
    }

    /// Joins with another family run by run.
    pub(super) fn zip(&self, other: &Self, f: &mut impl FnMut(u32, u32) -> u32) -> Self {
        let mut out = Runs::new(0);
        let (mut here, mut there) = (self.runs().peekable(), other.runs().peekable());
        // Both begin at 0, so both values are set in the first round.
        let (mut a, mut b) = (0, 0);
        while let Some(start) = next_start(here.peek(), there.peek()) {
            if let Some((_, value)) = here.next_if(|&(at, _)| at == start) {
                a = value;
            }
            if let Some((_, value)) = there.next_if(|&(at, _)| at == start) {
                b = value;
            }
            out.push(start, f(a, b));
        }
        out.into()
    }

    /// Gives the number of runs, at least 1.
    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    /// Gives the octets held.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&*self.runs) + size_of_val(&*self.index)
    }
}

/// Gives the lower of the next starts of two lists.
fn next_start<A: Bits>(a: Option<&(A, u32)>, b: Option<&(A, u32)>) -> Option<A> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.0.min(b.0)),
        (a, b) => a.or(b).map(|&(start, _)| start),
    }
}

/// Remembers what a function gave for a key, so that it is called once a key; the last key is answered without a look.
#[derive(Debug)]
pub(super) struct Memo<K, F> {
    f: F,
    known: HashMap<K, u32>,
    last: Option<(K, u32)>,
}

impl<K: Copy + Eq + std::hash::Hash, F: FnMut(K) -> u32> Memo<K, F> {
    /// Wraps a function.
    pub(super) fn new(f: F) -> Self {
        Self {
            f,
            known: HashMap::new(),
            last: None,
        }
    }

    /// Gives the function's value for a key.
    pub(super) fn get(&mut self, key: K) -> u32 {
        if let Some((last, value)) = self.last
            && last == key
        {
            return value;
        }
        let value = *self.known.entry(key).or_insert_with(|| (self.f)(key));
        self.last = Some((key, value));
        value
    }
}
