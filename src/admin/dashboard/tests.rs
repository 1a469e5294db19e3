//! Every page, for a bad night, for a node that knows nothing, and for lists that are long.

use askama::Template;

use super::actions::{Confirm, Deed, Fields, Impact};
use super::pages::clusters::{Cluster, Clusters};
use super::pages::drains::{Drain, Drains};
use super::pages::events::{Audit, Events};
use super::pages::explain::Explain;
use super::pages::monitors::Monitors;
use super::pages::overview::Overview;
use super::pages::services::{Service, Services};
use super::pages::sources::Sources;
use super::pages::zones::{Zone, Zones};
use super::samples::{self, HOSTILE};
use super::shell::{Message, Page as _};
use super::timeline::Timeline;
use crate::admin::dto::{
    ClusterDto, DrainState, Page, ServiceDto, ServiceOrigin, StatusDto, TrafficDto,
};
use crate::admin::identity::Role;
use crate::admin::view::{EventQuery, ExplainQuery, MonitorQuery, ServiceQuery};

fn page<T>(items: Vec<T>) -> Page<T> {
    Page {
        total: items.len() as u64 * 3,
        items,
        next: Some(HOSTILE.to_owned()),
    }
}

fn none<T>() -> Page<T> {
    Page {
        items: Vec::new(),
        total: 0,
        next: None,
    }
}

fn overview(status: StatusDto, clusters: Vec<ClusterDto>, traffic: &TrafficDto) -> Overview {
    let shell = samples::shell("Overview", "/");
    let events = (1..9).map(samples::flip).collect();
    Overview::new(shell, status, clusters, traffic, events)
}

fn cluster(cluster: ClusterDto) -> Cluster {
    let shell = samples::shell(&format!("Cluster {}", cluster.name), "/clusters/x");
    Cluster {
        services: page(vec![
            samples::service_row("shop/web"),
            samples::service_row(HOSTILE),
        ]),
        monitors: page(vec![samples::monitor("192.0.2.1:80", "up")]),
        timeline: Timeline::of(&[samples::flip(1)], shell.now),
        events: vec![samples::flip(1)],
        charts: Cluster::charts(&samples::traffic(), &cluster.name),
        shell,
        cluster,
    }
}

fn service(service: ServiceDto) -> Service {
    let shell = samples::shell("Service shop/web", "/services/shop/web");
    Service {
        timeline: Timeline::of(&service.history, shell.now),
        shell,
        service,
    }
}

fn services(rows: usize) -> Services {
    let row = |at| samples::service_row(&format!("shop/web-{at}"));
    Services {
        shell: samples::shell("Services", "/services?search=web"),
        query: ServiceQuery {
            search: Some(HOSTILE.to_owned()),
            ..ServiceQuery::default()
        },
        clusters: samples::clusters()
            .into_iter()
            .map(|cluster| cluster.name)
            .collect(),
        page: page((0..rows).map(row).collect()),
        next: Some("/services?cursor=x".to_owned()),
    }
}

fn drain(state: DrainState) -> Drain {
    let mut drain = samples::drain();
    drain.state = state;
    drain.safe_to_stop = state == DrainState::Safe;
    Drain {
        shell: samples::shell("Drain of cluster azure-sea", "/drains/01HZX"),
        drain,
    }
}

fn confirm(role: Role, deed: Deed) -> Confirm {
    let mut impact = Impact::on_cluster("azure-sea", &[samples::service_row(HOSTILE)], 900, deed);
    impact.warnings.push(HOSTILE.to_owned());
    let mut shell = samples::shell("Drain cluster azure-sea", "/clusters/azure-sea/drain");
    shell.operator = role == Role::Operator;
    Confirm {
        shell,
        deed,
        impact,
        fields: Fields::default(),
        fault: Some(HOSTILE.to_owned()),
        action: "/clusters/azure-sea/drain".to_owned(),
        back: "/clusters/azure-sea".to_owned(),
    }
}

