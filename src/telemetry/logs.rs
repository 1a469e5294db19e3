//! Log set-up: where lines go, and where spans do.

use std::sync::OnceLock;
use std::time::Duration;

use tracing::{Level, Metadata};
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry, reload};

use crate::telemetry::outlet::Outlet;

/// The target of spans that are sent.
pub const SPANS: &str = "meridian::span";

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// Lines for people, with colors.
    Colored,
    /// One JSON object a line.
    Json,
}

/// Where lines go since the set-up.
static OUTLET: OnceLock<Outlet> = OnceLock::new();

/// How long the end waits for lines to be written: a disk takes a full queue in less, and a reader that stalls must not hold
/// up a stop.
const PATIENCE: Duration = Duration::from_secs(1);

/// The levels, least first.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
/// The rooms of this program, which are the targets of its lines.
const ROOMS: [&str; 21] = [
    "model",
    "lifecycle",
    "telemetry",
    "disk",
    "prefix",
    "inventory",
    "geo",
    "steering",
    "zone",
    "health",
    "snapshot",
    "answer",
    "resolving",
    "source",
    "prober",
    "vantage",
    "controller",
    "transport",
    "admin",
    "config",
    "app",
];
/// Libraries that log too.
const LIBRARIES: [&str; 11] = [
    "axum",
    "hickory_net",
    "hickory_proto",
    "hickory_resolver",
    "hickory_server",
    "hyper",
    "hyper_util",
    "mio",
    "rustls",
    "tokio",
    "tokio_rustls",
];

/// The client of API servers says at level error what is tried again a second later, as often as it happens; the watches say
/// themselves what is wrong, once.
const SILENCED: &str = "kube_client=off";

/// What is logged, checked: a slip must not silence a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// The level of everything without a directive of its own.
    level: Option<&'static str>,
    /// Target and level.
    directives: Vec<(String, &'static str)>,
}

impl LogFilter {
    /// Reads a level, or directives `target=level`, with commas between. Nothing at all is the default.
    ///
    /// # Errors
    /// In one line, with what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut filter = Self::default();
        if text.trim().is_empty() {
            return Ok(filter);
        }
        for part in text.split(',').map(str::trim) {
            match part.split_once('=') {
                None => filter.level = Some(level(part)?),
                Some((target, name)) => {
                    let target = known_target(target.trim())?;
                    filter
                        .directives
                        .push((target.to_owned(), level(name.trim())?));
                }
            }
        }
        Ok(filter)
    }

    /// Writes it as directives; `default` is the level of what it leaves open.
    fn directives(&self, default: &str) -> String {
        let mut text = self.level.unwrap_or(default).to_owned();
        for (target, level) in &self.directives {
            text.push_str(&format!(",{target}={level}"));
        }
        text
    }
}

/// Reads a level.
fn level(text: &str) -> Result<&'static str, String> {
    let name = text.to_ascii_lowercase();
    let name = if name == "warning" { "warn" } else { &name };
    let found = LEVELS.into_iter().find(|level| *level == name);
    found.ok_or_else(|| {
        let levels = LEVELS.join(", ");
        format!("`{text}` is no level; write one of {levels}, or directives such as info,meridian::transport=debug")
    })
}

/// Checks a target: this program, one of its rooms or what is in it, or a library that logs.
fn known_target(target: &str) -> Result<&str, String> {
    let mut path = target.split("::");
    let (first, room) = (path.next().unwrap_or_default(), path.next());
    let is_path = target.split("::").all(|part| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    });
    let is_known = match room {
        _ if !is_path => false,
        Some(room) if first == "meridian" => ROOMS.contains(&room),
        _ => first == "meridian" || LIBRARIES.contains(&first),
    };
    if is_known {
        Ok(target)
    } else {
        let (rooms, libraries) = (ROOMS.join(", "), LIBRARIES.join(", "));
        Err(format!(
            "`{target}` logs nothing; write meridian, meridian:: with one of {rooms}, or one of {libraries}, as in meridian::transport=debug"
        ))
    }
}

