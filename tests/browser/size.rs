//! A hundred thousand services: every page comes in under 300 ms, and the overview with all that it needs is under 300 KB.

use std::time::{Duration, Instant};

use crate::harness::node::Node;
use crate::harness::stalls::Stalls;
use crate::harness::{loopback, wait_for};
use crate::world::many_services;

/// Services.
const SERVICES: usize = 100_000;
/// A page may take this long.
const BOUND: Duration = Duration::from_millis(300);
/// The overview with stylesheets, scripts and numbers may have so many octets.
const OVERVIEW: usize = 300 * 1024;

fn config(monitor: &str) -> String {
    let mut text = String::from(
        "zones:
  - {name: svc.mesh, nameservers: [{name: ns1.svc.mesh, addresses: [192.0.2.53]}], contact: hostmaster.svc.mesh}
clusters:
  - {name: frankfurt, provider: aws, region: eu-central-1}
  - {name: virginia, provider: aws, region: us-east-1}
services:
",
    );
    text.push_str(&many_services(SERVICES, monitor));
    text
}

/// Gets a page; its body and how long it took.
fn get(node: &Node, path: &str) -> (String, Duration) {
    let begun = Instant::now();
    let answer = node.get(path).unwrap();
    let took = begun.elapsed();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
    (body.to_owned(), took)
}

/// Every page, with the overview first.
const PAGES: [&str; 23] = [
    "/",
    "/clusters",
    "/clusters/frankfurt",
    "/clusters/frankfurt/drain",
    "/services",
    "/services?search=s9999",
    "/services?search=nothing-has-this",
    "/services?cluster=virginia&state=unknown&limit=500",
    "/services?namespace=n42",
    "/services/n42/s42000",
    "/monitors",
    "/events",
    "/explain?name=s42.svc.mesh&client=46.114.0.0/24",
    "/zones",
    "/zones/svc.mesh",
    "/services/n42/s42000/drain?cluster=virginia",
    "/services/n42/s42000/force?cluster=virginia",
    "/clusters/frankfurt/force",
    "/login",
    "/api/",
    "/sources",
    "/drains",
    "/audit",
];

/// Asserts that every page is fast, and the overview small.
fn assert_fast_and_small(node: &Node) {
    let mut slow = Vec::new();
    let stalls = Stalls::watch();
    for path in PAGES {
        let before = stalls.so_far();
        let (body, took) = get(node, path);
        // What the machine stood still is nobody's.
        let took = took.saturating_sub(stalls.so_far() - before);
        println!("{path}: {took:?}, {} octets", body.len());
        if took > BOUND {
            slow.push((path, took));
        }
    }
    assert_eq!(slow, []);
    let (page, _) = get(node, "/");
    let mut total = page.len() + get(node, "/traffic.json").0.len();
    for part in page.split("=\"/assets/").skip(1) {
        let name = part.split('"').next().unwrap();
        total += get(node, &format!("/assets/{name}")).0.len();
    }
    println!("the overview with all that it needs: {total} octets");
    assert!(total < OVERVIEW, "{total}");
}

#[test]
fn pages_are_fast_and_small_with_a_hundred_thousand_services() {
    let _machine = crate::alone();
    let node = Node::start_on(loopback(), "", &config("none"), |_| ());
    // The first look makes the lists that all others share.
    get(&node, "/services");
    assert_fast_and_small(&node);
    // Page after page, to the end of what was asked for.
    let (first, _) = get(&node, "/services?search=n7/&limit=500");
    assert!(first.contains("1,000 services"), "{first}");
    let link = first.split("rel=\"next\" href=\"").nth(1).unwrap();
    let link = link.split('"').next().unwrap().replace("&amp;", "&");
    let (second, took) = get(&node, &link);
    assert!(took < BOUND, "{took:?}");
    assert!(second.contains("500 on this page") && !second.contains("rel=\"next\""));
}

#[test]
fn pages_are_fast_and_small_when_a_hundred_thousand_services_are_down() {
    let _machine = crate::alone();
    let monitor = "{tcp: {port: 9}, interval: 1s, timeout: 500ms, fall: 2}";
    let node = Node::start_on(loopback(), "", &config(monitor), |_| ());
    wait_for("all of them to be down", Duration::from_secs(60), || {
        let status = node.get("/api/v1/status")?;
        status.contains("\"down\":100000").then_some(())
    });
    assert_fast_and_small(&node);
}
