//! What every sample is made with: a time, and text that nobody should be able to put into a page.

/// A time.
pub(super) const TIME: &str = "2026-11-21T03:00:00Z";
/// Text that tries everything.
pub(super) const HOSTILE: &str = "\"><script>alert(1)</script><img src=x onerror=alert(1)>{{7*7}}\u{0}\u{1b}[31m\u{202e}' style='x";
