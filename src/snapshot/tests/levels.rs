//! Names of levels, against a slow reference that writes all of them down.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::snapshot::AtLevel;
use crate::snapshot::levels::{Levels, MAX_AREAS};
use crate::zone::NameForms;
use crate::zone::testing::zone_making;

/// A region and zones, by cluster.
type Places = Vec<(Option<&'static str>, Vec<&'static str>)>;

/// What stands at a name: the service and the sets of clusters that are looked at; `None`: names lie below.
type Standing = Option<(String, Vec<Vec<u16>>)>;

const LABELS: [&str; 8] = ["eu", "us", "a", "b", "svc", "shop", "web", "x"];

fn levels_of(kubefed: bool) -> Vec<Arc<Zone>> {
    let forms = NameForms {
        kubefed,
        ..NameForms::default()
    };
    vec![zone_making("z", forms), zone("y", "")]
}

fn places() -> impl Strategy<Value = Places> {
    let region = select(vec![
        None,
        Some("eu"),
        Some("US"),
        Some("a"),
        Some("svc"),
        Some("e.u"),
    ]);
    let zones = prop::collection::vec(select(vec!["a", "B", "eu", "svc", "a.b", ""]), 0..3);
    prop::collection::vec((region, zones), 1..5)
}

fn as_clusters(places: &Places) -> Vec<(ClusterIndex, Arc<Cluster>)> {
    let clusters = (0..).zip(places);
    clusters
        .map(|(index, (region, zones))| {
            let id: String = format!("c{index}");
            let cluster = Cluster {
                region: region.map(Into::into),
                zones: zones.iter().map(|zone| (*zone).into()).collect(),
                ..Cluster::named(id.parse().unwrap())
            };
            (ClusterIndex(index), Arc::new(cluster))
        })
        .collect()
}

/// Lists every area with its sets of clusters.
fn areas(places: &Places) -> BTreeMap<String, Vec<Vec<u16>>> {
    let is_label = |text: &&str| !text.is_empty() && !text.contains('.');
    let lower = |text: &str| text.to_ascii_lowercase();
    let region = |at: usize| places[at].0.filter(is_label).map(lower);
    let has_zone = |at: usize, zone: &str| {
        let mut zones = places[at].1.iter().filter(|zone| is_label(zone));
        zones.any(|own| lower(own) == zone)
    };
    let all: Vec<usize> = (0..places.len()).collect();
    let those = |is: &dyn Fn(usize) -> bool| -> Vec<u16> {
        let matching = all.iter().copied().filter(|at| is(*at));
        matching.map(|at| u16::try_from(at).unwrap()).collect()
    };
    let regions: BTreeSet<String> = all.iter().filter_map(|at| region(*at)).collect();
    let zones = places
        .iter()
        .flat_map(|(_, zones)| zones)
        .filter(|zone| is_label(zone));
    let zones: BTreeSet<String> = zones.map(|zone| lower(zone)).collect();
    let mut areas = BTreeMap::new();
    for wanted in &regions {
        let own = those(&|at| region(at).as_ref() == Some(wanted));
        areas.insert(wanted.clone(), vec![own.clone()]);
        for zone in &zones {
            let narrow = those(&|at| region(at).as_ref() == Some(wanted) && has_zone(at, zone));
            if !narrow.is_empty() {
                areas.insert(format!("{zone}.{wanted}"), vec![narrow, own.clone()]);
            }
        }
    }
    for zone in zones.iter().filter(|zone| !regions.contains(*zone)) {
        let narrow = those(&|at| has_zone(at, zone));
        let around: BTreeSet<_> = narrow
            .iter()
            .filter_map(|at| region((*at).into()))
            .collect();
        let wide = those(&|at| {
            has_zone(at, zone) || region(at).is_some_and(|region| around.contains(&region))
        });
        areas.insert(zone.clone(), vec![narrow, wide]);
    }
    areas
}

/// Lists every area there is and those there were before, which are answered by their regions or by all clusters.
fn areas_after(before: &Places, places: &Places) -> BTreeMap<String, Vec<Vec<u16>>> {
    let now = areas(places);
    let mut all = now.clone();
    for area in areas(before).into_keys() {
        let region = area.split_once('.').and_then(|(_, region)| now.get(region));
        all.entry(area)
            .or_insert_with(|| region.cloned().unwrap_or_default());
    }
    all
}

/// Writes down every name of a level, and what it stands for.
fn reference(
    areas: BTreeMap<String, Vec<Vec<u16>>>,
    services: &[&str],
) -> BTreeMap<String, Standing> {
    let mut names: BTreeMap<String, Standing> = BTreeMap::new();
    for (area, steps) in areas {
        for service in services {
            let whole = format!("{service}.svc.{area}.z");
            let mut above = whole.as_str();
            while let Some((_, rest)) = above.split_once('.').filter(|(_, rest)| *rest != "z") {
                names.entry(rest.to_owned()).or_default();
                above = rest;
            }
            names.insert(whole, Some(((*service).to_owned(), steps.clone())));
        }
    }
    names
}

/// Asks the snapshot.
fn standing(world: &World, text: &str) -> Option<Standing> {
    let wanted = name(text);
    let zone = world.zones.find(wanted.as_ref())?;
    Some(match world.snapshot.at_level(zone, wanted.as_ref())? {
        AtLevel::Between => None,
        AtLevel::Service { service, area, .. } => {
            let service = world.inventory.service(service).unwrap();
            let steps = world.snapshot.area(area).unwrap().steps().iter();
            let steps = steps.map(|step| step.clusters.iter().map(|cluster| cluster.0).collect());
            Some((service.key.name().to_owned(), steps.collect()))
        }
    })
}

