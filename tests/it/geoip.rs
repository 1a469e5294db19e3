//! MMDB files, swapped while serving.

use std::time::Duration;

use crate::harness::client::Ask;
use crate::harness::node::Node;
use crate::harness::{loopback, wait_for};

#[path = "../fixtures/mmdb_writer.rs"]
mod mmdb_writer;

use mmdb_writer::Mmdb;

const PATIENCE: Duration = Duration::from_secs(10);

/// Octets of a database that is too large; the file is a hole.
const HUGE: u64 = 2 << 30;

/// The gauge of databases that are refused.
const REFUSED: &str = "meridian_source_refused_files{kind=\"database\"}";

const CONFIG: &str = "
geoip: {databases: [geo.mmdb]}
zones: [{name: svc.mesh, nameservers: [{name: ns1.svc.mesh, addresses: [192.0.2.53]}], contact: hostmaster.svc.mesh}]
clusters:
  - {name: europe, provider: aws, region: eu-central-1}
  - {name: america, provider: aws, region: us-east-1}
services:
  - namespace: shop
    name: web
    hostnames: [www.svc.mesh]
    endpoints: [{cluster: europe, addresses: [192.0.2.1]}, {cluster: america, addresses: [192.0.2.2]}]
";

/// Makes a database that puts one network into a country.
pub fn database(network: &str, country: &str) -> Vec<u8> {
    of_type("GeoLite2-Country", network, country)
}

/// The same under another type's name.
fn of_type(database_type: &'static str, network: &str, country: &str) -> Vec<u8> {
    let continent = if country == "DE" { "EU" } else { "NA" };
    Mmdb::new(database_type)
        .with(network, mmdb_writer::country(country, continent))
        .write()
}

/// A database of a type that knows no places.
fn anonymous() -> Vec<u8> {
    let record = mmdb_writer::Value::Map(vec![("is_anonymous", mmdb_writer::Value::Bool(true))]);
    Mmdb::new("GeoIP2-Anonymous-IP")
        .with("198.51.100.0/24", record)
        .write()
}

fn ask(node: &Node) -> String {
    Ask::a("www.svc.mesh")
        .from("198.51.100.0/24")
        .udp(node.dns())
        .address()
        .to_string()
}

#[test]
fn a_database_is_swapped_while_serving_and_a_broken_one_changes_nothing() {
    let german = database("198.51.100.0/24", "DE");
    let mut node = Node::start_on(loopback(), "", CONFIG, |folder| {
        std::fs::write(folder.join("geo.mmdb"), &german).unwrap()
    });
    assert_eq!(ask(&node), "192.0.2.1");
    let path = node.folder().join("geo.mmdb");
    let put = |octets: &[u8]| {
        let next = path.with_extension("next");
        std::fs::write(&next, octets).unwrap();
        std::fs::rename(next, &path).unwrap();
    };
    put(&database("198.51.100.0/24", "US"));
    wait_for("the new table", PATIENCE, || {
        (ask(&node) == "192.0.2.2").then_some(())
    });
    let broken: [(&str, Vec<u8>); 6] = [
        ("truncated", german[..german.len() / 2].to_vec()),
        ("empty", Vec::new()),
        ("zeros", vec![0; german.len()]),
        ("garbage", german.iter().rev().copied().collect()),
        ("text", b"not a database".to_vec()),
        ("wrong type", anonymous()),
    ];
    for (what, octets) in broken {
        put(&database("198.51.100.0/24", "US"));
        wait_for("a sound database", PATIENCE, || {
            (node.metric(REFUSED) == 0.0).then_some(())
        });
        put(&octets);
        wait_for(what, PATIENCE, || {
            (node.metric(REFUSED) == 1.0).then_some(())
        });
        assert_eq!(ask(&node), "192.0.2.2", "{what}");
    }
    // Larger than is ever read: nothing but its size is looked at.
    put(&database("198.51.100.0/24", "US"));
    wait_for("a sound database", PATIENCE, || {
        (node.metric(REFUSED) == 0.0).then_some(())
    });
    let next = path.with_extension("next");
    let huge = std::fs::File::create(&next).unwrap();
    huge.set_len(HUGE).unwrap();
    std::fs::rename(next, &path).unwrap();
    wait_for("the huge database", PATIENCE, || {
        (node.metric(REFUSED) == 1.0).then_some(())
    });
    assert_eq!(ask(&node), "192.0.2.2");
    let told = format!("larger than {} octets", meridian::geo::GeoDb::MAX_BYTES);
    assert!(node.process().log().contains(&told));
    // In place, as a careless copy does: the table was read whole, so nothing can fault.
    std::fs::write(&path, b"").unwrap();
    assert_eq!(ask(&node), "192.0.2.2");
    std::fs::remove_file(&path).unwrap();
    wait_for("the loss to be noticed", PATIENCE, || {
        (node.metric(REFUSED) == 1.0).then_some(())
    });
    assert_eq!(ask(&node), "192.0.2.2");
    // Gone, crashed, and still right.
    node.kill();
    node.spawn();
    assert_eq!(ask(&node), "192.0.2.2");
    put(&german);
    wait_for("the next good database", PATIENCE, || {
        (ask(&node) == "192.0.2.1").then_some(())
    });
}

