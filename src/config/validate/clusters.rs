//! `clusters`.

use std::collections::HashMap;
use std::sync::Arc;

use super::atlas::Atlas;
use super::members::{self, Membership};
use super::{Files, groups, read};
use crate::config::faults::Report;
use crate::config::spec::{Fields, Kind, Node, fields, hint, nearest, v1};
use crate::inventory::ClusterRegistry;
use crate::model::{
    Cluster, ClusterId, ClusterIndex, ClusterSelector, Continent, Coordinates, CountryCode, Groups,
    Location, Provider, parse_tag,
};
use crate::source::kubernetes::{Access, MemberConfig};

/// The clusters as other sections need them.
#[derive(Debug, Default)]
pub(super) struct Clusters<'t, 'a> {
    list: Vec<(ClusterIndex, Arc<Cluster>)>,
    nodes: Vec<Node<'t, 'a>>,
    memberships: Vec<Membership>,
    /// Name to position in the lists.
    by_name: HashMap<Box<str>, usize>,
    /// Index to position in the lists.
    by_index: HashMap<ClusterIndex, usize>,
    /// A cluster's name could not be read: an unknown name may be that one's.
    is_partial: bool,
    /// One is a member, or is meant to be, or may be found.
    has_members: bool,
    /// More may be found, and those written here may be found too.
    is_open: bool,
}

/// A cluster, and who tells of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'s> {
    pub(super) cluster: &'s Cluster,
    /// What this file leaves out, its Nodes may tell.
    pub(super) is_member: bool,
}

impl<'t, 'a> Clusters<'t, 'a> {
    /// Finds a cluster; an unknown name is a fault that names a near one. `Err` without a fault where a cluster's own name
    /// could not be read.
    pub(super) fn find(
        &self,
        node: Node<'_, '_>,
        name: &str,
        report: &mut Report,
    ) -> Option<&(ClusterIndex, Arc<Cluster>)> {
        let found = self.by_name.get(name).and_then(|at| self.list.get(*at));
        if found.is_none() && report.is_full() {
            report.fault(node, "no such cluster");
        } else if found.is_none() && !self.is_partial {
            let hint = hint(name, self.names());
            let all = match self.list.len() {
                0 => "; `clusters` has none".to_owned(),
                1..=8 if hint.is_empty() => {
                    format!(
                        "; there are {}",
                        self.names().collect::<Vec<_>>().join(", ")
                    )
                }
                _ => String::new(),
            };
            let all = if self.is_open {
                format!(
                    "{all}; one that `clustersFrom` finds is written there too, if only by its name"
                )
            } else {
                all
            };
            report.fault(
                node,
                format_args!("no cluster is called `{name}`{hint}{all}"),
            );
        }
        found
    }

