//! Owner name to service or node: shards by hash bits, each an open table with flat records.

mod edit;
mod hash;
mod shard;
mod shard_edit;
mod table;
#[cfg(test)]
mod tests;

pub(super) use edit::{Home, NamesEdit};
pub use hash::NameHash;
pub use table::{Candidate, NameTable};
