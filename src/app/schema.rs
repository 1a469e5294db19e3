//! `meridian schema`.

use std::process::ExitCode;

use super::output::line;

/// Prints the JSON Schema of what the configuration may hold: only what works.
pub(super) fn schema() -> anyhow::Result<ExitCode> {
    line(serde_json::to_string_pretty(&crate::config::schema())?)?;
    Ok(ExitCode::SUCCESS)
}
