//! The types that values are written in.

use std::fmt::Display;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;
use jiff::{SignedDuration, Timestamp};

use super::{Drain, MinReady, PortRef, Target};
use crate::geo;
use crate::model::{
    ClientSelector, ClusterSelector, Continent, CountryCode, FallbackSpec, FenceRule, LowerName,
    MapEntry, NameRef, StatusRange, Subdivision, TlsMode, not_unicast, parse_prefix, parse_tag,
};

/// Items of one list, at most.
const MAX_ITEMS: usize = 256;
/// Host names of one object, at most.
const MAX_HOSTNAMES: usize = 32;

/// What comes of a value: what it says, or what is wrong with it and would be right.
pub(super) type Said<T> = Result<T, String>;

/// Shows an error.
fn told(error: impl Display) -> String {
    error.to_string()
}

/// Splits a list; neither the list nor an item may be empty.
fn items<'a>(text: &'a str, separator: char) -> Said<Vec<&'a str>> {
    let items: Vec<&'a str> = text.split(separator).map(str::trim).collect();
    match items.as_slice() {
        [""] => Err("it is empty".to_owned()),
        all if all.len() > MAX_ITEMS => Err(format!("it has more than {MAX_ITEMS} items")),
        all if all.contains(&"") => Err(format!("an item between `{separator}` is empty")),
        _ => Ok(items),
    }
}

/// Reads every item of a list.
fn each<T>(text: &str, separator: char, read: impl Fn(&str) -> Said<T>) -> Said<Vec<T>> {
    items(text, separator)?.into_iter().map(read).collect()
}

/// Reads a whole number in a range.
pub(super) fn number<T>(text: &str, low: T, high: T) -> Said<T>
where
    T: FromStr + PartialOrd + Display,
{
    let read = text.parse::<T>().ok();
    read.filter(|number| (&low..=&high).contains(&number))
        .ok_or_else(|| format!("a whole number from {low} to {high} is wanted"))
}

/// Reads a yes or no, as Go's `strconv.ParseBool` does.
pub(super) fn boolean(text: &str) -> Said<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err("`true` or `false` is wanted".to_owned()),
    }
}

/// Reads a duration: whole seconds, or as Go's `time.ParseDuration` does (`1m30s`, `1.5s`, `250ms`).
pub(super) fn duration(text: &str) -> Said<Duration> {
    let wrong = || "a duration such as `30`, `30s` or `1m30s` is wanted".to_owned();
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(Duration::from_secs(seconds.into()));
    }
    let mut nanos = 0_f64;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(wrong)?;
        let (digits, tail) = rest.split_at(end);
        let end = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, after) = tail.split_at(end);
        let unit = match unit {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return Err(wrong()),
        };
        nanos += digits.parse::<f64>().map_err(|_| wrong())? * unit;
        rest = after;
    }
    if text.is_empty() {
        return Err(wrong());
    }
    Duration::try_from_secs_f64(nanos / 1e9).map_err(|_| wrong())
}

/// Reads a duration in a range.
pub(super) fn duration_within(text: &str, low: Duration, high: Duration) -> Said<Duration> {
    let read = duration(text)?;
    if (low..=high).contains(&read) {
        Ok(read)
    } else {
        Err(format!("it must be from {low:?} to {high:?}"))
    }
}

/// Reads decimal degrees, no more than so many either way.
pub(super) fn degrees(text: &str, most: f64) -> Said<f64> {
    let read = text.parse::<f64>().ok();
    read.filter(|degrees| (-most..=most).contains(degrees))
        .ok_or_else(|| format!("decimal degrees from -{most} to {most} are wanted"))
}

/// Reads the name of a region, a zone or a provider: 1 to 253 printable characters without spaces.
pub(super) fn label(text: &str) -> Said<Box<str>> {
    let fits = |octet: u8| octet.is_ascii_graphic();
    if (1..=253).contains(&text.len()) && text.bytes().all(fits) {
        Ok(text.into())
    } else {
        Err("1 to 253 printable ASCII characters without spaces are wanted".to_owned())
    }
}

