//! Hashes of names.

/// A name's hash, seeded per process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameHash(pub u64);
