//! The task with a clock and sockets of its own, against a resolver on loopback.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::{Resolution, Table, TargetState, Targets, TargetsConfig, TargetsHandle};
use super::world::{Said, World, records, spawn};
use super::{name, names};
use crate::model::LowerName;

/// Longer than anything takes here.
const LONG: Duration = Duration::from_secs(60);

/// The task, and what it said.
struct Node {
    handle: TargetsHandle,
    table: watch::Receiver<Arc<Table>>,
    token: CancellationToken,
    ended: watch::Receiver<bool>,
}

impl Node {
    fn start(nameservers: &[SocketAddr]) -> Self {
        let config = TargetsConfig {
            nameservers: nameservers.to_vec(),
        };
        let (targets, handle) = Targets::new(&config, 5);
        let token = CancellationToken::new();
        let (end, ended) = watch::channel(false);
        let running = targets.run(token.clone());
        spawn(async move {
            running.await;
            end.send_replace(true);
        });
        Self {
            table: handle.watch(),
            handle,
            token,
            ended,
        }
    }

    fn want(&self, texts: &[&str]) {
        self.handle.want(names(texts), BTreeSet::new());
    }

    /// Waits until a target is known as wanted.
    async fn until(&mut self, target: &str, is: impl Fn(&Resolution) -> bool) -> Arc<Resolution> {
        let target: LowerName = name(target);
        let found = self
            .table
            .wait_for(|table| table.get(&target).is_some_and(|known| is(known)));
        let found = tokio::time::timeout(LONG, found).await;
        let table = Arc::clone(&found.expect("in time").unwrap());
        Arc::clone(table.get(&target).unwrap())
    }

    async fn until_addresses(&mut self, target: &str, addresses: &str) -> Arc<Resolution> {
        self.until(target, |known| shown(known) == addresses).await
    }

    async fn until_error(&mut self, target: &str, part: &str) -> Arc<Resolution> {
        let has = |known: &Resolution| known.error.as_deref().is_some_and(|e| e.contains(part));
        self.until(target, has).await
    }
}

fn shown(known: &Resolution) -> String {
    let texts: Vec<String> = known.addresses.iter().map(ToString::to_string).collect();
    texts.join(" ")
}

#[tokio::test]
async fn both_families_are_resolved_with_the_lowest_ttl() {
    let world = World::start().await;
    world.has(
        "lb.example 60 A 192.0.2.2; lb.example 40 A 192.0.2.1; lb.example 300 AAAA 2001:db8::1",
    );
    let mut node = Node::start(&[world.address]);
    node.want(&["lb.example", "other.example"]);
    let known = node
        .until_addresses("lb.example", "192.0.2.1 192.0.2.2 2001:db8::1")
        .await;
    let rest = known.expires.unwrap().since(node.handle.now());
    assert!(
        rest > Duration::from_secs(20) && rest <= Duration::from_secs(40),
        "{rest:?}"
    );
    assert_eq!((known.state, &known.error), (TargetState::Fresh, &None));
    // What nobody wants any more is gone, and asked for no more.
    node.want(&["other.example"]);
    let gone = node
        .table
        .wait_for(|table| table.get(&name("lb.example")).is_none());
    assert_eq!(gone.await.unwrap().len(), 1);
    node.token.cancel();
    node.ended.wait_for(|ended| *ended).await.unwrap();
}

#[tokio::test]
async fn changes_come_with_the_ttl_and_failures_take_nothing() {
    let world = World::start().await;
    world.has("lb.example 0 A 192.0.2.1");
    let mut node = Node::start(&[world.address]);
    node.want(&["lb.example"]);
    node.until_addresses("lb.example", "192.0.2.1").await;
    world.has("lb.example 0 A 192.0.2.2");
    node.until_addresses("lb.example", "192.0.2.1 192.0.2.2")
        .await;
    node.until_addresses("lb.example", "192.0.2.2").await;
    let failed = Said::Rcode(ResponseCode::ServFail);
    world.say("lb.example", RecordType::A, failed);
    let known = node.until_error("lb.example", "answers SERVFAIL").await;
    assert_eq!(shown(&known), "192.0.2.2");
    assert!(
        matches!(known.state, TargetState::Failing { .. }),
        "{known:?}"
    );
    world.has("lb.example 60 A 192.0.2.3");
    let known = node
        .until("lb.example", |known| known.state == TargetState::Fresh)
        .await;
    assert_eq!(shown(&known), "192.0.2.2 192.0.2.3");
}

