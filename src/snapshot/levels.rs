//! Regions and zones of the clusters, and what is asked for by a name of one of them (DESIGN section 4.5).
//!
//! The table of names has the name of a whole federation once; names of its levels are taken apart when they are asked for. So a
//! service costs one name whatever regions there are, and a region that comes or goes changes no name. One that was known once stays:
//! the last Node of a zone that goes must not take the names that others ask for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::frozen::Snapshot;
use crate::model::{
    AreaIndex, Cluster, ClusterIndex, NameRef, RecordType, ServiceIndex, ZoneIndex,
};
use crate::zone::{Found, NameTree, level_names};

/// Octets of the longest name.
const MAX_NAME: usize = 255;
/// Most areas, with those that no cluster is in any more.
pub(super) const MAX_AREAS: usize = 65_536;
/// Octets of the longest label.
const MAX_LABEL: usize = 63;

/// The label that all names of federations lie below, in wire form.
const SERVICES: &[u8] = b"\x03svc";

/// One set of clusters that is looked at before wider ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it is, for people: `region eu-west-1`.
    pub what: Box<str>,
    /// Its clusters, ascending.
    pub clusters: Arc<[ClusterIndex]>,
}

/// What one or two labels before the apex say: a region, a zone of a region, or a zone alone. Narrowest step first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    what: Box<str>,
    steps: Box<[Step]>,
}

impl Area {
    /// Gives the sets of clusters, narrowest first; none where no cluster is there, nor around it, any more.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Tells whether a step is what was asked for, and no wider one: where no cluster is any more, all of them are wider.
    #[must_use]
    pub fn is_own(&self, step: usize) -> bool {
        let step = self.steps.get(step);
        step.is_some_and(|step| step.what == self.what)
    }

    /// Says what was asked for.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }
}

/// All areas by their labels in wire form, without the root.
#[derive(Clone, Debug, Default)]
pub(super) struct Levels {
    by_labels: HashMap<Box<[u8]>, AreaIndex, RandomState>,
    areas: Vec<Area>,
}

/// Clusters by what they are in, while areas are made.
type By<'c, K> = BTreeMap<K, BTreeSet<ClusterIndex>>;

impl Levels {
    /// Reads the regions and zones of the clusters. A region or zone whose name is no label has no names.
    pub(super) fn of(clusters: &[Option<Arc<Cluster>>]) -> Self {
        let labels = |cluster: &Cluster| -> (Option<String>, Vec<String>) {
            let region = cluster.region.as_deref().and_then(label);
            let zones = cluster.zones.iter().filter_map(|zone| label(zone));
            (region, zones.collect())
        };
        let clusters = (0..=u16::MAX).map(ClusterIndex).zip(clusters);
        let places =
            clusters.filter_map(|(index, cluster)| Some((index, labels(cluster.as_ref()?))));
        let places: Vec<_> = places.collect();
        let mut regions = By::<&str>::new();
        let mut zones = By::<(&str, Option<&str>)>::new();
        for (index, (region, own)) in &places {
            let region = region.as_deref();
            if let Some(region) = region {
                regions.entry(region).or_default().insert(*index);
            }
            for zone in own {
                zones.entry((zone, region)).or_default().insert(*index);
            }
        }
        let regions: BTreeMap<&str, Step> = regions
            .into_iter()
            .map(|(region, clusters)| (region, step(format!("region {region}"), clusters)))
            .collect();
        let mut levels = Self::default();
        for (region, step) in &regions {
            levels.add(&[region], vec![step.clone()]);
        }
        levels.add_zones(&regions, zones);
        levels
    }

    /// Adds zones with their regions, and those alone that have no region's name.
    fn add_zones(&mut self, regions: &BTreeMap<&str, Step>, zones: By<'_, (&str, Option<&str>)>) {
        let mut alone: BTreeMap<&str, (BTreeSet<ClusterIndex>, BTreeSet<ClusterIndex>)> =
            BTreeMap::new();
        for ((zone, region), clusters) in zones {
            let around = region.and_then(|region| regions.get(region));
            if !regions.contains_key(zone) {
                let (own, wider) = alone.entry(zone).or_default();
                own.extend(&clusters);
                wider.extend(&clusters);
                wider.extend(around.iter().flat_map(|step| step.clusters.iter()));
            }
            if let Some((region, around)) = region.zip(around) {
                let own = step(format!("zone {zone} of region {region}"), clusters);
                self.add(&[zone, region], vec![own, around.clone()]);
            }
        }
        for (zone, (own, wider)) in alone {
            let wider = step(format!("the region of zone {zone}"), wider);
            self.add(&[zone], vec![step(format!("zone {zone}"), own), wider]);
        }
    }

    /// Adds an area.
    fn add(&mut self, labels: &[&str], steps: Vec<Step>) {
        let mut wire = Vec::new();
        for label in labels {
            // 63 octets at most: it was checked.
            wire.push(u8::try_from(label.len()).unwrap_or(0));
            wire.extend_from_slice(label.as_bytes());
        }
        let what = steps
            .first()
            .map_or_else(Box::default, |step| step.what.clone());
        let steps = steps.into();
        self.put(wire.into(), Area { what, steps });
    }

    /// Puts an area at its labels.
    fn put(&mut self, labels: Box<[u8]>, area: Area) {
        // Clusters are 65536 at most, and so are the labels of each: far fewer than 2^32.
        let index = AreaIndex(u32::try_from(self.areas.len()).unwrap_or(u32::MAX));
        self.by_labels.insert(labels, index);
        self.areas.push(area);
    }