/// Sends log lines to standard error; `default` is the level of what the filter leaves open. Later calls do nothing. A line
/// that cannot be written (a full disk, a reader that is gone or stalls) is counted and lost; nobody who logs waits for it.
pub fn set_up(filter: Option<&LogFilter>, default: &str, format: LogFormat) {
    let open = LogFilter::default();
    let directives = filter.unwrap_or(&open).directives(default);
    let filter = EnvFilter::new(format!("{directives},{SILENCED}"));
    let outlet = OUTLET.get_or_init(Outlet::open);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(outlet.clone())
        .with_ansi(format == LogFormat::Colored)
        .log_internal_errors(false)
        .with_target(false);
    let lines = match format {
        LogFormat::Text | LogFormat::Colored => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    let (spans, handle) = reload::Layer::new(None);
    let is_sent = |metadata: &Metadata<'_>| metadata.is_span() && metadata.target() == SPANS;
    let subscriber = Registry::default()
        .with(spans.with_filter(FilterFn::new(is_sent)))
        .with(lines.with_filter(filter));
    // A second call finds a subscriber already there: tests and the demo share a process.
    if subscriber.try_init().is_ok() {
        let _ = SHOWN.set(handle);
        flush_before_panics();
    }
}

/// Where spans go, beside the log.
pub(super) type Spans = Option<Box<dyn Layer<Registry> + Send + Sync>>;

/// The place for it.
static SHOWN: OnceLock<reload::Handle<Spans, Registry>> = OnceLock::new();

/// Lets spans go somewhere from now on, or nowhere. Before the set-up it does nothing.
pub(super) fn show_spans(spans: Spans) {
    if let Some(handle) = SHOWN.get() {
        // It fails only when the subscriber is gone, and then nobody makes spans.
        let _ = handle.reload(spans);
    }
}

/// Has the lines that lead to a panic written before its own.
fn flush_before_panics() {
    let former = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        flush_log();
        former(panic);
    }));
}

/// Waits until the lines logged so far are written, at most a second. What a process logs after its last call may be lost.
pub fn flush_log() {
    if let Some(outlet) = OUTLET.get() {
        outlet.drain(PATIENCE);
    }
}

/// Puts a line, its end included, among the lines of the log, as one that matters less than news. Nobody waits for it.
pub(super) fn put_line(line: &[u8]) {
    OUTLET.get_or_init(Outlet::default).put(line, Level::DEBUG);
}

/// Writes a text, its line end included, to standard error behind all lines logged so far. Waits for it as [`flush_log`] does.
pub fn tell(text: &str) {
    flush_log();
    OUTLET
        .get_or_init(Outlet::default)
        .put(text.as_bytes(), Level::ERROR);
    flush_log();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_directives_become_what_the_filter_takes() {
        for (text, directives) in [
            ("", "info"),
            ("WARNING", "warn"),
            ("Off", "off"),
            (
                "meridian::transport::udp=debug",
                "info,meridian::transport::udp=debug",
            ),
            ("hyper=Trace, error", "error,hyper=trace"),
        ] {
            let filter = LogFilter::parse(text).unwrap();
            assert_eq!(filter.directives("info"), directives, "{text}");
            let whole = format!("{directives},{SILENCED}");
            assert!(EnvFilter::try_new(whole).is_ok(), "{directives}");
        }
    }

    #[test]
    fn a_slip_is_told_with_what_would_be_right() {
        for (text, right) in [
            ("infoo", "info"),
            ("bogus===", "meridian"),
            ("meridian===", "no level"),
            ("meridian::transprot=debug", "transport"),
            ("meridian::=debug", "transport"),
            ("info,", "no level"),
            ("[span]=debug", "meridian"),
            ("3", "debug"),
        ] {
            let said = LogFilter::parse(text).unwrap_err();
            assert!(said.contains(right), "{text}: {said}");
        }
    }

    #[test]
    fn every_room_is_a_target() {
        let map = include_str!("../lib.rs");
        let rooms = map.lines().filter_map(|line| {
            let line = line.strip_prefix("pub mod ")?;
            line.strip_suffix(';')
        });
        assert!(rooms.eq(ROOMS));
    }
}
