//! A page that lies open shows what happened by itself.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::chrome::Chrome;
use crate::harness::stalls::Stalls;
use crate::harness::wait_for;
use crate::world::World;

/// From the kill to the word of it on the page: a refused connection is noticed within 500 ms and a second try, the rest is ours.
const BOUND: Duration = Duration::from_secs(2);

#[test]
fn a_killed_backend_shows_within_two_seconds() {
    let _machine = crate::alone();
    let mut world = World::start("");
    world.settle();
    let chrome = Chrome::start();
    chrome.open(&world.url("/"));
    chrome.wait("document.getElementById('live-state').dataset.state === 'on'");
    let stalls = Stalls::watch();
    // What the reader opened stays open.
    chrome.run(
        "document.getElementById('countries').open = true; document.body.dataset.same = 'yes'",
    );
    for (at, cluster) in ["frankfurt", "virginia", "singapore"]
        .into_iter()
        .enumerate()
    {
        let mark =
            format!("document.querySelector('.mark[href=\"/clusters/{cluster}\"]').classList");
        chrome.wait(&format!("{mark}.contains('up')"));
        let (begun, stalled) = (Instant::now(), stalls.so_far());
        world.kill(at);
        let told = format!(
            "return {mark}.contains('down') && Boolean(document.getElementById('problems')?.textContent.includes('{cluster}'))"
        );
        wait_for("the page to say so", BOUND * 3, || {
            chrome.run(&told).as_bool()?.then_some(())
        });
        let took = begun.elapsed();
        println!("{cluster}: seen after {took:?}");
        // No more than the bound itself is forgiven: a server that starves its machine looks the same.
        let stalled = (stalls.so_far() - stalled).min(BOUND);
        assert!(
            took < BOUND + stalled,
            "{cluster}: {took:?}, of which the machine stood still for {stalled:?}"
        );
    }
    assert_eq!(chrome.run("return document.body.dataset.same"), "yes");
}

#[test]
fn ten_tabs_and_ten_pages_in_one_of_them_are_still_live() {
    let _machine = crate::alone();
    let mut world = World::start("");
    world.settle();
    let chrome = Chrome::start();
    let live = "document.getElementById('live-state').dataset.state === 'on'";
    // A browser has six connections a server, and keeps pages that were left for the way back.
    for page in [
        "", "clusters", "services", "monitors", "events", "explain", "zones", "sources", "drains",
        "clusters",
    ] {
        chrome.open(&world.url(&format!("/{page}")));
        chrome.wait(live);
    }
    for _ in 0..10 {
        chrome.new_tab();
        chrome.open(&world.url("/"));
        chrome.wait(live);
    }
    // The first one catches up when it is looked at again.
    world.kill(0);
    chrome.wait(
        "document.querySelector('.mark[href=\"/clusters/frankfurt\"]').classList.contains('down')",
    );
    chrome.first_tab();
    chrome.wait(live);
    chrome.wait("document.querySelector('main').textContent.includes('down')");
    // A page on the way back is live too.
    chrome.run("history.back()");
    chrome.wait("location.pathname === '/drains'");
    chrome.wait(live);
}

#[test]
fn times_are_in_utc_and_where_the_reader_is() {
    let _machine = crate::alone();
    let mut world = World::start("");
    world.settle();
    let chrome = Chrome::start();
    chrome.open(&world.url("/events"));
    let shown = "const t = document.querySelector('main td time:not([data-ago])'); return t.textContent + '|' + (t.dataset.local || '') + '|' + getComputedStyle(t, '::after').content;";
    let in_utc = chrome.run(shown);
    let (utc, rest) = in_utc.as_str().unwrap().split_once('|').unwrap();
    assert!(utc.ends_with(" UTC") && rest == "|none", "{in_utc}");
    chrome.cdp(
        "Emulation.setTimezoneOverride",
        &json!({"timezoneId": "Asia/Kolkata"}),
    );
    chrome.open(&world.url("/events"));
    world.kill(0);
    chrome.wait("document.querySelector('main').textContent.includes('connection refused')");
    // What came live has it too, and what was there has kept it.
    let wait = "[...document.querySelectorAll('main td time:not([data-ago])')].every((t) => t.dataset.local.includes('GMT+5:30') && t.textContent.endsWith(' UTC'))";
    chrome.wait(wait);
    let in_india = chrome.run(shown);
    assert!(
        in_india.as_str().unwrap().contains("GMT+5:30\""),
        "{in_india}"
    );
    chrome.picture("events-local-1280-light");
}
