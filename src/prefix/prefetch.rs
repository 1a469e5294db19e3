//! Asks the processor to fetch a cache line early; a no-op where it has no such instruction.

/// Hints that `slice[at]` will be read soon. Out of range: nothing happens. Never faults, changes nothing one could observe.
#[inline]
pub fn prefetch<T>(slice: &[T], at: usize) {
    if let Some(item) = slice.get(at) {
        prefetch_pointer(std::ptr::from_ref(item));
    }
}

/// Hints that what a pointer points at will be read soon. Never faults, wherever it points; changes nothing one could observe.
#[inline]
#[expect(
    unsafe_code,
    reason = "the prefetch instruction has no safe form on stable Rust"
)]
pub fn prefetch_pointer<T>(pointer: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing architecturally and cannot fault, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(pointer.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = pointer;
}
