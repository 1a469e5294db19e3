//! `zones`.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::{Files, acme, read};
use crate::config::checked::ZoneSource;
use crate::config::faults::Report;
use crate::config::spec::{Fields, Node, fields, v1};
use crate::model::{LowerName, NameRef, Ttl};
use crate::zone::{AcmeTarget, NameForms, Nameserver, SoaTimers, ZoneSpec};

/// Greatest TTL and SOA number in seconds (RFC 2181 section 8).
const MAX_SECONDS: u32 = 0x7fff_ffff;
/// Longest TTL of steered and negative answers.
const MAX_TTL: u32 = 86_400;

/// The zones as far as other sections need them.
#[derive(Debug, Default)]
pub(super) struct Zones {
    /// In wire form.
    apexes: HashSet<Box<[u8]>>,
    /// A zone's name could not be read: what lies in no zone may lie in that one.
    is_partial: bool,
    /// Where the challenges of a zone's names are answered, by apex.
    acme: HashMap<LowerName, AcmeTarget>,
}

impl Zones {
    /// Tells whether a name lies in one of our zones.
    pub(super) fn hold(&self, name: NameRef<'_>) -> bool {
        self.is_partial
            || std::iter::successors(Some(name), |name| name.parent())
                .any(|name| self.has_apex(name))
    }

    /// Tells whether a name is the apex of one of our zones.
    pub(super) fn has_apex(&self, name: NameRef<'_>) -> bool {
        // Names of services and zones are both in lower case.
        self.apexes.contains(name.as_wire())
    }

    /// Finds the zone that a name belongs to: the longest.
    pub(super) fn longest<'n>(&self, name: NameRef<'n>) -> Option<NameRef<'n>> {
        std::iter::successors(Some(name), |name| name.parent()).find(|name| self.has_apex(*name))
    }

    /// Gives where the challenge of a name is answered, and the apex of its zone.
    pub(super) fn acme_of(&self, name: NameRef<'_>) -> Option<(&AcmeTarget, &LowerName)> {
        if self.acme.is_empty() {
            return None;
        }
        let (apex, target) = self.acme.get_key_value(&self.longest(name)?.to_lower())?;
        Some((target, apex))
    }

    /// Names the zones, for messages.
    pub(super) fn names(&self) -> String {
        const SHOWN: usize = 5;
        let mut names: Vec<String> = self
            .apexes
            .iter()
            .map(|apex| NameRef::from_checked(apex).to_string())
            .collect();
        names.sort();
        let more = names.len().saturating_sub(SHOWN);
        names.truncate(SHOWN);
        match (names.len(), more) {
            (0, _) => "there are none".to_owned(),
            (_, 0) => format!("there are {}", names.join(", ")),
            _ => format!("there are {} and {more} more", names.join(", ")),
        }
    }
}

/// A zone as written, for those who read more of it once all zones are known.
#[derive(Clone, Debug)]
pub(super) struct Written<'t, 'a> {
    /// `None`: its name could not be read.
    pub(super) apex: Option<LowerName>,
    pub(super) fields: Fields<'t, 'a>,
}

/// The zones, for all who want something of them.
pub(super) struct Read<'t, 'a> {
    pub(super) sources: Vec<ZoneSource>,
    pub(super) zones: Zones,
    pub(super) written: Vec<Written<'t, 'a>>,
}

