//! Names of levels, as KubeFed asks for them (DESIGN section 4.5).

use std::sync::Arc;

use super::world::{AMERICAN, GERMAN, world_leveled};
use super::zones::with_file;
use super::{Ask, Transport, World, lines};
use crate::answer::{explain, synthesized_service};
use crate::inventory::{Change, Inventory};
use crate::model::{ClientSubnet, Cluster, ClusterIndex, LowerName, PrefixLen, RecordType};
use crate::snapshot::{Inputs, build};
use crate::telemetry::Count;
use crate::zone::{AcmeTarget, NameForms, NameTree, Zone, ZoneSet, ZoneSpec};

/// Static records beside the levels: they go first.
const RECORDS: &str = "
web.shop.prod.svc.eu-a.eu-1 A 192.0.2.1
*.us-a.us-1 TXT wild
deep.web.shop.prod.svc.ap-1 TXT below
mail.shop.prod.svc MX 10 mx.example.
cut.ap-1 NS ns.example.
svc.both DNAME elsewhere.example.
";

fn zone(kubefed: bool) -> Arc<Zone> {
    zone_with(kubefed, None)
}

/// Compiles a zone that makes names of federations, of these records.
fn zone_of(apex: &str, records: &str) -> Arc<Zone> {
    let spec = ZoneSpec {
        nameservers: Vec::new(),
        forms: NameForms {
            kubefed: true,
            ..NameForms::default()
        },
        ..with_file(apex, format!("$TTL 300\n@ NS ns.example.\n{records}"))
    };
    Arc::new(Zone::compile(&spec).expect("a good zone"))
}

fn zone_with(kubefed: bool, acme: Option<AcmeTarget>) -> Arc<Zone> {
    let spec = ZoneSpec {
        acme,
        nameservers: Vec::new(),
        forms: NameForms {
            kubefed,
            ..NameForms::default()
        },
        ..with_file("svc.test", format!("$TTL 300\n@ NS ns.example.\n{RECORDS}"))
    };
    Arc::new(Zone::compile(&spec).expect("a good zone"))
}

fn world() -> World {
    world_leveled(vec![zone(true)])
}

/// Asks for a name in `svc.test`, for a client; gives the code and the records, without the zone's name and the SOA's data.
fn ask(world: &mut World, question: &str, client: &str) -> String {
    let (name, qtype) = question.split_once(' ').unwrap();
    let ask = Ask::of(&format!("{name}.svc.test {qtype}")).ecs(client);
    let reply = lines(&world.ask(&ask));
    let brief = |line: &String| {
        let line = line.split(" IN SOA").next().unwrap_or_default();
        line.replace(".svc.test.", "")
    };
    let shown = reply.iter().filter(|line| !line.starts_with("edns"));
    shown.map(brief).collect::<Vec<_>>().join("; ")
}

fn check(world: &mut World, client: &str, table: &[(&str, &str)]) {
    for (question, wanted) in table {
        assert_eq!(ask(world, question, client), *wanted, "{question}");
    }
}

const NODATA: &str = "NOERROR aa; ns svc.test. 20; ecs 24 0";
const NXDOMAIN: &str = "NXDOMAIN aa; ns svc.test. 20; ecs 24 0";

#[test]
fn a_level_is_answered_by_its_own_clusters_wherever_the_client_is() {
    let mut world = world();
    for client in [GERMAN, AMERICAN] {
        for (name, address) in [
            ("web.shop.prod.svc.eu-1", "10.1.0.1"),
            ("web.shop.prod.svc.us-1", "10.2.0.1"),
            ("web.shop.prod.svc.both.eu-1", "10.1.0.1"),
            ("web.shop.prod.svc.both.us-1", "10.2.0.1"),
            // A zone alone, as the first kube-dns asked.
            ("web.shop.prod.svc.eu-a", "10.1.0.1"),
            ("web.shop.prod.svc.us-a", "10.2.0.1"),
            // The region of the only cluster that is up.
            ("half.shop.prod.svc.us-1", "10.7.0.1"),
        ] {
            let wanted = format!("NOERROR aa; an {name} 30 IN A {address}; ecs 24 24");
            assert_eq!(ask(&mut world, &format!("{name} A"), client), wanted);
        }
    }
    let reply = ask(&mut world, "web.shop.prod.svc.eu-1 AAAA", AMERICAN);
    assert!(reply.contains("IN AAAA 2001:db8:1::1"), "{reply}");
    let reply = ask(&mut world, "all.shop.prod.svc.eu-1 A", AMERICAN);
    assert!(
        reply.contains("10.1.0.1") && !reply.contains("10.2.0.1"),
        "{reply}"
    );
    // RFC 4343: in any case, and the case is kept.
    let reply = lines(&world.ask(&Ask::of("Web.shop.PROD.svc.Eu-1.SVC.test A")));
    assert_eq!(
        reply[1],
        "an Web.shop.PROD.svc.Eu-1.SVC.test. 30 IN A 10.1.0.1"
    );
}