#[tokio::test]
async fn a_silent_resolver_is_a_reason_and_the_next_one_is_asked() {
    let (silent, good) = (World::start().await, World::start().await);
    for record_type in [RecordType::A, RecordType::AAAA] {
        silent.say("lb.example", record_type, Said::Silence);
    }
    good.has("lb.example 60 A 192.0.2.1; lb.example 60 AAAA 2001:db8::1");
    let (mut alone, mut both) = (
        Node::start(&[silent.address]),
        Node::start(&[silent.address, good.address]),
    );
    alone.want(&["lb.example", "other.example"]);
    both.want(&["lb.example"]);
    let (known, ()) = tokio::join!(
        alone.until_error("lb.example", "did not answer within 2s"),
        async {
            both.until_addresses("lb.example", "192.0.2.1 2001:db8::1")
                .await;
        }
    );
    assert_eq!(known.state, TargetState::Unresolved);
    assert!(
        known
            .error
            .as_deref()
            .unwrap()
            .contains(&silent.address.to_string())
    );
    // It held up nobody else.
    assert!(silent.asked("other.example") >= 2);
}

#[tokio::test]
async fn refusals_go_to_the_next_resolver_too() {
    let (bad, good) = (World::start().await, World::start().await);
    for said in [
        Said::Rcode(ResponseCode::ServFail),
        Said::Rcode(ResponseCode::Refused),
        Said::Referral,
    ] {
        let is_referral = matches!(said, Said::Referral);
        bad.say("lb.example", RecordType::A, said);
        good.has("lb.example 60 A 192.0.2.1");
        let mut node = Node::start(&[bad.address, good.address]);
        node.want(&["lb.example"]);
        if is_referral {
            // A resolver that does not resolve is a fault of the configuration, and shows.
            node.until_error("lb.example", "names other servers").await;
        } else {
            node.until_addresses("lb.example", "192.0.2.1").await;
        }
    }
}

#[tokio::test]
async fn aliases_are_followed() {
    let world = World::start().await;
    // In one reply; the lowest TTL on the way counts.
    world
        .has("a.example 50 CNAME b.example; b.example 7 CNAME c.example; c.example 60 A 192.0.2.1");
    // A server that follows nothing; the case of names means nothing.
    world.has("d.example 60 CNAME E.example");
    world.has("e.example 60 CNAME f.example");
    world.has("f.example 9 A 192.0.2.2");
    // Nothing at the end: with the SOA record, and with NXDOMAIN.
    let to_nothing = records("g.example 60 CNAME none.example");
    let nothing = Said::Denied(ResponseCode::NXDomain, to_nothing.clone());
    world.say("g.example", RecordType::A, nothing);
    world.say(
        "h.example",
        RecordType::A,
        Said::Denied(
            ResponseCode::NoError,
            records("h.example 60 CNAME none.example"),
        ),
    );
    // A circle, and a chain that is too long; eight will do.
    world.has("i.example 60 CNAME j.example");
    world.has("j.example 60 CNAME i.example");
    for at in 0..9 {
        world.has(&format!("k{at}.example 60 CNAME k{}.example", at + 1));
    }
    world.has("k9.example 60 A 192.0.2.3");
    let mut node = Node::start(&[world.address]);
    node.want(&[
        "a.example",
        "d.example",
        "g.example",
        "h.example",
        "i.example",
        "k0.example",
        "k1.example",
    ]);
    for (target, address, ttl) in [("a.example", "192.0.2.1", 7), ("d.example", "192.0.2.2", 9)] {
        let known = node.until_addresses(target, address).await;
        let rest = known.expires.unwrap().since(node.handle.now());
        assert!(rest <= Duration::from_secs(ttl), "{target}: {rest:?}");
    }
    node.until_addresses("k1.example", "192.0.2.3").await;
    for (target, part) in [
        ("g.example", "does not exist (NXDOMAIN)"),
        ("h.example", "has no address"),
        ("i.example", "more than 8 aliases, or a circle"),
        ("k0.example", "more than 8 aliases"),
    ] {
        node.until_error(target, part).await;
    }
    assert_eq!(world.asked("none.example"), 0);
}