/// Checks `zones`; what they say of Kubernetes is left to `federation`.
pub(super) fn read<'t, 'a>(
    node: Option<Node<'t, 'a>>,
    files: &Files,
    report: &mut Report,
) -> Read<'t, 'a> {
    let mut zones = Zones::default();
    let mut places = HashMap::new();
    let mut written = Vec::new();
    let sources = node.map_or_else(Vec::new, |node| {
        read::list(node, report, |item, report| {
            let Some(fields) = fields(item, &v1::ZONE, report) else {
                zones.is_partial = true;
                return None;
            };
            let name = fields.get("name");
            let apex = name.and_then(|node| read::domain(node, report));
            if let Some((apex, name)) = apex.as_ref().zip(name) {
                if !zones.apexes.insert(apex.as_wire().into()) {
                    report.fault(name, format_args!("the zone `{apex}` is written twice"));
                }
                places.insert(apex.clone(), name);
            }
            zones.is_partial |= apex.is_none();
            written.push(Written {
                apex: apex.clone(),
                fields,
            });
            let zone = zone(fields, apex, files, report)?;
            if let Some(target) = &zone.spec.acme {
                zones.acme.insert(zone.spec.apex.clone(), target.clone());
            }
            Some(zone)
        })
    });
    check_parents(&sources, &places, report);
    Read {
        sources,
        zones,
        written,
    }
}

/// Refuses a child zone whose parent cannot hold the zone cut, having no master file (DESIGN section 7).
fn check_parents(
    sources: &[ZoneSource],
    places: &HashMap<LowerName, Node<'_, '_>>,
    report: &mut Report,
) {
    let with_file: HashMap<&LowerName, bool> = sources
        .iter()
        .map(|zone| (&zone.spec.apex, zone.file.is_some()))
        .collect();
    for zone in sources {
        let apex = &zone.spec.apex;
        let above = std::iter::successors(apex.as_ref().parent(), |name| name.parent());
        let parent = above
            .map(NameRef::to_lower)
            .find(|name| with_file.contains_key(name));
        let Some(parent) = parent.filter(|parent| with_file.get(parent) == Some(&false)) else {
            continue;
        };
        if let Some(node) = places.get(apex) {
            report.fault(
                *node,
                format_args!("lies in the zone `{parent}`, which has no `file` that could delegate it: give that zone a file with NS records for `{apex}`"),
            );
        }
    }
}

/// Checks one zone, also one whose name could not be read.
fn zone(
    fields: Fields<'_, '_>,
    apex: Option<LowerName>,
    files: &Files,
    report: &mut Report,
) -> Option<ZoneSource> {
    let file = fields.get("file").and_then(|node| files.path(node, report));
    let nameservers = match fields.get("nameservers") {
        Some(node) => nameservers(node, apex.as_ref(), report),
        None => Vec::new(),
    };
    let is_empty = fields
        .get("nameservers")
        .is_none_or(|node| node.items().next().is_none());
    if is_empty && fields.get("file").is_none() {
        let place = fields.get("nameservers").unwrap_or(fields.node);
        report.fault(
            place,
            "a zone needs `nameservers`, such as [{name: ns1.example.com, addresses: [192.0.2.53]}], or a `file` with NS records",
        );
    }
    let contact = fields.get("contact").and_then(|node| contact(node, report));
    let read_ttl = |name: &str, range, default, report: &mut Report| {
        let written = fields
            .get(name)
            .and_then(|node| read::ttl(node, range, report));
        written.or_else(|| Ttl::new(default)).unwrap_or(Ttl::BRIEF)
    };
    let soa = soa(fields.get("soa"), report);
    let ns_ttl = read_ttl("nsTtl", 0..=MAX_SECONDS, 3600, report);
    let ttl = read_ttl("ttl", 1..=MAX_TTL, 30, report);
    let negative_ttl = read_ttl("negativeTtl", 0..=MAX_TTL, 30, report);
    let acme = acme::read(fields.get("acme"), apex.as_ref(), report);
    let spec = |apex| ZoneSpec {
        soa,
        ns_ttl,
        ttl,
        negative_ttl,
        apex,
        nameservers,
        contact,
        file: None,
        serial: 0,
        acme,
        forms: name_forms(fields),
    };
    apex.map(|apex| ZoneSource {
        spec: spec(apex),
        file,
    })
}

