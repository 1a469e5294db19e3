//! Bytes in, bytes out: sockets, workers and streams around one parser, one decision and one encoder.

mod config;

pub use config::{Config, TcpLimits};
