//! Endpoints that are host names: resolved outside, followed inside, kept, removed, and never a question to ourselves.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, ResponseCode};
use hickory_proto::rr::rdata::{A, CNAME, SOA};
use hickory_proto::rr::{Name, RData, Record, RecordType};

use crate::harness::client::{Ask, Reply};
use crate::harness::node::{Node, meridian};
use crate::harness::{loopback, wait_for};

const PATIENCE: Duration = Duration::from_secs(40);

/// What a resolver says of A records.
#[derive(Clone, Debug)]
enum Said {
    /// Addresses, for ten seconds.
    Addresses(&'static [&'static str]),
    /// An alias, and nothing else.
    Alias(&'static str),
    /// This RCODE; a denial holds for a second.
    Rcode(ResponseCode),
}

/// A resolver on loopback. Of AAAA it says that there are none; what it was told nothing of does not exist.
struct Resolver {
    address: SocketAddr,
    said: Arc<Mutex<HashMap<String, Said>>>,
    asked: Arc<Mutex<HashMap<String, usize>>>,
}

impl Resolver {
    fn start() -> Self {
        let socket = UdpSocket::bind((loopback(), 0)).unwrap();
        let resolver = Self {
            address: socket.local_addr().unwrap(),
            said: Arc::default(),
            asked: Arc::default(),
        };
        let (said, asked) = (Arc::clone(&resolver.said), Arc::clone(&resolver.asked));
        std::thread::spawn(move || {
            let mut buffer = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                let query = Message::from_vec(&buffer[..length]).unwrap();
                let name = query.queries[0].name().to_ascii();
                let name = name.trim_end_matches('.').to_owned();
                *asked.lock().unwrap().entry(name.clone()).or_default() += 1;
                let known = said.lock().unwrap().get(&name).cloned();
                let known = known.unwrap_or(Said::Rcode(ResponseCode::NXDomain));
                let reply = reply(&query, known).to_vec().unwrap();
                socket.send_to(&reply, from).unwrap();
            }
        });
        resolver
    }

    fn say(&self, name: &str, said: Said) {
        self.said.lock().unwrap().insert(name.to_owned(), said);
    }

    fn asked(&self, name: &str) -> usize {
        self.asked.lock().unwrap().get(name).copied().unwrap_or(0)
    }

    /// Waits until a name was asked for so many times more.
    fn wait_asked(&self, name: &str, more: usize) {
        let before = self.asked(name);
        let what = format!("{more} questions for {name}");
        wait_for(&what, PATIENCE, || {
            (self.asked(name) >= before + more).then_some(())
        });
    }
}

fn reply(query: &Message, said: Said) -> Message {
    let question = query.queries[0].clone();
    let owner = question.name().clone();
    let of_a = question.query_type() == RecordType::A;
    let mut reply = Message::query();
    reply.metadata = query.metadata;
    reply.metadata.message_type = MessageType::Response;
    reply.add_query(question);
    let soa = |reply: &mut Message| {
        let name = |text| Name::from_ascii(text).unwrap();
        let soa = SOA::new(name("ns.test."), name("host.test."), 1, 1, 1, 1, 1);
        reply.authorities = vec![Record::from_rdata(name("test."), 1, RData::SOA(soa))];
    };
    match said {
        Said::Addresses(all) if of_a => {
            let record = |text: &&str| {
                let address = A(text.parse().unwrap());
                Record::from_rdata(owner.clone(), 10, RData::A(address))
            };
            reply.answers = all.iter().map(record).collect();
        }
        Said::Alias(target) => {
            let target = CNAME(Name::from_str(&format!("{target}.")).unwrap());
            reply.answers = vec![Record::from_rdata(owner, 10, RData::CNAME(target))];
        }
        Said::Rcode(ResponseCode::NXDomain) => {
            reply.metadata.response_code = ResponseCode::NXDomain;
            soa(&mut reply);
        }
        Said::Rcode(code) => reply.metadata.response_code = code,
        Said::Addresses(_) => soa(&mut reply),
    }
    reply
}

