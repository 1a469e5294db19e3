//! Probes and the prober against real sockets on loopback.

mod driver;
mod guarded;
mod probes;
mod servers;
