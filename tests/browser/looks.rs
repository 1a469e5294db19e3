//! Every page, on a phone and on a wall, light and dark: nothing spills over, nothing is blocked, nothing comes from elsewhere,
//! and axe finds no serious fault.

use crate::axe;
use crate::chrome::Chrome;
use crate::world::{OPERATOR, World};

/// Name of the picture, and path.
const PAGES: [(&str, &str); 18] = [
    ("overview", "/"),
    ("clusters", "/clusters"),
    ("cluster", "/clusters/frankfurt"),
    ("services", "/services"),
    ("services-none", "/services?search=nowhere&state=down"),
    ("service", "/services/shop/web"),
    ("monitors", "/monitors"),
    ("events", "/events"),
    (
        "explain",
        "/explain?name=www.svc.mesh&client=46.114.0.0%2F24&type=A",
    ),
    ("zones", "/zones"),
    ("zone", "/zones/svc.mesh"),
    ("sources", "/sources"),
    ("drains", "/drains"),
    ("audit", "/audit"),
    ("drain-confirm", "/clusters/capetown/drain"),
    ("force-confirm", "/clusters/capetown/force"),
    ("drain-service", "/services/shop/web/drain"),
    ("api", "/api/"),
];

/// Pages that a visitor sees too.
const OUTSIDE: [(&str, &str); 2] = [("login", "/login"), ("not-found", "/clusters/nowhere")];

#[test]
fn every_page_fits_is_accessible_and_stays_here() {
    let _machine = crate::alone();
    let mut world = World::start("");
    world.settle();
    let chrome = Chrome::start();
    world.sign_in(&chrome, OPERATOR);
    // A bad night: one cluster is down, one is drained.
    chrome.open(&world.url("/clusters/singapore/drain"));
    chrome.fill("input[name=reason]", "new disks");
    chrome.click_text("Drain cluster singapore");
    chrome.wait("location.pathname.startsWith('/drains/')");
    let drain = chrome
        .run("return location.pathname")
        .as_str()
        .unwrap()
        .to_owned();
    world.kill(1);
    chrome.open(&world.url("/"));
    chrome.wait("document.querySelector('.problems')?.textContent.includes('virginia')");
    let pages = PAGES.iter().chain(&OUTSIDE).copied();
    let pages: Vec<(&str, &str)> = pages.chain([("drain", drain.as_str())]).collect();
    let origin = world.url("");
    chrome.requests();
    chrome.complaints();
    let mut faults = Vec::new();
    for (colors, width) in [
        ("dark", 360),
        ("light", 360),
        ("dark", 1920),
        ("light", 1920),
    ] {
        chrome.dress(width, colors);
        for (name, path) in &pages {
            let what = format!("{name} at {width} px, {colors}");
            chrome.open(&world.url(path));
            if path == &"/" || path.starts_with("/clusters/f") {
                chrome.wait("document.querySelector('.plot .uplot')");
            }
            let spill = chrome.run("return document.documentElement.scrollWidth - innerWidth");
            if spill.as_i64().unwrap() > 0 {
                faults.push(format!("{what}: {spill} px too wide"));
            }
            faults.extend(axe::faults(&chrome, &what));
            chrome.picture(&format!("{name}-{width}-{colors}"));
            let complaints: Vec<String> = chrome.complaints();
            // The console tells of the page that is not there by its status.
            let grave = complaints
                .iter()
                .filter(|one| !one.contains("/clusters/nowhere"));
            assert_eq!(grave.collect::<Vec<_>>(), Vec::<&String>::new(), "{what}");
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let elsewhere: Vec<String> = chrome
        .requests()
        .into_iter()
        .filter(|url| !url.starts_with(&format!("{origin}/")) && !url.starts_with("data:"))
        .collect();
    assert_eq!(elsewhere, Vec::<String>::new());
}
