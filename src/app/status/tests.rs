//! Tests of the summary and the tables, with what nodes say written out.

use serde_json::{Value, json};

use super::summary::{NodeStateDto, Said, draw, merge};
use super::{Form, challenges, details, lists};
use crate::admin::dto::{
    ChallengeDto, ChallengeState, ClusterDto, DrainDto, EventDto, MonitorDto, Page, SendersDto,
    ServiceDto, SourceDto, StatusDto, TranslatedDto, ZoneDto,
};
use crate::app::args::ListOutputArg;
use crate::app::table::Screen;

/// Says what a node may say.
fn status(name: &str, problems: Value) -> StatusDto {
    let count = problems.as_array().map_or(0, Vec::len);
    let said = json!({
        "node": {
            "name": name, "version": "0.1.0", "started": "2026-11-18T12:00:00Z", "now": "2026-11-21T12:00:00Z",
            "ready": true, "generation": 7, "names": 12_345, "heardOnlyByLaterVersions": true
        },
        "problems": problems,
        "problemCount": count,
        "clusters": {"up": 2, "unknown": 0, "degraded": 0, "drained": 1, "down": 0},
        "services": {"up": 1200, "unknown": 3, "degraded": 0, "drained": 0, "down": 1},
        "monitors": {"up": 5, "unknown": 0, "degraded": 0, "drained": 0, "down": 1},
        "rates": {"queriesPerSecond": 1234.4, "failuresPerSecond": 0.0, "latencyP50Us": 12.0, "latencyP99Us": 80.25},
        "drains": 1, "forces": 0,
        "peers": [{"url": "https://ns2:8053", "name": "nyc-1", "reachable": false, "heardMsAgo": 61000, "error": "timeout", "inStep": false}]
    });
    serde_json::from_value(said).unwrap()
}

/// A drain that two nodes should have.
fn drain() -> DrainDto {
    let said = json!({
        "id": "d-1", "target": {"kind": "cluster", "cluster": "aws-use1"}, "state": "draining", "safeToStop": false,
        "waitingFor": ["nyc-1 has answers in caches"],
        "created": {"time": "2026-11-21T11:57:00Z", "actor": "alice", "reason": "kernel\nupdate\u{1b}[2J"},
        "starts": "2026-11-21T11:57:00Z", "expires": null, "ended": null, "acknowledged": 2, "expected": 2,
        "heldServices": [],
        "nodes": [
            {"node": "fra-1", "own": true, "inForce": true, "heardMsAgo": null, "error": null, "held": 0,
             "lastGivenSecondsAgo": 40.2, "ttl": 30, "remainingSeconds": 0.0},
            {"node": "nyc-1", "own": false, "inForce": true, "heardMsAgo": 1500, "error": null, "held": 0,
             "lastGivenSecondsAgo": 12.0, "ttl": 30, "remainingSeconds": 22.4}
        ]
    });
    serde_json::from_value(said).unwrap()
}

/// What operators said: a drain.
fn with_drain() -> Said {
    Said {
        drains: vec![drain()],
        ..Said::default()
    }
}

/// A challenge that one of two nodes answers with.
fn challenge() -> ChallengeDto {
    let said = json!({
        "id": "c-1", "name": "web.svc.mesh.", "owner": "_acme-challenge.web.svc.mesh.", "token": "tok-1", "state": "partial",
        "created": {"time": "2026-11-21T11:57:00Z", "actor": "certbot", "reason": "renewal"},
        "expires": "2026-11-21T12:57:00Z", "ended": null, "acknowledged": 1, "expected": 2, "missing": ["nyc-1"],
        "nodes": [
            {"node": "fra-1", "own": true, "serves": true, "heardMsAgo": 0, "error": null},
            {"node": "nyc-1", "own": false, "serves": false, "heardMsAgo": 61000, "error": "timeout\u{1b}[2J"}
        ]
    });
    serde_json::from_value(said).unwrap()
}

fn down(severity: &str, title: &str) -> Value {
    json!({"severity": severity, "title": title, "text": "All 3 endpoints are down; all are answered as if up.",
           "link": format!("/{title}"), "since": "2026-11-21T11:57:00Z"})
}

fn said(server: &str, status: StatusDto) -> NodeStateDto {
    NodeStateDto {
        server: server.to_owned(),
        error: None,
        status: Some(status),
    }
}

