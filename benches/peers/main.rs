//! Meridian beside its peers and beside the floor, from one command: `cargo bench --bench peers [-- OPTIONS SERVER…]`.
//!
//! Everything is made here, from the embedded data: names, clients, a configuration for each server that this machine has, an
//! MMDB file for those that read one. Every server has one UDP thread and the same map of continents to clusters, runs on core
//! 0, and is driven from core 1 over loopback; sampled answers are compared with the map. In each round every server is started
//! anew, asked, and ended; so a round is as long as the starts take.
//!
//! - `saturated`: 192 queries outstanding. Processor time a query of all its threads, as ratio to the bare echo (`floor`).
//! - `rate`: a fixed rate. Latency from the moment when a query was due.
//! - `churn`: Meridian, saturated, while health flips, reloads and publishes go on; beside its quiet figure.
//!
//! The peers are gdnsd, Knot DNS with mod-geoip, NSD (a static zone: no geo), PowerDNS with the geoip backend. What is not
//! installed is named and left out. Without `--bench` (as `cargo test --benches` runs it) one short round of `floor` and
//! `meridian` shows that it works.
#![expect(
    unsafe_code,
    reason = "the bare loop, the generator, pinning and signals are raw system calls on purpose"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a bench prints; its figures are small"
)]
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

mod churn;
mod contestants;
mod database;
mod report;
mod rounds;
mod server;
mod world;

#[path = "../../tests/fixtures/mmdb_writer.rs"]
mod mmdb_writer;
#[path = "../wire/mod.rs"]
mod wire;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Parser;

use crate::contestants::CONTESTANTS;
use crate::database::Networks;
use crate::report::Occasion;
use crate::rounds::{Bench, Load, Results};
use crate::server::OUR_CORE;
use crate::wire::threads::pin;
use crate::world::{MAX_NAMES, Questions};

/// Meridian beside its peers and a bare UDP echo
#[derive(Debug, Parser)]
#[command(name = "cargo bench --bench peers --")]
struct Options {
    /// Names that every server serves
    #[arg(long, default_value = "1000")]
    names: usize,
    /// Times that every server is started and asked
    #[arg(long, default_value = "3")]
    rounds: usize,
    /// How long each load lasts, after a warm-up of a quarter of that
    #[arg(long, default_value = "2")]
    seconds: f64,
    /// Queries a second of the load `rate`
    #[arg(long, default_value = "20000")]
    rate: f64,
    /// Different queries, asked in turn
    #[arg(long, default_value = "100000")]
    queries: usize,
    /// Only these loads
    #[arg(long, value_delimiter = ',')]
    load: Vec<Load>,
    /// Another Meridian than the one just built
    #[arg(long, value_name = "PROGRAM")]
    meridian: Option<PathBuf>,
    /// Seconds that a server may take to its first answer
    #[arg(long, default_value = "120")]
    start_limit: u64,
    /// Given by cargo
    #[arg(long, hide = true)]
    bench: bool,
    /// Be the echo, on this address
    #[arg(long, hide = true)]
    echo: Option<SocketAddr>,
    /// Only these: floor, meridian, gdnsd, knot, nsd, pdns
    servers: Vec<String>,
}

impl Options {
    /// Reads the command line.
    fn read() -> anyhow::Result<Self> {
        let mut options = Self::parse();
        if !options.bench {
            options.shorten();
        }
        for server in &options.servers {
            let known = CONTESTANTS.map(|contestant| contestant.name);
            let names = known.join(", ");
            ensure!(
                known.contains(&server.as_str()),
                "`{server}` is none of {names}"
            );
        }
        ensure!(
            (1..=MAX_NAMES).contains(&options.names),
            "--names is between 1 and {MAX_NAMES}"
        );
        ensure!(options.rounds > 0, "--rounds is at least 1");
        ensure!(options.queries >= 64, "--queries is at least 64");
        ensure!(
            (0.01..=3600.0).contains(&options.seconds),
            "--seconds is between 0.01 and 3600"
        );
        ensure!(
            (1.0..=1e7).contains(&options.rate),
            "--rate is between 1 and 10000000"
        );
        Ok(options)
    }

