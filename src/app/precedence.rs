//! Keys of a zone whose file says the same itself: what `check` warns of.

use std::collections::HashMap;
use std::path::Path;

use super::findings::{Finding, places};
use crate::config::ZoneSource;
use crate::model::{LowerName, NameRef};
use crate::zone::{Precedence, Zone, ZoneSet};

/// Name servers that a message names.
const SHOWN: usize = 5;

/// Warns of keys beside `file` of which nothing was made. `source` is the configuration, `hash` that of its text.
pub(super) fn warnings(
    (sources, set): (&[ZoneSource], &ZoneSet),
    source: &Path,
    hash: &str,
) -> Vec<Finding> {
    let zones: HashMap<&LowerName, &Zone> =
        set.iter().map(|(_, zone)| (zone.apex(), &**zone)).collect();
    let mut pairs: HashMap<&LowerName, (&ZoneSource, &Zone)> = HashMap::new();
    for source in sources.iter().filter(|source| source.file.is_some()) {
        let apex = &source.spec.apex;
        let zone = zones.get(apex);
        if let Some(zone) = zone.filter(|zone| zone.precedence() != Precedence::default()) {
            pairs.insert(apex, (source, *zone));
        }
    }
    if pairs.is_empty() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for written in places(source, hash, &[]).zones {
        let Some((spec, zone)) = pairs.get(&written.apex) else {
            continue;
        };
        for (key, place) in &written.beside {
            let why = why(key, spec, zone);
            findings.extend(why.map(|why| Finding::warning(source, Some(place), why)));
        }
    }
    findings
}

/// Says why nothing was made of a key; `None`: something was.
fn why(key: &str, source: &ZoneSource, zone: &Zone) -> Option<String> {
    let own = zone.precedence();
    match key {
        "contact" | "soa" | "negativeTtl" if own.soa => Some(format!(
            "the zone file has a SOA record of its own, so `{key}` does nothing: leave it out, or take the record out of the file"
        )),
        "nsTtl" if own.ns_ttl => Some(
            "the zone file has NS records and addresses of its own, so `nsTtl` does nothing: leave it out, or give the records of the file that TTL"
                .to_owned(),
        ),
        "nameservers" if own.ns => dropped(source, zone),
        _ => None,
    }
}

/// Names the name servers that the NS records of the file leave out.
fn dropped(source: &ZoneSource, zone: &Zone) -> Option<String> {
    let served = zone.delegation().nameservers;
    let servers = source.spec.nameservers.iter();
    let left_out: Vec<_> = servers
        .filter(|server| !served.contains(&server.name))
        .collect();
    if left_out.is_empty() {
        return None;
    }
    let is_inside = |name: NameRef<'_>| name.is_at_or_below(zone.apex().as_ref());
    let has_addresses = left_out
        .iter()
        .any(|server| is_inside(server.name.as_ref()) && !server.addresses.is_empty());
    let shown = left_out.iter().take(SHOWN);
    let shown: Vec<String> = shown.map(|server| format!("`{}`", server.name)).collect();
    let more = match left_out.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let addresses = if has_addresses {
        "; their addresses are answered all the same"
    } else {
        ""
    };
    Some(format!(
        "the zone file has NS records of its own, without {}{more}, which is no name server of the zone{addresses}: add NS records to the file, or leave it out here",
        shown.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::app::load::{Former, Remembered, parse, survey};
    use crate::inventory::ClusterRegistry;

    /// Checks a zone with such a file and such keys, and gives the warnings as they are shown.
    fn check(file: &str, keys: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("z.zone"), file).unwrap();
        let path = folder.path().join("meridian.yaml");
        let text = format!("version: 1\nzones:\n  - {{name: z.example, file: z.zone{keys}}}\n");
        fs::write(&path, text).unwrap();
        let parsed = parse(&path, &mut ClusterRegistry::default()).unwrap();
        let (zones, hash) = (parsed.config.zones.clone(), parsed.hash.clone());
        let survey = survey(parsed, &Former::default(), &Remembered::default());
        assert!(survey.faults.is_empty(), "{:?}", survey.faults);
        let set = &survey.prepared.load.zones;
        let found = warnings((&zones, set), &path, &hash);
        let shown = found.iter().map(|finding| {
            assert_eq!((finding.level, finding.line), ("warning", Some(3)));
            format!("{}: {}", finding.path, finding.message)
        });
        shown.collect()
    }

    const SOA: &str = "@ 300 SOA ns1 h 1 2 3 4 5\n";
    const NS: &str = "@ 300 NS ns1\nns1 300 A 192.0.2.53\n";

    #[test]
    fn keys_that_the_file_says_itself_are_told() {
        let servers = ", nameservers: [{name: ns1.z.example, addresses: [192.0.2.53]}, {name: ns9.z.example, addresses: [192.0.2.59]}]";
        for (file, keys, expected) in [
            (
                SOA,
                ", contact: a.example",
                "contact: the zone file has a SOA record",
            ),
            (
                SOA,
                ", soa: {refresh: 1h}",
                "soa: the zone file has a SOA record",
            ),
            (
                SOA,
                ", negativeTtl: 5",
                "negativeTtl: the zone file has a SOA record",
            ),
            ("", ", nsTtl: 60", "nsTtl: the zone file has NS records"),
            (
                "",
                servers,
                "nameservers: the zone file has NS records of its own, without `ns9.z.example`",
            ),
        ] {
            let found = check(&format!("{file}{NS}"), keys);
            assert_eq!(found.len(), 1, "{keys}: {found:?}");
            assert!(
                found[0].starts_with(&format!("zones[0].{expected}")),
                "{found:?}"
            );
        }
        let found = check(NS, servers);
        assert!(
            found[0].contains("their addresses are answered"),
            "{found:?}"
        );
    }

    #[test]
    fn keys_of_which_something_is_made_are_not() {
        let server = ", nameservers: [{name: ns1.z.example, addresses: [192.0.2.53]}]";
        for (file, keys) in [
            (
                NS,
                ", contact: a.example, soa: {refresh: 1h}, negativeTtl: 5",
            ),
            ("@ 300 NS ns1\n", &*format!("{server}, nsTtl: 60")),
            (SOA, &*format!("{server}, nsTtl: 60")),
            (NS, server),
        ] {
            assert_eq!(check(file, keys), Vec::<String>::new(), "{file}{keys}");
        }
    }
}
