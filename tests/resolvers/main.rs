//! Real recursive resolvers behind a real delegation.
//!
//! NSD serves a root and the zone `mesh.`, which delegates `svc.mesh.` to two nodes. unbound (with ECS), BIND, Knot Resolver
//! and PowerDNS Recursor start from that root. Everything listens on port 53 of loopback addresses of its own.

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

#[path = "../it/harness/mod.rs"]
mod harness;

mod answers;
mod drain;
mod failover;
mod parent;
mod peers;
mod tools;

use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Held for writing by the test that measures times, for reading by all others: it has the machine to itself.
static MACHINE: RwLock<()> = RwLock::new(());

/// Shares the machine.
fn shared() -> RwLockReadGuard<'static, ()> {
    MACHINE
        .read()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Waits until the machine is free, and keeps it.
fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE
        .write()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
