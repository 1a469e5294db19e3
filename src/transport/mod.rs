//! Bytes in, bytes out: sockets, workers and streams around one parser, one decision and one encoder.
//!
//! This room knows sockets, batches, framing, deadlines and limits. It knows no record and decides nothing: `answer` does.
//! [`Bound::bind`] binds everything, [`Bound::spawn`] starts it, [`Running`] shows what it counts. Called by `app`.

mod backoff;
mod clock;
mod config;
mod limits;
mod listener;
mod proxy;
mod rare;
mod socket;
mod stream;
mod udp;

pub use config::{Config, TcpLimits};
pub use listener::Streams;
pub use socket::{Bound, Running, TransportError};

#[cfg(test)]
mod tests;
