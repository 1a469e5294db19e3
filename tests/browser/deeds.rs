//! What an operator does: by mouse, and by keyboard alone.

use std::time::Duration;

use crate::chrome::{Chrome, ENTER, SPACE};
use crate::harness::client::Ask;
use crate::harness::{loopback, wait_for};
use crate::world::{OPERATOR, VIEWER, World};

/// How long a drain may take to be safe: a TTL of 2 s and a margin of 5 s, and some.
const SAFE: Duration = Duration::from_secs(40);

/// Waits until a drain's page, as it lies open, says that it is safe.
fn wait_until_safe(chrome: &Chrome) {
    wait_for("safe to stop", SAFE, || {
        let text = chrome.run("return document.getElementById('verdict').textContent");
        text.as_str()?.contains("Safe to stop").then_some(())
    });
}

#[test]
fn drain_and_force_by_mouse() {
    let _machine = crate::alone();
    let world = World::start("");
    world.settle();
    let chrome = Chrome::start();
    world.sign_in(&chrome, OPERATOR);

    // Drain a cluster: the page says whom it touches, then how far it is, by itself.
    let german = Ask::a("www.svc.mesh").from("46.114.0.0/24");
    assert_eq!(
        german.udp(world.node.dns()).address(),
        world.backend(0).ip()
    );
    chrome.click_text("frankfurt");
    chrome.click_text("Drain…");
    chrome.wait(
        "document.body.textContent.includes('It touches 2 services with endpoints in frankfurt.')",
    );
    chrome.fill("input[name=reason]", "kernel update");
    chrome.click_text("Drain cluster frankfurt");
    chrome.wait("location.pathname.startsWith('/drains/')");
    wait_until_safe(&chrome);
    chrome.picture("drain-safe-1280-light");
    assert_ne!(
        german.udp(world.node.dns()).address(),
        world.backend(0).ip()
    );

    // End it.
    chrome.click_text("End the drain…");
    chrome.fill("input[name=reason]", "done");
    chrome.click_text("End the drain of cluster frankfurt");
    chrome.wait("document.getElementById('verdict')?.textContent.includes('over')");
    wait_for("the old answer", Duration::from_secs(5), || {
        (german.udp(world.node.dns()).address() == world.backend(0).ip()).then_some(())
    });

    // The last cluster of a service is held, and the page says so before.
    chrome.open(&world.url("/clusters/capetown/drain"));
    chrome.wait("document.querySelector('.fault')?.textContent.includes('alone.svc.mesh')");

    // Drain one endpoint of a service.
    chrome.open(&world.url("/services/shop/api"));
    chrome.click_text("Drain… ");
    chrome.wait(
        "location.pathname === '/services/shop/api/drain' && location.search.includes('address=')",
    );
    chrome.fill("input[name=reason]", "one machine");
    chrome.click(".primary");
    chrome.wait("location.pathname.startsWith('/drains/') && document.body.textContent.includes('endpoint')");

    // Force a cluster down, and end that.
    chrome.open(&world.url("/clusters/virginia"));
    chrome.click_text("Force…");
    chrome.click("input[name=verdict][value=down]");
    chrome.fill("input[name=reason]", "lies about its health");
    chrome.click_text("Force cluster virginia");
    chrome.wait(
        "location.pathname === '/drains' && document.body.textContent.includes('Forced down')",
    );
    chrome.click_text("End…");
    chrome.fill("input[name=reason]", "repaired");
    chrome.click(".primary");
    chrome.wait("document.getElementById('forces')?.textContent.includes('ended')");

    // All of it is in the audit log, with the name of who did it.
    chrome.open(&world.url("/audit"));
    let log = chrome.run("return document.querySelector('main').textContent");
    for word in [
        "ann",
        "kernel update",
        "lies about its health",
        "repaired",
        "one machine",
    ] {
        assert!(log.as_str().unwrap().contains(word), "{word} in {log}");
    }
}

#[test]
fn drain_and_force_by_keyboard() {
    let _machine = crate::alone();
    let world = World::start("");
    world.settle();
    let chrome = Chrome::start();
    // Signing in.
    chrome.open(&world.url("/"));
    chrome.press("\u{e004}");
    chrome.wait("document.activeElement.textContent === 'Skip to content'");
    chrome.tab_to("Sign in");
    chrome.press(&ENTER.to_string());
    chrome.wait("location.pathname === '/login'");
    chrome.tab_to("Token");
    chrome.press(OPERATOR.0);
    chrome.press(&ENTER.to_string());
    chrome.wait("location.pathname === '/' && document.body.textContent.includes('operator')");
    // From the map to the cluster, and the drain.
    chrome.tab_to("frankfurt: up");
    chrome.press(&ENTER.to_string());
    chrome.wait("location.pathname === '/clusters/frankfurt'");
    chrome.tab_to("Drain…");
    chrome.press(&ENTER.to_string());
    chrome.wait("location.pathname === '/clusters/frankfurt/drain'");
    chrome.tab_to("Why");
    chrome.press("by hand");
    chrome.tab_to("Drain cluster frankfurt");
    chrome.press(&SPACE.to_string());
    chrome.wait("location.pathname.startsWith('/drains/')");
    chrome.tab_to("End the drain…");
    chrome.press(&ENTER.to_string());
    chrome.wait("location.pathname.endsWith('/end')");
    chrome.tab_to("Why");
    chrome.press("done");
    chrome.press(&ENTER.to_string());
    chrome.wait("document.getElementById('verdict')?.textContent.includes('over')");
    // A force: the choice by arrow keys.
    chrome.open(&world.url("/clusters/virginia/force"));
    chrome.tab_to("down: used after");
    chrome.press(&SPACE.to_string());
    chrome.tab_to("Why");
    chrome.press("test");
    chrome.press(&ENTER.to_string());
    chrome.wait(
        "location.pathname === '/drains' && document.body.textContent.includes('Forced down')",
    );
    chrome.tab_to("End…");
    chrome.press(&ENTER.to_string());
    chrome.tab_to("Why");
    chrome.press("over");
    chrome.press(&ENTER.to_string());
    chrome.wait("document.getElementById('forces')?.textContent.includes('ended')");
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
