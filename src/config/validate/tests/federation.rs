//! Names that come from Kubernetes: forms, grants, private addresses, the policy that they begin with.

use std::collections::BTreeSet;

use super::kubernetes::{MEMBERS, check_warning};
use super::refused::check_table;
use super::{accept, parse};
use crate::inventory::{Grant, NameForm, PrivateAddresses, ZoneRules};
use crate::model::{ClusterSelector, Steer};

/// Puts keys into the zone.
fn with_zone(keys: &str) -> String {
    MEMBERS.replace(
        "nameservers: [{name: ns1.example.net}]",
        &format!("nameservers: [{{name: ns1.example.net}}], {keys}"),
    )
}

/// Gives the rules of the one zone.
fn rules(keys: &str) -> ZoneRules {
    let (config, warnings) = accept(&with_zone(keys));
    assert_eq!(warnings, [], "{keys}");
    let [zone] = &config.federation.zones[..] else {
        panic!("{keys}")
    };
    zone.clone()
}

#[test]
fn zones_make_names() {
    let zone = rules("ttl: 30");
    assert_eq!(zone.apex.to_string(), "svc.example");
    assert_eq!(zone.forms, [NameForm::ServiceNamespace]);
    assert_eq!(
        (zone.grants, zone.private),
        (vec![], PrivateAddresses::Clients)
    );
    assert_eq!(rules("names: []").forms, []);
    assert_eq!(
        rules("names: [\"{service}.{namespace}\"]").forms,
        [NameForm::ServiceNamespace]
    );
    let zone = rules("names: [clusterset, kubefed], federationName: Prod");
    assert_eq!(zone.forms, [NameForm::ClusterSet, NameForm::KubeFed]);
    assert_eq!(zone.federation, "prod".parse().ok());
    // People read the form as it is written.
    for word in crate::config::spec::v1::NAME_FORMS {
        let zone = rules(&format!("names: [\"{word}\"]"));
        assert_eq!(
            zone.forms
                .iter()
                .map(|form| form.word())
                .collect::<Vec<_>>(),
            [*word]
        );
    }
    for (word, expected) in [
        ("clients", PrivateAddresses::Clients),
        ("all", PrivateAddresses::All),
        ("none", PrivateAddresses::None),
    ] {
        let zone = rules(&format!("privateAddresses: {word}"));
        assert_eq!(zone.private, expected);
    }
    // Every zone, in the order written; without members no names are made.
    let (config, _) =
        accept("version: 1\nzones: [{name: b.example, file: x}, {name: a.example, file: y}]\n");
    let zones: Vec<_> = config
        .federation
        .zones
        .iter()
        .map(|zone| (zone.apex.to_string(), zone.forms.len()))
        .collect();
    assert_eq!(zones, [("b.example".into(), 0), ("a.example".into(), 0)]);
}

#[test]
fn levels_and_cluster_sets_are_told_to_the_zone() {
    for (keys, kubefed, cluster_set) in [
        ("ttl: 30", false, false),
        ("names: [kubefed]", true, false),
        (
            "names: [\"{service}.{namespace}\", clusterset]",
            false,
            true,
        ),
        ("names: [kubefed, clusterset]", true, true),
    ] {
        let (config, _) = accept(&with_zone(keys));
        let forms = config.zones[0].spec.forms;
        assert_eq!(
            (forms.kubefed, forms.cluster_set),
            (kubefed, cluster_set),
            "{keys}"
        );
    }
    let (_, warnings) = accept(&with_zone("federationName: prod"));
    let [warning] = &warnings[..] else {
        panic!("{warnings:?}")
    };
    assert_eq!(warning.path, "zones[0].federationName");
    assert!(
        warning.message.contains("does not list `kubefed`"),
        "{warning:?}"
    );
    // Levels are of configured services too.
    let (_, warnings) =
        accept("version: 1\nzones: [{name: a.example, file: x, names: [kubefed]}]\n");
    assert_eq!(warnings, []);
}

