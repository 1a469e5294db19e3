//! The compiled database.

use std::sync::Arc;

use super::overrides::Override;
use crate::model::{ClientSubnet, Location, PrefixLen, Rejection};
use crate::prefix::Table;

/// What the bytes of a source are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// The embedded country database; its bytes are compiled in, `Source::bytes` is empty.
    EmbeddedCountry,
    /// An MMDB file of the GeoLite2, GeoIP2 or DB-IP layout: Country, City or ASN.
    Mmdb,
}

/// One database to compile.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file's name as the operator wrote it, or `embedded`.
    pub name: String,
    /// What the bytes are.
    pub kind: SourceKind,
    /// The whole file, at most [`GeoDb::MAX_BYTES`].
    pub bytes: Arc<[u8]>,
}

/// What is known of a compiled source, for status and the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseInfo {
    /// As in [`Source`].
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

/// Where a client network is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Located<'a> {
    /// The place's number: an index of [`GeoDb::places`]. 0 is the unknown place.
    pub place: u32,
    /// `None` for the unknown place.
    pub location: Option<&'a Location>,
    /// Leading bits that decided, 0..=32 or 0..=128. An unknown place has the scope of the hole.
    pub scope: PrefixLen,
}

/// All databases and overrides in one table.
#[derive(Clone, Debug, Default)]
pub struct GeoDb {
    todo: (),
}

impl GeoDb {
    /// The largest database file accepted: 1 GiB.
    pub const MAX_BYTES: usize = 1 << 30;

    /// Compiles sources and overrides. Where two sources know the same part of a place, the later one wins part by part
    /// (City beside ASN beside Country); overrides win over all. A source that is broken, empty or of a wrong type is left
    /// out and reported; the caller decides whether to keep its old table instead.
    #[must_use]
    pub fn compile(sources: &[Source], overrides: &[Override]) -> (Self, Vec<Rejection>) {
        let _ = (sources, overrides);
        todo!()
    }

    /// Locates a client network. The most specific match wins, overrides before databases. Never fails, never allocates.
    #[must_use]
    pub fn locate(&self, subnet: ClientSubnet) -> Located<'_> {
        let _ = subnet;
        todo!()
    }

    /// Gives the table: address to place number.
    #[must_use]
    pub fn table(&self) -> &Table {
        todo!()
    }

    /// Gives all places by number; the first is the unknown place (`Location::default()`).
    #[must_use]
    pub fn places(&self) -> &[Location] {
        todo!()
    }

    /// Tells what was compiled.
    #[must_use]
    pub fn databases(&self) -> &[DatabaseInfo] {
        todo!()
    }
}
