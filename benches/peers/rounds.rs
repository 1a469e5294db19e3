//! Rounds: every server in turn is configured, started, asked, and ended; then all again.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::Options;
use crate::churn::{Backends, Counts, Reloads};
use crate::contestants::{CONTESTANTS, Contestant, Kind, Setting};
use crate::server::{INTERRUPTED, Launch, Server, free_address, go_on};
use crate::wire::generator::{Check, Pace, Plan, load};
use crate::wire::queries::packet;
use crate::wire::threads::schedule;
use crate::world::{Questions, ZONE, label};

/// How Meridian's UDP threads are named.
const WORKERS: &str = "udp-";

/// How a server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Load {
    /// As fast as it answers
    Saturated,
    /// At a fixed rate
    Rate,
    /// Meridian alone: as fast as it answers, while health flips, reloads and publishes go on
    Churn,
}

/// One measurement. Times are of all the server's threads unless said otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// Nanoseconds of processor a query.
    pub(crate) cost: f64,
    /// Of that in user and in system mode, as the kernel's ticks say.
    pub(crate) user: f64,
    pub(crate) system: f64,
    /// Nanoseconds a query of Meridian's UDP workers alone.
    pub(crate) workers: f64,
    /// Share of its core that it used, %.
    pub(crate) busy: f64,
    /// Share of the time, %, that others kept its threads from its core, or the generator from ours.
    pub(crate) disturbed: f64,
    /// Replies a second.
    pub(crate) rate: f64,
    /// Queries without a reply, %.
    pub(crate) loss: f64,
    /// Microseconds that half, 99 % and 99.9 % of the replies took at most.
    pub(crate) latency_us: [f64; 3],
    /// Replies looked at, those with a wrong answer, and those without any.
    pub(crate) judged: u64,
    pub(crate) wrong: u64,
    pub(crate) refused: u64,
    /// What went on meanwhile, under [`Load::Churn`].
    pub(crate) counts: Counts,
    /// And for how long.
    pub(crate) counted: Duration,
}

/// All that is known of one server.
pub(crate) struct Results {
    pub(crate) contestant: Contestant,
    pub(crate) program: PathBuf,
    pub(crate) version: String,
    /// By load.
    pub(crate) samples: Vec<(Load, Sample)>,
    /// Milliseconds from the start to the first answer, and MiB after the load, of each round.
    pub(crate) started_ms: Vec<f64>,
    pub(crate) memory_mib: Vec<f64>,
    /// Why it is not asked any more.
    pub(crate) failure: Option<String>,
}

impl Results {
    /// Gives the measurements under one load.
    pub(crate) fn under(&self, load: Load) -> Vec<&Sample> {
        let all = self.samples.iter();
        all.filter(|(under, _)| *under == load)
            .map(|(_, sample)| sample)
            .collect()
    }
}

/// What all rounds share.
pub(crate) struct Bench<'a> {
    pub(crate) options: &'a Options,
    pub(crate) folder: &'a Path,
    pub(crate) database: &'a Path,
    pub(crate) questions: &'a mut Questions,
}