#[test]
fn grants() {
    let zone = rules(
        "grants: [{namespaces: [shop, blog], hostnames: [\"*.Shop.svc.example\", svc.example]}, \
         {clusters: [\"*\"], namespaces: [\"*\"], hostnames: [\"*.any.svc.example\"]}, \
         {clusters: [b, a], namespaces: [x-1], hostnames: [x.svc.example.]}]",
    );
    let set = |names: &[&str]| names.iter().map(|name| Box::from(*name)).collect();
    let names = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
    let clusters = ["a", "b"].map(|name| name.parse().unwrap());
    let expected = [
        Grant {
            clusters: None,
            namespaces: Some(set(&["blog", "shop"])),
            hostnames: names(&["*.shop.svc.example", "svc.example"]),
        },
        Grant {
            clusters: None,
            namespaces: None,
            hostnames: names(&["*.any.svc.example"]),
        },
        Grant {
            clusters: Some(BTreeSet::from(clusters)),
            namespaces: Some(set(&["x-1"])),
            hostnames: names(&["x.svc.example"]),
        },
    ];
    assert_eq!(zone.grants, expected);
    assert_eq!(rules("grants: []").grants, []);
}

const ZONES: &str = r#"
names: [kubefed, kubefed] => zones[0].names[1] => `kubefed` is listed twice
names: [kubeFed] => zones[0].names[0] => and so are kubefed and clusterset
names: ["{namespace}.{service}"] => zones[0].names[0] => "{service}.{namespace}" is one
names: ["{service}.{namespace}", "{service}.{namespace}"] => zones[0].names[1] => twice
names: "{service}.{namespace}" => zones[0].names => a list
names: [[x]] => zones[0].names[0] => not a list
federationName: a.b => zones[0].federationName => a label of 1 to 63
federationName: "" => zones[0].federationName => a label of 1 to 63
federationName: [prod] => zones[0].federationName => not a list
fence: [] => zones[0].fence => not supported yet
acme: {} => zones[0].acme => needs `cname`
acme: x => zones[0].acme => map
acme: {cname: "{name}.acme.example.net.", name: x} => zones[0].acme.name => unknown
acme: {cname: "acme.example.net."} => zones[0].acme.cname => does not begin with `{name}.`
acme: {cname: "x.{name}.acme.example.net."} => zones[0].acme.cname => does not begin with `{name}.`
acme: {cname: "{name}acme.example.net."} => zones[0].acme.cname => does not begin with `{name}.`
acme: {cname: "{name}."} => zones[0].acme.cname => is no name
acme: {cname: "{name}.."} => zones[0].acme.cname => needs a name behind `{name}.`
acme: {cname: "{name}..b"} => zones[0].acme.cname => label must not be empty
acme: {cname: "{name}.a..b"} => zones[0].acme.cname => label must not be empty
acme: {cname: "{name}.*.example.net"} => zones[0].acme.cname => `*` may only
acme: {cname: "{name}.a b.example.net"} => zones[0].acme.cname => a host name has
acme: {cname: "{name}.svc.example"} => zones[0].acme.cname => the steered name itself
acme: {cname: ["{name}.acme.example.net."]} => zones[0].acme.cname => not a list
privateAddresses: some => zones[0].privateAddresses => clients, all, none
privateAddresses: client => zones[0].privateAddresses => did you mean `clients`
grant: [] => zones[0].grant => did you mean `grants`
grants: {} => zones[0].grants => a list
grants: [x] => zones[0].grants[0] => a grant is a map
grants: [{hostnames: [a.svc.example]}] => zones[0].grants[0] => needs `namespaces`
grants: [{namespaces: [shop]}] => zones[0].grants[0] => needs `hostnames`
grants: [{namespace: [shop], namespaces: [shop], hostnames: [a.svc.example]}] => zones[0].grants[0].namespace => did you mean `namespaces`
"#;

