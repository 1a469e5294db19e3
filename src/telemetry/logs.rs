//! Log set-up: the only file that knows tracing-subscriber.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people, colored on a terminal only.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Sends log lines to standard error. `filter` is a directive list such as `info` or `meridian=debug`; a bad one is `info`.
/// Later calls do nothing.
pub fn set_up(filter: &str, format: LogFormat) {
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    // A second call finds a subscriber already there: tests and the demo share a process.
    let _ = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
}