    /// Gives the cluster with an index.
    pub(super) fn by_index(&self, index: ClusterIndex) -> Option<Known<'_>> {
        self.known(*self.by_index.get(&index)?)
    }

    /// Gives the cluster at a position.
    fn known(&self, at: usize) -> Option<Known<'_>> {
        let (_, cluster) = self.list.get(at)?;
        Some(Known {
            cluster,
            is_member: self.is_open || *self.memberships.get(at)? != Membership::Outside,
        })
    }

    /// Iterates over the clusters.
    fn all(&self) -> impl Iterator<Item = Known<'_>> {
        (0..self.list.len()).filter_map(|at| self.known(at))
    }

    /// Lists the names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|(_, cluster)| cluster.id.as_str())
    }

    /// Tells whether a selector may match any cluster, or might match one whose name could not be read.
    pub(super) fn any_match(&self, selector: &ClusterSelector, groups: &Groups) -> bool {
        self.is_partial || self.is_open || self.all().any(|known| known.may_match(selector, groups))
    }

    /// Tells whether a bare word is the name, a tag or the region of a cluster that is written.
    pub(super) fn is_word(&self, selector: &ClusterSelector, groups: &Groups) -> bool {
        self.all().any(|known| known.may_match(selector, groups))
    }

    /// Notes that more clusters may be found than are written, and that those written may have a kubeconfig elsewhere.
    pub(super) fn expect_more(&mut self) {
        self.is_open = true;
        self.has_members = true;
    }

    /// Tells whether a cluster is watched, or may be once its faults are gone.
    pub(super) fn has_members(&self) -> bool {
        self.has_members
    }

    /// Tells whether a cluster of this name is not watched.
    pub(super) fn is_outside(&self, name: &str) -> bool {
        let at = self.by_name.get(name);
        at.and_then(|at| self.known(*at))
            .is_some_and(|known| !known.is_member)
    }

    /// Gives how the API server of a cluster is reached, by its name; `None`: it is not.
    pub(super) fn access(&self, name: &str) -> Option<&Access> {
        match self.memberships.get(*self.by_name.get(name)?)? {
            Membership::Member(access) => Some(access),
            Membership::Outside | Membership::Faulty => None,
        }
    }

    /// Lists the members, in the order written.
    pub(super) fn members(&self) -> Vec<MemberConfig> {
        let all = self.list.iter().zip(&self.memberships);
        all.filter_map(|((index, cluster), membership)| match membership {
            Membership::Member(access) => {
                let id = cluster.id.clone();
                Some(MemberConfig::new(*index, id, access.clone()))
            }
            Membership::Outside | Membership::Faulty => None,
        })
        .collect()
    }

    /// Lists the clusters without coordinates, with their places; but those whose Nodes may tell.
    pub(super) fn without_coordinates(&self) -> impl Iterator<Item = (&Cluster, Node<'t, 'a>)> {
        let all = self.all().zip(&self.nodes);
        all.filter(|(known, _)| !known.is_member)
            .map(|(known, node)| (known.cluster, *node))
            .filter(|(cluster, _)| cluster.location.coordinates.is_none())
    }

    /// Hands over the list.
    pub(super) fn into_list(self) -> Vec<(ClusterIndex, Arc<Cluster>)> {
        self.list
    }
}

impl Known<'_> {
    /// Tells whether a selector matches, or may once the Nodes have told what this file leaves out.
    pub(super) fn may_match(&self, selector: &ClusterSelector, groups: &Groups) -> bool {
        let Self { cluster, is_member } = *self;
        let place = &cluster.location;
        let or_open = |is_match: bool, is_open: bool| is_match || is_member && is_open;
        match selector {
            ClusterSelector::Any => true,
            ClusterSelector::Cluster(id) => *id == cluster.id,
            ClusterSelector::Tag(tag) => or_open(cluster.tags.contains(tag), true),
            ClusterSelector::Word(word) => or_open(
                cluster.id.as_str() == &**word
                    || cluster.tags.contains(word)
                    || cluster.region.as_ref() == Some(word),
                false,
            ),
            ClusterSelector::Region(region) => or_open(
                cluster.region.as_ref() == Some(region),
                cluster.region.is_none(),
            ),
            ClusterSelector::Zone(zone) => {
                or_open(cluster.zones.contains(zone), cluster.zones.is_empty())
            }
            ClusterSelector::Provider(provider) => or_open(
                cluster.provider.as_ref() == Some(provider),
                cluster.provider.is_none(),
            ),
            ClusterSelector::Country(country) => {
                or_open(place.country == Some(*country), place.country.is_none())
            }
            ClusterSelector::Subdivision(subdivision) => or_open(
                place.subdivision == Some(*subdivision),
                place.subdivision.is_none(),
            ),
            ClusterSelector::Continent(continent) => or_open(
                place.continent == Some(*continent),
                place.continent.is_none(),
            ),
            ClusterSelector::Group(group) => place
                .country
                .map_or(is_member, |country| groups.contains(group, country)),
        }
    }
}