/// Reads such names between commas.
pub(super) fn labels(text: &str) -> Said<Vec<Box<str>>> {
    each(text, ',', label)
}

/// Reads tags between commas.
pub(super) fn tags(text: &str) -> Said<Vec<Box<str>>> {
    each(text, ',', parse_tag)
}

/// Reads a country that there is.
pub(super) fn country(text: &str) -> Said<CountryCode> {
    let code: CountryCode = text.parse().map_err(told)?;
    match geo::country(code) {
        Some(_) => Ok(code),
        None => Err(geo::no_country(code)),
    }
}

/// Reads a part of a country that there is.
pub(super) fn subdivision(text: &str) -> Said<Subdivision> {
    let part: Subdivision = text.parse().map_err(told)?;
    country(part.country().as_str())?;
    Ok(part)
}

/// Reads a continent.
pub(super) fn continent(text: &str) -> Said<Continent> {
    text.parse().map_err(told)
}

/// Reads a share, 0.0..=1.0.
pub(super) fn share(text: &str) -> Said<f64> {
    let read = text.parse::<f64>().ok();
    read.filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "a share from 0 to 1 is wanted".to_owned())
}

/// Reads the name of a host: in ASCII as it is, else by its A-labels (IDNA, RFC 5891).
pub(in crate::source::kubernetes) fn hostname(text: &str) -> Said<LowerName> {
    let name = name(text)?;
    match name.as_ref().host_fault() {
        None => Ok(name),
        Some(why) => Err(format!("`{text}`: {why}")),
    }
}

/// Reads the name of a host whose leftmost label may be `*` (RFC 4592).
pub(in crate::source::kubernetes) fn hostname_or_wildcard(text: &str) -> Said<LowerName> {
    let name = name(text)?;
    let host = if name.as_ref().is_wildcard() {
        name.as_ref().parent()
    } else {
        Some(name.as_ref())
    };
    match host.and_then(NameRef::host_fault) {
        None => Ok(name),
        Some(why) => Err(format!("`{text}`: {why}")),
    }
}

/// Reads a name. A leftmost `*` stays as it is.
fn name(text: &str) -> Said<LowerName> {
    if text.is_ascii() {
        // A backslash would be an escape, and what is empty the root.
        if text.is_empty() || text.contains('\\') {
            return Err(format!("`{text}` is no host name"));
        }
        return text.parse().map_err(told);
    }
    // The mapping of UTS 46 drops them without a word; RFC 5892 has none of them in a name.
    let is_invisible = |c: char| {
        matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'
                | '\u{2060}'
                | '\u{2064}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{e0100}'..='\u{e01ef}'
        )
    };
    if text.contains(is_invisible) {
        return Err("it has characters that nobody sees".to_owned());
    }
    let (star, rest) = match text.strip_prefix("*.") {
        Some(rest) => ("*.", rest),
        None => ("", text),
    };
    let bare = rest.strip_suffix('.').unwrap_or(rest);
    let ascii = idna::domain_to_ascii_strict(bare)
        .map_err(|_| format!("`{text}` is no international name (IDNA, RFC 5891)"))?;
    format!("{star}{ascii}").parse().map_err(told)
}

/// Reads host names.
pub(super) fn hostnames(text: &str) -> Said<Vec<LowerName>> {
    let names = each(text, ',', hostname_or_wildcard)?;
    if names.len() > MAX_HOSTNAMES {
        return Err(format!("it has more than {MAX_HOSTNAMES} host names"));
    }
    Ok(names)
}

/// Reads addresses and host names.
pub(super) fn targets(text: &str) -> Said<Vec<Target>> {
    each(text, ',', |item| match item.parse::<IpAddr>() {
        Ok(address) => {
            let address = address.to_canonical();
            match not_unicast(address) {
                None => Ok(Target::Address(address)),
                Some(why) => Err(format!("`{address}` {why}")),
            }
        }
        Err(_) => hostname(item).map(Target::Hostname),
    })
}

