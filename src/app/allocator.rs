//! On what pages the program's tables lie, and how soon the allocator gives freed memory back. Called by the door before
//! anything else, before tables are built, and by threads that have nothing to do.

use std::cell::Cell;
use std::ffi::c_long;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use libmimalloc_sys::{
    mi_collect, mi_option_get, mi_option_set, mi_option_t, mi_option_use_numa_nodes,
};
use rustix::thread::disable_transparent_huge_pages;
use tokio::time::Instant;

/// The allocator's option `purge_delay`, which stands before this one and has no name in the bindings.
const PURGE_DELAY: mi_option_t = mi_option_use_numa_nodes - 1;
/// How long the allocator keeps freed memory by default, in milliseconds: longer than a configuration takes to load, so that all
/// it was read from would stay.
const LONG: c_long = 1000;
/// How long it keeps freed memory here. At once would tear the pages of 2 MiB.
const SHORT: c_long = 10;

/// Has freed memory given back soon, unless the environment says otherwise (`MIMALLOC_PURGE_DELAY`).
#[expect(unsafe_code, reason = "the bindings have no safe form of this")]
pub(super) fn give_memory_back_soon() {
    // SAFETY: there is no other thread yet; both only read and write an integer of the allocator. If the number were that of
    // another option, its value would have to be that of this one's default to be changed.
    unsafe {
        if mi_option_get(PURGE_DELAY) == LONG {
            mi_option_set(PURGE_DELAY, SHORT);
        }
    }
}

/// From so many names on tables lie on pages of 2 MiB. There they save a query some nanoseconds, for finding pages of 4 KiB takes
/// longer the more there are. Below nothing can be measured of that, and each such page is held as a whole for whatever is left
/// in it: with a thousand names twice the memory, and with eight hundred thousand monitors a third more.
const MANY_NAMES: usize = 250_000;

/// Says on what pages the tables for so many names lie, before they are built; unless the environment says otherwise
/// (`MIMALLOC_ALLOW_THP`). Names that come from Kubernetes are not known then, and do not count.
pub fn lay_out(names: usize) {
    if std::env::var_os("MIMALLOC_ALLOW_THP").is_none() {
        LARGE.store(names >= MANY_NAMES, Ordering::Relaxed);
        // A kernel that knows no such pages does not know this either.
        let _ = disable_transparent_huge_pages(names < MANY_NAMES);
    }
}

/// Tables lie on pages of 2 MiB: tidying would tear them.
static LARGE: AtomicBool = AtomicBool::new(false);

/// From tidying to tidying of one thread at least.
const TIDY_EVERY: Duration = Duration::from_secs(10);

/// Gives back what a thread allocated and others freed, which otherwise stays until this thread allocates again: what eighty
/// thousand first probes leave behind is as much as all that is known of them. For threads that are about to wait; does nothing
/// but once in a while, and nothing where tables lie on large pages.
pub(super) fn tidy() {
    if LARGE.load(Ordering::Relaxed) {
        return;
    }
    thread_local! {
        static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
    }
    LAST.with(|last| {
        if last.get().is_none_or(|at| at.elapsed() >= TIDY_EVERY) {
            last.set(Some(Instant::now()));
            #[expect(unsafe_code, reason = "the bindings have no safe form of this")]
            // SAFETY: gives back what is free already: blocks of this thread, and pages that are nobody's.
            unsafe {
                mi_collect(true);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_many_names_lie_on_large_pages() {
        for (names, is_off) in [(MANY_NAMES, false), (MANY_NAMES - 1, true), (0, true)] {
            lay_out(names);
            let found = rustix::thread::transparent_huge_pages_are_disabled();
            assert_eq!(found.unwrap(), is_off, "{names}");
        }
    }

    /// A new version of the allocator may number its options in another way.
    #[test]
    fn freed_memory_is_given_back_soon() {
        give_memory_back_soon();
        #[expect(unsafe_code, reason = "the bindings have no safe form of this")]
        // SAFETY: reads an integer of the allocator.
        let delay = unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(delay, SHORT);
    }
}
