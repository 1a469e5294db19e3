//! What every integration test stands on: the real program, real packets, real peers.
//!
//! Nothing here sleeps to hope: waiting is always for a condition, with a deadline. Every process started here is ended by
//! its own pid when its handle falls. Addresses are loopback addresses that no two tests share.

#![allow(
    dead_code,
    reason = "four test binaries share this folder and none uses all of it"
)]

pub mod backend;
pub mod client;
pub mod door;
pub mod events;
pub mod honest;
pub mod jwt;
pub mod netns;
pub mod node;
pub mod objects;
pub mod packages;
pub mod process;
pub mod raw_http;
pub mod stalls;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Gives a loopback address that nobody else in this run uses: 127.64.0.0/10, spread by process.
pub fn loopback() -> IpAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let base = (std::process::id() % 64) << 16;
    // Steps of one host, never .0 or .255 in the last octet.
    let host = base + (next / 250) * 256 + next % 250 + 2;
    IpAddr::V4(Ipv4Addr::from(0x7f40_0000 + host))
}

/// Gives a loopback address in a /24 that nobody else in this run uses: 127.48.0.0/12, spread by process.
pub fn loopback_network() -> IpAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    assert!(next < 256, "more networks than there are");
    let base = (std::process::id() % 16) << 16;
    IpAddr::V4(Ipv4Addr::from(0x7f30_0001 + base + (next << 8)))
}

/// Waits until `ready` gives something, at most `patience`, and panics with `what` otherwise.
pub fn wait_for<T>(what: &str, patience: Duration, mut ready: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(
            begun.elapsed() < patience,
            "gave up after {patience:?} waiting for: {what}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}
