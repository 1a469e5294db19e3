//! Memory of one name, without and with monitors: `cargo bench --bench memory [-- NAMES [SECONDS]]`.
//!
//! The program itself serves names of four clusters, an A and an AAAA each. With monitors each of these addresses is one of its own
//! and has one of its own: the IPv4 half leads to a listener of this bench and comes up, the IPv6 half leads nowhere. Memory is
//! what the system holds for the program (`VmRSS`) when it has stood still for some time, less what it holds with one name.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::time::Instant;

/// The clusters and where they are.
const CLUSTERS: [(&str, &str); 4] = [("a", "DE"), ("b", "US"), ("c", "JP"), ("d", "BR")];
/// Names unless said otherwise.
const NAMES: usize = 100_000;
/// How long it stands still before it is measured, in seconds, unless said otherwise.
const STILL: u64 = 60;
/// How long all first probes may take.
const LIMIT: Duration = Duration::from_secs(600);

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn main() -> anyhow::Result<()> {
    let mut given = std::env::args().filter_map(|text| text.parse::<usize>().ok());
    let names = given.next().unwrap_or(NAMES);
    let still = given.next().map_or(STILL, |seconds| seconds as u64);
    let still = Duration::from_secs(still);
    let backend = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let port = backend.local_addr()?.port();
    std::thread::spawn(move || for _taken in backend.incoming() {});
    let one = settled(
        &Case {
            names: 1,
            port,
            is_monitored: false,
        },
        still,
    )?;
    println!("names     monitors   RSS MiB   KiB a name more than with one ({one:.0} MiB)");
    for is_monitored in [false, true] {
        let case = Case {
            names,
            port,
            is_monitored,
        };
        let mib = settled(&case, still)?;
        let each = (mib - one) * 1024.0 / names as f64;
        println!("{names:<9} {:<8}   {mib:>7.0}   {each:.2}", case.monitors());
    }
    Ok(())
}

/// What is served.
struct Case {
    names: usize,
    /// Where the listener is.
    port: u16,
    is_monitored: bool,
}

impl Case {
    fn monitors(&self) -> usize {
        if self.is_monitored {
            self.names * CLUSTERS.len() * 2
        } else {
            0
        }
    }

    /// Writes the configuration.
    fn configuration(&self, folder: &Path, admin: SocketAddr) -> String {
        let mut text = format!(
            "version: 1\nnode: {{name: n1, stateDirectory: {}}}\ndns: {{listen: ['127.0.0.1:0']}}\nadmin: {{listen: ['{admin}']}}\n\
             zones:\n  - name: svc.example.com\n    nameservers:\n      - {{name: ns1.svc.example.com, addresses: [192.0.2.53]}}\n\
             \x20     - {{name: ns2.svc.example.com, addresses: [198.51.100.53]}}\nclusters:\n",
            folder.join("state").display()
        );
        for (cluster, country) in CLUSTERS {
            let _ = writeln!(
                text,
                "  - {{name: {cluster}, location: {{country: {country}}}}}"
            );
        }
        text.push_str("services:\n");
        for name in 0..self.names {
            let _ = writeln!(
                text,
                "  - namespace: n\n    name: s{name}\n    hostnames: [s{name}.svc.example.com]"
            );
            if self.is_monitored {
                let _ = writeln!(
                    text,
                    "    monitor: {{tcp: {{port: {}}}, interval: 1h, timeout: 1s}}",
                    self.port
                );
            }
            text.push_str("    endpoints:\n");
            for (at, (cluster, _)) in CLUSTERS.iter().enumerate() {
                let [.., high, middle, low] = (name * CLUSTERS.len() + at).to_be_bytes();
                let _ = writeln!(
                    text,
                    "      - {{cluster: {cluster}, addresses: ['127.{}.{middle}.{low}', 'fd00::{high:x}:{middle:x}:{low:x}']}}",
                    high + 1
                );
            }
        }
        text
    }
}

/// A program that is killed at the end.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts it, waits until all first probes are over and then for `still`, and gives its memory, MiB.
fn settled(case: &Case, still: Duration) -> anyhow::Result<f64> {
    let folder = tempfile::tempdir()?;
    let admin = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    let file = folder.path().join("meridian.yaml");
    fs::write(&file, case.configuration(folder.path(), admin))?;
    let log = fs::File::create(folder.path().join("log"))?;
    let child = Command::new(env!("CARGO_BIN_EXE_meridian"))
        .args(["run", "--config"])
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()?;
    let mut program = Program(child);
    let begun = Instant::now();
    // Who has no way to the IPv6 half knows nothing of it: the IPv4 half tells.
    let wanted = case.monitors() / 2;
    while up(admin).is_none_or(|up| up < wanted) {
        if let Some(status) = program.0.try_wait()? {
            let log = fs::read_to_string(folder.path().join("log"))?;
            bail!("it ended with {status}: {log}");
        }
        if begun.elapsed() > LIMIT {
            bail!("not all of {wanted} monitors are up after {LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    std::thread::sleep(still);
    let status = fs::read_to_string(format!("/proc/{}/status", program.0.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: f64 = line
        .and_then(|line| line.split_whitespace().next())
        .context("no VmRSS")?
        .parse()?;
    Ok(kib / 1024.0)
}

/// Counts the monitors that are up; `None`: it does not answer yet.
fn up(admin: SocketAddr) -> Option<usize> {
    let mut stream = TcpStream::connect(admin).ok()?;
    let asked = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(asked.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let wanted = "meridian_health_monitors{verdict=\"up\"} ";
    let line = text.lines().find_map(|line| line.strip_prefix(wanted));
    line?.trim().parse().ok()
}
