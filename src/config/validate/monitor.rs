//! Monitors: the keys of `defaults.monitor` and of each service.

use std::time::Duration;

use super::read;
use crate::config::faults::Report;
use crate::config::spec::{Fields, Kind, Node, fields, hint, v1};
use crate::model::{Check, HttpCheck, MonitorSpec, Origin, StatusRange, TcpCheck, TlsMode};

/// Longest path and query of an HTTP check.
const MAX_PATH: usize = 1024;
/// Longest text sent or expected by a TCP check.
const MAX_TALK: usize = 1024;
/// Most codes and ranges of one check.
const MAX_RANGES: usize = 64;
/// Bounds of the interval; the timeout ends at the interval.
const TIMES: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(3600);

/// A monitor key by key; `None`: not written.
#[derive(Clone, Debug, Default)]
pub(super) struct MonitorKeys {
    /// `Some(None)`: nobody judges.
    pub(super) check: Option<Option<Check>>,
    pub(super) interval: Option<Duration>,
    pub(super) timeout: Option<Duration>,
    pub(super) rise: Option<u8>,
    pub(super) fall: Option<u8>,
}

/// What a check over TLS without `host` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hostless {
    /// The endpoint's address, whose certificate few have.
    Address,
    /// The first host name of the Kubernetes object.
    FirstName,
}

impl MonitorKeys {
    /// Fills what is not written from `below`. A check is one key: it is taken whole.
    pub(super) fn over(self, below: &Self) -> Self {
        Self {
            check: self.check.or_else(|| below.check.clone()),
            interval: self.interval.or(below.interval),
            timeout: self.timeout.or(below.timeout),
            rise: self.rise.or(below.rise),
            fall: self.fall.or(below.fall),
        }
    }

    /// Makes the monitor; `None` says that nobody judges. What does not fit together is a fault at `node`.
    pub(super) fn finish(mut self, node: Node<'_, '_>, report: &mut Report) -> Option<MonitorSpec> {
        let Some(check) = self.check.take() else {
            report.fault(node, "a monitor needs one of none, http, https and tcp");
            return None;
        };
        let check = check?;
        let (interval, timeout) = self.times(node, report);
        Some(MonitorSpec {
            check,
            interval,
            timeout,
            rise: self.rise.unwrap_or(MonitorSpec::COUNT),
            fall: self.fall.unwrap_or(MonitorSpec::COUNT),
            origin: Origin::Operator,
        })
    }

    /// Gives interval and timeout. A timeout that does not fit is a fault at `node`.
    pub(super) fn times(&self, node: Node<'_, '_>, report: &mut Report) -> (Duration, Duration) {
        let interval = self.interval.unwrap_or(MonitorSpec::INTERVAL);
        let timeout = self
            .timeout
            .unwrap_or_else(|| MonitorSpec::TIMEOUT.min(interval));
        if timeout > interval {
            report.fault(
                node,
                format_args!(
                    "the timeout of {timeout:?} is longer than the interval of {interval:?}"
                ),
            );
        }
        (interval, timeout)
    }

    /// Tells whether a check is known.
    pub(super) fn has_check(&self) -> bool {
        self.check.is_some()
    }
}