#[test]
fn a_level_with_nothing_usable_is_answered_by_the_next_wider_one_at_the_asked_owner() {
    let mut world = world();
    check(
        &mut world,
        GERMAN,
        &[
            // No cluster of the region has it.
            (
                "web.shop.prod.svc.ap-1 A",
                "NOERROR aa; an web.shop.prod.svc.ap-1 30 IN A 10.1.0.1; ecs 24 24",
            ),
            (
                "web.shop.prod.svc.ap-a.ap-1 A",
                "NOERROR aa; an web.shop.prod.svc.ap-a.ap-1 30 IN A 10.1.0.1; ecs 24 24",
            ),
            // The region's only cluster is down.
            (
                "half.shop.prod.svc.eu-1 A",
                "NOERROR aa; an half.shop.prod.svc.eu-1 30 IN A 10.7.0.1; ecs 24 24",
            ),
            (
                "half.shop.prod.svc.eu-a.eu-1 A",
                "NOERROR aa; an half.shop.prod.svc.eu-a.eu-1 30 IN A 10.7.0.1; ecs 24 24",
            ),
            // All Down is all Up, for the whole name: the nearest.
            (
                "dead.shop.prod.svc.us-1 A",
                "NOERROR aa; an dead.shop.prod.svc.us-1 30 IN A 10.3.0.2; ecs 24 24",
            ),
            // It has never had an address.
            (
                "none.shop.prod.svc.us-1 A",
                "NOERROR aa; ns svc.test. 5; ecs 24 0",
            ),
            // A host name, of that level.
            (
                "host.shop.prod.svc.us-1 A",
                "NOERROR aa; an host.shop.prod.svc.us-1 30 IN CNAME lb-us.example.net.; ecs 24 24",
            ),
            (
                "host.shop.prod.svc.us-1 TXT",
                "NOERROR aa; an host.shop.prod.svc.us-1 30 IN CNAME lb-us.example.net.; ecs 24 24",
            ),
            (
                "host.shop.prod.svc.us-1 ANY",
                "NOERROR aa; an host.shop.prod.svc.us-1 30 IN CNAME lb-us.example.net.; ecs 24 24",
            ),
        ],
    );
    for (name, count) in [
        ("half.shop.prod.svc.us-1", Count::LevelOwn),
        ("half.shop.prod.svc.eu-a.eu-1", Count::LevelWider),
        ("web.shop.prod.svc.ap-1", Count::LevelWider),
    ] {
        let counted = world.counted(&Ask::of(&format!("{name}.svc.test A")));
        let levels = [Count::LevelOwn, Count::LevelWider];
        let counted: Vec<_> = counted.iter().filter(|one| levels.contains(one)).collect();
        assert_eq!(counted, [&count], "{name}");
    }
    // The fence leaves Americans nothing, wherever they ask.
    let reply = ask(&mut world, "fenced.shop.prod.svc.eu-1 A", AMERICAN);
    let whole = ask(&mut world, "fenced.shop.prod.svc A", AMERICAN);
    assert_eq!(reply, whole);
}

