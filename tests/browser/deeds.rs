//! What an operator does: by mouse, and by keyboard alone.

use std::time::Duration;

use crate::chrome::{Chrome, ENTER, TAB};
use crate::hand::Hand;
use crate::harness::client::Ask;
use crate::harness::{loopback, wait_for};
use crate::world::{OPERATOR, VIEWER, World, says};

/// How long a drain may take to be safe: a TTL of 2 s and a margin of 5 s, and some.
const SAFE: Duration = Duration::from_secs(40);

/// Waits until a drain's page, as it lies open, says that it is safe.
fn wait_until_safe(chrome: &Chrome) {
    wait_for("safe to stop", SAFE, || {
        let text = chrome.run("return document.getElementById('verdict').textContent");
        text.as_str()?.contains("Safe to stop").then_some(())
    });
}

/// Presses what an operator presses, for a cluster, for a service and for one endpoint: drain, its end, force, its end.
fn drain_and_force(hand: &Hand<'_>, chrome: &Chrome, world: &World) {
    let endpoint = format!("endpoint {}", world.backend(0).ip());
    hand.follow("Sign in");
    chrome.wait("location.pathname === '/login'");
    hand.write("Token", OPERATOR.0);
    hand.follow("Sign in");
    chrome.wait("location.pathname === '/' && document.body.textContent.includes('operator')");
    for (kind, path, row) in [
        ("cluster frankfurt", "/clusters/frankfurt", String::new()),
        ("service shop/api", "/services/shop/api", String::new()),
        // The links of an endpoint tell its address to who does not see the row.
        (
            &endpoint,
            "/services/shop/api",
            format!(" {}", world.backend(0).ip()),
        ),
    ] {
        let here = format!("location.pathname === '{path}'");
        chrome.open(&world.url(path));
        hand.follow(&format!("Drain…{row}"));
        chrome.wait(&format!("location.pathname === '{path}/drain'"));
        hand.write("Why", &format!("drained {kind}"));
        hand.follow("Drain ");
        chrome.wait("location.pathname.startsWith('/drains/')");
        chrome.wait(&says(kind));
        hand.follow("End the drain…");
        chrome.wait("location.pathname.endsWith('/end')");
        hand.write("Why", &format!("filled {kind}"));
        hand.follow("End the drain of ");
        chrome.wait("document.getElementById('verdict')?.textContent.includes('over')");

        chrome.open(&world.url(path));
        chrome.wait(&here);
        hand.follow(&format!("Force…{row}"));
        chrome.wait(&format!("location.pathname === '{path}/force'"));
        hand.choose("down: used after");
        hand.write("Why", &format!("forced {kind}"));
        hand.follow("Force ");
        chrome.wait("location.pathname === '/drains'");
        chrome.wait(&says("Forced down"));
        hand.follow("End…");
        chrome.wait("location.pathname.endsWith('/end')");
        hand.write("Why", &format!("freed {kind}"));
        hand.follow("End the force of ");
        chrome.wait("document.getElementById('forces')?.textContent.includes('ended')");
        chrome.wait("!document.getElementById('forces').textContent.includes('End…')");
    }
    // All of it is in the audit log, with the name of who did it.
    hand.follow("Audit");
    chrome.wait("location.pathname === '/audit'");
    chrome.wait(&says("ann"));
    for kind in ["cluster frankfurt", "service shop/api", &endpoint] {
        for deed in ["drained", "filled", "forced", "freed"] {
            chrome.wait(&says(&format!("{deed} {kind}")));
        }
    }
    hand.follow("Sign out");
    chrome.wait("location.pathname === '/login'");
    chrome.open(&world.url("/"));
    chrome.wait("document.querySelector('a.who')?.textContent === 'Sign in'");
}

#[test]
fn drain_and_force_by_mouse() {
    let _machine = crate::alone();
    let world = World::start("");
    world.settle();
    let chrome = Chrome::start();
    chrome.open(&world.url("/"));
    drain_and_force(&Hand::with_mouse(&chrome), &chrome, &world);
}

#[test]
fn drain_and_force_by_keyboard() {
    let _machine = crate::alone();
    let world = World::start("");
    world.settle();
    let chrome = Chrome::start();
    chrome.open(&world.url("/"));
    chrome.press(&TAB.to_string());
    chrome.wait("document.activeElement.textContent === 'Skip to content'");
    drain_and_force(&Hand::with_keyboard(&chrome), &chrome, &world);
    // The map is no dead end either.
    chrome.tab_to("Overview");
    chrome.press(&ENTER.to_string());
    chrome.tab_to("frankfurt: up");
    chrome.press(&ENTER.to_string());
    chrome.wait("location.pathname === '/clusters/frankfurt'");
}

#[test]
fn a_drain_tells_whom_it_touches_and_then_when_it_is_safe() {
    let _machine = crate::alone();
    let world = World::start("");
    world.settle();
    let chrome = Chrome::start();
    world.sign_in(&chrome, OPERATOR);
    let german = Ask::a("www.svc.mesh").from("46.114.0.0/24");
    let asked = || german.udp(world.node.dns()).address();
    assert_eq!(asked(), world.backend(0).ip());
    chrome.click_text("frankfurt");
    chrome.click_text("Drain…");
    chrome.wait(&says("It touches 2 services with endpoints in frankfurt."));
    chrome.fill("input[name=reason]", "kernel update");
    chrome.click_text("Drain cluster frankfurt");
    chrome.wait("location.pathname.startsWith('/drains/')");
    wait_until_safe(&chrome);
    chrome.picture("drain-safe-1280-light");
    assert_ne!(asked(), world.backend(0).ip());
    chrome.click_text("End the drain…");
    chrome.fill("input[name=reason]", "done");
    chrome.click_text("End the drain of cluster frankfurt");
    wait_for("the old answer", Duration::from_secs(5), || {
        (asked() == world.backend(0).ip()).then_some(())
    });
    // The last cluster of a service is held, and the page says so before.
    chrome.open(&world.url("/clusters/capetown/drain"));
    chrome.wait("document.querySelector('.fault')?.textContent.includes('alone.svc.mesh')");
}

#[test]
fn a_viewer_is_told_who_may_and_a_missing_node_is_named() {
    let _machine = crate::alone();
    let peer = format!("http://{}:8053", loopback());
    let world = World::start(&format!(
        "peers: [{{url: \"{peer}\", tokenFile: peer.token}}]\n"
    ));
    world.settle();
    let chrome = Chrome::start();
    world.sign_in(&chrome, VIEWER);
    chrome.click_text("frankfurt");
    chrome.click_text("Drain…");
    chrome.wait("document.body.textContent.includes('This needs role operator')");
    assert_eq!(
        chrome.run("return document.querySelectorAll('input[name=reason]').length"),
        0
    );
    chrome.click_text("sign in as somebody else");
    chrome.fill("input[name=token]", OPERATOR.0);
    chrome.click_text("Sign in");
    chrome.wait("location.pathname === '/clusters/frankfurt/drain'");
    chrome.fill("input[name=reason]", "with one node missing");
    chrome.click_text("Drain cluster frankfurt");
    chrome.wait("location.pathname.startsWith('/drains/')");
    let address = peer.trim_start_matches("http://");
    chrome.wait(&format!(
        "document.getElementById('verdict').textContent.includes('Not safe to stop') && document.querySelector('main').textContent.includes('{address}')"
    ));
    chrome.picture("drain-partial-1280-light");
}