/// Checks the keys of one monitor.
pub(super) fn read(
    node: Node<'_, '_>,
    hostless: Hostless,
    report: &mut Report,
) -> Option<MonitorKeys> {
    if node.is_scalar() {
        // Words of the contract that are not built yet.
        if matches!(node.text(), "endpoints" | "tls" | "grpc" | "dns") {
            let word = node.text();
            report.fault(node, format_args!("`{word}` is not supported yet; write none, or one of http, https and tcp with its keys"));
            return None;
        }
        return is_none(node, report).then(|| MonitorKeys {
            check: Some(None),
            ..MonitorKeys::default()
        });
    }
    let before = report.count();
    let fields = fields(node, &v1::MONITOR, report)?;
    let kinds: Vec<(&str, Node<'_, '_>)> = ["none", "http", "https", "tcp"]
        .into_iter()
        .filter_map(|kind| Some((kind, fields.get(kind)?)))
        .collect();
    let mut check = None;
    for (at, (kind, node)) in kinds.iter().enumerate() {
        if let (true, Some((first, _))) = (at > 0, kinds.first()) {
            report.fault(
                *node,
                format_args!("`{kind}` beside `{first}`: a monitor has one check"),
            );
        }
        check = match *kind {
            "none" => crate::config::spec::fields(*node, &v1::NONE, report).map(|_| None),
            "tcp" => tcp(*node, report).map(|check| Some(Check::Tcp(check))),
            "http" => http(*node, None, report).map(|check| Some(Check::Http(check))),
            _ => http(*node, Some(hostless), report).map(|check| Some(Check::Http(check))),
        };
    }
    let time = |name: &str, range, report: &mut Report| {
        fields
            .get(name)
            .and_then(|node| read::duration(node, range, report))
    };
    let count = |name: &str, report: &mut Report| {
        fields
            .get(name)
            .and_then(|node| read::integer(node, 1..=20_u8, report))
    };
    let keys = MonitorKeys {
        check,
        interval: time("interval", TIMES, report),
        timeout: time("timeout", Duration::from_millis(1)..=*TIMES.end(), report),
        rise: count("rise", report),
        fall: count("fall", report),
    };
    (report.count() == before).then_some(keys)
}

/// Checks `http`, and `https`, which has a word for checks without `host`.
fn http(node: Node<'_, '_>, hostless: Option<Hostless>, report: &mut Report) -> Option<HttpCheck> {
    let is_tls = hostless.is_some();
    let fields = fields(node, if is_tls { &v1::HTTPS } else { &v1::HTTP }, report)?;
    let path = fields
        .get("path")
        .map_or(Some("/"), |node| path(node, report));
    let port = port(fields, Some(if is_tls { 443 } else { 80 }), report);
    let host = fields.get("host").and_then(|node| host(node, report));
    let method = fields
        .get("method")
        .and_then(|node| read::word(node, &["GET", "HEAD"], report));
    let all = vec![StatusRange {
        first: 200,
        last: 399,
    }];
    let expect = fields
        .get("expect")
        .map_or(all, |node| expect(node, report));
    let tls = match (is_tls, if is_tls { fields.get("tls") } else { None }) {
        (false, _) => None,
        (true, None) => Some(TlsMode::Verify),
        (true, Some(node)) => tls(node, report),
    };
    let is_bare = fields.get("host").is_none() && hostless == Some(Hostless::Address);
    if tls == Some(TlsMode::Verify) && is_bare {
        report.warn(node, "without `host` the certificate must be valid for the endpoint's address, and no server name is sent");
    }
    Some(HttpCheck {
        tls,
        port: port?,
        path: path?.into(),
        host,
        head: method == Some("HEAD"),
        expect,
    })
}

/// Reads a port.
fn port(fields: Fields<'_, '_>, default: Option<u16>, report: &mut Report) -> Option<u16> {
    match fields.get("port") {
        Some(node) => read::integer(node, 1..=u16::MAX, report),
        None => default,
    }
}

/// Tells whether a monitor in one word is `none`, the only one that there is.
fn is_none(node: Node<'_, '_>, report: &mut Report) -> bool {
    let text = node.text();
    let example = match text {
        "none" => return true,
        "tcp" => "{tcp: {port: 443}}",
        "https" => "{https: {path: /healthz}}",
        _ => "{http: {path: /healthz}}",
    };
    let hint = hint(text, ["none", "http", "https", "tcp"]);
    // The word itself is no other one that may be meant.
    let hint = if matches!(text, "http" | "https" | "tcp") {
        String::new()
    } else {
        hint
    };
    report.fault(
        node,
        format_args!("`{text}` alone is no monitor; write none, or a map such as {example}{hint}"),
    );
    false
}