#[test]
fn names_between_exist_and_what_no_cluster_or_service_has_does_not() {
    let mut world = world();
    let exist = [
        "shop.prod.svc.eu-1",
        "prod.svc.eu-1",
        "svc.eu-1",
        "eu-1",
        "shop.prod.svc.eu-a.eu-1",
        "prod.svc.eu-a.eu-1",
        "svc.eu-a.eu-1",
        "eu-a.eu-1",
        "shop.prod.svc.eu-a",
        "svc.eu-a",
        "eu-a",
        "ap-1",
        "ap-a.ap-1",
    ];
    for name in exist {
        for qtype in ["A", "TXT", "DS"] {
            assert_eq!(
                ask(&mut world, &format!("{name} {qtype}"), GERMAN),
                NODATA,
                "{name}"
            );
        }
        let any = ask(&mut world, &format!("{name} ANY"), GERMAN);
        assert!(any.contains("HINFO"), "{any}");
    }
    assert_eq!(
        ask(&mut world, "web.shop.prod.svc.eu-1 TXT", GERMAN),
        NODATA
    );
    for name in [
        // A region or zone that no cluster has, and a zone in another's region.
        "web.shop.prod.svc.mars",
        "web.shop.prod.svc.eu-a.mars",
        "mars",
        "svc.mars",
        "web.shop.prod.svc.eu-a.us-1",
        "web.shop.prod.svc.eu-1.eu-a",
        "web.shop.prod.svc.eu-1.eu-1",
        // A service, namespace or federation that nothing has.
        "new.shop.prod.svc.eu-1",
        "web.new.prod.svc.eu-1",
        "new.prod.svc.eu-1",
        "new.svc.eu-1",
        // An endpoint of a service.
        "x.web.shop.prod.svc.us-1",
        "x.web.shop.prod.svc.both.us-1",
        "x.web.shop.prod.svc",
        // Other forms of names have no levels, nor do static records.
        "web.static.eu-1",
        "static.eu-1",
        "mail.shop.prod.svc.eu-1",
        "pod.eu-1",
    ] {
        for qtype in ["A", "TXT", "ANY"] {
            assert_eq!(
                ask(&mut world, &format!("{name} {qtype}"), GERMAN),
                NXDOMAIN,
                "{name}"
            );
        }
    }
}

#[test]
fn static_records_cuts_and_wildcards_go_first() {
    let mut world = world();
    check(
        &mut world,
        GERMAN,
        &[
            (
                "web.shop.prod.svc.eu-a.eu-1 A",
                "NOERROR aa; an web.shop.prod.svc.eu-a.eu-1 300 IN A 192.0.2.1; ecs 24 0",
            ),
            (
                "half.shop.prod.svc.eu-a.eu-1 A",
                "NOERROR aa; an half.shop.prod.svc.eu-a.eu-1 30 IN A 10.7.0.1; ecs 24 24",
            ),
            (
                "web.shop.prod.svc.us-a.us-1 TXT",
                "NOERROR aa; an web.shop.prod.svc.us-a.us-1 300 IN TXT wild; ecs 24 0",
            ),
            ("web.shop.prod.svc.us-a.us-1 A", NODATA),
            // An empty non-terminal of the file is no record.
            (
                "web.shop.prod.svc.ap-1 A",
                "NOERROR aa; an web.shop.prod.svc.ap-1 30 IN A 10.1.0.1; ecs 24 24",
            ),
            ("deep.web.shop.prod.svc.ap-1 A", NODATA),
            (
                "svc.cut.ap-1 A",
                "NOERROR; ns cut.ap-1 300 IN NS ns.example.; ecs 24 0",
            ),
            (
                "web.shop.prod.svc.both A",
                "NOERROR aa; an svc.both 300 IN DNAME CWVsc2V3aGVyZQdleGFtcGxlAA==; an web.shop.prod.svc.both 300 IN CNAME web.shop.prod.elsewhere.example.; ecs 24 0",
            ),
        ],
    );
    // A zone that makes no such names has no levels.
    let mut plain = world_leveled(vec![zone(false)]);
    assert_eq!(
        ask(&mut plain, "web.shop.prod.svc.eu-1 A", GERMAN),
        NXDOMAIN
    );
    assert!(ask(&mut plain, "web.shop.prod.svc A", GERMAN).contains(" IN A 10.1.0.1"));
}

