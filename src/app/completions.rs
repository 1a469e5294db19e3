//! `meridian completions`.

use std::io::Write;
use std::process::ExitCode;

use super::args::{CompletionsArgs, description};

/// Prints the completion script of a shell.
pub(super) fn completions(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut description(), "meridian", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
