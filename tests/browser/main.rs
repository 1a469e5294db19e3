//! The dashboard as people meet it: Chromium drives the real program, with real backends behind it.
//!
//! Debian's chromium and chromedriver are spoken to by WebDriver, and by the DevTools protocol where WebDriver has no word:
//! sizes, colors, scripts switched off. Screenshots stay in `screenshots` of the target folder.

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

mod axe;
mod chrome;
mod crowd;
mod deeds;
mod hand;
mod live;
mod looks;
mod plain;
mod search;
mod size;
mod world;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by each test: they measure times and drive browsers, so each has the machine to itself.
static MACHINE: Mutex<()> = Mutex::new(());

/// Waits until the machine is free, and keeps it.
fn alone() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}