/// Reads addresses, or one host name.
pub(super) fn answer(text: &str) -> Said<FallbackSpec> {
    let mut addresses = Vec::new();
    for target in targets(text)? {
        match target {
            Target::Address(address) => addresses.push(address),
            Target::Hostname(name) if !text.contains(',') => {
                return Ok(FallbackSpec::Hostname(name));
            }
            Target::Hostname(_) => {
                return Err("addresses are wanted, or one host name and nothing else".to_owned());
            }
        }
    }
    Ok(FallbackSpec::Addresses(addresses))
}

/// Reads prefixes. Bits beyond a length are a fault: which network is meant is not known.
pub(super) fn prefixes(text: &str) -> Said<Vec<IpNet>> {
    each(text, ',', parse_prefix)
}

/// Reads a selector of clusters. A country that there is not matches none; groups are looked up where they are known.
fn cluster(text: &str) -> Said<ClusterSelector> {
    let selector = text.parse::<ClusterSelector>().map_err(told)?;
    match selector {
        ClusterSelector::Country(code) => country(code.as_str()).map(|_| selector),
        ClusterSelector::Subdivision(part) => country(part.country().as_str()).map(|_| selector),
        _ => Ok(selector),
    }
}

/// Reads a set of clusters: selectors between `|`.
fn clusters(text: &str) -> Said<Vec<ClusterSelector>> {
    each(text, '|', cluster)
}

/// Reads a selector of clients, by the same rules.
fn client(text: &str) -> Said<ClientSelector> {
    let selector = text.parse::<ClientSelector>().map_err(told)?;
    match selector {
        ClientSelector::Country(code) => country(code.as_str()).map(|_| selector),
        ClientSelector::Subdivision(part) => country(part.country().as_str()).map(|_| selector),
        _ => Ok(selector),
    }
}

/// Reads a set of clients.
fn clients(text: &str) -> Said<Vec<ClientSelector>> {
    each(text, '|', client)
}

/// Reads tiers: sets between commas.
pub(super) fn tiers(text: &str) -> Said<Vec<Vec<ClusterSelector>>> {
    each(text, ',', clusters)
}

/// Reads numbers by cluster, such as `eu=80,us=20`.
pub(super) fn by_cluster<T>(text: &str, low: T, high: T) -> Said<Vec<(ClusterSelector, T)>>
where
    T: FromStr + PartialOrd + Display + Copy,
{
    each(text, ',', |item| {
        let (selector, value) = item
            .rsplit_once('=')
            .ok_or_else(|| format!("`{item}` is no pair such as `region:eu-west-1=80`"))?;
        let selector = cluster(selector.trim())?;
        Ok((selector, number(value.trim(), low, high)?))
    })
}

/// Splits a rule at its arrow.
fn arrow(rule: &str) -> Said<(&str, &str)> {
    let (left, right) = rule
        .split_once("->")
        .ok_or_else(|| format!("`{rule}` has no `->` between clients and clusters"))?;
    Ok((left.trim(), right.trim()))
}

/// Reads a fence: rules between semicolons, `CLIENTS->CLUSTERS`. Nothing on the right: these clients get nothing.
pub(super) fn fence(text: &str) -> Said<Vec<FenceRule>> {
    each(text.trim_end_matches([';', ' ']), ';', |rule| {
        let (left, right) = arrow(rule)?;
        let clusters = if right.is_empty() {
            Vec::new()
        } else {
            clusters(right)?
        };
        Ok(FenceRule {
            clients: clients(left)?,
            clusters,
        })
    })
}

/// Reads maps: `CLIENTS->CLUSTERS` between semicolons; `*` on the left is for every client.
pub(super) fn maps(text: &str) -> Said<Vec<MapEntry>> {
    each(text.trim_end_matches([';', ' ']), ';', |entry| {
        let (left, right) = arrow(entry)?;
        let clients = if left == "*" {
            Vec::new()
        } else {
            clients(left)?
        };
        Ok(MapEntry {
            clients,
            clusters: clusters(right)?,
        })
    })
}