impl Bench<'_> {
    /// Runs all rounds. A server that fails is left out from then on; only an interruption ends it all.
    pub(crate) fn run(&mut self, all: &mut [Results]) -> anyhow::Result<()> {
        for round in 0..self.options.rounds {
            let count = all.len();
            for turn in 0..count {
                // Another one first in each round, so that none always follows the same.
                let results = &mut all[(turn + round) % count];
                if results.failure.is_some() {
                    continue;
                }
                eprintln!("round {}: {}", round + 1, results.contestant.name);
                let outcome = self.visit(results);
                go_on()?;
                if let Err(error) = outcome {
                    eprintln!("{}: {error:#}", results.contestant.name);
                    results.failure = Some(format!("{error:#}"));
                }
            }
        }
        Ok(())
    }

    /// Measures one server once, under each load.
    fn visit(&mut self, results: &mut Results) -> anyhow::Result<()> {
        let contestant = results.contestant;
        let address = free_address()?;
        let folder = self.folder.join(contestant.name);
        std::fs::create_dir_all(&folder)?;
        let arguments = (contestant.configure)(&self.setting(&folder, address))?;
        let log = folder.join("log");
        let query = first_query();
        let launch = Launch {
            program: &results.program,
            arguments: &arguments,
            address,
            log: log.clone(),
            kind: contestant.kind,
            query: &query,
            limit: Duration::from_secs(self.options.start_limit),
        };
        let mut server = Server::start(&launch)?;
        results.started_ms.push(server.started.as_secs_f64() * 1e3);
        for load in self.options.loads() {
            if load != Load::Churn {
                let sample = self.measure(&mut server, (contestant.kind, address), load);
                server.check(&log)?;
                results.samples.push((load, sample?));
            }
        }
        results.memory_mib.push(server.memory_mib());
        drop(server);
        if contestant.name == "meridian" && self.options.loads().contains(&Load::Churn) {
            let sample = self.churn(&launch).context("churn")?;
            results.samples.push((Load::Churn, sample));
        }
        Ok(())
    }

    /// Measures Meridian while everything changes.
    fn churn(&mut self, plain: &Launch<'_>) -> anyhow::Result<Sample> {
        let backends = Backends::start()?;
        let folder = self.folder.join("churn");
        std::fs::create_dir_all(&folder)?;
        let admin = free_address()?;
        let address = free_address()?;
        let arguments = backends.configure(&self.setting(&folder, address), admin)?;
        let launch = Launch {
            arguments: &arguments,
            address,
            log: folder.join("log"),
            ..*plain
        };
        let mut server = Server::start(&launch)?;
        let (before, begun) = (Counts::read(admin)?, Instant::now());
        // Dropped before the server that it signals.
        let reloads = Reloads::start(folder, server.id())?;
        let sample = self.measure(&mut server, (Kind::Geo, launch.address), Load::Churn);
        server.check(&launch.log)?;
        let counts = Counts::read(admin)?.since(before);
        let counted = begun.elapsed();
        drop(reloads);
        Ok(Sample {
            counts,
            counted,
            ..sample?
        })
    }

    /// Gives what a configuration is written from.
    fn setting<'s>(&'s self, folder: &'s Path, address: SocketAddr) -> Setting<'s> {
        Setting {
            names: self.options.names,
            folder,
            address,
            database: self.database,
        }
    }

    /// Asks a running server for a while, after a warm-up of a quarter of that.
    fn measure(
        &mut self,
        server: &mut Server,
        (kind, address): (Kind, SocketAddr),
        under: Load,
    ) -> anyhow::Result<Sample> {
        let judge = self.questions.judge();
        let span = self.options.span();
        let pace = match under {
            Load::Rate => Pace::Rate(self.options.rate),
            Load::Saturated | Load::Churn => Pace::Saturated,
        };
        let mut plan = Plan {
            address,
            pace,
            span: span / 4,
            check: match kind {
                Kind::Echo => Check::Nothing,
                Kind::Static => Check::Answered,
                Kind::Geo => Check::Judged(&judge),
            },
            stop: &INTERRUPTED,
        };
        load(&plan, &mut self.questions.queries);
        plan.span = match under {
            // Long enough for a reload, which takes about as long as a start with a core of its own.
            Load::Churn => span.max(server.started * 4),
            _ => span,
        };
        let (before, ours, begun) = (server.usage(), own_wait(), Instant::now());
        let tally = load(&plan, &mut self.questions.queries);
        let (elapsed, after) = (begun.elapsed(), server.usage());
        let waited = after.waited_since(&before).max(own_wait() - ours);
        go_on()?;
        anyhow::ensure!(
            !tally.silent && tally.replies > 0,
            "it fell silent under load"
        );
        let replies = tally.replies as f64;
        let (user, system) = after.modes_since(&before);
        let whole = after.run_time_since(&before, "") as f64;
        Ok(Sample {
            cost: whole / replies,
            user: user as f64 / replies,
            system: system as f64 / replies,
            workers: after.run_time_since(&before, WORKERS) as f64 / replies,
            busy: whole / elapsed.as_nanos() as f64 * 100.0,
            disturbed: waited as f64 / elapsed.as_nanos() as f64 * 100.0,
            rate: replies / plan.span.as_secs_f64(),
            loss: tally.lost as f64 / tally.sent.max(1) as f64 * 100.0,
            latency_us: [0.5, 0.99, 0.999].map(|share| tally.latency_us(share)),
            judged: tally.judged,
            wrong: tally.wrong,
            refused: tally.refused,
            counts: Counts::default(),
            counted: Duration::ZERO,
        })
    }
}

/// Gives the nanoseconds that this thread, the generator, was kept from its core so far.
fn own_wait() -> u64 {
    let thread = libc::pid_t::try_from(std::process::id());
    // The main thread has the id of the process.
    let schedule = thread.ok().and_then(schedule);
    schedule.map_or(0, |(_, waited)| waited)
}

/// Makes the query that a server must answer to count as started.
fn first_query() -> Vec<u8> {
    let name = format!("{}.{ZONE}", label(0)).parse().expect("a good name");
    packet(&name, 1, [8, 8, 8, 0].into())
}

/// Finds the servers that were chosen, or all; those that are not on this machine come second.
pub(crate) fn find(options: &Options) -> anyhow::Result<(Vec<Results>, Vec<&'static str>)> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for contestant in CONTESTANTS {
        if !options.wants(contestant.name) {
            continue;
        }
        let (program, version) = match contestant.program {
            None => (options.own_program(contestant.name)?, String::new()),
            Some(program) => match program.find() {
                Some(path) => {
                    let version = program.version(&path);
                    (path, version)
                }
                None => {
                    missing.push(program.name);
                    continue;
                }
            },
        };
        found.push(Results {
            contestant,
            program,
            version,
            samples: Vec::new(),
            started_ms: Vec::new(),
            memory_mib: Vec::new(),
            failure: None,
        });
    }
    Ok((found, missing))
}