/// Checks `clusters`. Each gets the index that its name ever had.
pub(super) fn read<'t, 'a>(
    node: Option<Node<'t, 'a>>,
    (atlas, files): (&Atlas, &Files),
    registry: &mut ClusterRegistry,
    report: &mut Report,
) -> Clusters<'t, 'a> {
    let mut clusters = Clusters::default();
    let mut seen = members::Seen::default();
    let Some(node) = node else { return clusters };
    let _: Vec<()> = read::list(node, report, |item, report| {
        let Some(fields) = fields(item, &v1::CLUSTER, report) else {
            clusters.is_partial = true;
            clusters.has_members = true;
            return None;
        };
        let cluster = cluster(fields, atlas, report);
        let membership = members::read(fields, files, report);
        clusters.has_members |= membership != Membership::Outside;
        let name = fields.get("name");
        let id = name.and_then(|node| cluster_id(node, report));
        let Some((id, name)) = id.zip(name) else {
            clusters.is_partial = true;
            return None;
        };
        let Some(index) = registry.index_of(&id) else {
            report.fault(
                name,
                "too many clusters: at most 65,535 names in the life of the process",
            );
            return None;
        };
        if clusters
            .by_name
            .insert(id.as_str().into(), clusters.list.len())
            .is_some()
        {
            report.fault(name, format_args!("the cluster `{id}` is written twice"));
        }
        if let Membership::Member(access) = &membership {
            seen.note(&id, access, fields, report);
        }
        clusters.memberships.push(membership);
        clusters.by_index.insert(index, clusters.list.len());
        clusters.list.push((index, Arc::new(cluster(id))));
        clusters.nodes.push(item);
        None
    });
    clusters
}

/// Reads a cluster's name.
pub(super) fn cluster_id(node: Node<'_, '_>, report: &mut Report) -> Option<ClusterId> {
    let text = read::text(node, report)?;
    text.parse()
        .map_err(|error| report.fault(node, format_args!("`{text}`: {error}")))
        .ok()
}

/// Checks one cluster; its name makes it whole.
fn cluster(
    fields: Fields<'_, '_>,
    atlas: &Atlas,
    report: &mut Report,
) -> impl FnOnce(ClusterId) -> Cluster + use<> {
    let label = |name: &str, report: &mut Report| {
        fields
            .get(name)
            .and_then(|node| read::label(node, report))
            .map(Box::<str>::from)
    };
    let (region, provider) = (label("region", report), label("provider", report));
    let own = fields
        .get("location")
        .map(|node| location(node, atlas, report));
    let of_region = region_location(
        fields,
        region.as_deref(),
        provider.as_deref(),
        atlas,
        report,
    );
    let zones = fields.get("zones").map_or_else(Vec::new, |node| {
        read::list(node, report, |item, report| {
            read::label(item, report).map(Box::from)
        })
    });
    let tags = fields.get("tags").map_or_else(Vec::new, |node| {
        read::list(node, report, |item, report| {
            let text = read::text(item, report)?;
            let tag =
                parse_tag(text).map_err(|why| report.fault(item, format_args!("`{text}`: {why}")));
            tag.ok()
        })
    });
    let cost = fields
        .get("cost")
        .and_then(|node| read::number(node, 0.0..=40_000.0, report));
    let location = merge(own, of_region);
    move |id| Cluster {
        id,
        location,
        region,
        provider,
        zones,
        tags,
        cost_km: cost.unwrap_or(0.0),
    }
}

/// Other words for providers, with the one that is known.
const ALIASES: [(&str, Provider); 7] = [
    ("amazon", Provider::Aws),
    ("google", Provider::Gcp),
    ("microsoft", Provider::Azure),
    ("aliyun", Provider::Alibaba),
    ("oracle", Provider::Oci),
    ("akamai", Provider::Linode),
    ("do", Provider::DigitalOcean),
];

/// Says why a cluster has no place, and what would give it one.
pub(super) fn placeless(cluster: &Cluster) -> String {
    let unknown = cluster.provider.as_deref().map(str::parse::<Provider>);
    let (Some(Err(why)), Some(_)) = (unknown, &cluster.region) else {
        return "give `location`, or `provider` and `region`".to_owned();
    };
    let written = cluster.provider.as_deref().unwrap_or_default();
    let meant = ALIASES.iter().find(|(word, _)| *word == written);
    let hint = meant.map(|(_, provider)| format!("; did you mean `{provider}`?"));
    format!("{why}{}", hint.unwrap_or_default())
}