/// Compares with the reference, at its names and at others like them.
fn compare(
    world: &World,
    areas: BTreeMap<String, Vec<Vec<u16>>>,
    services: &[&str],
) -> Result<(), TestCaseError> {
    let expected = reference(areas, services);
    let mut asked: BTreeSet<String> = expected.keys().cloned().collect();
    for text in expected.keys() {
        let (first, rest) = text.split_once('.').unwrap();
        for label in LABELS {
            asked.insert(format!("{label}.{text}"));
            asked.insert(format!("{label}.{rest}"));
            asked.insert(format!("{first}.{label}.{rest}"));
        }
    }
    for text in asked {
        prop_assert_eq!(
            standing(world, &text),
            expected.get(&text).cloned(),
            "{}",
            text
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn levels_are_those_of_the_reference_whatever_comes_and_goes(
        first in places(),
        second in places(),
        services in prop::collection::btree_set(select(vec!["web.shop.p", "x.shop.p", "web.svc.p", "a.b.svc", "svc.svc.svc"]), 0..4),
    ) {
        let mut world = World::new(levels_of(true));
        let services: Vec<&str> = services.into_iter().collect();
        let made = services.iter().map(|service| plain(service, &[&format!("{service}.svc.z")]));
        world.apply(Change::Clusters(as_clusters(&first)));
        world.apply(Change::Replace(made.collect()));
        prop_assert_eq!(world.publish(), Vec::<String>::new());
        compare(&world, areas(&first), &services)?;
        world.apply(Change::Clusters(as_clusters(&second)));
        world.publish();
        compare(&world, areas_after(&first, &second), &services)?;
    }
}

#[test]
fn levels_are_of_the_zones_that_make_such_names_and_come_with_a_reload() {
    let mut world = World::new(levels_of(false));
    world.apply(Change::Clusters(as_clusters(&vec![(Some("eu"), vec![])])));
    let names = ["web.shop.p.svc.z", "web.shop.p.svc.y"];
    world.apply(Change::Replace(vec![plain("web", &names)]));
    world.publish();
    assert!(!world.snapshot.has_levels());
    let held = world.snapshot.names().len();
    let asked = ["web.shop.p.svc.eu.z", "web.shop.p.svc.eu.y", "eu.z"];
    assert_eq!(
        asked.map(|name| standing(&world, name).is_some()),
        [false; 3]
    );
    world.zones = Arc::new(ZoneSet::new(levels_of(true)));
    world.publish();
    assert!(world.snapshot.has_levels());
    assert_eq!(
        asked.map(|name| standing(&world, name).is_some()),
        [true, false, true]
    );
    assert_eq!(
        world.snapshot.names().len(),
        held,
        "a level is no name of the table"
    );
    world.zones = Arc::new(ZoneSet::new(levels_of(false)));
    world.publish();
    assert!(!world.snapshot.has_levels());
}

#[test]
fn a_zone_or_region_that_is_gone_keeps_its_names_and_is_answered_by_the_wider_level() {
    let mut world = World::new(levels_of(true));
    world.apply(Change::Replace(vec![plain("web", &["web.shop.p.svc.z"])]));
    let mut publish = |places: Places| -> Vec<Option<Vec<Vec<u16>>>> {
        world.apply(Change::Clusters(as_clusters(&places)));
        world.publish();
        let asked = ["a.eu", "a", "eu", "us"].into_iter();
        let steps = asked.map(|area| {
            let found = standing(&world, &format!("web.shop.p.svc.{area}.z"))?;
            found.map(|(_, steps)| steps)
        });
        steps.collect()
    };
    let (eu, us) = (vec![0], vec![1]);
    let alone = Some(vec![eu.clone(), eu.clone()]);
    let before = publish(vec![(Some("eu"), vec!["a"]), (Some("us"), vec![])]);
    let whole = [alone.clone(), alone, Some(vec![eu.clone()]), Some(vec![us])];
    assert_eq!(before, whole);
    // The last Node of the zone goes, then both clusters, by a reload and for long.
    let after = publish(vec![(Some("eu"), vec![])]);
    let region = Some(vec![eu]);
    let none = Some(Vec::new());
    assert_eq!(after, [region.clone(), none.clone(), region, none.clone()]);
    for _ in 0..3 {
        assert_eq!(publish(vec![(None, vec![])]), vec![none.clone(); 4]);
    }
    // They come back.
    let again = publish(vec![(Some("eu"), vec!["a"]), (Some("us"), vec![])]);
    assert_eq!(again, whole);
}

#[test]
fn what_was_known_first_is_kept_where_there_is_no_room_for_all() {
    let levels = |zones: Vec<String>, last: &Levels| {
        let mut cluster = Cluster::named("a".parse().unwrap());
        cluster.zones = zones.into_iter().map(Into::into).collect();
        let mut levels = Levels::of(&[Some(Arc::new(cluster))]);
        levels.keep(last);
        levels
    };
    let old = || "zz-old".to_owned();
    let first = levels(vec![old()], &Levels::default());
    let many = (1..MAX_AREAS).map(|number| format!("z{number}"));
    let second = levels(many.chain([old()]).collect(), &first);
    // All of them go, and one that is new has its room.
    let third = levels(vec!["new".to_owned()], &second);
    let fourth = levels(vec!["newer".to_owned()], &third);
    for (levels, areas) in [(&second, "zz-old z1"), (&fourth, "zz-old newer")] {
        for area in areas.split(' ') {
            assert!(levels.has(area), "{area}");
        }
    }
    assert!(!fourth.has("new"));
}