/// Keys of a grant: namespaces, names, clusters.
const GRANTS: &str = r#"
[]; [a.svc.example]; [a] => namespaces => 1 to 1000
shop; [a.svc.example]; [a] => namespaces => a list
[Shop]; [a.svc.example]; [a] => namespaces[0] => a namespace has
[a.b]; [a.svc.example]; [a] => namespaces[0] => a namespace has
[-a]; [a.svc.example]; [a] => namespaces[0] => a namespace has
[""]; [a.svc.example]; [a] => namespaces[0] => a namespace has
[{a: b}]; [a.svc.example]; [a] => namespaces[0] => not a map
[shop, shop]; [a.svc.example]; [a] => namespaces[1] => `shop` is listed twice
["*", shop]; [a.svc.example]; [a] => namespaces[0] => leave the others out
[shop]; [a.svc.example]; [] => clusters => 1 to 1000
[shop]; [a.svc.example]; a => clusters => a list
[shop]; [a.svc.example]; [z] => clusters[0] => no cluster is called `z`
[shop]; [a.svc.example]; ["region:x"] => clusters[0] => not by selectors
[shop]; [a.svc.example]; [a, a] => clusters[1] => `a` is listed twice
[shop]; [a.svc.example]; [a, "*"] => clusters[1] => leave the others out
[shop]; []; [a] => hostnames => 1 to 1000
[shop]; a.svc.example; [a] => hostnames => a list
[shop]; ["a.*.svc.example"]; [a] => hostnames[0] => leftmost
[shop]; ["a b.svc.example"]; [a] => hostnames[0] => letters
[shop]; ["*"]; [a] => hostnames[0] => write `*.svc.example`
[shop]; [www.example]; [a] => hostnames[0] => does not lie in the zone `svc.example`
[shop]; ["*.example"]; [a] => hostnames[0] => does not lie in the zone `svc.example`
[shop]; [deep.svc.example]; [a] => hostnames[0] => belongs to the zone `deep.svc.example`
[shop]; [a.deep.svc.example]; [a] => hostnames[0] => belongs to the zone `deep.svc.example`
[shop]; ["*.deep.svc.example"]; [a] => hostnames[0] => belongs to the zone `deep.svc.example`
[shop]; [a.svc.example, A.svc.example.]; [a] => hostnames[1] => listed twice
"#;

/// A zone with these keys that lies above another one, and clusters.
fn two_zones(keys: &str) -> String {
    let clusters = "clusters: [{name: a, inCluster: true}, {name: b, kubeconfig: {file: x}}]";
    format!(
        "{clusters}⏎zones: [{{name: svc.example, file: x, {keys}}}, {{name: deep.svc.example, file: y}}]"
    )
}

#[test]
fn zones_and_grants_with_faults() {
    check_table(ZONES, two_zones);
    for row in GRANTS.lines().filter(|row| !row.is_empty()) {
        let (keys, rest) = row.split_once(" => ").unwrap();
        let [namespaces, hostnames, clusters] = keys.split("; ").collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let grant = format!(
            "grants: [{{namespaces: {namespaces}, hostnames: {hostnames}, clusters: {clusters}}}] => zones[0].grants[0].{rest}"
        );
        check_table(&grant, two_zones);
    }
}

