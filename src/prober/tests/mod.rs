//! Probes and the prober against real sockets on loopback.

mod driver;
mod probes;
mod servers;
