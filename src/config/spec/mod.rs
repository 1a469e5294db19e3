//! What was written: the text as a tree of nodes with places, and the table of keys.
//!
//! This part knows YAML and the shape of the contract, and refuses what has another shape. It does not know what values mean:
//! `validate` does. Called by `validate` only.

mod document;
mod scan;
mod schema;
mod shape;
mod suggest;
mod tape;
#[cfg(test)]
mod tests;
pub(super) mod v1;
mod yaml;

pub(super) use document::{Lane, Services, Source};
pub use schema::schema;
pub(super) use shape::{Fields, fields};
pub(super) use suggest::hint;
pub(crate) use suggest::nearest;
pub(super) use tape::{Flaw, Kind, Node, Root, Tape};

/// The table's own words, for the test that tries each key.
#[cfg(test)]
pub(super) mod shape_of_tests {
    pub(in crate::config) use super::shape::{Form, Shape};
}
