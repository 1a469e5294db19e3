//! Owner name to service or node: shards by hash bits, each an open table with flat records.

mod edit;
mod shard;
mod shard_edit;
mod table;
#[cfg(test)]
mod tests;

pub(super) use edit::{Home, NamesEdit};
pub use table::{Candidate, NameHash, NameTable};