/// Checks a path: it goes into a request line as it is.
fn path<'t>(node: Node<'t, '_>, report: &mut Report) -> Option<&'t str> {
    let text = read::text(node, report)?;
    let fits = text.starts_with('/')
        && text.len() <= MAX_PATH
        && text.bytes().all(|octet| octet.is_ascii_graphic())
        && !text.contains('#');
    if !fits {
        report.fault(
            node,
            format_args!("`{text}`: a path begins with `/` and has at most {MAX_PATH} printable ASCII characters without spaces and `#`"),
        );
    }
    fits.then_some(text)
}

/// Checks a host: a name, or an address.
fn host(node: Node<'_, '_>, report: &mut Report) -> Option<Box<str>> {
    let text = read::text(node, report)?;
    if text.parse::<std::net::IpAddr>().is_ok() {
        return Some(text.into());
    }
    read::hostname(node, report).map(|name| name.to_string().into())
}

/// Checks `tls`.
fn tls(node: Node<'_, '_>, report: &mut Report) -> Option<TlsMode> {
    let text = read::text(node, report)?;
    let mode = match text {
        "verify" => Some(TlsMode::Verify),
        "skip" => Some(TlsMode::Skip),
        _ => text
            .strip_prefix("pin:")
            .and_then(parse_sha256)
            .map(TlsMode::Pin),
    };
    if mode.is_none() {
        report.fault(
            node,
            format_args!("`{text}`: verify, skip, or pin: and 64 hexadecimal digits are wanted"),
        );
    }
    mode
}

/// Parses 64 hexadecimal digits.
fn parse_sha256(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let digit = |octet: &u8| {
        char::from(*octet)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let mut out = [0; 32];
    for (to, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        *to = pair
            .iter()
            .try_fold(0, |sum: u8, octet| Some(sum << 4 | digit(octet)?))?;
    }
    Some(out)
}

/// Checks `expect` of HTTP: one code or range, or a list of them.
fn expect(node: Node<'_, '_>, report: &mut Report) -> Vec<StatusRange> {
    if node.kind() != Kind::List {
        return range(node, report).into_iter().collect();
    }
    let count = node.items().count();
    if count == 0 || count > MAX_RANGES {
        report.fault(
            node,
            format_args!("1 to {MAX_RANGES} codes and ranges are wanted"),
        );
        return Vec::new();
    }
    read::list(node, report, range)
}

/// Reads `200` or `200-399`.
fn range(node: Node<'_, '_>, report: &mut Report) -> Option<StatusRange> {
    let text = read::text(node, report)?;
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let code = |text: &str| {
        let is_code = text.len() == 3 && text.bytes().all(|octet| octet.is_ascii_digit());
        text.parse::<u16>()
            .ok()
            .filter(|code| is_code && (100..=599).contains(code))
    };
    let range = code(first)
        .zip(code(last))
        .filter(|(first, last)| first <= last);
    if range.is_none() {
        report.fault(
            node,
            format_args!(
                "`{text}`: a status code from 100 to 599 or a range such as 200-399 is wanted"
            ),
        );
    }
    range.map(|(first, last)| StatusRange { first, last })
}

/// Checks `tcp`.
fn tcp(node: Node<'_, '_>, report: &mut Report) -> Option<TcpCheck> {
    let fields = fields(node, &v1::TCP_CHECK, report)?;
    let talk = |name: &str, report: &mut Report| -> Box<[u8]> {
        let Some(node) = fields.get(name) else {
            return Box::default();
        };
        let Some(text) = read::text(node, report) else {
            return Box::default();
        };
        if text.is_empty() || text.len() > MAX_TALK {
            report.fault(
                node,
                format_args!(
                    "1 to {MAX_TALK} octets are wanted; double quotes allow escapes such as \\r\\n"
                ),
            );
        }
        text.as_bytes().into()
    };
    let (send, expect) = (talk("send", report), talk("expect", report));
    Some(TcpCheck {
        port: port(fields, None, report)?,
        send,
        expect,
    })
}
