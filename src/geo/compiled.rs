//! One source, compiled by itself, as the readers of the kinds of sources hand it over.

use crate::model::Location;
use crate::prefix::Table;

/// The largest database file accepted: 1 GiB.
pub(super) const MAX_BYTES: usize = 1 << 30;

/// What is known of a compiled source, for status and the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseInfo {
    /// As in [`super::Source`].
    pub name: String,
    /// The database's own name for its type, such as `GeoLite2-City`.
    pub database_type: String,
    /// Unix time of its build; 0 when unknown.
    pub build_epoch: u64,
    /// Networks read.
    pub networks: u64,
    /// Country codes in the data that the table of countries does not know.
    pub unknown_codes: Vec<String>,
}

/// One source, compiled by itself: a table of numbers into its own list of places as the source words them.
#[derive(Debug)]
pub(super) struct Compiled {
    /// Address to place.
    pub(super) table: Table,
    /// The first is the unknown place.
    pub(super) places: Vec<Location>,
    /// What it is.
    pub(super) info: DatabaseInfo,
}
