//! Threads of any process: their names, their processor time, their core.

use std::mem::zeroed;

/// Lists the threads of a process with their names; none when it has ended.
pub(crate) fn threads(process: u32) -> Vec<(i32, String)> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{process}/task")) else {
        return Vec::new();
    };
    let read = |task: std::fs::DirEntry| {
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        let id = task.file_name().to_str()?.parse().ok()?;
        Some((id, name.trim_end().to_owned()))
    };
    tasks.filter_map(|task| task.ok().and_then(read)).collect()
}

/// Gives the nanoseconds that a thread ran; `None` when it has ended.
pub(crate) fn run_time(thread: i32) -> Option<u64> {
    schedule(thread).map(|(ran, _)| ran)
}

/// Gives the nanoseconds that a thread ran, and those that it could have run but others had its core; `None` when it has
/// ended.
pub(crate) fn schedule(thread: i32) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{thread}/schedstat")).ok()?;
    let mut fields = text.split_whitespace();
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some((next()?, next()?))
}

/// Pins a thread (0: this one) to a core, where there is such a core.
pub(crate) fn pin(thread: i32, core: usize) {
    // SAFETY: a zeroed set is empty, and the kernel reads it at its true length.
    unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(thread, size_of_val(&set), &raw const set);
    }
}
