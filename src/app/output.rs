//! Words to the terminal: colors only there, and no panic when nobody reads on.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use super::args::{LogFormatArg, no_color};
use crate::telemetry::LogFormat;

/// Tells whether an error is only that nobody reads our output any more (`meridian … | head`).
pub(super) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// Writes an error with its chain of causes, once, to standard error, behind the log.
pub(super) fn complain(error: &anyhow::Error) {
    let style = Style::of(&io::stderr());
    crate::telemetry::tell(&format!("{} {error:#}\n", style.red("error:")));
}

/// Decides how log lines are written: lines for people have colors where [`Style`] has them.
pub(super) fn log_format(format: LogFormatArg) -> LogFormat {
    match format {
        LogFormatArg::Text if Style::of(&io::stderr()).on => LogFormat::Colored,
        LogFormatArg::Text => LogFormat::Text,
        LogFormatArg::Json => LogFormat::Json,
    }
}

/// Shows an error with its causes in one text.
pub(super) fn in_one(error: &(dyn std::error::Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<String> = chain.map(ToString::to_string).collect();
    texts.join(": ")
}

/// Writes a Unix time as a date, such as `2026-11-21`.
pub(super) fn date(epoch: u64) -> String {
    // Days since 0000-03-01, in cycles of 400 years.
    let days = epoch / 86_400 + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    format!("{:04}-{month:02}-{day:02}", cycle * 400 + year + carry)
}

/// Writes one line to standard output.
///
/// # Errors
/// When it is closed.
pub(super) fn line(text: impl std::fmt::Display) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")
}

/// Writes a result for machines: JSON in lines that people can read too.
///
/// # Errors
/// When standard output is closed.
pub(super) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    Ok(line(serde_json::to_string_pretty(value)?)?)
}

/// Writes a result as YAML.
///
/// # Errors
/// When standard output is closed.
pub(super) fn yaml(value: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_saphyr::to_string(value)?;
    Ok(line(text.trim_end())?)
}

/// Writes one line for the person at the terminal to standard error, where it does not mix with the result.
pub(super) fn note(text: &str) {
    crate::telemetry::tell(&format!("{text}\n"));
}

/// Colors, where somebody sees them and wants them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    on: bool,
}

impl Style {
    /// Colors for a stream: on a terminal only, and not where `NO_COLOR` is set (no-color.org).
    pub(super) fn of(stream: &impl IsTerminal) -> Self {
        Self {
            on: stream.is_terminal() && !no_color(),
        }
    }

    /// Tells whether there are colors.
    pub(super) fn is_on(self) -> bool {
        self.on
    }

    /// No colors.
    #[cfg(test)]
    pub(super) fn plain() -> Self {
        Self { on: false }
    }

    /// Colors.
    #[cfg(test)]
    pub(super) fn colored() -> Self {
        Self { on: true }
    }

    /// Puts a sequence around a text.
    fn paint(self, code: &str, text: &str) -> String {
        if self.on {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// For what is wrong.
    pub(super) fn red(self, text: &str) -> String {
        self.paint("31;1", text)
    }

    /// For what is doubtful.
    pub(super) fn yellow(self, text: &str) -> String {
        self.paint("33;1", text)
    }

    /// For what is well.
    pub(super) fn green(self, text: &str) -> String {
        self.paint("32;1", text)
    }

    /// For headings.
    pub(super) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (epoch, text) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_735_689_599, "2024-12-31"),
            (1_795_219_200, "2026-11-21"),
        ] {
            assert_eq!(date(epoch), text);
        }
    }
}
