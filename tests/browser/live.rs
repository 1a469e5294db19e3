//! A page that lies open shows what happened by itself.

use std::time::{Duration, Instant};

use crate::chrome::Chrome;
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
    // What the reader opened stays open.
    chrome.run(
        "document.getElementById('countries').open = true; document.body.dataset.same = 'yes'",
    );
    let address = world.backend(0);
    for round in 0..3 {
        chrome.wait("document.querySelector('.mark[href=\"/clusters/frankfurt\"]').classList.contains('up')");
        let begun = Instant::now();
        world.kill(0);
        wait_for("the page to say so", BOUND * 3, || {
            let down = "return document.querySelector('.mark[href=\"/clusters/frankfurt\"]').classList.contains('down') && document.getElementById('problems')?.textContent.includes('frankfurt') || false";
            chrome.run(down).as_bool()?.then_some(())
        });
        let took = begun.elapsed();
        println!("round {round}: seen after {took:?}");
        assert!(took < BOUND, "round {round}: {took:?}");
        world.revive(0, address);
    }
    assert_eq!(
        chrome.run("return document.body.dataset.same"),
        "yes",
        "the page was never loaded anew"
    );
    assert_eq!(
        chrome.run("return document.getElementById('countries').open"),
        true
    );
    // A node that comes back is noticed as well.
    world.node.kill();
    chrome.wait("document.getElementById('live-state').dataset.state === 'lost'");
    world.node.spawn();
    chrome.wait("document.getElementById('live-state').dataset.state === 'on'");
    assert_eq!(chrome.run("return document.body.dataset.same"), "yes");
}