/// A node with nothing wrong.
fn said_by(name: &str) -> NodeStateDto {
    said("http://a", status(name, json!([])))
}

#[test]
fn the_summary_begins_with_what_is_wrong() {
    let problems = json!([
        down("warning", "slow"),
        down("critical", "shop/web has nothing up")
    ]);
    let node = said("http://127.0.0.1:8053", status("fra-1", problems));
    let summary = merge(vec![node], with_drain());
    assert!(!summary.ok);
    let text = draw(&summary, &Screen::plain(None, false));
    let wanted = "\
critical  shop/web has nothing up, 3 m ago
          All 3 endpoints are down; all are answered as if up.
warning   slow, 3 m ago
          All 3 endpoints are down; all are answered as if up.

Clusters  2 up, 1 drained
Services  1,200 up, 3 unknown, 1 down
Monitors  5 up, 1 down
Queries   1,234/s · p50 12 us, p99 80.2 us
Drain     cluster aws-use1: draining, 23 s left · alice, 3 m ago: kernel update\u{fffd}[2J

NODE   STATE  UP FOR   NAMES  QUERIES/S  PROBLEMS  VERSION  SERVER
fra-1  ready     3 d  12,345      1,234         2  0.1.0    http://127.0.0.1:8053

PEER   REACHABLE  HEARD    IN STEP  URL               ERROR
nyc-1  no         1 m ago  no       https://ns2:8053  timeout
";
    assert_eq!(text, wanted, "\n{text}");
}

#[test]
fn several_nodes_are_put_together() {
    let both = json!([down("warning", "slow")]);
    let one = json!([down("warning", "slow"), down("critical", "gone")]);
    let mut nyc = status("nyc-1", one);
    nyc.clusters.up = 1;
    nyc.clusters.down = 1;
    nyc.peers.clear();
    let silent = NodeStateDto {
        server: "http://c".to_owned(),
        error: Some("connection refused".to_owned()),
        status: None,
    };
    let states = vec![
        said("http://a", status("fra-1", both)),
        said("http://b", nyc),
        silent,
    ];
    let summary = merge(states, Said::default());
    assert_eq!(summary.problems.len(), 2);
    let text = draw(&summary, &Screen::plain(None, false));
    for line in [
        "critical  no word from http://c",
        "critical  gone, 3 m ago (says nyc-1)",
        "warning   slow, 3 m ago (says fra-1, nyc-1)",
        "Clusters  fra-1: 2 up, 1 drained · nyc-1: 1 up, 1 drained, 1 down",
        "Services  1,200 up, 3 unknown, 1 down",
        "Queries   2,469/s · p50 12 us, p99 80.2 us",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "`{line}` is not in\n{text}"
        );
    }
    let at = |words: &str| text.find(words).expect(words);
    assert!(at("gone") < at("slow"), "{text}");
    // The node in `peers` was asked itself.
    assert!(!text.contains("PEER"), "{text}");
    assert!(
        text.lines().any(|line| line.starts_with("-      no word")),
        "{text}"
    );
}

#[test]
fn nothing_wrong_is_said_and_ok() {
    let summary = merge(
        vec![said(
            "http://a",
            status("fra-1", json!([down("warning", "slow")])),
        )],
        Said::default(),
    );
    assert!(summary.ok, "a warning is no reason to wake somebody");
    let summary = merge(
        vec![said("http://a", status("fra-1", json!([])))],
        Said::default(),
    );
    let text = draw(&summary, &Screen::plain(None, false));
    assert!(
        summary.ok && text.starts_with("Nothing is wrong.\n"),
        "{text}"
    );
}

#[test]
fn long_words_are_wrapped_on_terminals_only() {
    let node = said(
        "http://a",
        status("fra-1", json!([down("critical", "gone")])),
    );
    let summary = merge(vec![node], Said::default());
    let wide = draw(&summary, &Screen::plain(None, false));
    let narrow = draw(&summary, &Screen::plain(Some(40), false));
    assert!(
        wide.lines().nth(1).unwrap().ends_with("as if up."),
        "{wide}"
    );
    let lines: Vec<&str> = narrow.lines().skip(1).take(2).collect();
    assert_eq!(
        lines,
        [
            "          All 3 endpoints are down; all",
            "          are answered as if up."
        ]
    );
}

