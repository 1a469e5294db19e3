//! Names that zones make of services, and whose they are without grants.

use super::*;
use crate::inventory::NameKeys;

/// A zone of these forms, without grants, for the federation `prod`.
fn zone_of(forms: &[NameForm]) -> ZoneRules {
    ZoneRules {
        forms: forms.to_vec(),
        federation: "prod".parse().ok(),
        ..zone(Vec::new())
    }
}

fn inventory_of(zones: Vec<ZoneRules>) -> Inventory {
    let mut inventory = with(Vec::new());
    inventory.apply(Change::Rules(Arc::new(FederationRules {
        zones,
        ..FederationRules::default()
    })));
    inventory
}

fn names(inventory: &Inventory) -> Vec<String> {
    answers(inventory).into_keys().collect()
}

/// The Service shop/web with what it says of federations and cluster sets.
fn says(federation: Option<&str>, in_cluster_set: Option<bool>) -> Shard {
    Shard {
        keys: Arc::new(NameKeys {
            federation: federation.map(|name| name.parse().unwrap()),
            in_cluster_set,
            ..NameKeys::default()
        }),
        ..web(&[], &["192.0.2.1"])
    }
}

#[test]
fn a_service_has_the_name_of_its_federation_once_whatever_clusters_there_are() {
    use NameForm::{ClusterSet, KubeFed, ServiceNamespace};
    for (forms, federation, in_cluster_set, wanted) in [
        (
            &[KubeFed][..],
            None,
            None,
            &["web.shop.prod.svc.g.example"][..],
        ),
        (
            &[KubeFed],
            Some("Stage"),
            None,
            &["web.shop.stage.svc.g.example"],
        ),
        (&[ClusterSet], None, None, &[]),
        (&[ClusterSet], None, Some(false), &[]),
        (&[ClusterSet], None, Some(true), &["web.shop.svc.g.example"]),
        (
            &[ServiceNamespace, KubeFed, ClusterSet],
            None,
            Some(true),
            &[
                "web.shop.g.example",
                "web.shop.prod.svc.g.example",
                "web.shop.svc.g.example",
            ],
        ),
    ] {
        let mut inventory = inventory_of(vec![zone_of(forms)]);
        for cluster in [0, 1, 2] {
            offer(&mut inventory, cluster, says(federation, in_cluster_set));
        }
        assert_eq!(
            names(&inventory),
            wanted,
            "{forms:?} {federation:?} {in_cluster_set:?}"
        );
        assert_eq!(refusals(&inventory), [""; 0]);
        let keys = answers(&inventory)
            .into_values()
            .map(|(key, all)| (key, all.len()));
        assert!(
            keys.into_iter()
                .all(|found| found == ("shop/web".to_owned(), 3))
        );
    }
    // Without a federation's name, only those that say theirs have one.
    let mut nameless = zone_of(&[KubeFed]);
    nameless.federation = None;
    let mut inventory = inventory_of(vec![nameless]);
    offer(&mut inventory, 0, says(None, None));
    assert_eq!(names(&inventory), [""; 0]);
    offer(&mut inventory, 0, says(Some("a"), None));
    assert_eq!(names(&inventory), ["web.shop.a.svc.g.example"]);
}

#[test]
fn a_name_that_no_zone_makes_is_told() {
    for (federation, in_cluster_set, wanted) in [
        (
            Some("a"),
            None,
            "Service shop/web in a: web.shop.a.svc: no zone makes names of KubeFed: none lists `kubefed` in `names`",
        ),
        (
            None,
            Some(true),
            "Service shop/web in a: web.shop.svc: no zone is that of a cluster set: none lists `clusterset` in `names`",
        ),
    ] {
        let mut inventory = inventory_of(vec![zone_of(&[NameForm::ServiceNamespace])]);
        offer(&mut inventory, 0, says(federation, in_cluster_set));
        assert_eq!(refusals(&inventory), [wanted]);
        assert_eq!(names(&inventory), ["web.shop.g.example"]);
    }
}

