//! The story: three clusters on three continents, one annotated Service each, and what a night brings.

use std::time::{Duration, Instant};

use hickory_proto::op::ResponseCode;
use serde_json::json;

use crate::cluster::Cluster;
use crate::harness::wait_for;
use crate::keys::User;
use crate::kinds::{
    NAMESPACE, Pods, SERVICE, SLICE, endpoints, load_balancer, namespace, service, slice,
};
use crate::node::{CONTINENTS, Member, Meridian};
use crate::objects::Admin;
use crate::watchman::Watchman;

/// How long a change may take where no number is asked for, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a change of an address may take at the 99th percentile.
const FRESH: Duration = Duration::from_millis(50);
/// Changes of an address.
const CHANGES: u32 = 200;

/// The zone, and how clusters are watched: without an answer for three seconds they are stale.
const ZONE: &str = "
zones: [{name: g.example, nameservers: [{name: ns.g.example, addresses: [192.0.2.53]}]}]
kubernetes: {staleAfter: 3s}
";

const WWW: &str = "www.shop.g.example";

/// Ready endpoints decide; nothing is probed.
const ANNOTATIONS: [(&str, &str); 3] = [
    ("meridian-dns.io/hostname", WWW),
    ("meridian-dns.io/health-check", "endpoints"),
    ("meridian-dns.io/ttl", "10"),
];

/// The address of the Service in a cluster, by its position.
fn address(at: usize) -> String {
    format!("192.0.2.{}", at + 1)
}

/// A node beside three clusters with a Service each.
struct Story {
    clusters: [Cluster; 3],
    node: Meridian,
}

/// Makes the Service with ready endpoints.
fn put_service(admin: &Admin, addresses: &[&str]) {
    if admin.get(NAMESPACE, "", "shop").is_err() {
        admin.create(namespace("shop")).unwrap();
    }
    let pods = Pods {
        ready: 2,
        ..Pods::default()
    };
    admin.create(slice(("shop", "web"), 1, pods)).unwrap();
    admin
        .create(service(("shop", "web"), &ANNOTATIONS, addresses))
        .unwrap();
}

impl Story {
    fn begin() -> Self {
        let clusters = Cluster::start_all(CONTINENTS.map(|continent| continent.cluster));
        let files = clusters
            .each_ref()
            .map(|cluster| cluster.kubeconfig(User::Admin));
        let members: Vec<Member<'_>> = CONTINENTS
            .iter()
            .zip(&files)
            .map(|(continent, file)| Member {
                name: continent.cluster,
                region: continent.region,
                kubeconfig: Some((file, continent.cluster)),
            })
            .collect();
        let node = Meridian::start(&members, ZONE);
        Self { clusters, node }
    }

    /// Waits until clients of a continent get the Service of a cluster, by position.
    fn expect(&self, clients: usize, cluster: usize) {
        let clients = CONTINENTS[clients].clients;
        self.node
            .wait_answer(WWW, clients, &[&address(cluster)], PATIENCE);
    }

    /// Waits until the API says so of how a cluster is connected.
    fn expect_link(&self, cluster: &str, link: &str) {
        wait_for(&format!("{cluster} to be {link}"), PATIENCE, || {
            let all = self.node.api("/api/v1/clusters");
            let all = all["items"].as_array().cloned().unwrap_or_default();
            let it = all.into_iter().find(|one| one["name"] == cluster)?;
            (it["kubernetes"]["link"] == link).then_some(())
        });
    }

    fn set_pods(&self, cluster: usize, pods: Pods) {
        let patch = json!({"endpoints": endpoints(1, pods)});
        let admin = self.clusters[cluster].admin();
        admin.patch(SLICE, ("shop", "web-1"), &patch).unwrap();
    }

    /// Moves the Service of a cluster to another address.
    fn set_address(&self, admin: &Admin, address: &str) {
        let status = load_balancer(&[address]);
        admin
            .patch_status(SERVICE, ("shop", "web"), &status)
            .unwrap();
    }
}

