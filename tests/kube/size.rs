//! Size: five thousand Services and as many EndpointSlices in one server, seen through several contexts as so many clusters.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::cluster::Cluster;
use crate::harness::wait_for;
use crate::keys::{User, write_kubeconfig};
use crate::kinds::{Pods, namespace, service, slice};
use crate::node::{CONTINENTS, Member, Meridian};
use crate::running::Cost;

/// Services, and EndpointSlices.
const SERVICES: usize = 5_000;
/// Octets of memory that 10,000 objects may take.
const ROOM: u64 = 60 << 20;
/// How long the first lists of a cluster of that size may take.
const SYNC: Duration = Duration::from_secs(5);
/// Within this, a node that has nothing to do uses no more than `NOTHING`.
const MOMENT: Duration = Duration::from_millis(250);
const NOTHING: Duration = Duration::from_millis(20);
/// How long the node is left alone to see what it costs.
const QUIET: Duration = Duration::from_secs(10);

/// How many clusters are played; twenty with `MERIDIAN_MEMBERS=20`, by hand.
fn members() -> usize {
    let wanted = std::env::var("MERIDIAN_MEMBERS").ok();
    wanted.map_or(2, |wanted| wanted.parse().unwrap())
}

#[test]
fn ten_thousand_objects_are_read_in_seconds() {
    let cluster = Cluster::start("europe");
    let admin = cluster.admin();
    admin.create(namespace("shop")).unwrap();
    let annotations = [
        ("meridian-dns.io/enabled", "true"),
        ("meridian-dns.io/health-check", "endpoints"),
    ];
    let name = |at: usize| format!("web-{at:04}");
    let address = |at: usize| format!("198.51.{}.{}", at / 250 + 1, at % 250 + 1);
    let pods = Pods {
        ready: 3,
        ..Pods::default()
    };
    let took = admin.create_all((0..SERVICES).map(|at| slice(("shop", &name(at)), 1, pods)));
    let services =
        (0..SERVICES).map(|at| service(("shop", &name(at)), &annotations, &[&address(at)]));
    let more = admin.create_all(services);
    println!("made in {:?}", took + more);
    let names: Vec<String> = (0..members()).map(|at| format!("member-{at:02}")).collect();
    let contexts: Vec<_> = names
        .iter()
        .map(|name| cluster.api().context(name, User::Admin))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    write_kubeconfig(&file, &contexts);
    let zone = "zones: [{name: g.example, nameservers: [{name: ns.g.example, addresses: [192.0.2.53]}]}]\n";
    let mut empty = Meridian::start(&[], zone);
    let before = Cost::of(empty.node().process()).rss;
    drop(empty);
    let all: Vec<Member<'_>> = names
        .iter()
        .map(|name| Member {
            name,
            region: CONTINENTS[0].region,
            kubeconfig: Some((&file, name)),
        })
        .collect();
    let begun = Instant::now();
    let mut node = Meridian::start(&all, zone);
    wait_for(
        "all clusters to be synced",
        Duration::from_secs(120),
        || {
            let status = node.api("/api/v1/clusters");
            let clusters = status["items"].as_array()?.clone();
            let synced = clusters
                .iter()
                .filter(|one| one["kubernetes"]["link"] == "synced");
            (synced.count() == names.len()).then_some(())
        },
    );
    let last = format!("{}.shop.g.example", name(SERVICES - 1));
    node.wait_answer(
        &last,
        CONTINENTS[0].clients,
        &[&address(SERVICES - 1)],
        SYNC,
    );
    // Until it has nothing left to do, it is not synced.
    wait_for("the node to have nothing to do", SYNC * 2, || {
        let (since, used) = (Instant::now(), Cost::of(node.node().process()).cpu);
        wait_for("a moment", SYNC, || {
            (since.elapsed() >= MOMENT).then_some(())
        });
        let used = Cost::of(node.node().process()).cpu.saturating_sub(used);
        (used <= NOTHING).then_some(())
    });
    let synced = begun.elapsed();
    let rss = Cost::of(node.node().process()).rss.saturating_sub(before);
    // What was read is kept on disk a while later, and what a server does not have is asked for once more: that is told apart.
    let mut costs = Vec::new();
    while costs.len() < 3 && costs.last().is_none_or(|cost| *cost >= QUIET / 50) {
        costs.push(cost_of_a_while(&mut node));
    }
    let cost = *costs.last().unwrap();
    let objects = u64::try_from(SERVICES * 2 * names.len()).unwrap();
    println!(
        "{objects} objects of {} clusters: synced after {synced:?}, {} MiB more than empty ({} MiB per 10,000), idle {:.2} % of a core (10 s each: {costs:?})",
        names.len(),
        rss >> 20,
        (rss * 10_000 / objects) >> 20,
        cost.as_secs_f64() * 100.0 / QUIET.as_secs_f64(),
    );
    assert!(rss * 10_000 / objects < ROOM, "{rss} octets");
    assert!(cost < QUIET / 50, "{cost:?} in {QUIET:?}");
    // One change in ten thousand objects shows at once.
    let status = json!({"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}});
    let begun = Instant::now();
    admin
        .patch_status(crate::kinds::SERVICE, ("shop", "web-0007"), &status)
        .unwrap();
    node.wait_answer(
        "web-0007.shop.g.example",
        CONTINENTS[0].clients,
        &["203.0.113.7"],
        SYNC,
    );
    println!("a change shows after {:?}", begun.elapsed());
    // Twenty clusters leave no core to the server on a small machine.
    let limit = if names.len() > 2 { SYNC * 2 } else { SYNC };
    assert!(synced < limit, "{synced:?}");
}

/// Leaves a node alone for a while, and gives what it costs.
fn cost_of_a_while(node: &mut Meridian) -> Duration {
    let at_rest = Cost::of(node.node().process()).cpu;
    let quiet = Instant::now();
    wait_for("a quiet while", QUIET * 2, || {
        (quiet.elapsed() >= QUIET).then_some(())
    });
    Cost::of(node.node().process()).cpu.saturating_sub(at_rest)
}
