//! The integration tests: the real program on real sockets.

#![allow(
    unreachable_pub,
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "a test binary has nobody outside, and fails by panicking"
)]

mod harness;

mod access;
mod access_tls;
mod acme;
mod admin;
mod alerts;
mod api;
mod battery;
mod changes;
mod check;
mod cli;
mod cli_nodes;
mod clusters_from;
mod clusters_from_secrets;
mod colors;
mod commands;
mod delegation;
mod demo;
mod disk;
mod documents;
mod faults;
mod floods;
mod forged;
mod geoip;
mod hostile_peers;
mod kills;
mod last_good;
mod metrics;
mod observed;
mod offers;
mod peers_tls;
mod probing;
mod reload;
mod restart_drains;
mod samples;
mod schemathesis;
mod secrets;
mod senders;
mod shortages;
mod signals;
mod stalled;
mod strangers;
mod targets;
mod telling;
mod told;
