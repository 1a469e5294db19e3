//! Values of one kind each: a node in, a checked value out, else a fault that says what would be right.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use ipnet::IpNet;

use crate::config::faults::Report;
use crate::config::spec::{Kind, Node, hint};
use crate::model::{LowerName, NameRef, Ttl, not_unicast, parse_prefix};

/// Longest text of any value in octets, but for what has a smaller bound of its own: the longest path of Linux.
const MAX_TEXT: usize = 4096;

/// Reads a text: a scalar with or without quotes.
pub(super) fn text<'t>(node: Node<'t, '_>, report: &mut Report) -> Option<&'t str> {
    if !node.is_scalar() {
        let found = match node.kind() {
            Kind::List => "a list",
            Kind::Map => "a map",
            Kind::Plain | Kind::Quoted => "nothing",
        };
        report.fault(node, format_args!("one value is wanted here, not {found}"));
        return None;
    }
    let text = node.text();
    if text.len() > MAX_TEXT {
        report.fault(node, format_args!("longer than {MAX_TEXT} octets"));
        return None;
    }
    Some(text)
}

/// Reads a text of printable characters without spaces, 1 to 253 octets: a label such as a region's name.
pub(super) fn label<'t>(node: Node<'t, '_>, report: &mut Report) -> Option<&'t str> {
    let text = text(node, report)?;
    if text.is_empty() || text.len() > 253 || !text.bytes().all(|octet| octet.is_ascii_graphic()) {
        report.fault(
            node,
            "1 to 253 printable ASCII characters without spaces are wanted",
        );
        return None;
    }
    Some(text)
}

/// Reads one of some words.
pub(super) fn word(
    node: Node<'_, '_>,
    words: &[&'static str],
    report: &mut Report,
) -> Option<&'static str> {
    let text = text(node, report)?;
    let found = words.iter().find(|word| **word == text).copied();
    if found.is_none() {
        let all = words.join(", ");
        let hint = hint(text, words.iter().copied());
        report.fault(node, format_args!("`{text}` is not one of {all}{hint}"));
    }
    found
}

/// Reads what is written without quotes and looks like a number.
fn plain<'t>(
    node: Node<'t, '_>,
    what: std::fmt::Arguments<'_>,
    report: &mut Report,
) -> Option<&'t str> {
    let text = text(node, report)?;
    if node.kind() == Kind::Quoted {
        report.fault(node, format_args!("{what} is wanted, without quotes"));
        return None;
    }
    Some(text)
}

/// Reads a yes or no.
pub(super) fn boolean(node: Node<'_, '_>, report: &mut Report) -> Option<bool> {
    match plain(node, format_args!("true or false"), report)? {
        "true" => Some(true),
        "false" => Some(false),
        text => {
            report.fault(node, format_args!("`{text}`: true or false is wanted"));
            None
        }
    }
}

/// Reads a whole number in decimal digits.
pub(super) fn integer<T>(
    node: Node<'_, '_>,
    range: RangeInclusive<T>,
    report: &mut Report,
) -> Option<T>
where
    T: TryFrom<i64> + PartialOrd + std::fmt::Display,
{
    let (least, most) = (range.start(), range.end());
    let text = plain(
        node,
        format_args!("a whole number from {least} to {most}"),
        report,
    )?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_decimal = digits.bytes().all(|octet| octet.is_ascii_digit())
        && !digits.is_empty()
        && (digits == "0" || !digits.starts_with('0'));
    let value = if is_decimal {
        text.parse::<i64>().ok()
    } else {
        None
    };
    let value = value
        .and_then(|value| T::try_from(value).ok())
        .filter(|value| range.contains(value));
    if value.is_none() && least == most {
        report.fault(node, format_args!("`{text}`: only {least} will do"));
    } else if value.is_none() {
        report.fault(
            node,
            format_args!("`{text}`: a whole number from {least} to {most} is wanted"),
        );
    }
    value
}

/// Reads a decimal number.
pub(super) fn number(
    node: Node<'_, '_>,
    range: RangeInclusive<f64>,
    report: &mut Report,
) -> Option<f64> {
    let (least, most) = (range.start(), range.end());
    let text = plain(
        node,
        format_args!("a number from {least} to {most}"),
        report,
    )?;
    let is_decimal = text
        .bytes()
        .all(|octet| matches!(octet, b'0'..=b'9' | b'.' | b'-'));
    let value = if is_decimal {
        text.parse::<f64>().ok()
    } else {
        None
    };
    let value = value.filter(|value| range.contains(value));
    if value.is_none() {
        report.fault(
            node,
            format_args!("`{text}`: a number from {least} to {most} is wanted"),
        );
    }
    value
}

