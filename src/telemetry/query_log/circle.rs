//! A ring of records between one writer and one reader, without a lock.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::record::WORDS;

/// Records of a ring: what a worker may log between two looks of the reader. Further ones are lost.
const RECORDS: usize = 1024;

/// The ring. One thread at a time may push, one may pop.
#[derive(Debug)]
pub(super) struct Ring {
    words: Box<[AtomicU64]>,
    /// Records ever pushed.
    pushed: AtomicUsize,
    /// Records ever popped.
    popped: AtomicUsize,
}

impl Ring {
    /// Makes an empty ring of 300 KiB.
    pub(super) fn new() -> Self {
        Self {
            words: (0..RECORDS * WORDS).map(|_| AtomicU64::new(0)).collect(),
            pushed: AtomicUsize::new(0),
            popped: AtomicUsize::new(0),
        }
    }

    /// Gives the words of a record.
    fn slot(&self, number: usize) -> &[AtomicU64] {
        let start = number % RECORDS * WORDS;
        self.words.get(start..start + WORDS).unwrap_or_default()
    }

    /// Adds a record; false when the ring is full.
    pub(super) fn push(&self, record: &[u64; WORDS]) -> bool {
        let pushed = self.pushed.load(Ordering::Relaxed);
        // What was popped is free: its words were read before.
        if pushed.wrapping_sub(self.popped.load(Ordering::Acquire)) >= RECORDS {
            return false;
        }
        for (place, word) in self.slot(pushed).iter().zip(record) {
            place.store(*word, Ordering::Relaxed);
        }
        self.pushed.store(pushed.wrapping_add(1), Ordering::Release);
        true
    }

    /// Takes the oldest record.
    pub(super) fn pop(&self) -> Option<[u64; WORDS]> {
        let popped = self.popped.load(Ordering::Relaxed);
        if popped == self.pushed.load(Ordering::Acquire) {
            return None;
        }
        let mut record = [0; WORDS];
        for (word, place) in record.iter_mut().zip(self.slot(popped)) {
            *word = place.load(Ordering::Relaxed);
        }
        self.popped.store(popped.wrapping_add(1), Ordering::Release);
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_out_as_they_went_in_and_a_full_ring_refuses() {
        let ring = Ring::new();
        let mut next = 0;
        for round in 0..5 {
            let mut put = 0;
            while ring.push(&[round * 10_000 + put; WORDS]) {
                put += 1;
            }
            assert_eq!(put, RECORDS as u64);
            // Half is taken: that much fits again.
            for _ in 0..RECORDS {
                let record = ring.pop().unwrap();
                assert!(record.iter().all(|word| *word == record[0]));
                assert!(record[0] >= next);
                next = record[0];
            }
            assert_eq!(ring.pop(), None);
        }
    }

    #[test]
    fn a_reader_beside_the_writer_sees_whole_records_only() {
        let ring = std::sync::Arc::new(Ring::new());
        let written = std::sync::Arc::clone(&ring);
        let writer = std::thread::spawn(move || {
            let mut number = 0;
            while number < 50_000 {
                number += u64::from(written.push(&[number; WORDS]));
            }
        });
        let mut expected = 0;
        while expected < 50_000 {
            if let Some(record) = ring.pop() {
                assert_eq!(record, [expected; WORDS]);
                expected += 1;
            }
        }
        writer.join().unwrap();
    }
}