#[test]
fn machines_get_times_as_they_are_and_every_form_says_the_same() {
    let node = said(
        "http://a",
        status("fra-1", json!([down("critical", "gone")])),
    );
    let summary = merge(vec![node], with_drain());
    let form = |output, repeated| Form {
        output,
        screen: Screen::plain(None, false),
        repeated,
        after: None,
    };
    let write = |output, repeated| {
        form(output, repeated)
            .write(&summary, |_| String::new())
            .unwrap()
    };
    let json: Value = serde_json::from_str(&write(ListOutputArg::Json, false)).unwrap();
    assert_eq!(json["ok"], false);
    assert_eq!(json["problems"][0]["nodes"][0], "fra-1");
    assert_eq!(json["problems"][0]["since"], "2026-11-21T11:57:00Z");
    assert_eq!(json["nodes"][0]["status"]["rates"]["latencyP50Us"], 12.0);
    assert_eq!(json["drains"][0]["state"], "draining");
    let yaml = write(ListOutputArg::Yaml, false);
    for line in [
        "ok: false",
        "problems:",
        "since: 2026-11-21T11:57:00Z",
        "latencyP50Us: 12.0",
    ] {
        assert!(
            yaml.lines()
                .any(|found| found.trim().trim_start_matches("- ").replace('"', "") == line),
            "`{line}` is not in
{yaml}"
        );
    }
    let repeated = write(ListOutputArg::Json, true);
    assert_eq!(repeated.lines().count(), 1);
    assert_eq!(serde_json::from_str::<Value>(&repeated).unwrap(), json);
    assert!(write(ListOutputArg::Yaml, true).starts_with("---\n"));
}

