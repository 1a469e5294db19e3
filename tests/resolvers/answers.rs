//! Right answers for the client's place, through every resolver, cached no longer than the TTL.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use hickory_proto::op::ResponseCode;

use crate::harness::client::{Ask, Reply};
use crate::harness::node::Node;
use crate::harness::stalls::Stalls;
use crate::harness::{loopback, wait_for};
use crate::parent::Parent;
use crate::peers::{Kind, Resolver};

/// A network in Germany and one in the United States, both stable for decades.
const GERMANY: &str = "46.114.0.0/24";
const UNITED_STATES: &str = "3.80.0.0/24";
/// A network in Japan.
const JAPAN: &str = "126.0.0.0/24";

/// What asking again and again takes.
const SLACK: Duration = Duration::from_millis(250);

const EUROPE: &str = "192.0.2.1";
const AMERICA: &str = "192.0.2.2";

/// Two nodes with the same configuration behind a parent. Loopback is in Germany by the operator's word.
struct Mesh {
    nodes: [Node; 2],
    parent: Parent,
}

impl Mesh {
    fn start() -> Self {
        let addresses = [loopback(), loopback()];
        let config = config(addresses);
        let nodes = addresses.map(|address| Node::start_on(address, "", &config, |_| ()));
        let parent = Parent::start(addresses);
        Self { nodes, parent }
    }

    /// Counts the queries that both nodes got.
    fn queries(&self) -> f64 {
        self.nodes
            .iter()
            .map(|node| node.metric("meridian_answer_queries_total{transport=\"udp\"}"))
            .sum()
    }
}

fn config([first, second]: [IpAddr; 2]) -> String {
    format!(
        "geoip: {{overrides: [{{prefix: 127.0.0.0/8, country: DE}}]}}
zones:
  - name: svc.mesh
    nameservers: [{{name: ns1.svc.mesh, addresses: [{first}]}}, {{name: ns2.svc.mesh, addresses: [{second}]}}]
    contact: hostmaster.svc.mesh
    ttl: 2
    negativeTtl: 2
clusters:
  - {{name: europe, provider: aws, region: eu-central-1}}
  - {{name: america, provider: aws, region: us-east-1}}
services:
  - namespace: shop
    name: web
    hostnames: [www.svc.mesh]
    endpoints: [{{cluster: europe, addresses: [{EUROPE}]}}, {{cluster: america, addresses: [{AMERICA}]}}]
  - namespace: shop
    name: fenced
    hostnames: [fenced.svc.mesh]
    policy: {{fence: [{{clients: [continent:EU], clusters: [europe]}}, {{clients: [country:US], clusters: [america]}}]}}
    endpoints: [{{cluster: europe, addresses: [{EUROPE}]}}, {{cluster: america, addresses: [{AMERICA}]}}]
"
    )
}

