//! A running server: started on its core, watched, and ended with all that it started.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::contestants::Kind;
use crate::wire::threads::{pin, schedule, threads};

/// The core of the server, and that of everything else.
pub(crate) const SERVER_CORE: usize = 0;
pub(crate) const OUR_CORE: usize = 1;
/// How long a server may take to end before it is killed.
const END: Duration = Duration::from_secs(10);
/// Lines of its log shown when a server does not start.
const LAST_LINES: usize = 8;

/// Set by Ctrl-C and SIGTERM: everything comes to an orderly end.
pub(crate) static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Notes the signal; the loops look at it.
extern "C" fn interrupt(_signal: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Listens for Ctrl-C and SIGTERM.
pub(crate) fn catch_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler only stores to an atomic, which is allowed in a handler.
        unsafe {
            libc::signal(signal, interrupt as *const () as libc::sighandler_t);
        }
    }
}

/// Fails after Ctrl-C.
pub(crate) fn go_on() -> anyhow::Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    Ok(())
}

/// Finds a port of 127.0.0.1 that is free for both UDP and TCP.
pub(crate) fn free_address() -> anyhow::Result<SocketAddr> {
    for _ in 0..100 {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = tcp.local_addr()?;
        if UdpSocket::bind(address).is_ok() {
            return Ok(address);
        }
    }
    bail!("no port of 127.0.0.1 is free for UDP and TCP")
}

/// What to start.
pub(crate) struct Launch<'a> {
    pub(crate) program: &'a Path,
    pub(crate) arguments: &'a [String],
    pub(crate) address: SocketAddr,
    /// Where its output goes.
    pub(crate) log: PathBuf,
    pub(crate) kind: Kind,
    /// A query that it must answer.
    pub(crate) query: &'a [u8],
    /// How long it may take until then.
    pub(crate) limit: Duration,
}

/// A server that answers.
pub(crate) struct Server {
    process: Process,
    /// From its start to its first answer.
    pub(crate) started: Duration,
}

impl Server {
    /// Starts it on its core and waits for the first answer.
    pub(crate) fn start(launch: &Launch<'_>) -> anyhow::Result<Self> {
        let mut process = Process::spawn(launch)?;
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_read_timeout(Some(Duration::from_millis(20)))?;
        socket.connect(launch.address)?;
        let mut reply = [0; 1500];
        loop {
            go_on()?;
            if let Some(status) = process.child.try_wait()? {
                bail!("it ended with {status}{}", last_lines(&launch.log));
            }
            let elapsed = process.begun.elapsed();
            if elapsed > launch.limit {
                let log = last_lines(&launch.log);
                bail!("no answer within {:?}{log}", launch.limit);
            }
            // Both may fail until it listens.
            let octets = socket
                .send(launch.query)
                .and_then(|_| socket.recv(&mut reply));
            match octets {
                Ok(octets) if answers(&reply[..octets], launch.kind) => break,
                // It listens and is not ready, or does not listen yet.
                _ => std::thread::sleep(Duration::from_millis(2)),
            }
        }
        let server = Self {
            started: process.begun.elapsed(),
            process,
        };
        server.pin();
        Ok(server)
    }

    /// Gives its process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.child.id()
    }

    /// Pins all its threads, should some have chosen a core themselves.
    fn pin(&self) {
        for thread in self.processes().into_iter().flat_map(threads) {
            pin(thread.0, SERVER_CORE);
        }
    }

    /// Lists its process and those that it started.
    fn processes(&self) -> Vec<u32> {
        let mut all = vec![self.id()];
        let mut at = 0;
        while let Some(&process) = all.get(at) {
            for (thread, _) in threads(process) {
                let file = format!("/proc/{process}/task/{thread}/children");
                let children = fs::read_to_string(file).unwrap_or_default();
                all.extend(
                    children
                        .split_whitespace()
                        .filter_map(|id| id.parse::<u32>().ok()),
                );
            }
            at += 1;
        }
        all
    }

    /// Reads what it has used so far.
    pub(crate) fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        for process in self.processes() {
            for (thread, name) in threads(process) {
                if let Some((ran, waited)) = schedule(thread) {
                    usage.by_thread.insert(thread, (name, ran));
                    usage.waited += waited;
                }
            }
            // After the name in brackets: utime and stime are fields 14 and 15 of the line (proc(5)).
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
            let ticks = |field: usize| {
                fields
                    .split_whitespace()
                    .nth(field - 3)?
                    .parse::<u64>()
                    .ok()
            };
            usage.user_ticks += ticks(14).unwrap_or(0);
            usage.system_ticks += ticks(15).unwrap_or(0);
        }
        usage
    }

    /// Gives the memory that it occupies, MiB.
    pub(crate) fn memory_mib(&self) -> f64 {
        let of = |process| {
            let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("VmRSS:"))?;
            line.split_whitespace().next()?.parse::<f64>().ok()
        };
        self.processes().into_iter().filter_map(of).sum::<f64>() / 1024.0
    }

    /// Tells why it is gone, when it is.
    pub(crate) fn check(&mut self, log: &Path) -> anyhow::Result<()> {
        match self.process.child.try_wait()? {
            Some(status) => bail!("it ended under load with {status}{}", last_lines(log)),
            None => Ok(()),
        }
    }
}