/// Reads a drain: yes or no, a moment, or a window `MOMENT/MOMENT` or `MOMENT/DURATION` (RFC 3339).
pub(super) fn drain(text: &str) -> Said<Drain> {
    if let Ok(is_drained) = boolean(text) {
        return Ok(if is_drained {
            Drain::From(None, None)
        } else {
            Drain::No
        });
    }
    let moment = |text: &str| -> Said<Timestamp> {
        let wrong = "`true`, `false`, a moment such as 2026-12-24T20:00:00Z, or a window MOMENT/MOMENT or MOMENT/DURATION is wanted";
        text.parse().map_err(|_| wrong.to_owned())
    };
    let Some((from, until)) = text.split_once('/') else {
        return Ok(Drain::From(Some(moment(text)?), None));
    };
    let from = moment(from)?;
    let until = match duration(until) {
        Ok(length) => {
            let end = SignedDuration::try_from(length).and_then(|length| from.checked_add(length));
            end.map_err(|_| "the window ends later than a moment can: in the year 9999".to_owned())?
        }
        Err(_) => moment(until)?,
    };
    if until <= from {
        return Err("the window ends before it begins".to_owned());
    }
    Ok(Drain::From(Some(from), Some(until)))
}

/// Reads how many ready endpoints are wanted.
pub(super) fn min_ready(text: &str) -> Said<MinReady> {
    match text.strip_suffix('%') {
        Some(percent) => number(percent, 1, 100).map(MinReady::Percent),
        None => number(text, 0, 1_000_000).map(MinReady::Count),
    }
}

/// Reads a port: a number, or a port's name (RFC 6335: letters, digits and hyphens, at most 15).
pub(super) fn port(text: &str) -> Said<PortRef> {
    if text.bytes().all(|octet| octet.is_ascii_digit()) {
        return number(text, 1, u16::MAX).map(PortRef::Number);
    }
    let is_name = text.len() <= 15
        && text
            .bytes()
            .all(|octet| octet.is_ascii_lowercase() || octet.is_ascii_digit() || octet == b'-');
    if is_name {
        Ok(PortRef::Name(text.into()))
    } else {
        Err("a port from 1 to 65535 or the name of a port is wanted".to_owned())
    }
}

/// Reads codes that mean success: `200-399,401`.
pub(super) fn statuses(text: &str) -> Said<Vec<StatusRange>> {
    each(text, ',', |item| {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let code = |text: &str| number::<u16>(text.trim(), 100, 599);
        let (first, last) = (code(first)?, code(last)?);
        if first > last {
            return Err(format!("`{item}` ends before it begins"));
        }
        Ok(StatusRange { first, last })
    })
}

/// Reads a path with its query.
pub(super) fn path(text: &str) -> Said<Box<str>> {
    let is_path = text.starts_with('/')
        && text.len() <= 1024
        && text.bytes().all(|octet| octet.is_ascii_graphic());
    if is_path {
        Ok(text.into())
    } else {
        Err(
            "a path is wanted: it begins with `/` and has at most 1024 printable characters"
                .to_owned(),
        )
    }
}

/// Reads how far certificates are trusted.
pub(super) fn tls(text: &str) -> Said<TlsMode> {
    match text {
        "verify" => Ok(TlsMode::Verify),
        "skip" => Ok(TlsMode::Skip),
        _ => {
            let wrong =
                || "`verify`, `skip` or `pin:` with 64 hexadecimal digits is wanted".to_owned();
            let digits = text.strip_prefix("pin:").ok_or_else(wrong)?;
            if !digits.bytes().all(|octet| octet.is_ascii_hexdigit()) {
                return Err(wrong());
            }
            let mut pin = [0; 32];
            let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
            if pairs.len() != pin.len() || !rest.is_empty() {
                return Err(wrong());
            }
            for (octet, pair) in pin.iter_mut().zip(pairs) {
                let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
                *octet = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
            }
            Ok(TlsMode::Pin(pin))
        }
    }
}

/// Reads one of a few words; case counts for nothing.
pub(super) fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Said<T> {
    let found = words
        .iter()
        .find(|(word, _)| word.eq_ignore_ascii_case(text));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let all: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        format!("one of {} is wanted", all.join(", "))
    })
}