/// Looks up a cluster's region. Without `location` an unknown region of a known provider is a fault: the cluster would
/// silently have no place.
fn region_location(
    fields: Fields<'_, '_>,
    region: Option<&str>,
    provider: Option<&str>,
    atlas: &Atlas,
    report: &mut Report,
) -> Option<Location> {
    let (region, node) = region.zip(fields.get("region"))?;
    let has_location = fields.get("location").is_some();
    let provider = match provider.map(str::parse::<Provider>) {
        Some(Ok(provider)) => provider,
        Some(Err(why)) if !has_location => {
            let near = nearest(provider?, Provider::ALL.map(Provider::as_str));
            // Near a known name it is a slip; else a cloud of its own, whose regions are mere names.
            if let Some(near) = near {
                let place = fields.get("provider").unwrap_or(node);
                report.fault(place, format_args!("{why}; did you mean `{near}`?"));
            }
            return None;
        }
        _ => return None,
    };
    let found = (atlas.region)(provider, region);
    if found.is_none() && !has_location {
        let names = (atlas.regions)(provider);
        let hint = hint(region, names);
        report.fault(node, format_args!("`{region}` is no region of {provider} in the built-in table{hint}; else give `location`"));
    }
    found
}

/// Checks `location`.
fn location(node: Node<'_, '_>, atlas: &Atlas, report: &mut Report) -> Location {
    let Some(fields) = fields(node, &v1::LOCATION, report) else {
        return Location::default();
    };
    let country = fields
        .get("country")
        .and_then(|node| groups::country(node, atlas, report));
    let continent = fields
        .get("continent")
        .and_then(|node| continent(node, report));
    let coordinates = coordinates(fields, report);
    let known = country.and_then(atlas.country);
    check_continent(fields, country.zip(known), report);
    if node.kind() == Kind::Map && node.entries().next().is_none() {
        report.fault(
            node,
            "a location needs `latitude` and `longitude`, or `country`, or `continent`",
        );
    }
    Location {
        coordinates: coordinates.or_else(|| known.map(|(_, center)| center)),
        continent: continent.or_else(|| known.map(|(continent, _)| continent)),
        country,
        ..Location::default()
    }
}

/// Warns of a continent that the country does not lie in.
pub(super) fn check_continent(
    fields: Fields<'_, '_>,
    known: Option<(CountryCode, (Continent, Coordinates))>,
    report: &mut Report,
) {
    let Some(((country, (right, _)), node)) = known.zip(fields.get("continent")) else {
        return;
    };
    if node
        .text()
        .parse()
        .is_ok_and(|said: Continent| said != right)
    {
        report.warn(node, format_args!("`{}` beside country {country}, which lies in {right}: write {right}, or leave `continent` out", node.text()));
    }
}

/// Reads `latitude` and `longitude`, which come together.
pub(super) fn coordinates(fields: Fields<'_, '_>, report: &mut Report) -> Option<Coordinates> {
    let (latitude, longitude) = (fields.get("latitude"), fields.get("longitude"));
    if let (Some(only), None, missing) | (None, Some(only), missing) = (
        latitude,
        longitude,
        if latitude.is_some() {
            "longitude"
        } else {
            "latitude"
        },
    ) {
        // A repeated or empty twin has its own fault already.
        if !fields.node.entries().any(|(key, _)| key.text() == missing) {
            report.fault(
                only,
                format_args!("`latitude` and `longitude` come together: `{missing}` is missing"),
            );
        }
    }
    let latitude = latitude.and_then(|node| read::number(node, -90.0..=90.0, report));
    let longitude = longitude.and_then(|node| read::number(node, -180.0..=180.0, report));
    Coordinates::new(latitude?, longitude?).ok()
}

/// Reads a continent.
pub(super) fn continent(node: Node<'_, '_>, report: &mut Report) -> Option<Continent> {
    let text = read::text(node, report)?;
    text.parse()
        .map_err(|error: crate::model::PlaceError| report.fault(node, error))
        .ok()
}

/// Fills what `location` leaves out from the region.
fn merge(own: Option<Location>, of_region: Option<Location>) -> Location {
    match (own, of_region) {
        (Some(own), Some(region)) => {
            // A subdivision lies in its country: not in another one that the operator names.
            let is_there = own.country.is_none() || own.country == region.country;
            Location {
                coordinates: own.coordinates.or(region.coordinates),
                continent: own.continent.or(region.continent),
                country: own.country.or(region.country),
                subdivision: region.subdivision.filter(|_| is_there),
                ..Location::default()
            }
        }
        (own, region) => own.or(region).unwrap_or_default(),
    }
}