    /// Makes it one very short round of our own two.
    fn shorten(&mut self) {
        (self.rounds, self.seconds, self.queries) = (1, 0.05, 10_000);
        self.servers = ["floor", "meridian"].map(String::from).into();
        self.load = vec![Load::Saturated, Load::Rate];
    }

    /// Tells whether a server was chosen.
    fn wants(&self, server: &str) -> bool {
        self.servers.is_empty() || self.servers.iter().any(|chosen| chosen == server)
    }

    /// Gives the loads in order.
    fn loads(&self) -> Vec<Load> {
        let all = [Load::Saturated, Load::Rate, Load::Churn];
        let chosen = |load: &Load| self.load.is_empty() || self.load.contains(load);
        all.into_iter().filter(chosen).collect()
    }

    /// Gives how long each load lasts.
    fn span(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// Gives the program of a server that comes with us.
    fn own_program(&self, server: &str) -> anyhow::Result<PathBuf> {
        if server == "floor" {
            return Ok(std::env::current_exe()?);
        }
        let built = || PathBuf::from(env!("CARGO_BIN_EXE_meridian"));
        let program = self.meridian.clone().unwrap_or_else(built);
        ensure!(
            program.is_file(),
            "there is no program {}",
            program.display()
        );
        Ok(program)
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Does all of it; fails too when Meridian gave a wrong answer, or was left out.
fn run() -> anyhow::Result<ExitCode> {
    let options = Options::read()?;
    if let Some(address) = options.echo {
        wire::echo::echo(&wire::echo::bind(address), &AtomicBool::new(false));
    }
    let cores = std::thread::available_parallelism().context("cannot count the cores")?;
    if cores.get() < 2 {
        bail!("two cores are needed: one for the server, one for the generator");
    }
    server::catch_signals();
    pin(0, OUR_CORE);
    let (mut all, missing) = rounds::find(&options)?;
    let networks = Networks::embedded()?;
    let folder = tempfile::Builder::new()
        .prefix("meridian-peers-")
        .tempdir()?;
    let database = folder.path().join("world.mmdb");
    if all.iter().any(|results| results.contestant.needs_database) {
        networks.write_mmdb(&database)?;
    }
    let mut questions = Questions::draw(options.queries, options.names, &networks);
    drop(networks);
    let stolen = Stolen::read();
    let mut bench = Bench {
        options: &options,
        folder: folder.path(),
        database: &database,
        questions: &mut questions,
    };
    bench.run(&mut all)?;
    let occasion = Occasion {
        options: &options,
        missing: &missing,
        stolen: stolen.share(),
    };
    report::print(&occasion, &all);
    folder.close().context("cannot remove the scratch folder")?;
    let bad = |results: &Results| {
        let wrong = |(_, sample): &(_, rounds::Sample)| sample.wrong + sample.refused > 0;
        results.contestant.name == "meridian"
            && (results.failure.is_some() || results.samples.iter().any(wrong))
    };
    Ok(if all.iter().any(bad) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// What the hypervisor had taken at some moment.
struct Stolen {
    ticks: u64,
    of: u64,
}

impl Stolen {
    /// Reads the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal (proc(5)).
    fn read() -> Self {
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        let ticks = line
            .split_whitespace()
            .filter_map(|field| field.parse::<u64>().ok());
        let ticks: Vec<u64> = ticks.take(8).collect();
        Self {
            ticks: ticks.get(7).copied().unwrap_or(0),
            of: ticks.iter().sum(),
        }
    }

    /// Gives the share since then, %.
    fn share(&self) -> f64 {
        let now = Self::read();
        let all = now.of.saturating_sub(self.of).max(1);
        now.ticks.saturating_sub(self.ticks) as f64 / all as f64 * 100.0
    }
}
