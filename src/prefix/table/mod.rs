//! The table: one family of runs for IPv4, one for IPv6.

use std::net::{IpAddr, Ipv6Addr};

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

    /// Finds an address's value and scope. IPv4-mapped IPv6 addresses are looked up as IPv6: callers canonicalize first.
    #[inline(always)]
    #[must_use]
    pub fn lookup(&self, address: IpAddr) -> Match {
        let (value, scope) = match address {
            IpAddr::V4(address) => self.v4.lookup(address.to_bits()),
            IpAddr::V6(address) => self.lookup_v6(address),
        };
        Match {
            value,
            scope: PrefixLen(scope),
        }
    }

    /// Finds an IPv6 address: apart, so that the other family needs no call.
    #[inline(never)]
    fn lookup_v6(&self, address: Ipv6Addr) -> (u32, u8) {
        self.v6.lookup(address.to_bits())
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

    /// Begins a table from ranges instead of prefixes; what nothing is said of has `default`.
    pub fn builder(default: u32) -> Builder {
        Builder {
            v4: Runs::new(default),
            v6: Runs::new(default),
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

/// A table in the making, told range by range: the fast way for databases that come in order.
///
/// Each call says that from `start` on everything has `value`, up to the start of the next call. Starts rise; one that falls
/// takes back what was said of higher addresses.
#[derive(Debug)]
#[must_use]
pub struct Builder {
    v4: Runs<u32>,
    v6: Runs<u128>,
}

impl Builder {
    /// Says what IPv4 addresses have from `start` on.
    pub fn v4(&mut self, start: u32, value: u32) {
        self.v4.push(start, value);
    }

    /// Says what IPv6 addresses have from `start` on.
    pub fn v6(&mut self, start: u128, value: u32) {
        self.v6.push(start, value);
    }

    /// Freezes the table: linear.
    #[must_use]
    pub fn build(self) -> Table {
        Table {
            v4: self.v4.into(),
            v6: self.v6.into(),
        }
    }
}

#[cfg(test)]
mod tests;