    /// Keeps the areas of before that no cluster is in any more, up to a bound: their names are asked for on, and have the answer of
    /// the next wider level. That is the region, where a zone was asked for with one that has clusters, else the whole federation.
    pub(super) fn keep(&mut self, last: &Self) {
        let gone = last.by_labels.iter();
        let gone = gone.filter(|(labels, _)| !self.by_labels.contains_key(*labels));
        // Those that were known longest first.
        let mut gone: Vec<_> = gone.map(|(labels, index)| (index.get(), labels)).collect();
        gone.sort_unstable();
        let room = MAX_AREAS.saturating_sub(self.areas.len());
        for (index, labels) in gone.into_iter().take(room) {
            let Some(area) = last.areas.get(index) else {
                continue;
            };
            let end = labels.first().map_or(0, |length| usize::from(*length) + 1);
            let around = labels.get(end..).and_then(|region| self.find(region));
            let around = around.and_then(|region| self.areas.get(region.get()));
            let kept = Area {
                what: area.what.clone(),
                steps: around.map_or_else(Box::default, |region| region.steps.clone()),
            };
            self.put(labels.clone(), kept);
        }
        self.order_after(last);
    }

    /// Puts the areas into the order in which they were known first: those of before as they stood, and new ones behind them.
    fn order_after(&mut self, last: &Self) {
        let areas = std::mem::take(&mut self.areas).into_iter();
        let mut areas: Vec<Option<Area>> = areas.map(Some).collect();
        let mut all: Vec<_> = std::mem::take(&mut self.by_labels).into_iter().collect();
        all.sort_unstable_by_key(|(labels, index)| {
            let before = last.find(labels).map_or(usize::MAX, AreaIndex::get);
            (before, index.get())
        });
        for (labels, index) in all {
            if let Some(area) = areas.get_mut(index.get()).and_then(Option::take) {
                self.put(labels, area);
            }
        }
    }

    /// Tells whether no cluster has, or had, a region or a zone.
    pub(super) fn is_empty(&self) -> bool {
        self.areas.is_empty()
    }

    /// Tells whether there is an area of one label.
    #[cfg(test)]
    pub(super) fn has(&self, label: &str) -> bool {
        let length = u8::try_from(label.len()).unwrap_or(0);
        let labels = [&[length], label.as_bytes()].concat();
        self.find(&labels).is_some()
    }

    /// Finds an area by its labels in wire form.
    fn find(&self, labels: &[u8]) -> Option<AreaIndex> {
        self.by_labels.get(labels).copied()
    }
}

/// Makes a step.
fn step(what: String, clusters: BTreeSet<ClusterIndex>) -> Step {
    Step {
        what: what.into(),
        clusters: clusters.into_iter().collect(),
    }
}

/// Gives a name of a region or zone as a label of the DNS, in lower case; `None` where it is none.
fn label(text: &str) -> Option<String> {
    let fits = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_');
    let is_label = (1..=MAX_LABEL).contains(&text.len()) && text.bytes().all(fits);
    is_label.then(|| text.to_ascii_lowercase())
}

/// What a name of a level stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtLevel {
    /// A federated service, asked for in an area.
    Service {
        /// Which.
        service: ServiceIndex,
        /// It may be answered as a CNAME.
        is_cname: bool,
        /// Where.
        area: AreaIndex,
    },
    /// Nothing; names of services lie below.
    Between,
}

impl Snapshot {
    /// Tells what stands at a name of a level, in lower case, in a zone of ours; `None`: nothing, nor below. Whatever the table of names
    /// has there goes first. Never allocates.
    #[must_use]
    pub fn at_level(&self, zone: ZoneIndex, name: NameRef<'_>) -> Option<AtLevel> {
        let apex = self.zones.get(zone).filter(|zone| zone.forms().kubefed)?;
        let apex = apex.apex().as_ref();
        let mut is_between = false;
        for level in level_names(name, apex) {
            let Some(area) = self.levels.find(level.area) else {
                continue;
            };
            let Some(found) = self.find_below(level.front, apex) else {
                continue;
            };
            match found.service {
                Some(service) if level.is_whole && found.zone == zone => {
                    let is_cname = found.is_cname;
                    return Some(AtLevel::Service {
                        service,
                        is_cname,
                        area,
                    });
                }
                _ => {
                    let is_ours = !level.is_whole && found.zone == zone;
                    is_between |= is_ours && self.may_have_below(found);
                }
            }
        }
        is_between.then_some(AtLevel::Between)
    }

    /// Gives a region or zone.
    #[must_use]
    pub fn area(&self, index: AreaIndex) -> Option<&Area> {
        self.levels.areas.get(index.get())
    }

    /// Finds the name of some labels and the apex; without labels `svc` and the apex, which all names of federations lie below.
    fn find_below(&self, front: &[u8], apex: NameRef<'_>) -> Option<Found> {
        let mut buffer = [0; MAX_NAME];
        let front = if front.is_empty() { SERVICES } else { front };
        let length = front.len() + apex.as_wire().len();
        let name = buffer.get_mut(..length)?;
        let (start, end) = name.split_at_mut_checked(front.len())?;
        start.copy_from_slice(front);
        end.copy_from_slice(apex.as_wire());
        self.names.find(NameRef::from_checked(name))
    }

    /// Tells whether names of ours may lie below one: below a cut are another zone's, below a DNAME are none (RFC 6672 section 2.4).
    fn may_have_below(&self, found: Found) -> bool {
        let zone = self.zones.get(found.zone);
        let node = zone
            .zip(found.node)
            .and_then(|(zone, node)| zone.node(node));
        node.is_none_or(|node| node.cut.is_none() && node.rrset(RecordType::DNAME).is_none())
    }

    /// Tells whether names of levels may be answered here: a zone makes some, and a cluster has, or had, a region or a zone.
    #[must_use]
    #[inline]
    pub fn has_levels(&self) -> bool {
        self.has_levels
    }
}