/// Processor time used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    /// Name and nanoseconds, by thread.
    by_thread: BTreeMap<i32, (String, u64)>,
    /// Nanoseconds that threads could have run but did not.
    waited: u64,
    user_ticks: u64,
    system_ticks: u64,
}

impl Usage {
    /// Gives the nanoseconds that threads whose name begins so ran since an earlier reading.
    pub(crate) fn run_time_since(&self, earlier: &Self, prefix: &str) -> u64 {
        let threads = self.by_thread.iter();
        let named = threads.filter(|(_, (name, _))| name.starts_with(prefix));
        named
            .map(|(thread, (_, time))| {
                let before = earlier.by_thread.get(thread).map_or(0, |(_, time)| *time);
                time.saturating_sub(before)
            })
            .sum()
    }

    /// Gives the nanoseconds that its threads waited for their core since an earlier reading.
    pub(crate) fn waited_since(&self, earlier: &Self) -> u64 {
        self.waited.saturating_sub(earlier.waited)
    }

    /// Gives the nanoseconds in user and in system mode since an earlier reading; the kernel counts in ticks.
    pub(crate) fn modes_since(&self, earlier: &Self) -> (u64, u64) {
        // SAFETY: no pointers; the name is a constant.
        let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        let nanos = 1_000_000_000 / u64::try_from(per_second).unwrap_or(100).max(1);
        (
            self.user_ticks.saturating_sub(earlier.user_ticks) * nanos,
            self.system_ticks.saturating_sub(earlier.system_ticks) * nanos,
        )
    }
}

/// A child in a process group of its own. It ends with its handle, and with us.
struct Process {
    child: Child,
    begun: Instant,
}

impl Process {
    /// Starts it on the server's core.
    fn spawn(launch: &Launch<'_>) -> anyhow::Result<Self> {
        let log = File::create(&launch.log)?;
        let mut command = Command::new(launch.program);
        command
            .args(launch.arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0);
        // SAFETY: between fork and exec only prctl is called, which is async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM as libc::c_ulong) {
                    0 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                }
            });
        }
        // A child begins on the core of the thread that starts it.
        pin(0, SERVER_CORE);
        let begun = Instant::now();
        let child = command.spawn();
        pin(0, OUR_CORE);
        let child = child.with_context(|| format!("cannot start {}", launch.program.display()))?;
        Ok(Self { child, begun })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Ok(group) = libc::pid_t::try_from(self.child.id()) else {
            return;
        };
        let begun = Instant::now();
        if matches!(self.child.try_wait(), Ok(None)) {
            // SAFETY: no pointers; the child is not reaped, so the id is still its own.
            unsafe { libc::kill(group, libc::SIGTERM) };
            while matches!(self.child.try_wait(), Ok(None)) && begun.elapsed() < END {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        // What it left behind is in its group; none may be left, and then nothing is found.
        // SAFETY: no pointers.
        unsafe { libc::kill(-group, libc::SIGKILL) };
        let _ = self.child.wait();
    }
}

/// Tells whether a reply is an answer: of an echo everything is.
fn answers(reply: &[u8], kind: Kind) -> bool {
    let good = |reply: &[u8]| reply[3] & 15 == 0 && reply[6..8] != [0, 0];
    reply.len() >= 12 && (kind == Kind::Echo || good(reply))
}

/// Gives the end of a log, to stand behind what went wrong.
fn last_lines(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(LAST_LINES);
    let shown = lines[from..].iter().map(|line| format!("\n    {line}"));
    match shown.collect::<String>() {
        none if none.is_empty() => "; it wrote nothing".to_owned(),
        some => format!("; the end of what it wrote:{some}"),
    }
}
