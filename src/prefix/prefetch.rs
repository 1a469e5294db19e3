//! One function: asks the processor to fetch a cache line early; a no-op where it has no such instruction.

/// Hints that `slice[at]` will be read soon. Out of range: nothing happens. Never faults, changes nothing one could observe.
#[inline]
#[expect(
    unsafe_code,
    reason = "the prefetch instruction has no safe form on stable Rust"
)]
pub fn prefetch<T>(slice: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(item) = slice.get(at) {
        // SAFETY: a prefetch reads nothing architecturally and cannot fault; the pointer is of a live reference anyway.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
                std::ptr::from_ref(item).cast(),
            )
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, at);
}
