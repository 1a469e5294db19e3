//! The tables, in Markdown.

use std::time::{Duration, SystemTime};

use crate::Options;
use crate::churn::Counts;
use crate::contestants::Kind;
use crate::rounds::{Load, Results, Sample};

/// Below this share of its core, %, a server was waiting for the generator, and its figure says little.
const BUSY: f64 = 90.0;

/// Above this share of the time, %, other programs disturbed a measurement.
const DISTURBED: f64 = 3.0;

/// What stands around the tables.
pub(crate) struct Occasion<'a> {
    pub(crate) options: &'a Options,
    pub(crate) missing: &'a [&'static str],
    /// Share of the processor's time that the hypervisor gave to others, %.
    pub(crate) stolen: f64,
}

/// Prints everything.
pub(crate) fn print(occasion: &Occasion<'_>, all: &[Results]) {
    heading(occasion, all);
    for load in [Load::Saturated, Load::Rate] {
        if all.iter().any(|results| !results.under(load).is_empty()) {
            table(load, occasion.options, all);
        }
    }
    churn(all);
    starts(all);
    for results in all {
        if let Some(failure) = &results.failure {
            println!("\n{} was left out: {failure}", results.contestant.name);
        }
    }
}

/// Says where, when and how.
fn heading(occasion: &Occasion<'_>, all: &[Results]) {
    let options = occasion.options;
    println!("\n### {} names, {}\n", grouped(options.names), today());
    println!("`{}`\n", command());
    println!(
        "{}. Rounds: {}, each load {} s; medians [least-most]; the server on core 0, the generator on core 1, over loopback; a random ECS \
         /24 a query, 80 % A, 20 % AAAA. The hypervisor took {:.1} % meanwhile.",
        machine(),
        options.rounds,
        options.seconds,
        occasion.stolen
    );
    let versions: Vec<&str> = all
        .iter()
        .map(|results| results.version.as_str())
        .filter(|version| !version.is_empty())
        .collect();
    if !versions.is_empty() {
        println!(
            "Beside Meridian {}: {}.",
            env!("CARGO_PKG_VERSION"),
            versions.join("; ")
        );
    }
    if !occasion.missing.is_empty() {
        println!(
            "Not found on this machine: {}.",
            occasion.missing.join(", ")
        );
    }
}