#[test]
fn refused_files_are_counted_by_kind_and_a_broken_database_bars_no_edit() {
    let zone = "$TTL 300\nmail MX 10 www\n";
    let config = CONFIG.replace("name: svc.mesh,", "name: svc.mesh, file: svc.mesh.zone,");
    let mut node = Node::start_on(loopback(), "", &config, |folder| {
        std::fs::write(folder.join("geo.mmdb"), database("198.51.100.0/24", "DE")).unwrap();
        std::fs::write(folder.join("svc.mesh.zone"), zone).unwrap();
    });
    let zones = "meridian_source_refused_files{kind=\"zone\"}";
    let configurations = "meridian_source_refused_files{kind=\"configuration\"}";
    std::fs::write(node.folder().join("geo.mmdb"), b"broken").unwrap();
    wait_for("the broken database", PATIENCE, || {
        (node.metric(REFUSED) == 1.0).then_some(())
    });
    let path = node.folder().join("svc.mesh.zone");
    // Two faults are one file.
    std::fs::write(&path, "bad A x\nworse A y\n").unwrap();
    wait_for("the broken zone file", PATIENCE, || {
        (node.metric(zones) == 1.0).then_some(())
    });
    assert_eq!(node.metric(REFUSED), 1.0);
    std::fs::write(&path, format!("{zone}other TXT other\n")).unwrap();
    wait_for("the good zone file", PATIENCE, || {
        (node.metric(zones) == 0.0).then_some(())
    });
    assert_eq!(node.metric(REFUSED), 1.0);
    // The last good octets stand in for the broken file in an edited `geoip` too.
    assert_eq!(ask(&node), "192.0.2.1");
    let good = node.config();
    let edited = good.replace(
        "databases: [geo.mmdb]",
        "databases: [geo.mmdb], overrides: [{prefix: 198.51.100.0/25, country: US}]",
    );
    node.write_config(&edited);
    node.process().signal("HUP");
    wait_for("the override", PATIENCE, || {
        (ask(&node) == "192.0.2.2").then_some(())
    });
    assert_eq!(node.metric(REFUSED), 1.0);
    node.write_config(&format!("{edited}nonsense: 1\n"));
    wait_for("the broken configuration", PATIENCE, || {
        (node.metric(configurations) == 1.0).then_some(())
    });
    assert_eq!((node.metric(REFUSED), node.metric(zones)), (1.0, 0.0));
    node.write_config(&good);
    wait_for("the good configuration", PATIENCE, || {
        (ask(&node) == "192.0.2.1").then_some(())
    });
    node.await_metric(configurations, 0.0);
}
