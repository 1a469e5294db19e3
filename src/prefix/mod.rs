//! Compiled longest-prefix tables: an address in, a value and an honest scope out.
//!
//! This room knows ranges of addresses and nothing of what the values mean. `geo` compiles databases into a [`Table`],
//! `snapshot` merges one by class of place. Built once, then only read.
//!
//! A [`Table`] is two families, IPv4 and IPv6. A family is a list of runs: the first address of each and its value; a run
//! ends where the next begins, and neighbors never have the same value. An index by the leading bits says which few runs
//! to search. So a lookup is one read of the index, a short binary search without branches, and two counts of leading
//! zeros for the scope: the widest prefix around the address that stays inside its run.

mod family;
mod prefetch;
mod sweep;
mod table;

pub use prefetch::{prefetch, prefetch_pointer};
pub use table::{Builder, Match, Table};
