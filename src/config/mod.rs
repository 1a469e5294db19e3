//! The configuration file: YAML in, a checked [`Config`] or all faults out.
//!
//! Two parts: `spec` knows what was written (YAML, keys, places), `validate` what it means (one file a section). `places` finds
//! again where a file or a hostname was written, for faults that show only later. This room
//! reads no file, no clock and no network: the caller hands in the text. It knows the `Config` of every room it configures.
//! Called by `app` (run, check, explain, schema, reload).

mod checked;
mod faults;
mod places;
mod spec;
mod validate;

pub use checked::{Config, Geoip, Node, ZoneSource};
pub use faults::{Fault, Severity, Warning};
pub use places::{Place, Places, ZonePlace};
pub(crate) use spec::nearest;
pub use spec::schema;
pub(crate) use validate::parse_duration;
pub use validate::{Defaults, Faulty, MAX_BYTES, parse};
