//! The query log: one of N queries as a line of JSON. Off unless the configuration says otherwise.
//!
//! A worker writes records of fixed size into a ring of its own: no lock, no allocation, no wake-up. A task of its own empties
//! the rings a few times a second and writes lines. Who asked is cut to a prefix before it leaves the worker.

mod circle;
mod file;
mod record;
mod writer;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

pub use record::{LoggedVia, QueryRecord};
pub use writer::{Naming, QueryLog, QueryNames, lost_query_log_lines};

use circle::Ring;

use crate::model::ClientSubnet;

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryLogTarget {
    /// Standard error, among the lines of the log.
    Stderr,
    /// A file that rotates.
    File {
        /// The file.
        path: PathBuf,
        /// Octets at which it is put aside.
        max_octets: u64,
        /// Files put aside that are kept.
        keep: u32,
    },
}

/// `queryLog` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryLogConfig {
    /// Where lines go.
    pub target: QueryLogTarget,
    /// One of so many queries is logged.
    pub sample: NonZeroU32,
    /// Bits kept of an IPv4 client, 0..=32.
    pub prefix_v4: u8,
    /// Bits kept of an IPv6 client, 0..=128.
    pub prefix_v6: u8,
}

/// One worker's end of the query log: says which queries are logged, and takes their records.
#[derive(Debug)]
pub struct QueryTap {
    ring: Arc<Ring>,
    /// Queries to pass over before the next one.
    left: u32,
    sample: NonZeroU32,
    prefix_v4: u8,
    prefix_v6: u8,
}

impl QueryTap {
    /// Makes the tap of one worker. The first of each worker starts elsewhere in its turn, so that quiet workers log too.
    fn new(config: &QueryLogConfig, ring: Arc<Ring>, number: u32) -> Self {
        let sample = config.sample;
        Self {
            ring,
            left: number.wrapping_mul(0x9e37_79b9) % sample,
            sample,
            prefix_v4: config.prefix_v4,
            prefix_v6: config.prefix_v6,
        }
    }

    /// Tells whether the next of `count` queries, or one behind it, is to be logged; if none is, passes over all of them.
    #[inline]
    pub fn is_due_within(&mut self, count: usize) -> bool {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        if self.left < count {
            return true;
        }
        self.left -= count;
        false
    }

    /// Tells whether the next query is to be logged, and passes it.
    pub fn take_turn(&mut self) -> bool {
        if self.left == 0 {
            self.left = self.sample.get() - 1;
            return true;
        }
        self.left -= 1;
        false
    }

    /// Cuts a client to the prefix that may be known of it.
    #[must_use]
    pub fn cut(&self, client: ClientSubnet) -> ClientSubnet {
        let bits = if client.address.is_ipv4() {
            self.prefix_v4
        } else {
            self.prefix_v6
        };
        client.cut(bits)
    }

    /// Hands a record over; false when the ring is full: it is lost then, and the caller counts it.
    pub fn put(&self, record: &QueryRecord) -> bool {
        self.ring.push(&record.to_words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_so_many_is_logged_whatever_the_batches() {
        let config = QueryLogConfig {
            target: QueryLogTarget::Stderr,
            sample: NonZeroU32::new(7).unwrap(),
            prefix_v4: 24,
            prefix_v6: 48,
        };
        for sizes in [&[1][..], &[64], &[1, 3, 20, 6, 7, 8]] {
            let mut tap = QueryTap::new(&config, Arc::new(Ring::new()), 3);
            let (mut logged, mut seen) = (0, 0);
            for &size in sizes.iter().cycle() {
                if seen >= 7000 {
                    break;
                }
                seen += size;
                if tap.is_due_within(size) {
                    logged += (0..size).filter(|_| tap.take_turn()).count();
                }
            }
            assert!(
                logged.abs_diff(seen / 7) <= 1,
                "{sizes:?}: {logged} of {seen}"
            );
        }
        let tap = QueryTap::new(&config, Arc::new(Ring::new()), 0);
        for (client, cut) in [
            ("192.0.2.129", "192.0.2.0/24"),
            ("2001:db8:1:2::3", "2001:db8:1::/48"),
        ] {
            let client = ClientSubnet::host(client.parse().unwrap());
            assert_eq!(tap.cut(client).to_string(), cut);
        }
    }
}