#[test]
fn nothing_of_a_federation_lies_between_where_the_zone_file_has_cut_it_off() {
    let cuts = "
gone.svc NS ns.gone.svc
ns.gone.svc A 192.0.2.9
lent.prod.svc NS ns.example.
moved.prod.svc DNAME elsewhere.example.
";
    let mut world = world_leveled(vec![zone_of("svc.test", &format!("{RECORDS}{cuts}"))]);
    for name in [
        "gone.svc.eu-1",
        "shop.gone.svc.eu-1",
        "ns.gone.svc.eu-1",
        "web.shop.gone.svc.eu-1",
        "gone.svc.eu-a.eu-1",
        "lent.prod.svc.eu-1",
        "web.lent.prod.svc.eu-1",
        "lent.prod.svc.eu-a",
        "moved.prod.svc.eu-1",
        "web.moved.prod.svc.eu-1",
    ] {
        for qtype in ["A", "TXT", "DS", "ANY"] {
            let reply = ask(&mut world, &format!("{name} {qtype}"), GERMAN);
            assert_eq!(reply, NXDOMAIN, "{name}");
        }
    }
    check(
        &mut world,
        GERMAN,
        &[
            // What was cut off is asked for elsewhere.
            (
                "shop.lent.prod.svc A",
                "NOERROR; ns lent.prod.svc 300 IN NS ns.example.; ecs 24 0",
            ),
            // Beside the cuts all is there.
            ("shop.prod.svc.eu-1 A", NODATA),
            ("svc.eu-1 A", NODATA),
            (
                "web.shop.prod.svc.eu-1 A",
                "NOERROR aa; an web.shop.prod.svc.eu-1 30 IN A 10.1.0.1; ecs 24 24",
            ),
        ],
    );
    // The cut is where all federations begin.
    let zones = vec![
        zone_of("svc.test", RECORDS),
        zone_of("cut.test", "svc NS ns.example."),
    ];
    let mut world = world_leveled(zones);
    for name in ["eu-1", "eu-a.eu-1", "svc.eu-1", "prod.svc.eu-1"] {
        let reply = lines(&world.ask(&Ask::of(&format!("{name}.cut.test A"))));
        assert_eq!(reply.first().unwrap(), "NXDOMAIN aa", "{name}");
    }
}

#[test]
fn a_level_has_the_challenge_of_a_steered_name_where_nothing_else_stands() {
    let (below, apex): (LowerName, LowerName) =
        ("acme.example".parse().unwrap(), "svc.test".parse().unwrap());
    let target = AcmeTarget::new(below, apex.as_ref()).unwrap();
    let mut world = world_leveled(vec![zone_with(true, Some(target))]);
    check(
        &mut world,
        GERMAN,
        &[
            (
                "_acme-challenge.web.shop.prod.svc.eu-1 TXT",
                "NOERROR aa; an _acme-challenge.web.shop.prod.svc.eu-1 30 IN CNAME web.shop.prod.svc.eu-1.acme.example.; ecs 24 0",
            ),
            ("_acme-challenge.web.shop.prod.svc.mars TXT", NXDOMAIN),
            ("_acme-challenge.svc.eu-1 TXT", NXDOMAIN),
            // A wildcard of the file has this name, and a record of the file this one.
            ("_acme-challenge.web.shop.prod.svc.eu-a.eu-1 TXT", NXDOMAIN),
            (
                "_acme-challenge.web.shop.prod.svc.us-a.us-1 TXT",
                "NOERROR aa; an _acme-challenge.web.shop.prod.svc.us-a.us-1 300 IN TXT wild; ecs 24 0",
            ),
        ],
    );
    let found = |name: &str| {
        let name: LowerName = format!("{name}.svc.test").parse().unwrap();
        synthesized_service(&world.snapshot, name.as_ref(), RecordType::A)
    };
    let whole: LowerName = "web.shop.prod.svc.svc.test".parse().unwrap();
    let whole = world.snapshot.names().find(whole.as_ref()).unwrap();
    assert!(whole.service.is_some());
    assert_eq!(found("web.shop.prod.svc.both.us-1"), whole.service);
    for name in [
        "web.shop.prod.svc",
        "web.shop.prod.svc.eu-a.eu-1",
        "web.shop.prod.svc.us-a.us-1",
        "web.shop.prod.svc.mars",
        "svc.eu-1",
    ] {
        assert_eq!(found(name), None, "{name}");
    }
}

