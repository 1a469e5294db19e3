//! Names of ports of services in cluster sets (RFC 2782, KEP-1645).

use std::sync::Arc;

use super::world::{GERMAN, world_of_ports};
use super::zones::with_file;
use super::{Ask, Transport, World, lines};
use crate::answer::{explain, synthesized_service};
use crate::model::{ClientSubnet, LowerName, PrefixLen, RecordType};
use crate::zone::{Zone, ZoneSpec};

/// Static records beside the ports: they go first.
const RECORDS: &str = "
_own._tcp.web.shop.svc SRV 1 2 3 elsewhere.example.
deep._far._tcp.web.shop.svc TXT below
*.wild.shop.svc TXT wild
alias CNAME _http._tcp.web.shop.svc
missing CNAME _https._tcp.web.shop.svc
";

fn world() -> World {
    let text = format!("$TTL 300\n@ NS ns.example.\n{RECORDS}");
    let spec = ZoneSpec {
        nameservers: Vec::new(),
        ..with_file("svc.test", text)
    };
    world_of_ports(vec![Arc::new(Zone::compile(&spec).expect("a good zone"))])
}

/// Asks for a name in `svc.test`; gives the code and the records, without the zone's name and the SOA's data.
fn ask(world: &mut World, question: &str) -> String {
    let (name, qtype) = question.split_once(' ').unwrap();
    let ask = Ask::of(&format!("{name}.svc.test {qtype}")).ecs(GERMAN);
    let reply = lines(&world.ask(&ask));
    let brief = |line: &String| {
        let line = line.split(" IN SOA").next().unwrap_or_default();
        line.replace(".svc.test.", "")
    };
    let shown = reply.iter().filter(|line| !line.starts_with("edns"));
    shown.map(brief).collect::<Vec<_>>().join("; ")
}

const NODATA: &str = "NOERROR aa; ns svc.test. 20; ecs 24 0";
const NXDOMAIN: &str = "NXDOMAIN aa; ns svc.test. 20; ecs 24 0";

#[test]
fn a_port_is_answered_with_srv_to_the_name_of_the_service() {
    let mut world = world();
    for (question, wanted) in [
        (
            "_http._tcp.web.shop.svc SRV",
            "NOERROR aa; an _http._tcp.web.shop.svc 30 IN SRV 0 0 80 web.shop.svc; ecs 24 0",
        ),
        (
            "_dns._udp.web.shop.svc SRV",
            "NOERROR aa; an _dns._udp.web.shop.svc 30 IN SRV 0 0 53 web.shop.svc; ecs 24 0",
        ),
        // Whatever is up, and without an address.
        (
            "_http._tcp.none.shop.svc SRV",
            "NOERROR aa; an _http._tcp.none.shop.svc 30 IN SRV 0 0 80 none.shop.svc; ecs 24 0",
        ),
        // A name between exists, and so does a port for whoever asks for something else.
        ("_http._tcp.web.shop.svc A", NODATA),
        ("_http._tcp.web.shop.svc TXT", NODATA),
        ("_http._tcp.web.shop.svc DS", NODATA),
        ("_tcp.web.shop.svc SRV", NODATA),
        ("_udp.web.shop.svc A", NODATA),
        // No such port, carrier, service or name.
        ("_https._tcp.web.shop.svc SRV", NXDOMAIN),
        ("_http._udp.web.shop.svc SRV", NXDOMAIN),
        ("_sctp.web.shop.svc SRV", NXDOMAIN),
        ("x._http._tcp.web.shop.svc SRV", NXDOMAIN),
        ("_http._tcp.new.shop.svc SRV", NXDOMAIN),
        ("_http._tcp.plain SRV", NXDOMAIN),
        ("_tcp.plain SRV", NXDOMAIN),
        // A CNAME leads there, and the chain ends.
        (
            "alias SRV",
            "NOERROR aa; an alias 300 IN CNAME _http._tcp.web.shop.svc; an _http._tcp.web.shop.svc 30 IN SRV 0 0 80 web.shop.svc; ecs 24 0",
        ),
        (
            "missing SRV",
            "NXDOMAIN aa; an missing 300 IN CNAME _https._tcp.web.shop.svc; ns svc.test. 20; ecs 24 0",
        ),
        // Static records and wildcards.
        (
            "_own._tcp.web.shop.svc SRV",
            "NOERROR aa; an _own._tcp.web.shop.svc 300 IN SRV 1 2 3 elsewhere.example.; ecs 24 0",
        ),
        (
            "_far._tcp.web.shop.svc SRV",
            "NOERROR aa; an _far._tcp.web.shop.svc 30 IN SRV 0 0 9 web.shop.svc; ecs 24 0",
        ),
        ("_far._tcp.web.shop.svc TXT", NODATA),
        ("_http._tcp.wild.shop.svc SRV", NODATA),
        (
            "_http._tcp.wild.shop.svc TXT",
            "NOERROR aa; an _http._tcp.wild.shop.svc 300 IN TXT wild; ecs 24 0",
        ),
    ] {
        assert_eq!(ask(&mut world, question), wanted, "{question}");
    }
    for name in ["_http._tcp.web.shop.svc", "_tcp.web.shop.svc"] {
        let any = ask(&mut world, &format!("{name} ANY"));
        assert!(any.contains("HINFO"), "{any}");
    }
    // The name itself is answered as ever.
    let own = ask(&mut world, "web.shop.svc A");
    assert_eq!(
        own,
        "NOERROR aa; an web.shop.svc 30 IN A 10.1.0.1; ecs 24 24"
    );
}

#[test]
fn the_case_of_a_port_is_that_of_the_question_and_explain_says_what_it_is() {
    let mut world = world();
    let reply = lines(&world.ask(&Ask::of("_HTTP._Tcp.Web.shop.svc.SVC.test SRV")));
    assert_eq!(
        reply[1],
        "an _HTTP._Tcp.Web.shop.svc.SVC.test. 30 IN SRV 0 0 80 web.shop.svc.svc.test."
    );
    let explained = explain(
        &world.snapshot,
        &"_http._tcp.web.shop.svc.svc.test".parse().unwrap(),
        RecordType::SRV,
        ClientSubnet {
            address: "192.0.2.0".parse().unwrap(),
            source: PrefixLen(24),
        },
    );
    let text = explained.steps.join("\n");
    assert!(
        text.contains("a port of a service in the cluster set of zone svc.test, 80"),
        "{text}"
    );
    let packet = world.ask_over(
        &Ask::of("_http._tcp.web.shop.svc.svc.test SRV"),
        Transport::Tcp,
    );
    assert_eq!(explained.answer.len(), packet.answers.len());
}

#[test]
fn the_service_of_a_port_is_found() {
    let world = world();
    let found = |name: &str| {
        let name: LowerName = format!("{name}.svc.test").parse().unwrap();
        synthesized_service(&world.snapshot, name.as_ref(), RecordType::SRV).is_some()
    };
    for (name, wanted) in [
        ("_http._tcp.web.shop.svc", true),
        ("_far._tcp.web.shop.svc", true),
        ("_own._tcp.web.shop.svc", false),
        ("_tcp.web.shop.svc", false),
        ("web.shop.svc", false),
        ("_http._tcp.wild.shop.svc", false),
    ] {
        assert_eq!(found(name), wanted, "{name}");
    }
}
