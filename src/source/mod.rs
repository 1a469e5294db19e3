//! Outside truth on its way in: files, and the annotations of Kubernetes objects.
//!
//! This room reads databases and zone files within limits, falls back to the octets of the last good state, and notices
//! changes. It decides nothing about what is read: `geo` and `zone` compile, the controller publishes.

mod databases;
mod files;
pub mod kubernetes;
mod zones;

pub use databases::{DatabaseFiles, Databases, read_databases};
pub use files::{FileError, Fingerprint, read_bounded};
pub use zones::{LoadedZones, ZoneContext, ZoneFiles, load_zones};
