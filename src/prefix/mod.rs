//! Compiled longest-prefix tables: an address in, a value and an honest scope out.
//!
//! This room knows ranges of addresses and nothing of what the values mean. `geo` compiles databases into a [`Table`],
//! `snapshot` merges one by class of place. Built once, then only read.

mod prefetch;
mod table;

pub use prefetch::prefetch;
pub use table::{Match, Table};
