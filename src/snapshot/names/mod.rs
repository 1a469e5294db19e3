//! Owner name to service or node: shards by hash bits, each an open table of cache lines, which have what a query reads of a steered service beside its name.

mod edit;
mod hash;
mod line;
mod shard;
mod shard_edit;
mod table;
#[cfg(test)]
mod tests;

pub(super) use edit::{Home, NamesEdit};
pub use hash::NameHash;
pub use line::Steered;
pub(super) use shard_edit::SteeredOf;
pub use table::{Candidate, NameTable};