/// Prints the table of a load.
fn table(load: Load, options: &Options, all: &[Results]) {
    match load {
        Load::Rate => println!(
            "\n`rate`: {} queries/s; latency from the moment a query was due\n",
            grouped(options.rate as usize)
        ),
        _ => println!("\n`saturated`: 192 queries outstanding\n"),
    }
    println!(
        "| server | CPU ns a query | user/sys | x floor | queries/s | core busy % | loss % | p50 us | p99 us | p99.9 us | wrong |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let floor = all
        .iter()
        .find(|results| results.contestant.kind == Kind::Echo)
        .and_then(|results| median(&results.under(load), |sample| sample.cost));
    let (mut idle, mut disturbed) = (Vec::new(), Vec::new());
    for results in all {
        let samples = results.under(load);
        let of = |value: fn(&Sample) -> f64| median(&samples, value).unwrap_or(f64::NAN);
        if samples.is_empty() {
            continue;
        }
        if of(|sample| sample.busy) < BUSY {
            idle.push(results.contestant.name);
        }
        if of(|sample| sample.disturbed) > DISTURBED {
            let share = of(|sample| sample.disturbed);
            disturbed.push(format!("{} {share:.0} %", results.contestant.name));
        }
        println!(
            "| {} | {:.0} {} | {:.0}/{:.0} | {} | {:.0} | {:.0} | {:.3} | {:.0} | {:.0} | {:.0} | {} |",
            results.contestant.title,
            of(|sample| sample.cost),
            range(&samples, |sample| sample.cost),
            of(|sample| sample.user),
            of(|sample| sample.system),
            floor.map_or_else(
                || "-".to_owned(),
                |floor| format!("{:.2}", of(|sample| sample.cost) / floor)
            ),
            of(|sample| sample.rate),
            of(|sample| sample.busy),
            of(|sample| sample.loss),
            of(|sample| sample.latency_us[0]),
            of(|sample| sample.latency_us[1]),
            of(|sample| sample.latency_us[2]),
            wrong(results.contestant.kind, &samples),
        );
    }
    if load == Load::Saturated && !idle.is_empty() {
        let idle = idle.join(", ");
        println!("\nNot saturated, so that these figures say little: {idle}.");
    }
    if !disturbed.is_empty() {
        let disturbed = disturbed.join(", ");
        println!(
            "\nOther programs had the core of server or generator for a share of the time: {disturbed}."
        );
    }
}

/// Prints the table of Meridian under change beside its quiet figure.
fn churn(all: &[Results]) {
    let Some(results) = all
        .iter()
        .find(|results| !results.under(Load::Churn).is_empty())
    else {
        return;
    };
    println!("\n`churn`: Meridian, saturated, while health flips, reloads and publishes go on\n");
    println!(
        "| load | UDP workers, CPU ns a query | x quiet | whole process, CPU ns a query | x quiet | queries/s | loss % | p50 us | p99 us | wrong | \
         flips/s | reloads/s | publishes/s |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let quiet = results.under(Load::Saturated);
    for (name, samples) in [("quiet", &quiet), ("churn", &results.under(Load::Churn))] {
        if samples.is_empty() {
            continue;
        }
        let of = |value: fn(&Sample) -> f64| median(samples, value).unwrap_or(f64::NAN);
        let ratio = |value: fn(&Sample) -> f64| {
            median(&quiet, value).map_or_else(
                || "-".to_owned(),
                |quiet| format!("{:.2}", of(value) / quiet),
            )
        };
        println!(
            "| {name} | {:.0} {} | {} | {:.0} {} | {} | {:.0} | {:.3} | {:.0} | {:.0} | {} | {} | {} | {} |",
            of(|sample| sample.workers),
            range(samples, |sample| sample.workers),
            ratio(|sample| sample.workers),
            of(|sample| sample.cost),
            range(samples, |sample| sample.cost),
            ratio(|sample| sample.cost),
            of(|sample| sample.rate),
            of(|sample| sample.loss),
            of(|sample| sample.latency_us[0]),
            of(|sample| sample.latency_us[1]),
            wrong(Kind::Geo, samples),
            per_second(samples, |counts| counts.flips),
            per_second(samples, |counts| counts.reloads),
            per_second(samples, |counts| counts.publishes),
        );
    }
}

/// Shows how often something happened each second, or nothing where nothing was counted.
fn per_second(samples: &[&Sample], value: fn(Counts) -> u64) -> String {
    let seconds: f64 = samples
        .iter()
        .map(|sample| sample.counted.as_secs_f64())
        .sum();
    let count: u64 = samples.iter().map(|sample| value(sample.counts)).sum();
    match seconds > 0.0 {
        true => format!("{:.1}", count as f64 / seconds),
        false => "-".to_owned(),
    }
}

/// Prints how long each takes to start, and what it occupies.
fn starts(all: &[Results]) {
    println!("\n| server | start to first answer, s | RSS MiB under load |\n|---|---|---|");
    for results in all {
        let (started, memory) = (middle(&results.started_ms), middle(&results.memory_mib));
        if let (Some(started), Some(memory)) = (started, memory) {
            println!(
                "| {} | {:.3} | {memory:.0} |",
                results.contestant.title,
                started / 1e3
            );
        }
    }
}

/// Gives a median over rounds.
fn median(samples: &[&Sample], value: impl Fn(&Sample) -> f64) -> Option<f64> {
    let values: Vec<f64> = samples.iter().map(|sample| value(sample)).collect();
    middle(&values)
}

/// Gives the value in the middle.
fn middle(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Shows the least and the most.
fn range(samples: &[&Sample], value: fn(&Sample) -> f64) -> String {
    let values = samples.iter().map(|sample| value(sample));
    let least = values.clone().fold(f64::INFINITY, f64::min);
    let most = values.fold(0.0, f64::max);
    format!("[{least:.0}-{most:.0}]")
}

/// Shows how many answers were wrong, of those looked at; and replies that were none.
fn wrong(kind: Kind, samples: &[&Sample]) -> String {
    let sum = |value: fn(&Sample) -> u64| samples.iter().map(|sample| value(sample)).sum::<u64>();
    let refused = match sum(|sample| sample.refused) {
        0 => String::new(),
        some => format!(", {} no answers", grouped(some as usize)),
    };
    match kind {
        Kind::Echo => "echo".to_owned(),
        Kind::Static => format!("not judged{refused}"),
        Kind::Geo => {
            let (wrong, judged) = (sum(|sample| sample.wrong), sum(|sample| sample.judged));
            format!(
                "{} of {}{refused}",
                grouped(wrong as usize),
                grouped(judged as usize)
            )
        }
    }
}

/// Shows a number with commas.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Shows the command that does the same again.
fn command() -> String {
    let arguments = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench");
    let arguments: Vec<String> = arguments.collect();
    match arguments.is_empty() {
        true => "cargo bench --bench peers".to_owned(),
        false => format!("cargo bench --bench peers -- {}", arguments.join(" ")),
    }
}

/// Says what machine this is.
fn machine() -> String {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("processor of unknown model", |(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = cpus
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count()
        .max(cores);
    let kernel = read("/proc/sys/kernel/osrelease");
    format!(
        "{model}, {cores} cores, {}, Linux {}",
        std::env::consts::ARCH,
        kernel.trim()
    )
}

/// Gives the date (UTC), by Howard Hinnant's `civil_from_days`.
fn today() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let days = since.unwrap_or(Duration::ZERO).as_secs() / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (era * 400 + year, month + 3),
        _ => (era * 400 + year + 1, month - 9),
    };
    format!("{year:04}-{month:02}-{day:02}")
}
