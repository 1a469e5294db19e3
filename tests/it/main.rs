//! The integration tests: the real program on real sockets.

#![allow(unreachable_pub, reason = "a test binary has nobody outside")]

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