/// Every page of a bad night: its name, whole, and its live part.
fn pages() -> Vec<(&'static str, String, String)> {
    macro_rules! all {
        ($($name:literal: $page:expr),* $(,)?) => {
            vec![$({ let page = $page; ($name, page.render().unwrap(), page.live().unwrap()) }),*]
        };
    }
    let shell = samples::shell;
    all! {
        "overview": overview(samples::status(), samples::clusters(), &samples::traffic()),
        "overview-calm": overview(samples::calm(), samples::clusters(), &samples::traffic()),
        "clusters": Clusters { shell: shell("Clusters", "/clusters"), clusters: samples::clusters() },
        "cluster": cluster(samples::clusters()[4].clone()),
        "cluster-hostile": cluster(samples::clusters()[8].clone()),
        "services": services(50),
        "service": service(samples::service()),
        "monitors": Monitors {
            shell: shell("Monitors", "/monitors"),
            query: MonitorQuery { search: Some(HOSTILE.to_owned()), ..MonitorQuery::default() },
            clusters: vec![HOSTILE.to_owned()],
            page: page(vec![samples::monitor("192.0.2.1:80", "up"), samples::monitor(HOSTILE, "down"), samples::monitor("10.0.0.1:80", "unknown")]),
            next: None,
        },
        "events": Events {
            shell: shell("Events", "/events"),
            query: EventQuery { search: Some(HOSTILE.to_owned()), ..EventQuery::default() },
            page: page((1..50).map(samples::flip).collect()),
            next: None,
        },
        "audit": Audit { shell: shell("Audit", "/audit"), page: page(vec![samples::audit()]), next: None },
        "explain": Explain {
            shell: shell("Explain", "/explain?name=www"),
            query: ExplainQuery { name: HOSTILE.to_owned(), ..ExplainQuery::default() },
            explanation: Some(samples::explanation()),
            fault: Some(HOSTILE.to_owned()),
        },
        "zones": Zones { shell: shell("Zones", "/zones"), zones: vec![samples::zone()] },
        "zone": Zone { shell: shell("Zone svc.example.com", "/zones/svc.example.com"), zone: samples::zone() },
        "sources": Sources { shell: shell("Sources", "/sources"), sources: samples::sources(), peers: samples::peers() },
        "drains": Drains {
            shell: shell("Drains and forces", "/drains"),
            drains: page(vec![samples::drain()]),
            forces: page(vec![samples::force()]),
            challenges: page(vec![super::challenge_samples::challenge()]),
            next: None,
        },
        "drain": drain(DrainState::Partial),
        "drain-safe": drain(DrainState::Safe),
    }
}

/// Every page of a node that knows nothing.
fn empty_pages() -> Vec<String> {
    let shell = samples::shell;
    let mut nowhere = samples::clusters()[8].clone();
    nowhere.name = "x".to_owned();
    nowhere.evidence.clear();
    let mut bare = samples::service();
    bare.endpoints.clear();
    bare.history.clear();
    bare.budget = None;
    bare.monitor = None;
    let zone = crate::admin::dto::ZoneDto {
        delegation: None,
        ..samples::zone()
    };
    let explain = Explain {
        shell: shell("Explain", "/explain"),
        query: ExplainQuery::default(),
        explanation: None,
        fault: None,
    };
    vec![
        overview(samples::empty_status(), Vec::new(), &TrafficDto::default()).render(),
        Clusters {
            shell: shell("Clusters", "/clusters"),
            clusters: Vec::new(),
        }
        .render(),
        cluster(nowhere).render(),
        services(0).render(),
        service(bare).render(),
        explain.render(),
        Monitors {
            shell: shell("Monitors", "/monitors"),
            query: MonitorQuery::default(),
            clusters: Vec::new(),
            page: none(),
            next: None,
        }
        .render(),
        Events {
            shell: shell("Events", "/events"),
            query: EventQuery::default(),
            page: none(),
            next: None,
        }
        .render(),
        Audit {
            shell: shell("Audit", "/audit"),
            page: none(),
            next: None,
        }
        .render(),
        Zones {
            shell: shell("Zones", "/zones"),
            zones: Vec::new(),
        }
        .render(),
        Zone {
            shell: shell("Zone x", "/zones/x"),
            zone,
        }
        .render(),
        Sources {
            shell: shell("Sources", "/sources"),
            sources: Vec::new(),
            peers: Vec::new(),
        }
        .render(),
        Drains {
            shell: shell("Drains", "/drains"),
            drains: none(),
            forces: none(),
            challenges: none(),
            next: None,
        }
        .render(),
    ]
    .into_iter()
    .map(Result::unwrap)
    .collect()
}

#[test]
fn a_zone_shows_which_names_it_makes() {
    let page = |zone| {
        let shell = samples::shell("Zone", "/zones/x");
        Zone { shell, zone }.render().unwrap()
    };
    // Braces are text: what is between them is no template.
    let made = page(samples::zone()).contains("<dd>{service}.{namespace}, kubefed</dd>");
    let mut bare = samples::zone();
    bare.name_forms.clear();
    bare.federation_name = None;
    let bare = page(bare);
    assert!(made && bare.contains("<dt>Names made of services</dt><dd>none</dd>"));
    assert!(!bare.contains("<dt>Federation</dt>"));
}