#[test]
fn three_clusters_on_three_continents() {
    let mut story = Story::begin();
    let nobody = story.node.ask(WWW, CONTINENTS[0].clients);
    assert_eq!(
        nobody.rcode(),
        ResponseCode::NXDomain,
        "nobody asked for it yet"
    );
    // An address that comes later: until then there is a name and no address.
    let admins = story
        .clusters
        .each_ref()
        .map(|cluster| cluster.admin().clone());
    put_service(&admins[0], &[]);
    let what = "a name without an address";
    wait_for(what, PATIENCE, || {
        let reply = story.node.ask(WWW, CONTINENTS[0].clients);
        (reply.rcode() == ResponseCode::NoError).then_some(())
    });
    let begun = Instant::now();
    story.set_address(&admins[0], &address(0));
    story.expect(0, 0);
    println!("first address after {:?}", begun.elapsed());
    let clients = CONTINENTS.map(|continent| continent.clients);
    let watchman = Watchman::post(story.node.node().dns(), &[WWW], &clients);
    for cluster in [1, 2] {
        put_service(&admins[cluster], &[&address(cluster)]);
    }
    for continent in 0..3 {
        story.expect(continent, continent);
    }
    let reply = story.node.ask("web.shop.g.example", CONTINENTS[2].clients);
    assert_eq!(
        reply.addresses(),
        [address(2).parse::<std::net::IpAddr>().unwrap()]
    );
    assert_eq!(reply.ttl(), 10);

    // The load balancer of Asia moves, and moves.
    let mut times = Vec::new();
    for change in 0..CHANGES {
        let next = format!("198.51.100.{}", change % 200 + 1);
        let wanted: std::net::IpAddr = next.parse().unwrap();
        let begun = Instant::now();
        story.set_address(&admins[2], &next);
        while story.node.ask(WWW, CONTINENTS[2].clients).addresses() != [wanted] {
            assert!(begun.elapsed() < PATIENCE, "{next} does not show");
        }
        times.push(begun.elapsed());
    }
    times.sort();
    let percentile = |share: usize| times[times.len() * share / 100];
    println!(
        "from the patch to the answer: p50 {:?}, p90 {:?}, p99 {:?}, at most {:?}",
        percentile(50),
        percentile(90),
        percentile(99),
        times[times.len() - 1]
    );
    assert!(percentile(99) < FRESH, "p99 {:?}", percentile(99));
    story.set_address(&admins[2], &address(2));
    story.expect(2, 2);

    // Nothing is ready in Europe: its clients go to the next; then they come back.
    story.set_pods(
        0,
        Pods {
            unready: 2,
            ..Pods::default()
        },
    );
    story.expect(0, 1);
    story.set_pods(
        0,
        Pods {
            ready: 2,
            ..Pods::default()
        },
    );
    story.expect(0, 0);
    // Nothing is ready anywhere: as if everything were.
    for cluster in 0..3 {
        story.set_pods(cluster, Pods::default());
    }
    story.expect(0, 0);
    for cluster in 0..3 {
        story.set_pods(
            cluster,
            Pods {
                ready: 1,
                ..Pods::default()
            },
        );
    }

    // America's API server does nothing any more: that changes nothing but its age.
    story.expect_link("america", "synced");
    story.clusters[1].stop();
    story.expect_link("america", "stale");
    for continent in 0..3 {
        story.expect(continent, continent);
    }
    story.clusters[1].cont();
    story.expect_link("america", "synced");
    story.set_address(&admins[1], "203.0.113.9");
    story
        .node
        .wait_answer(WWW, CONTINENTS[1].clients, &["203.0.113.9"], PATIENCE);

    // Asia's API server crashes. What changed meanwhile is forgotten by its history.
    story.clusters[2].kill9_api();
    {
        let second = story.clusters[2].second_api();
        for last in 1..=40 {
            story.set_address(second.admin(), &format!("203.0.113.{last}"));
        }
        story.clusters[2].compact();
    }
    story.expect(2, 2);
    story.clusters[2].restart_api();
    story
        .node
        .wait_answer(WWW, CONTINENTS[2].clients, &["203.0.113.40"], PATIENCE);
    story.expect_link("asia", "synced");

    // Asia leaves: its Service is deleted. Europe is the next.
    let admin = story.clusters[2].admin().clone();
    admin.delete(SERVICE, "shop", "web").unwrap();
    story.expect(2, 0);
    watchman.relieve();
    assert!(!story.node.log().contains("ERROR"), "{}", story.node.log());
}

#[test]
fn a_restart_without_any_api_server_answers_as_before() {
    let mut cluster = Cluster::start("europe");
    let file = cluster.kubeconfig(User::Admin);
    let member = Member {
        name: "europe",
        region: CONTINENTS[0].region,
        kubeconfig: Some((&file, "europe")),
    };
    let mut node = Meridian::start(&[member], ZONE);
    put_service(cluster.admin(), &[&address(0)]);
    let clients = CONTINENTS[0].clients;
    node.wait_answer(WWW, clients, &[&address(0)], PATIENCE);
    let offers = node.node().folder().join("state/offers.json");
    wait_for("the offers on disk", PATIENCE, || {
        let text = std::fs::read_to_string(&offers).ok()?;
        text.contains(&address(0)).then_some(())
    });
    cluster.kill9_api();
    node.node().kill();
    let begun = Instant::now();
    node.node().spawn();
    let reply = node.ask(WWW, clients);
    println!("answered {:?} after the start", begun.elapsed());
    assert_eq!(
        reply.addresses(),
        [address(0).parse::<std::net::IpAddr>().unwrap()]
    );
    assert_eq!(reply.ttl(), 10);
    // Meanwhile the object went away; nobody could know. The server comes back and says so.
    let second = cluster.second_api();
    second.admin().delete(SERVICE, "shop", "web").unwrap();
    let reply = node.ask(WWW, clients);
    assert_eq!(reply.addresses().len(), 1, "not seeing is not gone");
    cluster.restart_api();
    wait_for("the name to be gone", PATIENCE, || {
        (node.ask(WWW, clients).rcode() == ResponseCode::NXDomain).then_some(())
    });
}
