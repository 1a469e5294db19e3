//! The integration tests: the real program on real sockets.

mod harness;

mod battery;
mod commands;
mod demo;
mod documents;
mod faults;
mod geoip;
mod last_good;
mod reload;
mod samples;
