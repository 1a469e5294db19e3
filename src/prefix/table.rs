//! The table: one family of runs for IPv4, one for IPv6.

use std::net::IpAddr;

use ipnet::IpNet;

use super::family::{Family, Memo, Runs};
use super::sweep::{Prefix, sweep};
use crate::model::PrefixLen;

/// What an address matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The value of the longest prefix that holds the address, else the table's default.
    pub value: u32,
    /// The widest prefix around the address in which every address has this value: 0..=32 or 0..=128.
    pub scope: PrefixLen,
}

/// A longest-prefix table over all of IPv4 and IPv6. Immutable.
///
/// The default table gives everything the value 0.
#[derive(Clone, Debug, Default)]
pub struct Table {
    v4: Family<u32>,
    v6: Family<u128>,
}

impl Table {
    /// Compiles prefixes; the longest match wins, of equal prefixes the later one. Everything not covered has `default`.
    ///
    /// Host bits are ignored. Sorts, then one pass: faster for prefixes that come in order.
    #[must_use]
    pub fn build(prefixes: impl IntoIterator<Item = (IpNet, u32)>, default: u32) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (prefix, value) in prefixes {
            let len = prefix.prefix_len();
            match prefix {
                IpNet::V4(net) => v4.push(Prefix {
                    start: net.network().to_bits(),
                    len,
                    value,
                }),
                IpNet::V6(net) => v6.push(Prefix {
                    start: net.network().to_bits(),
                    len,
                    value,
                }),
            }
        }
        Self {
            v4: sweep(v4, default).into(),
            v6: sweep(v6, default).into(),
        }
    }

    /// Compiles runs: each says that from its first address on everything has its value, up to the next run's start.
    ///
    /// Both lists are by rising start; a start that falls takes back what was said of higher addresses. What lies before
    /// the first run has `default`. Linear: the fast way for databases that are lists of ranges.
    #[must_use]
    pub fn from_runs(
        v4: impl IntoIterator<Item = (u32, u32)>,
        v6: impl IntoIterator<Item = (u128, u32)>,
        default: u32,
    ) -> Self {
        let mut runs4 = Runs::new(default);
        for (start, value) in v4 {
            runs4.push(start, value);
        }
        let mut runs6 = Runs::new(default);
        for (start, value) in v6 {
            runs6.push(start, value);
        }
        Self {
            v4: runs4.into(),
            v6: runs6.into(),
        }
    }

    /// Finds an address's value and scope. IPv4-mapped IPv6 addresses are looked up as IPv6: callers canonicalize first.
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: IpAddr) -> Match {
        let (value, scope) = match address {
            IpAddr::V4(address) => self.v4.lookup(address.to_bits()),
            IpAddr::V6(address) => self.v6.lookup(address.to_bits()),
        };
        Match {
            value,
            scope: PrefixLen(scope),
        }
    }

    /// Hints that `address` will be looked up soon: fetches its index entry.
    #[inline]
    pub fn prefetch(&self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.v4.prefetch_index(address.to_bits()),
            IpAddr::V6(address) => self.v6.prefetch_index(address.to_bits()),
        }
    }

    /// Hints that `address` will be looked up next: reads its index entry and fetches the runs it points at. Pays in a
    /// stage of its own after [`Table::prefetch`].
    #[inline]
    pub fn prefetch_runs(&self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.v4.prefetch_runs(address.to_bits()),
            IpAddr::V6(address) => self.v6.prefetch_runs(address.to_bits()),
        }
    }

    /// Replaces each value by `f(value)`, called at most once per distinct value, and merges neighbors that became equal.
    #[must_use]
    pub fn map(&self, f: impl FnMut(u32) -> u32) -> Self {
        let mut memo = Memo::new(f);
        let mut f = |value| memo.get(value);
        Self {
            v4: self.v4.map(&mut f),
            v6: self.v6.map(&mut f),
        }
    }

    /// Joins two tables: each address gets `f(value here, value there)`, called at most once per distinct pair.
    #[must_use]
    pub fn zip(&self, other: &Self, mut f: impl FnMut(u32, u32) -> u32) -> Self {
        let mut memo = Memo::new(|(a, b)| f(a, b));
        let mut f = |a, b| memo.get((a, b));
        Self {
            v4: self.v4.zip(&other.v4, &mut f),
            v6: self.v6.zip(&other.v6, &mut f),
        }
    }

    /// Gives the number of runs of equal value: IPv4, IPv6; each at least 1.
    #[must_use]
    pub fn ranges(&self) -> (usize, usize) {
        (self.v4.len(), self.v6.len())
    }

    /// Gives the octets held.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.v4.memory() + self.v6.memory()
    }
}

#[cfg(test)]
mod tests;
