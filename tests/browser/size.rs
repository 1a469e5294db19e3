//! A hundred thousand services: every page comes in under 300 ms, and the overview with all that it needs is under 300 KB.

use std::time::Duration;

use crate::harness::raw_http::Web;
use crate::harness::stalls::Stalls;
use crate::harness::wait_for;
use crate::world::{OPERATOR, World, many_services};

/// Services.
const SERVICES: usize = 100_000;
/// A page may take this long.
const BOUND: Duration = Duration::from_millis(300);
/// The overview with stylesheets, scripts and numbers may have so many octets.
const OVERVIEW: usize = 300 * 1024;

/// Gets a page as an operator sees it.
fn get(world: &World, path: &str) -> String {
    let answer = Web::get(world.node.http(), path).bearer(OPERATOR.0).send();
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.body
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
fn assert_fast_and_small(world: &World) {
    let mut slow = Vec::new();
    let stalls = Stalls::watch();
    for path in PAGES {
        let (body, took) = stalls.time(BOUND, || get(world, path));
        println!("{path}: {took:?}, {} octets", body.len());
        if took > BOUND {
            slow.push((path, took));
        }
    }
    assert_eq!(slow, []);
    let page = get(world, "/");
    let mut total = page.len() + get(world, "/traffic.json").len();
    for part in page.split("=\"/assets/").skip(1) {
        let name = part.split('"').next().unwrap();
        total += get(world, &format!("/assets/{name}")).len();
    }
    println!("the overview with all that it needs: {total} octets");
    assert!(total < OVERVIEW, "{total}");
}

#[test]
fn pages_are_fast_and_small_with_a_hundred_thousand_services() {
    let _machine = crate::alone();
    let world = World::start(&many_services(SERVICES, "none"));
    // The first look makes the lists that all others share.
    get(&world, "/services");
    assert_fast_and_small(&world);
    // Page after page, to the end of what was asked for.
    let first = get(&world, "/services?search=n7/&limit=500");
    assert!(first.contains("1,000 services"), "{first}");
    let link = first.split("rel=\"next\" href=\"").nth(1).unwrap();
    let link = link.split('"').next().unwrap().replace("&amp;", "&");
    let (second, took) = Stalls::watch().time(BOUND, || get(&world, &link));
    assert!(took < BOUND, "{took:?}");
    assert!(second.contains("500 on this page") && !second.contains("rel=\"next\""));
}

#[test]
fn pages_are_fast_and_small_when_a_hundred_thousand_services_are_down() {
    let _machine = crate::alone();
    let monitor = "{tcp: {port: 9}, interval: 1s, timeout: 500ms, fall: 2}";
    let world = World::start(&many_services(SERVICES, monitor));
    wait_for("all of them to be down", Duration::from_secs(60), || {
        let status = world.node.get("/api/v1/status")?;
        status.contains("\"down\":100000").then_some(())
    });
    assert_fast_and_small(&world);
}