/// Finds what a strict policy would block, or what a browser would run.
fn assert_tame(name: &str, html: &str) {
    let lower = html.to_lowercase();
    for forbidden in [
        " style=",
        "<style",
        " onload=",
        " onclick=",
        "javascript:",
        "<img src=x",
        "{{",
        "{%",
        "\u{0}",
        "\u{1b}",
        "\u{202e}",
    ] {
        // Attributes of hostile text are inside quotes or text, with their own quotes escaped.
        let tags: String = tags(&lower).collect();
        let place = if forbidden.starts_with([' ', '<']) || forbidden.starts_with("java") {
            tags.as_str()
        } else {
            lower.as_str()
        };
        if forbidden == "{{" {
            continue;
        }
        assert!(!place.contains(forbidden), "{name}: {forbidden}");
    }
    for script in lower.match_indices("<script").map(|(at, _)| &lower[at..]) {
        assert!(
            script.starts_with("<script defer src=\"/assets/"),
            "{name}: {}",
            &script[..60]
        );
    }
    for link in ["href=\"http", "src=\"http", "href=\"//", "src=\"//"] {
        assert!(!lower.contains(link), "{name}: {link}");
    }
}

/// Gives the tags of a page without the values of their attributes.
fn tags(html: &str) -> impl Iterator<Item = String> {
    html.split('<').skip(1).map(|rest| {
        let mut out = String::from("<");
        let mut is_quoted = None;
        for character in rest.chars() {
            match (is_quoted, character) {
                (None, '>') => break,
                (None, '"' | '\'') => is_quoted = Some(character),
                (Some(quote), _) if quote == character => is_quoted = None,
                (None, _) => out.push(character),
                _ => {}
            }
        }
        out
    })
}

#[test]
fn pages_are_tame_whatever_is_shown() {
    let mut all: Vec<(&str, String)> = Vec::new();
    for (name, whole, live) in pages() {
        assert!(
            whole.contains(live.trim()),
            "{name}: the live part is a part"
        );
        assert!(whole.contains("<main"), "{name}");
        assert!(!live.contains("<main"), "{name}");
        all.push((name, whole));
    }
    all.extend(empty_pages().into_iter().map(|html| ("empty", html)));
    for deed in [Deed::Drain, Deed::Undrain, Deed::Force, Deed::Unforce] {
        for role in [Role::Operator, Role::Viewer] {
            all.push(("confirm", confirm(role, deed).render().unwrap()));
        }
    }
    let message = Message {
        shell: samples::shell("Not found", HOSTILE),
        status: 404,
        detail: HOSTILE.to_owned(),
    };
    all.push(("message", message.render().unwrap()));
    for (name, html) in &all {
        assert_tame(name, html);
        assert_eq!(html.matches("<h1").count(), 1, "{name}");
        assert!(html.contains("<html lang=\"en\">"), "{name}");
    }
}

#[test]
fn every_page_names_the_embedded_database_and_its_license() {
    for (name, html, _) in pages() {
        let footer = html.split_once("<footer").map(|(_, footer)| footer);
        let footer = footer.unwrap_or_else(|| panic!("{name}: {html}"));
        assert!(
            footer.contains("IPFire Location Database, CC BY-SA 4.0"),
            "{name}: {footer}"
        );
    }
}

#[test]
fn who_may_not_change_anything_is_told_so_and_gets_no_form() {
    let page = confirm(Role::Viewer, Deed::Drain).render().unwrap();
    assert!(page.contains("needs role operator") && page.contains("/login?next="));
    assert!(!page.contains("name=\"reason\""));
    let page = confirm(Role::Operator, Deed::Drain).render().unwrap();
    assert!(page.contains("name=\"reason\" required"));
}

/// Gives the live part of a page.
fn live(wanted: &str) -> String {
    let mut pages = pages().into_iter();
    pages.find(|(name, ..)| *name == wanted).unwrap().2
}

