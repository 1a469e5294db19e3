//! The root: commands, wiring, start and stop.
//!
//! One file a command. `run` is a table of contents: load, bind, spawn, wait, drain.

mod acme;
mod ages;
mod allocator;
mod args;
mod check;
mod client;
mod cluster;
mod clusters_from;
mod completions;
mod delegation;
mod demo;
mod explain;
mod findings;
mod hand;
mod joining;
mod kubeconfigs;
mod leaving;
mod load;
mod member_news;
mod members;
mod news;
mod observe;
mod operate;
mod output;
mod precedence;
mod reload;
mod run;
mod schema;
mod serials;
mod status;
mod table;
mod targets;
mod token;
mod version;
mod words;
mod write_back;

use std::process::ExitCode;

use clap::Parser;

pub use allocator::lay_out;
use args::{Args, Command};

/// Parses the arguments, carries the command out, and maps its result to an exit code: 0 well, 1 faults or failure, 2 usage,
/// 3 drained and not safe to stop.
#[must_use]
pub fn main() -> ExitCode {
    abort_on_panic();
    lay_out(0);
    allocator::give_memory_back_soon();
    let args = Args::parse();
    // A server tells its story; a command speaks by its output.
    let default = if matches!(args.command, Some(Command::Run(_))) {
        "info"
    } else {
        "warn"
    };
    let level = args.log_level.as_ref().map(|level| &level.0);
    crate::telemetry::set_up(level, default, output::log_format(args.log_format));
    let code = match carry_out(args) {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error);
            ExitCode::FAILURE
        }
    };
    crate::telemetry::flush_log();
    code
}

/// Makes the program end when any of its threads or tasks panics: a supervisor starts a whole node again, nobody a half-dead one.
fn abort_on_panic() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        std::process::abort();
    }));
}

/// Carries out one command.
fn carry_out(args: Args) -> anyhow::Result<ExitCode> {
    if args.version {
        return version::print(args.verbose);
    }
    match args.command {
        None => args::print_help(),
        Some(Command::Run(command)) => run::run(&command),
        Some(Command::Check(command)) => check::check(&command),
        Some(Command::Demo(command)) => demo::demo(&command),
        Some(Command::Explain(command)) => explain::explain(&command),
        Some(Command::Status(command)) => status::status(&command),
        Some(Command::Drain(command)) => operate::drain(&command),
        Some(Command::Undrain(command)) => operate::undrain(&command),
        Some(Command::Force(command)) => operate::force(&command),
        Some(Command::Unforce(command)) => operate::unforce(&command),
        Some(Command::Cluster(command)) => cluster::cluster(&command),
        Some(Command::Acme(command)) => acme::acme(&command),
        Some(Command::Schema) => schema::schema(),
        Some(Command::Delegation(command)) => delegation::delegation(&command),
        Some(Command::Token(command)) => token::token(&command),
        Some(Command::Completions(command)) => completions::completions(&command),
        Some(Command::Man(command)) => completions::man(&command),
    }
}