#[test]
fn a_namespace_has_its_own_services_in_the_trees_that_all_share_and_no_name_of_a_level() {
    use NameForm::{ClusterSet, KubeFed, ServiceNamespace};
    let has = |namespace: &str, forms: &[NameForm], host: &str| {
        let mut inventory = inventory_of(vec![zone_of(forms)]);
        let object = object(ObjectKind::Ingress, namespace, "x");
        offer(&mut inventory, 0, shard(object, &[host], &["192.0.2.1"]));
        !names(&inventory).is_empty()
    };
    let all = &[ServiceNamespace, KubeFed, ClusterSet][..];
    for (namespace, forms, host, wanted) in [
        ("shop", all, "web.shop.g.example", true),
        ("shop", all, "a.b.c.d.shop.g.example", true),
        ("shop", all, "web.shop.prod.svc.g.example", true),
        ("shop", all, "web.shop.other.svc.g.example", true),
        ("shop", all, "*.shop.prod.svc.g.example", true),
        ("shop", all, "a.web.shop.prod.svc.g.example", true),
        ("shop", all, "web.shop.svc.g.example", true),
        // A port of the service `shop` of the namespace `other`, where there are such names.
        ("shop", all, "_http._tcp.shop.other.svc.g.example", false),
        (
            "shop",
            &[KubeFed],
            "_http._tcp.shop.other.svc.g.example",
            true,
        ),
        // Of another namespace.
        ("shop", all, "web.blog.prod.svc.g.example", false),
        ("shop", all, "web.blog.svc.g.example", false),
        ("shop", all, "shop.prod.svc.g.example", false),
        ("shop", all, "prod.svc.g.example", false),
        ("shop", all, "*.prod.svc.g.example", false),
        ("shop", all, "*.svc.g.example", false),
        ("shop", all, "*.shop.svc.g.example", false),
        // A namespace called as the label above all, as the federation, or as a region.
        ("svc", all, "web.svc.g.example", true),
        ("svc", all, "*.svc.g.example", false),
        ("svc", all, "web.shop.prod.svc.g.example", false),
        ("prod", all, "shop.prod.svc.g.example", true),
        ("prod", all, "web.shop.prod.svc.g.example", false),
        ("prod", all, "*.prod.svc.g.example", false),
        ("eu-1", all, "web.eu-1.g.example", true),
        ("eu-1", all, "svc.eu-1.g.example", true),
        ("eu-1", all, "shop.prod.svc.eu-1.g.example", true),
        ("eu-1", all, "web.shop.prod.svc.eu-1.g.example", false),
        ("eu-1", all, "x.web.shop.prod.svc.eu-1.g.example", false),
        ("eu-1", all, "web.shop.prod.svc.eu-1a.eu-1.g.example", false),
        ("eu-1", all, "*.eu-1.g.example", false),
        ("eu-1", all, "*.eu-1a.eu-1.g.example", false),
        ("eu-1", all, "*.svc.eu-1.g.example", false),
        ("eu-1", all, "*.shop.prod.svc.eu-1.g.example", false),
        ("eu-1", all, "*.prod.svc.eu-1a.eu-1.g.example", false),
        ("eu-1", all, "*.b.a.eu-1.g.example", true),
        // Zones without such names are as they were.
        (
            "svc",
            &[ServiceNamespace],
            "web.shop.prod.svc.g.example",
            true,
        ),
        (
            "eu-1",
            &[ServiceNamespace],
            "web.shop.prod.svc.eu-1.g.example",
            true,
        ),
        ("eu-1", &[ServiceNamespace], "*.eu-1.g.example", true),
        (
            "eu-1",
            &[ClusterSet],
            "web.shop.prod.svc.eu-1.g.example",
            true,
        ),
        ("shop", &[ClusterSet], "web.shop.prod.svc.g.example", false),
        ("svc", &[ClusterSet], "web.svc.g.example", false),
        ("shop", &[KubeFed], "web.shop.svc.g.example", false),
    ] {
        assert_eq!(
            has(namespace, forms, host),
            wanted,
            "{namespace} {forms:?} {host}"
        );
    }
}

#[test]
fn in_a_zone_of_both_kinds_no_namespace_has_the_name_of_an_endpoint_of_others_services() {
    use NameForm::{ClusterSet, KubeFed};
    let has = |forms: &[NameForm], host: &str| {
        let mut inventory = inventory_of(vec![zone_of(forms)]);
        let object = object(ObjectKind::Ingress, "shop", "x");
        offer(&mut inventory, 0, shard(object, &[host], &["192.0.2.1"]));
        !names(&inventory).is_empty()
    };
    let both = &[KubeFed, ClusterSet][..];
    for (forms, host, wanted) in [
        // Endpoints of the service `shop` of the namespace `other`, and what would cover all of them.
        (both, "web-0.eu-1.shop.other.svc.g.example", false),
        (both, "*.shop.other.svc.g.example", false),
        (both, "*.eu-1.shop.other.svc.g.example", false),
        (both, "eu-1.shop.other.svc.g.example", true),
        // What the operator calls the zone's federation is no namespace.
        (both, "a.web.shop.prod.svc.g.example", true),
        (both, "*.shop.prod.svc.g.example", true),
        // Where there are no such names.
        (&[KubeFed], "a.web.shop.other.svc.g.example", true),
        (&[KubeFed], "*.shop.other.svc.g.example", true),
    ] {
        assert_eq!(has(forms, host), wanted, "{host} {forms:?}");
    }
}
