//! The table: sorted ranges per family under an index by the leading 16 bits.

use std::net::IpAddr;

use ipnet::IpNet;

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
#[derive(Clone, Debug, Default)]
pub struct Table {
    todo: (),
}

impl Table {
    /// Compiles prefixes; the longest match wins, of equal prefixes the later one. Everything not covered has `default`.
    #[must_use]
    pub fn build(prefixes: impl IntoIterator<Item = (IpNet, u32)>, default: u32) -> Self {
        let _ = (prefixes.into_iter(), default);
        todo!()
    }

    /// Finds an address's value and scope. IPv4-mapped IPv6 addresses are looked up as IPv6: callers canonicalize first.
    #[must_use]
    pub fn lookup(&self, address: IpAddr) -> Match {
        let _ = address;
        todo!()
    }

    /// Hints that `address` will be looked up soon.
    pub fn prefetch(&self, address: IpAddr) {
        let _ = address;
        todo!()
    }

    /// Replaces each value by `f(value)`, called at most once per distinct value, and merges neighbors that became equal.
    #[must_use]
    pub fn map(&self, f: impl FnMut(u32) -> u32) -> Self {
        let _ = f;
        todo!()
    }

    /// Joins two tables: each address gets `f(value here, value there)`, called at most once per distinct pair.
    #[must_use]
    pub fn zip(&self, other: &Self, f: impl FnMut(u32, u32) -> u32) -> Self {
        let _ = (other, f);
        todo!()
    }

    /// Gives the octets held.
    #[must_use]
    pub fn memory(&self) -> usize {
        todo!()
    }
}