/// Two or more grants as namespaces, names and clusters; the names with a rival, or `-`.
const OVERLAPS: &str = "
[shop] [x] * | [blog] [x] * => [1][0]
[shop] [x] * | [shop] [x] * => -
[shop] [x] * | [shop, blog] [x] * => [1][0]
[shop] [x] * | [\"*\"] [x] * => [1][0]
[\"*\"] [x] * | [\"*\"] [x] * => -
[shop, blog] [x] * | [blog, shop] [x] * => -
[shop] [x] [a] | [blog] [x] [b] => [1][0]
[shop] [x] [a] | [blog] [x] [b, a] => [1][0]
[shop] [x] [a] | [blog] [x] * => [1][0]
[shop] [\"*.x\"] * | [blog] [x] * => -
[shop] [\"*.x\"] * | [blog] [y.x] * => [1][0]
[shop] [y.x] * | [blog] [\"*.x\"] * => [0][0]
[shop] [\"*.x\"] * | [blog] [\"*.x\"] * => [1][0]
[shop] [\"*.x\"] * | [blog] [\"*.y.x\"] * => [1][0]
[shop] [\"*.x\"] * | [blog] [z.y.x] * => [1][0]
[shop] [\"*.y.x\"] * | [blog] [z.x] * => -
[shop] [\"*.x\", y.x] * => -
[shop] [u, v] * | [blog] [w, v, u] * => [1][1] [1][2]
[shop] [x] [a] | [shop] [x] [b] | [news] [x] * => [2][0]
";

#[test]
fn a_name_has_one_namespace() {
    for row in OVERLAPS.lines().filter(|row| !row.is_empty()) {
        let (grants, expected) = row.split_once(" => ").unwrap();
        let list = grants.split(" | ").map(|grant| {
            let (namespaces, rest) = grant.split_once("] [").unwrap();
            let (names, clusters) = rest.split_once("] ").unwrap();
            let names = names.replace(", ", ".svc.example, ").replace('"', "");
            let names = names.split(", ").enumerate().map(|(at, name)| {
                let name = name.trim_end_matches(".svc.example");
                format!("{}\"{name}.svc.example\"", if at > 0 { ", " } else { "" })
            });
            let names: String = names.collect();
            let clusters = clusters.replace('*', "[\"*\"]");
            format!("{{namespaces: {namespaces}], hostnames: [{names}], clusters: {clusters}}}")
        });
        let list: Vec<String> = list.collect();
        let text = with_zone(&format!("grants: [{}]", list.join(", ")));
        let faults = parse(&text).err().unwrap_or_default();
        let found = faults.iter().map(|fault| {
            assert!(
                fault.message.contains("a name has one namespace"),
                "{fault}"
            );
            let path = fault.path.strip_prefix("zones[0].grants").unwrap();
            path.replace(".hostnames", "")
        });
        let found = found.collect::<Vec<_>>().join(" ");
        let found = if found.is_empty() { "-" } else { &found };
        assert_eq!(found, expected, "{row}: {faults:#?}");
    }
    // The other one is named.
    let text = with_zone(
        "grants: [{namespaces: [a], hostnames: [b.svc.example]}, {namespaces: [b], hostnames: [\"*.svc.example\"]}]",
    );
    let faults = parse(&text).unwrap_err();
    assert!(
        faults[0]
            .message
            .contains("by `*.svc.example` of grants[1]"),
        "{faults:?}"
    );
}

#[test]
fn zones_that_do_nothing() {
    for keys in [
        "names: []",
        "grants: [{namespaces: [a], hostnames: [a.svc.example]}]",
        "privateAddresses: all",
    ] {
        let text = format!("version: 1\nzones: [{{name: svc.example, file: x, {keys}}}]\n");
        let name = keys.split(':').next().unwrap();
        check_warning(&text, &format!("zones[0].{name}"), "has no effect");
    }
    check_warning(
        &with_zone("grants: [{clusters: [c], namespaces: [a], hostnames: [a.svc.example]}]"),
        "zones[0].grants[0].clusters[0]",
        "nothing comes from it",
    );
}

#[test]
fn policies_begin_with_the_defaults() {
    let (config, warnings) = accept(&format!(
        "{MEMBERS}defaults: {{policy: {{steer: weighted, weights: {{a: 3}}, fence: [{{clients: ['*'], clusters: [a]}}], \
         fenceAnswer: 192.0.2.1, answers: 2, panic: 0.5, fallback: {{addresses: [192.0.2.2]}}}}}}\n"
    ));
    // Who judges Kubernetes services is not for this file to say: `panic` and `fallback` may well do something.
    assert_eq!(warnings, []);
    let base = &config.federation.base;
    assert_eq!(
        (base.steer, base.answers, base.panic),
        (Steer::Weighted, 2, 0.5)
    );
    let a = ClusterSelector::Cluster("a".parse().unwrap());
    assert_eq!(base.weights[0].0, a);
    assert_eq!(base.fences[0][0].clusters, [a]);
    assert!(base.fence_answer.is_some() && base.fallback.is_some());
    check_warning(
        &format!("{MEMBERS}defaults: {{policy: {{steer: failover}}}}\n"),
        "defaults.policy",
        "say no tiers get the nearest cluster",
    );
    let tiers = format!("{MEMBERS}defaults: {{policy: {{steer: failover, tiers: [[a], [b]]}}}}\n");
    let (config, warnings) = accept(&tiers);
    assert_eq!(warnings, []);
    assert_eq!(config.federation.base.tiers.len(), 2);
    let (config, _) = accept("version: 1\ndefaults: {policy: {steer: failover}}\n");
    assert_eq!(config.federation.base.steer, Steer::Proximity);
}
