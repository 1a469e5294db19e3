//! Times in log-linear cells: four to a doubling, so that a quantile is right to a fifth.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Nanoseconds of the smallest cell: four make a microsecond.
const UNIT_NANOS: u64 = 250;
/// Doublings of a microsecond covered: up to 16.8 s.
const DOUBLINGS: usize = 24;
/// Cells of one doubling.
const PARTS: usize = 4;
/// Cells: those below a microsecond, and [`PARTS`] a doubling. What is longer goes to the last.
const CELLS: usize = PARTS * (DOUBLINGS + 1);

/// Counts times. One writer; anybody may read.
#[derive(Debug)]
pub struct Histogram {
    cells: Box<[AtomicU64; CELLS]>,
    sum_nanos: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            cells: Box::new(std::array::from_fn(|_| AtomicU64::new(0))),
            sum_nanos: AtomicU64::new(0),
        }
    }
}

impl Histogram {
    /// Counts one time as often as `weight` says.
    #[inline]
    pub fn observe(&self, time: Duration, weight: u64) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if let Some(cell) = self.cells.get(cell_of(nanos)) {
            add(cell, weight);
        }
        add(&self.sum_nanos, nanos.saturating_mul(weight));
    }
}

/// Adds with a plain load and store: there is one writer.
#[inline]
fn add(cell: &AtomicU64, more: u64) {
    cell.store(
        cell.load(Ordering::Relaxed).wrapping_add(more),
        Ordering::Relaxed,
    );
}

/// Finds the cell of a time. A cell holds its upper bound, as `le` of Prometheus does.
#[inline]
fn cell_of(nanos: u64) -> usize {
    let units = nanos.saturating_sub(1) / UNIT_NANOS;
    let doubling = (units | 1).ilog2() as usize;
    if doubling < 2 {
        return usize::try_from(units).unwrap_or(0);
    }
    let part = usize::try_from(units >> (doubling - 2) & 3).unwrap_or(0);
    (PARTS * (doubling - 1) + part).min(CELLS - 1)
}

/// Gives the upper bound of a cell in nanoseconds.
fn bound(cell: usize) -> u64 {
    let (doubling, part) = (cell / PARTS, cell as u64 % PARTS as u64);
    if doubling == 0 {
        return (part + 1) * UNIT_NANOS;
    }
    ((PARTS as u64 + part + 1) * UNIT_NANOS) << (doubling - 1)
}

/// What one histogram or several hold together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    cells: Box<[u64; CELLS]>,
    sum_nanos: u64,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            cells: Box::new([0; CELLS]),
            sum_nanos: 0,
        }
    }
}

impl Times {
    /// Sums histograms up.
    #[must_use]
    pub fn of<'h>(histograms: impl IntoIterator<Item = &'h Histogram>) -> Self {
        let mut times = Self::default();
        for histogram in histograms {
            for (sum, cell) in times.cells.iter_mut().zip(histogram.cells.iter()) {
                *sum = sum.wrapping_add(cell.load(Ordering::Relaxed));
            }
            let nanos = histogram.sum_nanos.load(Ordering::Relaxed);
            times.sum_nanos = times.sum_nanos.wrapping_add(nanos);
        }
        times
    }

    /// Gives what came since an earlier look.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut times = self.clone();
        for (cell, before) in times.cells.iter_mut().zip(earlier.cells.iter()) {
            *cell = cell.saturating_sub(*before);
        }
        times.sum_nanos = times.sum_nanos.saturating_sub(earlier.sum_nanos);
        times
    }

    /// Counts all times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.cells.iter().sum()
    }

    /// Gives the sum of all times in seconds.
    #[must_use]
    pub fn sum_seconds(&self) -> f64 {
        Duration::from_nanos(self.sum_nanos).as_secs_f64()
    }

    /// Gives the time that a share (0..=1) of all were not above: the upper bound of its cell. `None` when nothing was counted.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let mut below = 0;
        for (cell, times) in self.cells.iter().enumerate() {
            below += times;
            if below as f64 >= share * count as f64 {
                return Some(Duration::from_nanos(bound(cell)));
            }
        }
        Some(Duration::from_nanos(bound(CELLS - 1)))
    }

    /// Counts the times not above `2^doubling` microseconds.
    #[must_use]
    pub fn at_most(&self, doubling: usize) -> u64 {
        self.cells.iter().take(PARTS * (doubling + 1)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_follow_one_another_without_gap() {
        for cell in 0..CELLS - 1 {
            let end = bound(cell);
            assert_eq!(cell_of(end), cell, "{end}");
            assert_eq!(cell_of(end + 1), cell + 1, "{end}");
            assert!(bound(cell + 1) > end);
        }
        assert_eq!(cell_of(0), 0);
        assert_eq!(cell_of(u64::MAX), CELLS - 1);
        assert_eq!(bound(CELLS - 1), 1000 << DOUBLINGS);
    }

    #[test]
    fn quantiles_and_buckets_are_those_of_the_cells() {
        let histogram = Histogram::default();
        assert_eq!(Times::of([&histogram]).quantile(0.5), None);
        histogram.observe(Duration::from_micros(1), 98);
        histogram.observe(Duration::from_micros(900), 1);
        let earlier = Times::of([&histogram]);
        histogram.observe(Duration::from_secs(100), 1);
        let times = Times::of([&histogram]);
        assert_eq!(times.count(), 100);
        assert_eq!(times.quantile(0.5), Some(Duration::from_micros(1)));
        assert_eq!(times.quantile(0.99), Some(Duration::from_micros(1024)));
        assert_eq!(times.quantile(1.0), Some(Duration::from_micros(1 << 24)));
        assert_eq!((times.at_most(0), times.at_most(9)), (98, 98));
        assert_eq!((times.at_most(10), times.at_most(24)), (99, 100));
        assert_eq!(times.since(&earlier).count(), 1);
        assert!((times.since(&earlier).sum_seconds() - 100.0).abs() < 1e-6);
    }
}