/// Parses `90`, `30s`, `1h30m`, `500ms`, `2w`: seconds, or whole numbers with units.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    if let (false, true) = (
        text.is_empty(),
        text.bytes().all(|octet| octet.is_ascii_digit()),
    ) {
        return text.parse().ok().map(Duration::from_secs);
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (count, tail) = rest.split_at_checked(digits)?;
        let count: u64 = count.parse().ok()?;
        let letters = tail.len()
            - tail
                .trim_start_matches(|c: char| c.is_ascii_lowercase())
                .len();
        let (unit, tail) = tail.split_at_checked(letters)?;
        let part = match unit {
            "ms" => Duration::from_millis(count),
            "s" => Duration::from_secs(count),
            "m" => Duration::from_secs(count.checked_mul(60)?),
            "h" => Duration::from_secs(count.checked_mul(3_600)?),
            "d" => Duration::from_secs(count.checked_mul(86_400)?),
            "w" => Duration::from_secs(count.checked_mul(604_800)?),
            _ => return None,
        };
        total = total.checked_add(part)?;
        rest = tail;
    }
    (!text.is_empty()).then_some(total)
}

/// Reads a time within bounds.
pub(super) fn duration(
    node: Node<'_, '_>,
    range: RangeInclusive<Duration>,
    report: &mut Report,
) -> Option<Duration> {
    let text = text(node, report)?;
    let value = parse_duration(text).filter(|value| range.contains(value));
    if value.is_none() {
        let (least, most) = (range.start(), range.end());
        report.fault(
            node,
            format_args!("`{text}`: seconds, or a time such as 30s, 5m, 1h30m or 500ms, from {least:?} to {most:?} are wanted"),
        );
    }
    value
}

/// Reads a time in whole seconds within bounds.
pub(super) fn seconds(
    node: Node<'_, '_>,
    range: RangeInclusive<u32>,
    report: &mut Report,
) -> Option<u32> {
    let text = text(node, report)?;
    let whole = parse_duration(text).filter(|value| value.subsec_nanos() == 0);
    let value = whole
        .and_then(|value| u32::try_from(value.as_secs()).ok())
        .filter(|value| range.contains(value));
    if value.is_none() {
        let (least, most) = (range.start(), range.end());
        report.fault(
            node,
            format_args!("`{text}`: whole seconds, or a time such as 30s, 5m or 1h, from {least} to {most} seconds are wanted"),
        );
    }
    value
}

/// Reads a TTL within bounds in seconds.
pub(super) fn ttl(
    node: Node<'_, '_>,
    range: RangeInclusive<u32>,
    report: &mut Report,
) -> Option<Ttl> {
    seconds(node, range, report).and_then(Ttl::new)
}

/// Reads a list: all items in which `read` finds no fault.
pub(super) fn list<'t, 'a, T>(
    node: Node<'t, 'a>,
    report: &mut Report,
    mut read: impl FnMut(Node<'t, 'a>, &mut Report) -> Option<T>,
) -> Vec<T> {
    if node.kind() == Kind::List {
        node.items().filter_map(|item| read(item, report)).collect()
    } else {
        report.fault(
            node,
            "a list is wanted, such as [a, b], or lines that begin with `- `",
        );
        Vec::new()
    }
}

/// Reads the address of one machine.
pub(super) fn address(node: Node<'_, '_>, report: &mut Report) -> Option<IpAddr> {
    let text = text(node, report)?;
    let Ok(address) = text.parse::<IpAddr>() else {
        report.fault(
            node,
            format_args!(
                "`{text}` is no IP address; write one such as 192.0.2.10 or \"2001:db8::10\""
            ),
        );
        return None;
    };
    match not_unicast(address) {
        Some(why) => {
            report.fault(node, format_args!("`{text}` {why}"));
            None
        }
        None => Some(address),
    }
}

/// Reads a prefix.
pub(super) fn prefix(node: Node<'_, '_>, report: &mut Report) -> Option<IpNet> {
    let text = text(node, report)?;
    parse_prefix(text)
        .map_err(|why| report.fault(node, why))
        .ok()
}

