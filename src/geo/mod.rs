//! Where a client is.
//!
//! This room turns databases and the operator's overrides into one table, once per load, and answers from that table alone:
//! no file, no database walk and no allocation while answering. It knows nothing of clusters' health or policies.
//! Called by the controller (compile), `snapshot` (tables), `answer` (explain) and configuration (regions, groups).

mod compiled;
mod countries;
mod country;
mod db;
mod groups;
mod mmdb;
mod overrides;
mod places;
mod regions;
#[cfg(test)]
mod testing;

pub use compiled::DatabaseInfo;
pub use countries::{Country, countries, country, no_country};
pub use db::{GeoDb, Located, Source, SourceKind};
pub use groups::built_in_groups;
pub use overrides::{Override, OverridePlace};
pub use regions::{Region, region, regions};
