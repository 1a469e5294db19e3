//! Names of ports.

use super::*;
use crate::inventory::{Extras, PortNames};
use crate::model::{Carrier, NamedPort};
use crate::snapshot::AtPort;

fn port(text: &str, carrier: Carrier, number: u16) -> NamedPort {
    NamedPort {
        name: text.parse().unwrap(),
        carrier,
        number: number.try_into().unwrap(),
    }
}

/// A service at two names, the first of them in a cluster set.
fn exported(ports: &[NamedPort]) -> Service {
    let names = ["web.shop.svc.z", "web.shop.z"];
    let ports = (!ports.is_empty()).then(|| PortNames {
        owners: [name(names[0])].into(),
        ports: ports.into(),
    });
    Service {
        extras: ports.map(|ports| {
            Arc::new(Extras {
                ports: Some(ports),
                ..Extras::default()
            })
        }),
        ..plain("web", &names)
    }
}

/// Asks the snapshot: the number, 0 where names lie below.
fn standing(world: &World, text: &str) -> Option<u16> {
    let wanted = name(text);
    let zone = world.zones.find(wanted.as_ref())?;
    Some(match world.snapshot.at_port(zone, wanted.as_ref())? {
        AtPort::Between => 0,
        AtPort::Port { service, number } => {
            let service = world.inventory.service(service).unwrap();
            assert_eq!(service.key.name(), "web");
            number.get()
        }
    })
}

#[test]
fn names_of_ports_are_those_below_their_owner_and_no_others() {
    let mut world = World::new(vec![zone("z", ""), zone("deep.z", "")]);
    let all = [
        port("http", Carrier::Tcp, 80),
        port("http", Carrier::Udp, 443),
        port("tcp", Carrier::Tcp, 7),
    ];
    world.apply(Change::Replace(vec![exported(&all)]));
    assert_eq!(world.publish(), Vec::<String>::new());
    let held = world.snapshot.names().len();
    for (text, wanted) in [
        ("_http._tcp.web.shop.svc.z", Some(80)),
        ("_http._udp.web.shop.svc.z", Some(443)),
        ("_tcp._tcp.web.shop.svc.z", Some(7)),
        ("_tcp.web.shop.svc.z", Some(0)),
        ("_udp.web.shop.svc.z", Some(0)),
        ("_sctp.web.shop.svc.z", None),
        ("_http._sctp.web.shop.svc.z", None),
        ("_https._tcp.web.shop.svc.z", None),
        ("http._tcp.web.shop.svc.z", None),
        ("_http.tcp.web.shop.svc.z", None),
        ("_._tcp.web.shop.svc.z", None),
        ("__http._tcp.web.shop.svc.z", None),
        ("x._http._tcp.web.shop.svc.z", None),
        ("_http._tcp._tcp.web.shop.svc.z", None),
        ("_http._tcp.shop.svc.z", None),
        ("_http._tcp.new.shop.svc.z", None),
        ("_http._tcp.web.shop.z", None),
        ("_tcp.web.shop.z", None),
        ("_http._tcp.web.shop.svc.deep.z", None),
        ("web.shop.svc.z", None),
        ("_http._tcp.z", None),
        ("_tcp.z", None),
    ] {
        assert_eq!(standing(&world, text), wanted, "{text}");
    }
    // They come and go with what is said, and are no names of the table.
    world.apply(Change::Upsert(exported(&all[1..2])));
    world.publish();
    assert_eq!(standing(&world, "_http._tcp.web.shop.svc.z"), None);
    assert_eq!(standing(&world, "_tcp.web.shop.svc.z"), None);
    assert_eq!(standing(&world, "_http._udp.web.shop.svc.z"), Some(443));
    world.apply(Change::Upsert(exported(&[])));
    world.publish();
    assert_eq!(standing(&world, "_http._udp.web.shop.svc.z"), None);
    assert_eq!(world.snapshot.names().len(), held);
}

#[test]
fn what_a_query_reads_of_a_service_stands_beside_its_name_whatever_ports_it_has() {
    let mut world = World::new(vec![zone("z", "")]);
    for ports in [&[port("http", Carrier::Tcp, 80)][..], &[]] {
        world.apply(Change::Replace(vec![exported(ports)]));
        world.publish();
        let names = world.snapshot.names();
        let wanted = name("web.shop.svc.z");
        let hash = names.hash(wanted.as_ref());
        let candidate = names.candidate(hash, wanted.as_wire().len());
        let (found, steered) = names.confirm(hash, candidate, wanted.as_ref()).unwrap();
        let slot = world.snapshot.service(found.service.unwrap()).unwrap();
        assert_eq!(steered, Some(&slot.steered), "{ports:?}");
    }
}
