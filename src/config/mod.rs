//! The configuration file: what was written (`spec`), what was checked ([`Config`]).

mod checked;

pub use checked::{Config, Geoip, Node, ZoneSource};