/// Asks a resolver; a first SERVFAIL while it learns its way is not held against it.
fn resolve(resolver: &Resolver, ask: &Ask) -> Reply {
    wait_for("the resolver's answer", Duration::from_secs(10), || {
        let reply = ask
            .clone()
            .recursive()
            .try_udp(resolver.server(), Duration::from_secs(3))?;
        (reply.rcode() != ResponseCode::ServFail).then_some(reply)
    })
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn every_resolver_gets_the_nearest_cluster() {
    let _machine = crate::shared();
    let mesh = Mesh::start();
    for kind in Kind::ALL {
        let resolver = Resolver::start(kind, &mesh.parent);
        // Without ECS the resolver's own place counts.
        let reply = resolve(&resolver, &Ask::a("www.svc.mesh").from("0.0.0.0/0"));
        assert_eq!(reply.address(), address(EUROPE), "{kind:?}");
        assert!(reply.ttl() <= 2, "{kind:?} {}", reply.ttl());
        if kind.sends_ecs() {
            for (network, expected) in [
                (GERMANY, EUROPE),
                (UNITED_STATES, AMERICA),
                (GERMANY, EUROPE),
            ] {
                let reply = resolve(&resolver, &Ask::a("www.svc.mesh").from(network));
                assert_eq!(reply.address(), address(expected), "{kind:?} {network}");
                assert!(reply.ttl() <= 2, "{kind:?} {}", reply.ttl());
            }
        }
    }
}

#[test]
fn nothing_is_cached_longer_than_its_ttl() {
    let _machine = crate::shared();
    for kind in Kind::ALL {
        let mesh = Mesh::start();
        let resolver = Resolver::start(kind, &mesh.parent);
        assert_eq!(
            resolve(&resolver, &Ask::a("www.svc.mesh")).address(),
            address(EUROPE)
        );
        // The nodes' answer changes; the cached one may live for its 2 s and no longer, counted from here. Whole seconds are
        // counted by unbound: one more is forgiven, and what the machine stood still.
        let (filled, stalls) = (Instant::now(), Stalls::watch());
        let changed = "192.0.2.99";
        for node in &mesh.nodes {
            node.write_config(&node.config().replace(EUROPE, changed));
        }
        let mut nodes = mesh.nodes;
        for node in &mut nodes {
            node.process().signal("HUP");
            let server = node.dns();
            wait_for("the reload", Duration::from_secs(5), || {
                (Ask::a("www.svc.mesh").from(GERMANY).udp(server).address() == address(changed))
                    .then_some(())
            });
        }
        let changed_at = filled.elapsed();
        wait_for("the resolver to follow", Duration::from_secs(8), || {
            (resolve(&resolver, &Ask::a("www.svc.mesh")).address() == address(changed))
                .then_some(())
        });
        let (took, stalled) = (filled.elapsed(), stalls.so_far());
        let bound = changed_at.max(Duration::from_secs(3)) + SLACK;
        assert!(
            took < bound + stalled.min(bound),
            "{kind:?} kept it for {took:?}, the machine stood still for {stalled:?}"
        );
    }
}

#[test]
fn unbound_shares_its_ecs_cache_within_a_scope_and_not_beyond() {
    let _machine = crate::shared();
    let mesh = Mesh::start();
    let resolver = Resolver::start(Kind::Unbound, &mesh.parent);
    let ask = |network: &str| resolve(&resolver, &Ask::a("www.svc.mesh").from(network));
    // Learn the way first.
    ask(GERMANY);
    let round = || {
        let before = mesh.queries();
        let europe = ask(GERMANY);
        let america = ask(UNITED_STATES);
        assert_eq!(
            (europe.address(), america.address()),
            (address(EUROPE), address(AMERICA))
        );
        let asked = mesh.queries();
        // Another client inside the returned scope gets the same answer, out of the cache.
        let scope = europe.scope().expect("a scope");
        assert!((1..=24).contains(&scope), "{scope}");
        let neighbor = if scope < 24 { "46.114.1.0/24" } else { GERMANY };
        assert_eq!(ask(neighbor).address(), address(EUROPE));
        assert_eq!(ask(UNITED_STATES).address(), address(AMERICA));
        (before, asked, mesh.queries())
    };
    // A round may straddle the TTL of 2 s; one that does not proves it.
    wait_for("a round within one TTL", Duration::from_secs(20), || {
        let begun = Instant::now();
        let (_, asked, after) = round();
        (begun.elapsed() < Duration::from_millis(500) && asked == after).then_some(())
    });
}

#[test]
fn a_client_refused_by_a_fence_does_not_blank_the_name_for_others() {
    let _machine = crate::shared();
    let mesh = Mesh::start();
    let resolver = Resolver::start(Kind::Unbound, &mesh.parent);
    for _ in 0..3 {
        let refused = resolve(&resolver, &Ask::a("fenced.svc.mesh").from(JAPAN));
        assert_eq!(
            (refused.rcode(), refused.addresses()),
            (ResponseCode::NoError, vec![])
        );
        let german = resolve(&resolver, &Ask::a("fenced.svc.mesh").from(GERMANY));
        assert_eq!(german.address(), address(EUROPE));
        let american = resolve(&resolver, &Ask::a("fenced.svc.mesh").from(UNITED_STATES));
        assert_eq!(american.address(), address(AMERICA));
    }
}