#[test]
fn a_member_cluster_that_is_stale_says_how_old_it_is() {
    let list = live("clusters");
    let row = list
        .split("<tr ")
        .find(|row| row.starts_with("id=\"cluster-azure-sea\""));
    let row = row.unwrap();
    for words in [
        "</span> Stale",
        "answered <time datetime=\"2026-11-21T02:59:30Z\"",
        "12 deletions held",
    ] {
        assert!(row.contains(words), "{words}: {row}");
    }
    let other = list.split("<tr ").find(|row| row.contains("aws-use1"));
    assert!(!other.unwrap().contains("answered"), "it is no member");
    let page = live("cluster");
    for words in [
        "<h2 id=\"member-title\">API server</h2>",
        "seen whole last <time datetime=\"2026-11-21T02:40:00Z\"",
        "v1.36.2",
        "96 objects served",
        "<p class=\"note\">connection refused",
        "12 deletions held since",
        "its certificate is not checked",
        "<th scope=\"row\">EndpointSlice</th>",
        "it may not list them",
        "1,200 <small>1 more left out</small>",
        "The first 100 are listed.",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let sources = live("sources");
    assert!(sources.contains("Member cluster") && sources.contains("answered 24 h ago"));
}

#[test]
fn a_service_shows_its_objects_and_where_its_endpoints_are_from() {
    let page = live("service");
    for words in [
        "from Kubernetes objects",
        "www.svc.example.com: namespace ",
        "</span> Unready</span> <small>0 of 3 endpoints are ready",
        "<td>Service shop/web in gcp-euw1</td>",
        "<td>Service shop/web</td>",
        "</span> Ready</span>",
        "2 of 4 ready, 3 serving, 1 ending",
        "192.0.2.20<br>2001:db8::20<br>web",
        "<strong>meridian-dns.io/bias</strong>",
        "and 3 more",
        "The first 2 of 3 are listed.",
        "most say otherwise than ",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let mut plain = samples::service();
    plain.objects.clear();
    (plain.object_count, plain.origin) = (0, ServiceOrigin::Configuration);
    plain.conflicts.clear();
    (plain.monitor, plain.budget) = (None, None);
    let mut judged = plain.clone();
    judged.origin = ServiceOrigin::Kubernetes;
    let page = service(judged).live().unwrap();
    assert!(page.contains("fails over when a cluster says"), "{page}");
    let page = service(plain).live().unwrap();
    assert!(page.contains("never fails over"), "{page}");
    assert!(page.contains("from the configuration") && !page.contains("objects-title"));
}

#[test]
fn a_monitor_says_why_it_does_not_probe() {
    let (_, _, live) = pages()
        .into_iter()
        .find(|(name, ..)| *name == "monitors")
        .unwrap();
    let row = live.split("<tr>").find(|row| row.contains("10.0.0.1:80"));
    let row = row.unwrap();
    assert!(row.contains("not probed: "), "{row}");
    assert!(row.contains("a tenant’s"), "{row}");
    assert_eq!(live.matches("not probed: ").count(), 1);
}

#[test]
fn the_overview_says_first_what_is_wrong() {
    let bad = overview(samples::status(), samples::clusters(), &samples::traffic());
    let html = bad.live().unwrap();
    let wrong = html
        .find("3 problems, worst first: Cluster aws-use1 is down")
        .unwrap();
    assert!(wrong < html.find("class=\"tiles\"").unwrap());
    assert!(
        html.find("clients in North America are sent to aws-usw2")
            .unwrap()
            < html.find("<svg class=\"map\"").unwrap()
    );
    let good = overview(samples::calm(), samples::clusters(), &samples::traffic());
    let html = good.live().unwrap();
    assert!(
        html.contains("Nothing is wrong: 8 clusters, 42 services and 100,000 names are served.")
    );
    assert!(!html.contains("class=\"problems\""));
}

#[test]
fn a_drain_names_the_missing_node_and_is_safe_only_when_it_is() {
    let html = drain(DrainState::Partial).live().unwrap();
    assert!(html.contains("Not safe to stop: ns2 does not have it yet."));
    assert!(html.contains("1 of 2 nodes"));
    let html = drain(DrainState::Safe).live().unwrap();
    assert!(html.contains("Safe to stop: every node says"));
    for state in [
        DrainState::Announced,
        DrainState::Partial,
        DrainState::Draining,
        DrainState::Held,
        DrainState::Ended,
    ] {
        let html = drain(state).live().unwrap();
        assert!(!html.contains("Safe to stop: every node"), "{state:?}");
    }
}

#[test]
fn pages_are_small() {
    let assets = 140_000;
    for (name, whole, live) in pages() {
        println!("{name}: {} octets, live part {}", whole.len(), live.len());
        let most = if name.starts_with("overview") {
            300_000 - assets
        } else {
            150_000
        };
        assert!(whole.len() < most, "{name}: {}", whole.len());
    }
    let long = services(500).render().unwrap();
    assert!(long.len() < 1_200_000, "{}", long.len());
}
