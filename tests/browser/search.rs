//! What a person who looks for something does: searches, filters, asks why, comes and goes; by mouse, and by keyboard alone.

use crate::chrome::{Chrome, ENTER};
use crate::hand::Hand;
use crate::world::{VIEWER, World, says};

#[test]
fn search_and_filter_by_mouse() {
    let _machine = crate::alone();
    let world = World::start("");
    world.settle();
    let chrome = Chrome::start();
    world.sign_in(&chrome, VIEWER);

    chrome.click_text("Services");
    chrome.fill("input[name=search]", "ALONE");
    chrome.click_text("Show");
    chrome.wait(&says("shop/alone"));
    chrome.wait(&format!("!{}", says("shop/web")));
    chrome.click_text("All services");
    chrome.click("select[name=cluster] option:nth-of-type(2)");
    chrome.click_text("Show");
    chrome.wait("location.search.includes('cluster=capetown')");
    chrome.wait(&says("2 services"));
    chrome.click("select[name=state] option:nth-of-type(2)");
    chrome.click_text("Show");
    chrome.wait(&says("0 services"));

    chrome.click_text("Monitors");
    chrome.click("input[name=neverSucceeded]");
    chrome.click_text("Show");
    chrome.wait(&says("0 monitors"));

    chrome.click_text("Events");
    chrome.fill("input[name=search]", "generation");
    chrome.click_text("Show");
    chrome.wait(&says("Published"));
    chrome.click("select[name=severity] option:last-of-type");
    chrome.click_text("Show");
    chrome.wait(&format!("!{}", says("Published")));

    chrome.click_text("Explain");
    chrome.fill("input[name=name]", "www.svc.mesh");
    chrome.fill("input[name=client]", "200.147.3.9");
    chrome.click(".primary");
    chrome.wait(&says("Answered with saopaulo"));
    // The link says it all to somebody else.
    let link = chrome.url();
    chrome.open(&world.url("/"));
    chrome.open(&link);
    chrome.wait(&says("Answered with saopaulo"));

    chrome.click_text("Zones");
    chrome.click_text("svc.mesh");
    chrome.wait("location.pathname === '/zones/svc.mesh'");
    chrome.click_text("Sign out");
    chrome.wait("document.body.textContent.includes('Sign in')");
}

#[test]
fn search_and_filter_by_keyboard() {
    let _machine = crate::alone();
    let world = World::start("");
    world.settle();
    let chrome = Chrome::start();
    let hand = Hand::with_keyboard(&chrome);
    chrome.open(&world.url("/"));
    hand.follow("Services");
    chrome.wait("location.pathname === '/services'");
    hand.write("Search", "alone");
    chrome.press(&ENTER.to_string());
    chrome.wait(&says("1 service"));
    hand.follow("shop/alone");
    chrome.wait("location.pathname === '/services/shop/alone'");
    chrome.open(&world.url("/monitors"));
    hand.choose("never succeeded");
    hand.follow("Show");
    chrome.wait(&says("0 monitors"));
    chrome.open(&world.url("/events"));
    hand.write("Kind", "Publ");
    hand.follow("Show");
    chrome.wait("location.search.includes('kind=publish')");
    chrome.wait(&says("Published"));
    chrome.open(&world.url("/explain"));
    hand.write("Name", "www.svc.mesh");
    hand.write("Client", "200.147.3.9");
    chrome.press(&ENTER.to_string());
    chrome.wait(&says("Answered with saopaulo"));
    // What is folded away opens by keyboard too.
    chrome.open(&world.url("/"));
    hand.follow("Answers of the last five minutes");
    chrome.wait("document.getElementById('countries').open");
}
