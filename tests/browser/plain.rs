//! Without JavaScript every page says what it says, and everything can be done.

use crate::chrome::Chrome;
use crate::harness::wait_for;
use crate::world::{OPERATOR, World};

#[test]
fn everything_works_without_javascript() {
    let _machine = crate::alone();
    let world = World::start("");
    world.settle();
    let chrome = Chrome::start();
    chrome.without_scripts();
    chrome.open(&world.url("/login?next=/"));
    chrome.fill("input[name=token]", OPERATOR.0);
    chrome.click_text("Sign in");
    wait_for("the overview", crate::chrome::PATIENCE, || {
        (chrome.url() == world.url("/")).then_some(())
    });
    for (path, words) in [
        (
            "/",
            &[
                "Nothing is wrong",
                "frankfurt",
                "Germany",
                "queries a second now",
                "<polyline",
                "reload the page",
            ][..],
        ),
        ("/clusters", &["frankfurt", "capetown"]),
        (
            "/clusters/frankfurt",
            &["Location and its evidence", "eu-central-1", "shop/web"],
        ),
        ("/services?search=API", &["shop/api", "1 service"]),
        (
            "/services/shop/web",
            &["Policy in words", "Failover budget", "Endpoints"],
        ),
        ("/monitors?verdict=up", &["5 monitors"]),
        ("/events", &["newest first"]),
        (
            "/explain?name=www.svc.mesh&client=46.114.0.0/24",
            &["Answered with", "frankfurt", "The decision, step by step"],
        ),
        (
            "/explain?name=elsewhere.example&client=1",
            &["role=\"alert\""],
        ),
        ("/zones", &["svc.mesh"]),
        ("/sources", &["meridian.yaml", "Configuration"]),
        ("/drains", &["Nothing is drained"]),
        ("/audit", &["login"]),
        ("/nowhere", &["404", "<h1>"]),
        ("/services?limit=x", &["400", "<h1>"]),
    ] {
        chrome.open(&world.url(path));
        let source = chrome.source();
        for word in words {
            assert!(source.contains(word), "{word} on {path}:\n{source}");
        }
    }
    chrome.open(&world.url("/clusters/frankfurt"));
    chrome.click_text("Drain…");
    chrome.fill("input[name=reason]", "by plain form");
    chrome.click(".primary");
    wait_for("the drain's page", crate::chrome::PATIENCE, || {
        chrome.url().contains("/drains/").then_some(())
    });
    assert!(chrome.source().contains("by plain form"));
    chrome.picture("drain-no-javascript-1280-light");
}
