//! `queryLog` and `telemetry`: what leaves the node beside answers.

use std::num::NonZeroU32;

use super::{Files, read};
use crate::config::faults::Report;
use crate::config::spec::{Node, fields, v1};
use crate::telemetry::{OtlpConfig, QueryLogConfig, QueryLogTarget};

/// Least octets of a file of the query log: some hundred lines.
const LEAST_OCTETS: i64 = 64 << 10;
/// Most octets of one: 1 TiB.
const MOST_OCTETS: i64 = 1 << 40;
/// Octets of a file where nothing is said: 100 MiB.
const OCTETS: u64 = 100 << 20;
/// Files put aside that are kept where nothing is said.
const KEEP: u32 = 5;
/// One of so many queries where nothing is said.
const SAMPLE: NonZeroU32 = NonZeroU32::new(1000).expect("not 0");

/// Checks `queryLog`.
pub(super) fn query_log(
    node: Option<Node<'_, '_>>,
    files: &Files,
    report: &mut Report,
) -> Option<QueryLogConfig> {
    let node = node?;
    let fields = fields(node, &v1::QUERY_LOG, report)?;
    let integer = |name: &str, range, report: &mut Report| {
        let node = fields.get(name)?;
        read::integer::<i64>(node, range, report)
    };
    let sample = integer("sample", 1..=1_000_000_000, report);
    let prefix_v4 = integer("prefixV4", 0..=32, report);
    let prefix_v6 = integer("prefixV6", 0..=128, report);
    let max_octets = integer("maxBytes", LEAST_OCTETS..=MOST_OCTETS, report);
    let keep = integer("keep", 1..=100, report);
    let file = fields.get("file")?;
    let target = if file.is_scalar() && file.text() == "-" {
        QueryLogTarget::Stderr
    } else {
        QueryLogTarget::File {
            path: files.path(file, report)?,
            max_octets: max_octets
                .and_then(|octets| u64::try_from(octets).ok())
                .unwrap_or(OCTETS),
            keep: keep
                .and_then(|keep| u32::try_from(keep).ok())
                .unwrap_or(KEEP),
        }
    };
    let bits = |given: Option<i64>, default| {
        let bits = given.and_then(|bits| u8::try_from(bits).ok());
        bits.unwrap_or(default)
    };
    Some(QueryLogConfig {
        target,
        sample: sample
            .and_then(|sample| NonZeroU32::new(u32::try_from(sample).ok()?))
            .unwrap_or(SAMPLE),
        prefix_v4: bits(prefix_v4, 24),
        prefix_v6: bits(prefix_v6, 48),
    })
}

/// Checks `telemetry`.
pub(super) fn otlp(
    node: Option<Node<'_, '_>>,
    files: &Files,
    report: &mut Report,
) -> Option<OtlpConfig> {
    let node = fields(node?, &v1::TELEMETRY, report)?.get("otlp")?;
    let fields = fields(node, &v1::OTLP, report)?;
    let headers_file = fields
        .get("headersFile")
        .and_then(|node| files.path(node, report));
    let sample = fields
        .get("sample")
        .and_then(|node| read::number(node, 0.0..=1.0, report));
    Some(OtlpConfig {
        endpoint: endpoint(fields.get("endpoint")?, report)?,
        headers_file,
        sample: sample.unwrap_or(1.0),
    })
}

/// Checks the address of a collector. What is refused is not repeated: it may hold a password.
fn endpoint(node: Node<'_, '_>, report: &mut Report) -> Option<String> {
    let text = read::text(node, report)?;
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    let authority = rest.map(|rest| {
        rest.split_once('/')
            .map_or(rest, |(authority, _)| authority)
    });
    let is_sound = text.len() <= 1024
        && authority.is_some_and(is_authority)
        && text.bytes().all(|octet| octet.is_ascii_graphic())
        && !text.contains(['@', '?', '#', '\\', '"', '<', '>']);
    if !is_sound {
        report.fault(node, "the URL of an OTLP collector is wanted, without user, password, query and fragment, such as http://127.0.0.1:4318; secrets go into `headersFile`");
        return None;
    }
    Some(text.trim_end_matches('/').to_owned())
}

/// Tells whether a text is a host name or an address, with a port or without.
fn is_authority(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_host = match host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
    {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && host
                    .bytes()
                    .all(|octet| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.'))
        }
    };
    is_host && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_hosts_with_ports() {
        for (text, sound) in [
            ("127.0.0.1:4318", true),
            ("collector.example", true),
            ("[::1]:4318", true),
            ("[::1]", true),
            ("", false),
            (":4318", false),
            ("a:0", false),
            ("a:65536", false),
            ("a:b", false),
            ("[::g]", false),
            ("::1", false),
            ("a b", false),
        ] {
            assert_eq!(is_authority(text), sound, "{text}");
        }
    }
}