/// Reads a list of prefixes, none of them twice.
pub(super) fn prefixes(node: Node<'_, '_>, report: &mut Report) -> Vec<IpNet> {
    let mut seen = std::collections::HashSet::new();
    list(node, report, |item, report| {
        let prefix = prefix(item, report)?;
        if !seen.insert(prefix) {
            report.fault(item, format_args!("`{prefix}` is listed twice"));
        }
        Some(prefix)
    })
}

/// Reads an address with port to listen on. Port 0 lets the system choose one.
pub(super) fn socket(node: Node<'_, '_>, report: &mut Report) -> Option<SocketAddr> {
    let text = text(node, report)?;
    let Ok(address) = text.parse::<SocketAddr>() else {
        report.fault(
            node,
            format_args!("`{text}` is no address with a port; write one such as \"127.0.0.1:53\" or \"[::1]:53\""),
        );
        return None;
    };
    let ip = address.ip();
    match not_unicast(ip).filter(|_| !ip.is_unspecified()) {
        Some(why) => {
            report.fault(node, format_args!("`{ip}` {why}"));
            None
        }
        None => Some(address),
    }
}

/// Reads a domain name: any octets, but no `*` label.
pub(super) fn domain(node: Node<'_, '_>, report: &mut Report) -> Option<LowerName> {
    let name = parse_name(node, report)?;
    if name.as_ref().labels().any(|label| label == b"*") {
        report.fault(node, "no wildcard is allowed here");
        return None;
    }
    Some(name)
}

/// Reads the name of a host: letters, digits, `-` and `_` (RFC 1123 section 2.1, RFC 8552). An address is none, though the
/// letters of an IPv4 address are allowed in names.
pub(super) fn hostname(node: Node<'_, '_>, report: &mut Report) -> Option<LowerName> {
    if let Some(address) = written_address(node) {
        report.fault(
            node,
            format_args!("`{address}` is an address, not a host name"),
        );
        return None;
    }
    let name = parse_name(node, report)?;
    check_host(node, name.as_ref(), report).then_some(name)
}

/// Reads the name of a host where `addresses` may stand in its place.
pub(super) fn hostname_or_addresses(node: Node<'_, '_>, report: &mut Report) -> Option<LowerName> {
    let Some(address) = written_address(node) else {
        return hostname(node, report);
    };
    let quote = if address.is_ipv6() { "\"" } else { "" };
    report.fault(
        node,
        format_args!("`{address}` is an address; write `addresses: [{quote}{address}{quote}]`"),
    );
    None
}

/// Gives the address that stands where a name should.
pub(super) fn written_address(node: Node<'_, '_>) -> Option<IpAddr> {
    let text = node.text();
    text.strip_suffix('.').unwrap_or(text).parse().ok()
}

/// Reads the name of a host whose leftmost label may be `*` (RFC 4592).
pub(super) fn hostname_or_wildcard(node: Node<'_, '_>, report: &mut Report) -> Option<LowerName> {
    let name = parse_name(node, report)?;
    let host = if name.as_ref().is_wildcard() {
        name.as_ref().parent()?
    } else {
        name.as_ref()
    };
    check_host(node, host, report).then_some(name)
}

/// Parses a name.
fn parse_name(node: Node<'_, '_>, report: &mut Report) -> Option<LowerName> {
    let text = text(node, report)?;
    text.parse::<LowerName>()
        .map_err(|error| report.fault(node, format_args!("`{text}` is no name: {error}")))
        .ok()
}

/// Checks the labels of a host's name.
fn check_host(node: Node<'_, '_>, name: NameRef<'_>, report: &mut Report) -> bool {
    let fault = name.host_fault();
    if let Some(why) = fault {
        report.fault(node, format_args!("`{}`: {why}", node.text()));
    }
    fault.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, millis) in [
            ("0", Some(0)),
            ("30", Some(30_000)),
            ("30s", Some(30_000)),
            ("5m", Some(300_000)),
            ("1h30m", Some(5_400_000)),
            ("500ms", Some(500)),
            ("1m500ms", Some(60_500)),
            ("2w", Some(1_209_600_000)),
            ("1d", Some(86_400_000)),
            ("", None),
            ("s", None),
            ("1", Some(1000)),
            ("-1", None),
            ("1.5h", None),
            ("1 h", None),
            ("1H", None),
            ("30s5", None),
            ("1e30", None),
            ("٣", None),
            ("99999999999999999999", None),
            ("18446744073709551615w", None),
        ] {
            assert_eq!(
                parse_duration(text),
                millis.map(Duration::from_millis),
                "{text}"
            );
        }
    }
}