/// A configuration of these services.
fn config(resolver: SocketAddr, services: &str) -> String {
    format!(
        "
zones: [{{name: svc.mesh, nameservers: [{{name: ns1.svc.mesh, addresses: [192.0.2.53]}}], contact: hostmaster.svc.mesh, file: svc.mesh.zone}}]
clusters:
  - {{name: europe, provider: aws, region: eu-central-1}}
  - {{name: america, provider: aws, region: us-east-1}}
resolver: {{nameservers: [\"{resolver}\"]}}
defaults: {{policy: {{steer: all}}}}
services:
{services}"
    )
}

const ZONE: &str =
    "$TTL 300\nstatic A 198.51.100.40\nalias CNAME static\nfar 30 CNAME lb.test.\nback CNAME web\n";

fn start(resolver: &Resolver, services: &str) -> Node {
    Node::start_on(
        loopback(),
        "",
        &config(resolver.address, services),
        |folder| {
            std::fs::write(folder.join("svc.mesh.zone"), ZONE).unwrap();
        },
    )
}

fn ask(node: &Node, name: &str) -> Reply {
    Ask::a(name).from("46.114.0.0/24").udp(node.dns())
}

fn answers(node: &Node, name: &str) -> String {
    let all = ask(node, name).addresses();
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    all.join(" ")
}

fn wait_answer(node: &Node, name: &str, wanted: &str) {
    let what = format!("{name} to be `{wanted}`, not `{}`", answers(node, name));
    wait_for(&what, PATIENCE, || {
        (answers(node, name) == wanted).then_some(())
    });
}

fn targets(node: &Node, state: &str) -> f64 {
    node.metric(&format!("meridian_resolving_targets{{state=\"{state}\"}}"))
}

#[test]
fn a_name_that_answers_nobody_is_told_of() {
    let resolver = Resolver::start();
    let services = "  - namespace: shop
    name: web
    hostnames: [web.svc.mesh]
    endpoints:
      - {cluster: europe, hostname: none.test}
  - namespace: shop
    name: other
    hostnames: [other.svc.mesh]
    endpoints:
      - {cluster: europe, hostname: none.test}
      - {cluster: america, addresses: [192.0.2.1]}
";
    let node = start(&resolver, services);
    let status = wait_for("the name without an address", PATIENCE, || {
        let status = node.get("/api/v1/status")?;
        status.contains("shop/web has no address").then_some(status)
    });
    assert!(!status.contains("shop/other has no address"), "{status}");
    assert!(ask(&node, "web.svc.mesh").0.answers.is_empty());
    // Once it has one, it is no problem any more.
    resolver.say("none.test", Said::Addresses(&["198.51.100.1"]));
    wait_answer(&node, "web.svc.mesh", "198.51.100.1");
    wait_for("no name without an address", PATIENCE, || {
        let status = node.get("/api/v1/status")?;
        (!status.contains("has no address")).then_some(())
    });
}

#[test]
fn a_host_name_is_its_addresses_through_failures_and_restarts_until_it_is_denied_twice() {
    let resolver = Resolver::start();
    resolver.say(
        "lb.test",
        Said::Addresses(&["198.51.100.1", "198.51.100.2"]),
    );
    let services = "  - namespace: shop
    name: web
    hostnames: [svc.mesh, web.svc.mesh]
    ttl: 300
    endpoints:
      - {cluster: europe, hostname: lb.test}
      - {cluster: america, addresses: [192.0.2.1]}
";
    let mut node = start(&resolver, services);
    let all = "192.0.2.1 198.51.100.1 198.51.100.2";
    wait_answer(&node, "web.svc.mesh", all);
    // At the apex too, as records of its own, for no longer than the target's own TTL.
    wait_answer(&node, "svc.mesh", all);
    let reply = ask(&node, "svc.mesh");
    assert!(
        reply
            .0
            .answers
            .iter()
            .all(|one| one.record_type() == RecordType::A)
    );
    assert!(reply.ttl() <= 10, "{}", reply.ttl());
    assert_eq!(targets(&node, "fresh"), 1.0);
    let mx = Ask::a("web.svc.mesh")
        .of_type(RecordType::MX)
        .udp(node.dns());
    assert!(mx.0.answers.is_empty() && mx.rcode() == ResponseCode::NoError);
    // A new address joins those of the period before.
    resolver.say("lb.test", Said::Addresses(&["198.51.100.3"]));
    wait_answer(&node, "web.svc.mesh", &format!("{all} 198.51.100.3"));
    wait_answer(&node, "web.svc.mesh", "192.0.2.1 198.51.100.3");
    resolver.say("lb.test", Said::Rcode(ResponseCode::ServFail));
    node.await_metric("meridian_resolving_targets{state=\"failing\"}", 1.0);
    assert_eq!(answers(&node, "web.svc.mesh"), "192.0.2.1 198.51.100.3");
    // A restart while the resolver fails has them at once, from disk.
    wait_for("the target on disk", PATIENCE, || {
        let offers = std::fs::read_to_string(node.folder().join("state/offers.json")).ok()?;
        // An earlier one has those of the period before too.
        (offers.contains("\"198.51.100.3\"") && !offers.contains("\"198.51.100.1\"")).then_some(())
    });
    node.kill();
    node.spawn();
    assert_eq!(answers(&node, "web.svc.mesh"), "192.0.2.1 198.51.100.3");
    resolver.wait_asked("lb.test", 2);
    assert_eq!(answers(&node, "web.svc.mesh"), "192.0.2.1 198.51.100.3");
    resolver.say("lb.test", Said::Rcode(ResponseCode::NXDomain));
    wait_answer(&node, "web.svc.mesh", "192.0.2.1");
    node.await_metric("meridian_resolving_targets{state=\"gone\"}", 1.0);
    // And it comes back.
    resolver.say("lb.test", Said::Addresses(&["198.51.100.4"]));
    wait_answer(&node, "web.svc.mesh", "192.0.2.1 198.51.100.4");
}

#[test]
fn names_of_ours_are_followed_inside_and_never_asked_for() {
    let resolver = Resolver::start();
    resolver.say("lb.test", Said::Addresses(&["198.51.100.9"]));
    resolver.say("round.test", Said::Alias("web.svc.mesh"));
    let service = |name: &str, endpoints: &str| {
        format!(
            "  - {{namespace: shop, name: {name}, hostnames: [{name}.svc.mesh], endpoints: [{endpoints}]}}\n"
        )
    };
    let to = |target: &str| format!("{{cluster: europe, hostname: {target}}}");
    let plain = |address: &str| format!("{{cluster: america, addresses: [{address}]}}");
    let web = service("web", &[to("far.svc.mesh"), plain("192.0.2.1")].join(", "));
    let services = [
        web.clone(),
        service("fixed", &to("alias.svc.mesh")),
        service(
            "shop",
            &[to("back.svc.mesh"), plain("192.0.2.2")].join(", "),
        ),
        service("lost", &[to("round.test"), plain("192.0.2.3")].join(", ")),
    ];
    let mut node = start(&resolver, &services.concat());
    wait_answer(&node, "fixed.svc.mesh", "198.51.100.40");
    wait_answer(&node, "web.svc.mesh", "192.0.2.1 198.51.100.9");
    // Through an alias of ours to a service of ours, which goes on outside.
    wait_answer(&node, "shop.svc.mesh", "192.0.2.1 192.0.2.2 198.51.100.9");
    // An alias outside leads back: refused, and told.
    wait_answer(&node, "lost.svc.mesh", "192.0.2.3");
    node.await_metric("meridian_resolving_targets{state=\"refused\"}", 1.0);
    node.await_metric("meridian_resolving_targets{state=\"inside\"}", 3.0);
    node.await_metric("meridian_inventory_rejections", 1.0);
    // A zone file that changes is followed.
    let zone = ZONE.replace("198.51.100.40", "198.51.100.41");
    std::fs::write(node.folder().join("svc.mesh.zone"), zone).unwrap();
    wait_answer(&node, "fixed.svc.mesh", "198.51.100.41");
    // A reload makes a circle: each keeps what is its own and what the other has, and it is told.
    let circle = service("web", &[to("shop.svc.mesh"), plain("192.0.2.1")].join(", "));
    node.write_config(&node.config().replace(&web, &circle));
    node.process().signal("HUP");
    node.await_metric("meridian_resolving_targets{state=\"refused\"}", 3.0);
    wait_answer(&node, "shop.svc.mesh", "192.0.2.1 192.0.2.2");
    wait_answer(&node, "web.svc.mesh", "192.0.2.1 192.0.2.2");
    wait_for("the circle among the events", PATIENCE, || {
        let events = node.get("/api/v1/events?limit=100")?;
        events.contains("in a circle").then_some(())
    });
    node.await_metric("meridian_inventory_rejections", 3.0);
    // A restart has them at once, and the circle does not bring anything back.
    node.kill();
    node.spawn();
    assert_eq!(answers(&node, "shop.svc.mesh"), "192.0.2.1 192.0.2.2");
    node.write_config(&node.config().replace(&circle, &web));
    node.process().signal("HUP");
    wait_answer(&node, "shop.svc.mesh", "192.0.2.1 192.0.2.2 198.51.100.9");
    node.await_metric("meridian_inventory_rejections", 1.0);
    let asked = resolver.asked.lock().unwrap();
    let ours = asked.keys().filter(|name| name.ends_with("svc.mesh"));
    assert_eq!(ours.collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn a_fallback_is_flattened_at_the_apex_and_an_alias_elsewhere() {
    let resolver = Resolver::start();
    resolver.say("cdn.test", Said::Addresses(&["198.51.100.7"]));
    let dead = loopback();
    let services = format!(
        "  - namespace: shop
    name: web
    hostnames: [svc.mesh, web.svc.mesh]
    monitor: {{tcp: {{port: 9}}, interval: 200ms, timeout: 200ms}}
    policy: {{fallback: {{hostname: cdn.test}}}}
    endpoints: [{{cluster: europe, addresses: [{dead}]}}]
"
    );
    let node = start(&resolver, &services);
    wait_answer(&node, "svc.mesh", "198.51.100.7");
    let apex = ask(&node, "svc.mesh");
    assert_eq!(apex.0.answers.len(), 1);
    assert_eq!(apex.0.answers[0].record_type(), RecordType::A);
    assert!(apex.ttl() <= 10);
    let soa = Ask::a("svc.mesh").of_type(RecordType::SOA).udp(node.dns());
    assert_eq!(soa.0.answers[0].record_type(), RecordType::SOA);
    let elsewhere = ask(&node, "web.svc.mesh");
    assert_eq!(elsewhere.0.answers[0].record_type(), RecordType::CNAME);
}

#[test]
fn check_and_explain_know_host_names() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("svc.mesh.zone"), ZONE).unwrap();
    let path = folder.path().join("meridian.yaml");
    let write = |target: &str| {
        let services = format!(
            "  - {{namespace: shop, name: web, hostnames: [web.svc.mesh], endpoints: [{{cluster: europe, hostname: {target}}}, {{cluster: america, addresses: [192.0.2.1]}}]}}\n"
        );
        let resolver = SocketAddr::from(([127, 0, 0, 1], 9));
        let head = "version: 1\nnode: {stateDirectory: \"\"}\n";
        std::fs::write(&path, format!("{head}{}", config(resolver, &services))).unwrap();
    };
    let path_text = path.display().to_string();
    write("lb.test");
    let checked = meridian(&["check", "--config", &path_text]);
    assert!(checked.status.success(), "{checked:?}");
    let explained = meridian(&[
        "explain",
        "web.svc.mesh",
        "--client",
        "46.114.0.0/24",
        "--config",
        &path_text,
    ]);
    let text = String::from_utf8(explained.stdout).unwrap();
    let words = "europe is entered by the host name lb.test, which only a running node resolves";
    assert!(text.contains(words) && text.contains("192.0.2.1"), "{text}");
    write("web.svc.mesh");
    let checked = meridian(&["check", "--config", &path_text]);
    let text =
        String::from_utf8(checked.stdout).unwrap() + &String::from_utf8(checked.stderr).unwrap();
    assert!(
        !checked.status.success() && text.contains("in a circle"),
        "{text}"
    );
}
