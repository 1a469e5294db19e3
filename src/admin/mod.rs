//! What operators and machines read over HTTP.

mod config;

pub use config::Config;
