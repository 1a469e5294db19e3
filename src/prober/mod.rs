//! Runs the probes that the fleet asks for and hands back what was observed.

mod config;

pub use config::Config;
