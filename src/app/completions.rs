//! `meridian completions` and `meridian man`: what is made of the description of the command line.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap_mangen::Man;

use super::args::{CompletionsArgs, ManArgs, description};
use super::output::line;

/// Prints the completion script of a shell.
pub(super) fn completions(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut description(), "meridian", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page, or writes one for each command into a directory.
pub(super) fn man(args: &ManArgs) -> anyhow::Result<ExitCode> {
    let whole = description()
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true);
    let Some(directory) = &args.directory else {
        let mut page = Vec::new();
        Man::new(whole).render(&mut page)?;
        std::io::stdout().write_all(&page)?;
        return Ok(ExitCode::SUCCESS);
    };
    let place = || format!("cannot write manual pages to {}", directory.display());
    std::fs::create_dir_all(directory).with_context(place)?;
    clap_mangen::generate_to(whole, directory).with_context(place)?;
    line(format_args!("manual pages are in {}", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}
