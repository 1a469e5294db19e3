//! Failover through a real resolver, fifty out of fifty: half by killed servers, half by packets that vanish.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use crate::harness::backend::Backend;
use crate::harness::client::Ask;
use crate::harness::netns::Site;
use crate::harness::node::Node;
use crate::harness::stalls::Stalls;
use crate::harness::{loopback, wait_for};
use crate::parent::Parent;
use crate::peers::{Kind, Resolver};

/// Names that fail at a time.
const AT_ONCE: usize = 10;
/// Rounds: five of ten names are fifty.
const ROUNDS: usize = 5;
/// A client in Germany.
const GERMANY: &str = "46.114.0.0/24";
/// From the failure to the resolver's new answer: silence is noticed in at most interval + 2 timeouts = 1.3 s, and the
/// resolver holds the old answer for a TTL of 1 s more. (unbound counts whole seconds and holds it for up to 2 s.)
const BOUND: Duration = Duration::from_secs(3);

/// How a backend fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The server stops: connections are refused.
    Kill,
    /// Its packets vanish.
    Silence,
}

fn config(address: IpAddr, port: u16, pairs: &[(IpAddr, IpAddr)]) -> String {
    let mut text = format!(
        "zones:
  - name: svc.mesh
    nameservers: [{{name: ns1.svc.mesh, addresses: [{address}]}}, {{name: ns2.svc.mesh, addresses: [{address}]}}]
    contact: hostmaster.svc.mesh
    ttl: 1
    negativeTtl: 1
clusters:
  - {{name: europe, provider: aws, region: eu-central-1}}
  - {{name: america, provider: aws, region: us-east-1}}
defaults:
  monitor: {{http: {{path: /, port: {port}}}, interval: 500ms, timeout: 400ms, rise: 1, fall: 2}}
services:
"
    );
    for (at, (near, far)) in pairs.iter().enumerate() {
        writeln!(
            text,
            "  - {{namespace: shop, name: s{at}, hostnames: [s{at}.svc.mesh], endpoints: [{{cluster: europe, addresses: [{near}]}}, {{cluster: america, addresses: [{far}]}}]}}"
        )
        .unwrap();
    }
    text
}

/// Asks the resolver for one name's address.
fn resolve(server: SocketAddr, at: usize) -> Option<IpAddr> {
    let ask = Ask::a(&format!("s{at}.svc.mesh")).from(GERMANY).recursive();
    let reply = ask.try_udp(server, Duration::from_secs(1))?;
    reply.addresses().first().copied()
}

#[test]
fn fifty_of_fifty_move_within_three_seconds() {
    let _machine = crate::alone();
    let port = 18_080;
    let site = Site::new(u8::try_from(ROUNDS * AT_ONCE / 2).unwrap());
    // Even names are killed, odd ones fall silent.
    let fault = |at: usize| {
        if at.is_multiple_of(2) {
            Fault::Kill
        } else {
            Fault::Silence
        }
    };
    let mut near = Vec::new();
    let mut far = Vec::new();
    for at in 0..ROUNDS * AT_ONCE {
        near.push(Some(match fault(at) {
            Fault::Kill => Backend::start(loopback(), port),
            Fault::Silence => Backend::of(site.listen(u8::try_from(at / 2).unwrap(), port)),
        }));
        far.push(Backend::start(loopback(), port));
    }
    let pairs: Vec<(IpAddr, IpAddr)> = near
        .iter()
        .zip(&far)
        .map(|(near, far)| (near.as_ref().unwrap().address().ip(), far.address().ip()))
        .collect();
    let address = loopback();
    let mut node = Node::start_on(address, "", &config(address, port, &pairs), |_| ());
    let parent = Parent::start([address, address]);
    let resolver = Resolver::start(Kind::Recursor, &parent);
    let server = resolver.server();
    wait_for("every monitor to be up", Duration::from_secs(10), || {
        (node.metric("meridian_health_monitors{verdict=\"up\"}") as usize == pairs.len() * 2)
            .then_some(())
    });
    let mut worst = Duration::ZERO;
    let stalls = Stalls::watch();
    for round in 0..ROUNDS {
        let names: Vec<usize> = (round * AT_ONCE..(round + 1) * AT_ONCE).collect();
        for &at in &names {
            wait_for("the near answer", Duration::from_secs(5), || {
                (resolve(server, at) == Some(pairs[at].0)).then_some(())
            });
        }
        let (begun, stalled) = (Instant::now(), stalls.so_far());
        for &at in &names {
            match fault(at) {
                Fault::Kill => near[at].take().unwrap().kill(),
                Fault::Silence => site.drop_packets(u8::try_from(at / 2).unwrap()),
            }
        }
        for &at in &names {
            wait_for(
                &format!("s{at} to move ({:?})", fault(at)),
                Duration::from_secs(10),
                || {
                    let answer = resolve(server, at);
                    assert!(
                        answer.is_none_or(|answer| answer == pairs[at].0 || answer == pairs[at].1),
                        "{answer:?}"
                    );
                    (answer == Some(pairs[at].1)).then_some(())
                },
            );
            // Where the machine stands still, resolvers and probes do too. No more than the bound itself is forgiven.
            let stalled = (stalls.so_far() - stalled).min(BOUND);
            let took = begun.elapsed();
            assert!(
                took < BOUND + stalled,
                "s{at} took {took:?} ({:?}), of which the machine stood still for {stalled:?}",
                fault(at)
            );
        }
        worst = worst.max(begun.elapsed());
        if round == 2 {
            // A crash in between keeps the answers: the dead are still dead, at the first question.
            wait_for("the state to be written", Duration::from_secs(10), || {
                let state = std::fs::read_to_string(node.folder().join("state/state.json")).ok()?;
                let body = state.split_once("\"down\":[")?.1.split_once(']')?.0;
                (body.matches("http ").count() == (round + 1) * AT_ONCE).then_some(())
            });
            node.kill();
            node.spawn();
            for (at, pair) in pairs.iter().enumerate().take((round + 1) * AT_ONCE) {
                let reply = Ask::a(&format!("s{at}.svc.mesh"))
                    .from(GERMANY)
                    .udp(node.dns());
                assert_eq!(reply.address(), pair.1, "s{at} after the crash");
            }
        }
    }
    println!("fifty of fifty moved; the slowest round took {worst:?}");
    // With everything dead a name still answers.
    for backend in far.drain(..) {
        backend.kill();
    }
    wait_for("everything to be down", Duration::from_secs(10), || {
        (node.metric("meridian_health_monitors{verdict=\"down\"}") as usize == pairs.len() * 2)
            .then_some(())
    });
    for (at, pair) in pairs.iter().enumerate() {
        let reply = Ask::a(&format!("s{at}.svc.mesh"))
            .from(GERMANY)
            .udp(node.dns());
        assert!(
            [pair.0, pair.1].contains(&reply.address()),
            "s{at} {reply:?}"
        );
        // So it does for who asks through the resolver.
        let through = wait_for("the resolver's answer", Duration::from_secs(5), || {
            resolve(server, at)
        });
        assert!([pair.0, pair.1].contains(&through), "s{at} {through}");
    }
}