#[test]
fn a_drain_shows_each_node() {
    let text = details::drain(&drain(), &Screen::plain(None, false));
    let wanted = "\
Drained       cluster aws-use1
State         draining, 23 s left
Safe to stop  no
Waiting for   nyc-1 has answers in caches
Announced     alice, 3 m ago: kernel update\u{fffd}[2J
Begins        3 m ago
Ends          by hand
Id            d-1

NODE   IN FORCE  HEARD    LAST GIVEN   TTL  LEFT  HELD  ERROR
fra-1  yes       itself     41 s ago  30 s   0 s     0  -
nyc-1  yes       1 s ago    12 s ago  30 s  23 s     0  -
";
    assert_eq!(text, wanted, "\n{text}");
}

/// A member cluster that is stale, with what its objects hold against a terminal.
fn member() -> Value {
    json!({
        "link": "stale", "since": "2026-11-21T11:58:00Z", "lastContact": "2026-11-21T11:58:30Z", "ageSeconds": 90,
        "version": "v1.36.2", "lastError": "connection refused", "warnings": [],
        "kinds": [{"kind": "Service", "version": "v1", "state": "refused", "objects": 1200, "leftOut": 0,
                   "reason": "it may not list them\u{1b}[2J"}],
        "shards": 96, "held": {"count": 12, "since": "2026-11-21T11:59:00Z", "until": "2026-11-21T12:04:00Z"},
        "refusedObjects": 7,
        "refused": [{"source": "aws-use1", "place": "Service shop/web: ttl", "reason": "no number\u{1b}[2J"}]
    })
}

/// A service that two objects make, one of them unready.
fn service() -> ServiceDto {
    let object = |cluster: &str, ready: bool, reason: Value| {
        json!({
            "cluster": cluster, "kind": "Service", "namespace": "shop", "name": "web", "addresses": ["192.0.2.1"],
            "targets": ["lb.example.net"], "ready": ready, "reason": reason, "served": true, "drained": false, "weight": 1,
            "backing": {"ready": 0, "serving": 3, "terminating": 0, "total": 5}, "refused": [], "refusedCount": 0
        })
    };
    let said = json!({
        "key": "shop/web", "namespace": "shop", "name": "web", "origin": "kubernetes", "hostnames": ["www.a.example"],
        "owners": [{"name": "www.a.example", "namespace": "shop"}],
        "objects": [object("aws", true, Value::Null), object("gcp", false, json!("0 of 3 are ready\u{1b}[2J"))],
        "objectCount": 2, "conflicts": [{"key": "ttl", "overruled": ["gcp"]}], "refused": [], "state": "degraded",
        "steer": "proximity", "policy": [], "monitor": null, "clusters": [], "places": [],
        "endpoints": [{
            "cluster": "gcp", "address": "192.0.2.1", "weight": 1, "state": "unready", "reason": "0 of 3 are ready",
            "from": "Service shop/web in gcp", "verdict": "unknown", "inDoubt": false, "drained": false, "withdrawn": false,
            "forced": null, "clients": [], "monitor": null, "last": null, "lastFlip": null
        }],
        "counts": {"up": 1, "unknown": 0, "degraded": 0, "drained": 0, "down": 1},
        "ttl": {"configured": 30, "now": 30, "reason": null}, "budget": null, "drains": [], "forces": [], "history": []
    });
    serde_json::from_value(said).unwrap()
}

#[test]
fn a_service_says_where_it_comes_from() {
    let text = details::service(&service(), &Screen::plain(None, false));
    for line in [
        "Origin     kubernetes",
        "Owner      www.a.example: namespace shop",
        "Conflict   ttl: most say otherwise than gcp",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}:\n{text}");
    }
    let tables = "\
CLUSTER  ADDRESS    STATE                      VERDICT  LAST PROBE  LAST FLIP  WEIGHT  FROM
gcp      192.0.2.1  unready: 0 of 3 are ready  unknown  -           -               1  Service shop/web in gcp

CLUSTER  OBJECT            STATE    ADDRESSES                  READY  WHY
aws      Service shop/web  ready    192.0.2.1, lb.example.net    0/5  -
gcp      Service shop/web  unready  192.0.2.1, lb.example.net    0/5  0 of 3 are ready\u{fffd}[2J
";
    assert!(text.ends_with(tables), "\n{text}");
}

#[test]
fn a_member_cluster_says_how_it_is_connected() {
    let cluster: ClusterDto = serde_json::from_value(json!({
        "name": "aws-use1", "from": "Secret m/aws-use1, key k", "state": "up", "location": null, "country": null, "continent": null, "provider": null,
        "region": null, "zones": [], "tags": ["gold"], "costKm": 0, "evidence": [], "services": 1,
        "annotations": [{"key": "meridian-dns.io/geo-tag", "value": "gold"}],
        "endpoints": {"up": 3, "unknown": 0, "degraded": 0, "drained": 0, "down": 0},
        "answersPerSecond": 0.0, "probeMs": null, "drain": null, "force": null, "admitted": true, "kubernetes": member()
    }))
    .unwrap();
    let text = details::cluster(&cluster, &Screen::plain(None, false));
    for line in [
        "From Secret m/aws-use1, key k",
        "Tags gold",
        "Annotation meridian-dns.io/geo-tag: gold",
    ] {
        let mut lines = text.lines();
        let is_it = |found: &str| found.split_whitespace().eq(line.split_whitespace());
        assert!(lines.any(is_it), "{line}:\n{text}");
    }
    let wanted = "\
API server      stale, seen whole last 2 m ago, answered 1 m ago
Version         v1.36.2
Error           connection refused
Objects         96 served
Deletions held  12 since 1 m ago, let go in 4 m
Refused         Service shop/web: ttl: no number\u{fffd}[2J

KIND     VERSION  STATE    OBJECTS  WHY
Service  v1       refused    1,200  it may not list them\u{fffd}[2J
";
    assert!(text.ends_with(wanted), "\n{text}");
}

#[test]
fn a_source_that_is_not_seen_says_why() {
    let source = |state: &str| -> SourceDto {
        let said = json!({
            "kind": "kubernetes", "name": "aws", "state": state, "loaded": null, "ageSeconds": 90,
            "details": ["stale, seen last 2026-11-21T11:58:00.000Z: connection refused", "API server v1.36.2"],
            "refused": [{"source": "aws", "place": "Service shop/web: ttl", "reason": "no number"}], "refusedCount": 1
        });
        serde_json::from_value(said).unwrap()
    };
    let page = Page {
        items: vec![source("ok"), source("stale")],
        total: 2,
        next: None,
    };
    assert_eq!(
        lists::sources(&page, &Screen::plain(None, false)),
        "\
SOURCE  KIND        STATE  AGE  IN FORCE SINCE  REFUSED  WHY
aws     kubernetes  ok     1 m  -                     1  Service shop/web: ttl: no number
aws     kubernetes  stale  1 m  -                     1  stale, seen last 2026-11-21T11:58:00.000Z: connection refused
"
    );
}

#[test]
fn the_summary_counts_member_clusters() {
    let mut whole = status("fra-1", json!([]));
    let members = json!({"synced": 3, "stale": 1, "never": 0, "heldDeletions": 12, "refusedObjects": 0, "refusals": 0});
    whole.members = serde_json::from_value(members).unwrap();
    let node = said("http://127.0.0.1:8053", whole);
    let text = draw(
        &merge(vec![node], Said::default()),
        &Screen::plain(None, false),
    );
    assert!(
        text.contains("\nMembers   3 synced, 1 stale, 12 deletions held\n"),
        "{text}"
    );
}

#[test]
fn a_zone_says_which_names_it_makes() {
    let mut zone = json!({
        "name": "svc.mesh", "serial": 7, "nameservers": ["ns1.svc.mesh"], "ttl": 30, "negativeTtl": 10, "names": 3,
        "nameForms": ["{service}.{namespace}", "kubefed"], "federationName": "prod"
    });
    let read = |zone: &Value| serde_json::from_value::<ZoneDto>(zone.clone()).unwrap();
    let lines = |zone: &ZoneDto| {
        let text = details::zone(zone, &Screen::plain(None, false));
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        text.lines().map(words).collect::<Vec<_>>()
    };
    let told = lines(&read(&zone));
    for line in [
        "Names made {service}.{namespace}, kubefed",
        "Federation prod",
    ] {
        assert!(told.contains(&line.to_owned()), "{line}: {told:?}");
    }
    let page = Page {
        items: vec![read(&zone)],
        total: 1,
        next: None,
    };
    let wide = lists::zones(&page, &Screen::plain(None, true));
    assert!(wide.contains("{service}.{namespace}, kubefed"), "{wide}");
    // Of a node of before.
    let members = zone.as_object_mut().unwrap();
    members.retain(|member, _| !matches!(member.as_str(), "nameForms" | "federationName"));
    assert!(lines(&read(&zone)).contains(&"Names made -".to_owned()));
}

#[test]
fn clusters_and_events_are_tables() {
    let cluster: ClusterDto = serde_json::from_value(json!({
        "name": "aws-use1", "from": "configuration", "tags": [], "annotations": [], "state": "drained", "location": {"latitude": 38.9, "longitude": -77.4}, "country": "US",
        "continent": "NA", "provider": "aws", "region": "us-east-1", "zones": [], "costKm": 1500, "evidence": [],
        "services": 1200, "endpoints": {"up": 3, "unknown": 1, "degraded": 0, "drained": 0, "down": 1},
        "answersPerSecond": 0.0, "probeMs": 12.34, "drain": drain(), "force": null,
        "admitted": true, "kubernetes": member()
    }))
    .unwrap();
    let page = Page {
        items: vec![cluster],
        total: 1,
        next: None,
    };
    assert_eq!(
        lists::clusters(&page, &Screen::plain(None, false)),
        "CLUSTER   STATE     UP  SERVICES  ANSWERS/S    PROBE  API SERVER               OPERATOR\n\
         aws-use1  drained  4/5     1,200          0  12.3 ms  stale, 1 m ago, 12 held  draining, 23 s left\n"
    );
    let wide = lists::clusters(&page, &Screen::plain(None, true));
    assert!(
        wide.contains("38.90, -77.40") && wide.contains("1,500 km"),
        "{wide}"
    );
    let event: EventDto = serde_json::from_value(json!({
        "id": 9, "time": "2026-11-21T11:59:50Z", "kind": "flip", "severity": "warning", "cluster": "aws-use1",
        "services": ["shop/web"], "serviceCount": 1200, "target": "192.0.2.1:80", "text": "192.0.2.1:80 is down: refused"
    }))
    .unwrap();
    let page = Page {
        items: vec![event],
        total: 1,
        next: None,
    };
    assert_eq!(
        lists::events(&page, &Screen::plain(None, false)),
        "WHEN      SEVERITY  KIND  EVENT\n10 s ago  warning   flip  192.0.2.1:80 is down: refused\n"
    );
    let wide = lists::events(&page, &Screen::plain(None, true));
    assert!(wide.contains("shop/web and 1,199 more"), "{wide}");
}

#[test]
fn a_monitor_says_why_it_does_not_probe() {
    let monitor = |more: Value| -> MonitorDto {
        let mut said = json!({
            "id": "5f2c8a1e", "target": "10.0.0.1:80", "check": "tcp connect", "verdict": "unknown", "inDoubt": false,
            "neverSucceeded": false, "last": null, "clusters": ["onprem"], "endpoints": 2, "intervalMs": 2000,
            "timeoutMs": 1000, "rise": 2, "fall": 2
        });
        said.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        serde_json::from_value(said).unwrap()
    };
    // The second is as nodes said it before there were tenants.
    let refused = json!({"origin": "tenant", "refused": "private address"});
    let page = Page {
        items: vec![monitor(refused), monitor(json!({}))],
        total: 2,
        next: None,
    };
    assert_eq!(
        lists::monitors(&page, &Screen::plain(None, false)),
        "TARGET       CHECK        VERDICT                               LAST PROBE  ENDPOINTS  CLUSTERS\n\
         10.0.0.1:80  tcp connect  unknown, not probed: private address  -                   2  onprem\n\
         10.0.0.1:80  tcp connect  unknown                               -                   2  onprem\n"
    );
    let wide = lists::monitors(&page, &Screen::plain(None, true));
    let origins: Vec<&str> = wide
        .lines()
        .filter_map(|line| line.split_whitespace().rev().nth(1))
        .collect();
    assert_eq!(origins, ["ORIGIN", "tenant", "operator"], "{wide}");
}

#[test]
fn challenges_are_shown_with_each_nodes_word() {
    let screen = Screen::plain(None, false);
    let said = Said {
        challenges: vec![challenge()],
        ..Said::default()
    };
    let node = said_by("fra-1");
    let text = draw(&merge(vec![node], said), &screen);
    let line = "Challenge  _acme-challenge.web.svc.mesh.: served by 1/2 nodes, missing: nyc-1 · ";
    assert!(text.contains(line), "{text}");
    let page = Page {
        items: vec![challenge()],
        total: 1,
        next: None,
    };
    let table = challenges::table(&page, &screen);
    assert!(
        table.contains("served by 1/2 nodes") && table.contains("nyc-1"),
        "{table}"
    );
    let all = challenges::details(&challenge(), &screen);
    for words in [
        "tok-1",
        "web.svc.mesh.",
        "fra-1",
        "itself",
        "1 m ago",
        "timeout",
    ] {
        assert!(all.contains(words), "{words}: {all}");
    }
    assert!(!all.contains('\u{1b}'), "{all:?}");
    let mut over = challenge();
    over.state = ChallengeState::Ended;
    assert!(!challenges::stands(&over) && challenges::stands(&challenge()));
}

#[test]
fn the_summary_says_who_asks_and_whether_they_look_translated() {
    let screen = Screen::plain(None, false);
    let with = |name: &str, sampled: u64, translated: Option<TranslatedDto>| {
        let mut node = said_by(name);
        node.status.as_mut().unwrap().senders = Some(SendersDto {
            sampled,
            addresses: 1,
            private_share: 1.0,
            subnet_share: 0.25,
            busiest_share: 1.0,
            busiest_network: Some("10.1.2.0/24".to_owned()),
            translated,
        });
        node
    };
    let shown = |nodes| draw(&merge(nodes, Said::default()), &screen);
    assert!(!shown(vec![said_by("fra-1")]).contains("Senders"));
    let plain = shown(vec![with("fra-1", 1234, None)]);
    let line = "Senders    1 address in a sample of 1,234: busiest 100 %, private 100 %, with Client Subnet 25 %";
    assert!(plain.contains(&line.replace("    ", "   ")), "{plain}");
    let translated = Some(TranslatedDto::OneAddress);
    let both = shown(vec![
        with("fra-1", 1234, None),
        with("nyc-1", 300, translated),
    ]);
    assert!(both.contains("a sample of 300"), "{both}");
    assert!(both.contains("they look translated"), "{both}");
}