#[tokio::test]
async fn our_own_zones_are_not_asked_for_through_others() {
    let world = World::start().await;
    world.has("out.example 60 CNAME www.svc.mesh; www.svc.mesh 60 A 192.0.2.1");
    world.has("deep.example 60 CNAME out.example");
    world.has("www.svc.mesh 60 A 192.0.2.1");
    let mut node = Node::start(&[world.address]);
    node.handle.own(vec![name("svc.mesh")]);
    node.want(&["out.example", "deep.example", "www.svc.mesh", "www.mesh"]);
    for target in ["out.example", "deep.example"] {
        let known = node
            .until_error(
                target,
                "alias www.svc.mesh leads back into our own zone svc.mesh",
            )
            .await;
        assert_eq!(
            (shown(&known), known.state),
            (String::new(), TargetState::Unresolved)
        );
    }
    let known = node.until("www.svc.mesh", |_| true).await;
    assert_eq!(known.state, TargetState::Own);
    assert_eq!(world.asked("www.svc.mesh"), 0);
    // The zone is ours no more.
    node.handle.own(vec![]);
    node.until_addresses("www.svc.mesh", "192.0.2.1").await;
    node.until_addresses("out.example", "192.0.2.1").await;
}

#[tokio::test]
async fn long_answers_come_over_tcp() {
    let world = World::start().await;
    let lines: Vec<String> = (0..100)
        .map(|at| format!("lb.example 60 A 192.0.2.{at}"))
        .collect();
    let long = records(&lines.join(";"));
    world.say("lb.example", RecordType::A, Said::OverTcp(long));
    let mut node = Node::start(&[world.address]);
    node.want(&["lb.example"]);
    let known = node
        .until("lb.example", |known| !known.addresses.is_empty())
        .await;
    assert_eq!((known.addresses.len(), known.refused), (64, 36));
}

#[tokio::test]
async fn other_resolvers_are_asked_from_now_on() {
    let world = World::start().await;
    world.has("lb.example 60 A 192.0.2.1");
    let bad = World::start().await;
    bad.say(
        "lb.example",
        RecordType::A,
        Said::Rcode(ResponseCode::NotImp),
    );
    let mut node = Node::start(&[bad.address]);
    node.want(&["lb.example"]);
    node.until_error("lb.example", "answers NOTIMP").await;
    node.handle.configure(TargetsConfig {
        nameservers: vec![world.address],
    });
    node.until_addresses("lb.example", "192.0.2.1").await;
}

#[tokio::test]
async fn many_targets_make_few_tables() {
    let world = World::start().await;
    let texts: Vec<String> = (0..300).map(|at| format!("lb{at}.example")).collect();
    for text in &texts {
        world.has(&format!("{text} 60 A 192.0.2.1"));
    }
    let mut node = Node::start(&[world.address]);
    let started = Instant::now();
    node.want(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let mut tables = 0_u128;
    loop {
        tokio::time::timeout(LONG, node.table.changed())
            .await
            .expect("in time")
            .unwrap();
        tables += 1;
        let table = Arc::clone(&node.table.borrow_and_update());
        if table.len() == 300
            && table
                .iter()
                .all(|(_, known)| known.state == TargetState::Fresh)
        {
            break;
        }
    }
    // The first at once, and those that follow 100 ms apart.
    let most = 2 + started.elapsed().as_millis() / 100;
    assert!(tables <= most, "{tables} tables, at most {most}");
}