#[test]
fn explain_says_which_level_was_asked_and_which_answered() {
    let mut world = world();
    let explained = |world: &World, name: &str| {
        let client = ClientSubnet {
            address: "192.0.2.0".parse().unwrap(),
            source: PrefixLen(24),
        };
        let name = format!("{name}.svc.test").parse().unwrap();
        explain(&world.snapshot, &name, RecordType::A, client)
    };
    for (name, steps) in [
        (
            "web.shop.prod.svc.us-1",
            &[
                "a level of a federated service of zone svc.test",
                "region us-1",
                "Level: region us-1 decides, as asked",
            ][..],
        ),
        (
            "half.shop.prod.svc.both.eu-1",
            &[
                "zone both of region eu-1",
                "Level: the whole federation decides; nothing is usable in zone both of region eu-1, nor in region eu-1",
            ],
        ),
        (
            "web.shop.prod.svc.us-a",
            &["zone us-a", "Level: zone us-a decides, as asked"],
        ),
        (
            "all.shop.prod.svc.us-1",
            &["Chosen: every endpoint of the level's among 2 clusters"],
        ),
    ] {
        let words = explained(&world, name);
        let text = words.steps.join("\n");
        for step in steps {
            assert!(text.contains(step), "{step}:\n{text}");
        }
        let packet = world.ask_over(
            &Ask::of(&format!("{name}.svc.test A")).ecs(GERMAN),
            Transport::Tcp,
        );
        assert_eq!(words.answer.len(), packet.answers.len(), "{name}");
    }
    let words = explained(&world, "web.shop.prod.svc.us-1");
    assert_eq!(words.cluster.as_deref(), Some("us"));
}

#[test]
fn a_zone_that_no_cluster_is_in_any_more_is_not_what_decides() {
    let mut world = world();
    let mut inventory = Inventory::default();
    let clusters = [("eu", "eu-1"), ("us", "us-1"), ("ap", "ap-1")];
    let clusters = (0..).map(ClusterIndex).zip(clusters);
    let clusters = clusters.map(|(index, (name, region))| {
        let cluster = Cluster {
            region: Some(region.into()),
            ..Cluster::named(name.parse().unwrap())
        };
        (index, Arc::new(cluster))
    });
    let dirty = inventory.apply(Change::Clusters(clusters.collect()));
    let inputs = Inputs {
        inventory: &inventory,
        zones: &Arc::new(ZoneSet::new(vec![zone(true)])),
        geo: world.snapshot.geo(),
        groups: &Arc::default(),
        settings: &Arc::default(),
        challenges: &Arc::default(),
        states: &[],
    };
    world.snapshot = build(&inputs, &dirty, &world.snapshot).snapshot;
    let client = ClientSubnet {
        address: "192.0.2.0".parse().unwrap(),
        source: PrefixLen(24),
    };
    for (name, said) in [
        (
            "all.shop.prod.svc.both.eu-1",
            "Level: region eu-1 decides; no cluster is in zone both of region eu-1 any more",
        ),
        (
            "half.shop.prod.svc.both.eu-1",
            "Level: the whole federation decides; no cluster is in zone both of region eu-1 any more, and nothing is usable in region eu-1",
        ),
        (
            "all.shop.prod.svc.us-a",
            "Level: the whole federation decides; no cluster is in zone us-a any more",
        ),
    ] {
        let name: LowerName = format!("{name}.svc.test").parse().unwrap();
        let words = explain(&world.snapshot, &name, RecordType::A, client);
        assert!(words.steps.iter().any(|step| step == said), "{words:?}");
        let counted = world.counted(&Ask::of(&format!("{name} A")));
        assert!(counted.contains(&Count::LevelWider), "{name}: {counted:?}");
    }
}
