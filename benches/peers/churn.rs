//! Health flips, reloads and publishes while Meridian answers.
//!
//! Services beside those that are asked have an http monitor every 100 ms and endpoints on loopback addresses where we answer:
//! the first cluster's say 200 and 503 in turn. The configuration is swapped every second between two files that differ in the
//! TTL of these services and of one asked name in a hundred, and a SIGHUP says so.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::contestants::{Setting, meridian};
use crate::world::{CLUSTERS, ZONE};

/// Services whose first endpoint flips.
const FLAPPING: u8 = 8;
/// How long an endpoint stays up, and then down.
const HALF: Duration = Duration::from_millis(250);
/// Between two reloads.
const RELOAD: Duration = Duration::from_secs(1);

/// The clusters of the flapping services: HTTP servers on loopback addresses, one port.
pub(crate) struct Backends {
    port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The address of a flapping service in a cluster: its own in the first, one for all in the others.
fn address(cluster: usize, service: u8) -> Ipv4Addr {
    match cluster {
        0 => Ipv4Addr::new(127, 42, 1, service + 1),
        other => Ipv4Addr::new(127, 42, 2, other as u8 + 1),
    }
}

impl Backends {
    /// Starts all of them in one thread.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let first = TcpListener::bind((address(0, 0), 0)).context("cannot listen on 127.42.1.1")?;
        let port = first.local_addr()?.port();
        let mut flapping = vec![first];
        for service in 1..FLAPPING {
            flapping.push(TcpListener::bind((address(0, service), port))?);
        }
        let steady =
            (1..CLUSTERS.len()).map(|cluster| TcpListener::bind((address(cluster, 0), port)));
        let steady = steady.collect::<Result<Vec<_>, _>>()?;
        for listener in flapping.iter().chain(&steady) {
            listener.set_nonblocking(true)?;
        }
        let stop = Arc::<AtomicBool>::default();
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("backends".into());
        let thread = thread.spawn(move || {
            let begun = Instant::now();
            while !stopped.load(Ordering::Relaxed) {
                let halves = begun.elapsed().as_millis() / HALF.as_millis();
                for (number, listener) in flapping.iter().enumerate() {
                    // Half of them up, half of them down, at any time.
                    serve(listener, (halves + number as u128).is_multiple_of(2));
                }
                steady.iter().for_each(|listener| serve(listener, true));
                std::thread::sleep(Duration::from_millis(2));
            }
        })?;
        Ok(Self {
            port,
            stop,
            thread: Some(thread),
        })
    }

    /// Writes the two configurations and puts the first in force; gives Meridian's arguments.
    pub(crate) fn configure(
        &self,
        setting: &Setting<'_>,
        admin: SocketAddr,
    ) -> anyhow::Result<Vec<String>> {
        let keys = format!("admin: {{listen: [\"{admin}\"]}}\nprobes: {{perTarget: 20}}\n");
        let mut arguments = Vec::new();
        for (ttl, name) in [(20, "second.yaml"), (10, "first.yaml")] {
            arguments = meridian(setting, &keys, &self.services(ttl))?;
            let written = setting.folder.join("meridian.yaml");
            change_ttls(&written, ttl)?;
            std::fs::rename(&written, setting.folder.join(name))?;
        }
        put_in_force(setting.folder, "first.yaml")?;
        Ok(arguments)
    }

    /// Writes the flapping services.
    fn services(&self, ttl: u32) -> String {
        let mut out = String::new();
        for service in 0..FLAPPING {
            let _ = write!(
                out,
                "  - {{namespace: bench, name: flapping{service}, hostnames: [flapping{service}.{ZONE}], ttl: {ttl}, \
                 monitor: {{http: {{path: /, port: {}}}, interval: 100ms, timeout: 100ms, rise: 1, fall: 1}}, endpoints: [",
                self.port
            );
            for (index, cluster) in CLUSTERS.iter().enumerate() {
                let comma = if index == 0 { "" } else { ", " };
                let address = address(index, service);
                let _ = write!(
                    out,
                    "{comma}{{cluster: {}, addresses: [{address}]}}",
                    cluster.name
                );
            }
            out.push_str("]}\n");
        }
        out
    }
}

impl Drop for Backends {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It only ends with an error when it panicked, which was shown.
            let _ = thread.join();
        }
    }
}

/// Answers who waits at a listener.
fn serve(listener: &TcpListener, up: bool) {
    let code = if up {
        "200 OK"
    } else {
        "503 Service Unavailable"
    };
    let reply = format!("HTTP/1.1 {code}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    while let Ok((mut stream, _)) = listener.accept() {
        // The probe may go away at any point.
        let _ = stream.set_nonblocking(false);
        let _ = stream.set_read_timeout(Some(Duration::from_millis(50)));
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(reply.as_bytes());
    }
}

/// Gives one asked name in a hundred a TTL of its own.
fn change_ttls(file: &Path, ttl: u32) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(file)?;
    let mut out = String::with_capacity(text.len() + 64);
    for line in text.lines() {
        // Every hundredth ends in 00 by its number.
        if line.contains(&format!("00.{ZONE}], monitor: none")) {
            out.push_str(&line.replace("monitor: none", &format!("ttl: {ttl}, monitor: none")));
        } else {
            out.push_str(line);
        }
        out.push('\n');
    }
    Ok(std::fs::write(file, out)?)
}

/// Swaps the configuration in force for another file, at once and whole.
fn put_in_force(folder: &Path, name: &str) -> std::io::Result<()> {
    let next = folder.join("next.yaml");
    // None is left over but after an interruption.
    let _ = std::fs::remove_file(&next);
    std::fs::hard_link(folder.join(name), &next)?;
    std::fs::rename(next, folder.join("meridian.yaml"))
}

/// Swaps the configuration every second until dropped.
pub(crate) struct Reloads {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reloads {
    /// Begins.
    pub(crate) fn start(folder: PathBuf, process: u32) -> anyhow::Result<Self> {
        let stop = Arc::<AtomicBool>::default();
        let stopped = Arc::clone(&stop);
        let process = libc::pid_t::try_from(process)?;
        let thread = std::thread::Builder::new().name("reloads".into());
        let thread = thread.spawn(move || {
            let mut names = ["second.yaml", "first.yaml"].into_iter().cycle();
            let mut due = Instant::now();
            while !stopped.load(Ordering::Relaxed) {
                if Instant::now() >= due {
                    due += RELOAD;
                    let name = names.next().unwrap_or("first.yaml");
                    if put_in_force(&folder, name).is_ok() {
                        // SAFETY: no pointers. The server outlives this thread: its handle is dropped after ours.
                        unsafe { libc::kill(process, libc::SIGHUP) };
                    }
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        })?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Reloads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What Meridian has counted since its start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) flips: u64,
    pub(crate) reloads: u64,
    pub(crate) publishes: u64,
}

impl Counts {
    /// Asks for them.
    pub(crate) fn read(admin: SocketAddr) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(admin)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let count = |name: &str| {
            let value = text
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            value
                .and_then(|value| value.parse().ok())
                .with_context(|| format!("the metrics have no {name}"))
        };
        Ok(Self {
            flips: count("meridian_health_flips_total")?,
            reloads: count("meridian_config_reloads_total")?,
            publishes: count("meridian_snapshot_generation")?,
        })
    }

    /// Gives what came since an earlier reading.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            flips: self.flips - earlier.flips,
            reloads: self.reloads - earlier.reloads,
            publishes: self.publishes - earlier.publishes,
        }
    }
}