/// Tells which names are answered beside those that Kubernetes claims; `federation` checks what is written.
fn name_forms(fields: Fields<'_, '_>) -> NameForms {
    let lists = |form: &str| {
        let names = fields.get("names");
        names.is_some_and(|node| node.items().any(|item| item.text() == form))
    };
    NameForms {
        kubefed: lists(v1::KUBEFED),
        cluster_set: lists(v1::CLUSTER_SET),
    }
}

/// Checks the name servers of a zone.
fn nameservers(
    node: Node<'_, '_>,
    apex: Option<&LowerName>,
    report: &mut Report,
) -> Vec<Nameserver> {
    let mut seen = HashSet::new();
    read::list(node, report, |item, report| {
        let fields = fields(item, &v1::NAMESERVER, report)?;
        let written = fields.get("addresses");
        let addresses =
            written.map_or_else(Vec::new, |node| read::list(node, report, read::address));
        let name = fields
            .get("name")
            .and_then(|node| server_name(node, report))?;
        if !seen.insert(name.clone()) {
            report.fault(
                item,
                format_args!("the name server `{name}` is written twice"),
            );
        }
        let Some(apex) = apex else {
            return Some(Nameserver { name, addresses });
        };
        let is_inside = name.as_ref().is_at_or_below(apex.as_ref());
        if is_inside && written.is_none_or(|node| node.items().next().is_none()) {
            report.fault(
                item,
                format_args!("`{name}` lies in the zone `{apex}`, so it needs `addresses`"),
            );
        }
        if let (false, Some(node)) = (is_inside || addresses.is_empty(), written) {
            report.warn(
                node,
                format_args!(
                    "`{name}` lies outside the zone `{apex}`: these addresses are not served here"
                ),
            );
        }
        Some(Nameserver { name, addresses })
    })
}

/// Reads the name of a name server.
fn server_name(node: Node<'_, '_>, report: &mut Report) -> Option<LowerName> {
    let Some(address) = read::written_address(node) else {
        return read::hostname(node, report);
    };
    report.fault(
        node,
        format_args!("`{address}` is an address; write a name such as ns1.example.com here, and the address below `addresses`"),
    );
    None
}

/// Checks `contact`: a name, or a mail address whose dots before the `@` become part of one label (RFC 1035 section 5.3).
fn contact(node: Node<'_, '_>, report: &mut Report) -> Option<LowerName> {
    let text = read::text(node, report)?;
    let parsed = match text.split_once('@') {
        None => text.parse::<LowerName>(),
        Some((local, domain)) => domain.parse::<LowerName>().and_then(|domain| {
            if local.is_ascii() {
                domain.prepend(local.as_bytes())
            } else {
                Err(crate::model::NameError::NotAscii)
            }
        }),
    };
    let fits = |name: &LowerName| {
        !name.as_ref().is_root() && text.bytes().all(|octet| octet.is_ascii_graphic())
    };
    match parsed {
        Ok(name) if fits(&name) => Some(name),
        Ok(_) => {
            report.fault(
                node,
                "a mail address such as hostmaster@example.com is wanted",
            );
            None
        }
        Err(error) => {
            report.fault(
                node,
                format_args!(
                    "`{text}`: a mail address such as hostmaster@example.com is wanted: {error}"
                ),
            );
            None
        }
    }
}

/// Checks `soa`.
fn soa(node: Option<Node<'_, '_>>, report: &mut Report) -> SoaTimers {
    let fields = node.and_then(|node| fields(node, &v1::SOA, report));
    let mut seconds = |name: &str, least: u32, default: u32| {
        let node = fields.and_then(|fields| fields.get(name));
        node.and_then(|node| read::seconds(node, least..=MAX_SECONDS, report))
            .unwrap_or(default)
    };
    SoaTimers {
        ttl: Ttl::new(seconds("ttl", 0, 3600)).unwrap_or(Ttl::MAX),
        refresh: Duration::from_secs(seconds("refresh", 1, 3600).into()),
        retry: Duration::from_secs(seconds("retry", 1, 600).into()),
        expire: Duration::from_secs(seconds("expire", 1, 1_209_600).into()),
    }
}
