//! Each alert is fired: the real program in the condition, scraped by a real Prometheus with the real rules, their times made
//! short.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::client::Ask;
use crate::harness::node::Node;
use crate::harness::objects::{Objects, kubeconfig};
use crate::harness::packages::{PROMETHEUS, need};
use crate::harness::process::Process;
use crate::harness::{loopback, wait_for};
use crate::metrics::repository;
use crate::samples::{FIVE, FIVE_ZONE};
use crate::senders::{QUERIES, ask, proxied};

/// How long it may take until all alerts fire.
const PATIENCE: Duration = Duration::from_secs(60);
/// Services of the node whose publishes are slow.
const MANY: usize = 250_000;

/// Makes the rules fit for a test: a range is long enough for a few scrapes, and nothing waits.
fn shortened(rules: &str) -> String {
    let mut text = String::new();
    for line in rules.lines() {
        let waits = line.trim().starts_with("for: ");
        let mut line = if waits {
            let indent = &line[..line.find('f').unwrap()];
            format!("{indent}for: 1s")
        } else {
            line.to_owned()
        };
        for range in ["[2m]", "[5m]", "[10m]", "[15m]"] {
            line = line.replace(range, "[10s]");
        }
        text += &line;
        text.push('\n');
    }
    assert!(!text.contains("m]"), "a range that is not made short");
    text
}

/// A Prometheus of our own.
struct Prometheus {
    process: Process,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    fn start(targets: &[SocketAddr]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let rules = shortened(&repository("deploy/observability/alerts.yaml"));
        std::fs::write(folder.path().join("alerts.yaml"), rules).unwrap();
        let targets: Vec<String> = targets
            .iter()
            .map(|target| format!("\"{target}\""))
            .collect();
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [alerts.yaml]\nscrape_configs:\n  - {{job_name: meridian, static_configs: [{{targets: [{}]}}]}}\n",
            targets.join(", ")
        );
        std::fs::write(folder.path().join("prometheus.yaml"), config).unwrap();
        let address = SocketAddr::new(loopback(), 9090);
        let mut command = Command::new(PROMETHEUS.0);
        command
            .current_dir(folder.path())
            .arg("--config.file=prometheus.yaml")
            .arg("--storage.tsdb.path=data")
            .arg(format!("--web.listen-address={address}"));
        let mut process = Process::start("prometheus", folder.path(), &mut command);
        wait_for("prometheus", Duration::from_secs(30), || {
            process.assert_running();
            Self::get(address, "/-/ready").filter(|text| text.starts_with("HTTP/1.0 200"))
        });
        Self {
            process,
            address,
            _folder: folder,
        }
    }

    /// Gets a path; the whole response.
    fn get(address: SocketAddr, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        // The older version of HTTP has no chunks.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Lists the alerts that fire, by name and instance.
    fn firing(&mut self) -> BTreeSet<(String, String)> {
        self.process.assert_running();
        let Some(text) = Self::get(self.address, "/api/v1/alerts") else {
            return BTreeSet::new();
        };
        let body = text.split_once("\r\n\r\n").unwrap().1;
        let answer: Value = serde_json::from_str(body).unwrap();
        let alerts = answer["data"]["alerts"].as_array().unwrap();
        let firing = alerts.iter().filter(|alert| alert["state"] == "firing");
        let label = |alert: &Value, name: &str| alert["labels"][name].as_str().unwrap().to_owned();
        firing
            .map(|alert| (label(alert, "alertname"), label(alert, "instance")))
            .collect()
    }
}

/// A node in everything that is wrong from the start: a dead cluster, panic, an old database, a query log on a full disk, a
/// collector that is gone, senders that should say who asks and do not.
fn sick() -> Node {
    let dead = loopback();
    let text = format!(
        "
geoip: {{databases: [geo.mmdb]}}
queryLog: {{file: /dev/full, sample: 1}}
telemetry: {{otlp: {{endpoint: \"http://{dead}:1\"}}}}
zones: [{{name: svc.mesh, nameservers: [{{name: ns1.svc.mesh, addresses: [192.0.2.53]}}], contact: h.svc.mesh}}]
clusters:
  - {{name: europe, provider: aws, region: eu-central-1}}
  - {{name: america, provider: aws, region: us-east-1}}
services:
  - namespace: shop
    name: web
    hostnames: [www.svc.mesh]
    monitor: {{tcp: {{port: 1}}, interval: 500ms, timeout: 250ms}}
    endpoints: [{{cluster: europe, addresses: [{dead}]}}]
  - namespace: shop
    name: panic
    hostnames: [panic.svc.mesh]
    policy: {{panic: 0.9}}
    monitor: {{tcp: {{port: 1}}, interval: 500ms, timeout: 250ms}}
    endpoints: [{{cluster: europe, addresses: [{dead}]}}]
"
    );
    Node::start_on(loopback(), "", &text, |folder| {
        let octets = crate::geoip::database("198.51.100.0/24", "DE");
        std::fs::write(folder.join("geo.mmdb"), octets).unwrap();
    })
}

/// A node that gets worse while it runs.
fn worsening() -> Node {
    let text = format!("{FIVE}geoip: {{databases: [geo.mmdb]}}\n");
    let dns = "proxyProtocol: {from: [127.0.0.0/8]}, ";
    Node::start_on(loopback(), dns, &text, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
        let octets = crate::geoip::database("198.51.100.0/24", "DE");
        std::fs::write(folder.join("geo.mmdb"), octets).unwrap();
    })
}

/// A node with a peer that nobody has ever seen, one drain that waits for it, one that is held, a challenge that waits for the
/// peer too, and a file of records that cannot be written.
fn draining() -> Node {
    let text = format!(
        "
peers: [{{url: \"http://{}:1\"}}]
zones: [{{name: svc.mesh, nameservers: [{{name: ns1.svc.mesh, addresses: [192.0.2.53]}}], contact: h.svc.mesh}}]
clusters: [{{name: a, location: {{country: DE}}}}, {{name: b, location: {{country: FR}}}}, {{name: c, location: {{country: US}}}}]
services:
  - {{namespace: n, name: two, hostnames: [two.svc.mesh], endpoints: [{{cluster: a, addresses: [192.0.2.1]}}, {{cluster: b, addresses: [192.0.2.2]}}]}}
  - {{namespace: n, name: one, hostnames: [one.svc.mesh], endpoints: [{{cluster: c, addresses: [192.0.2.3]}}]}}
",
        loopback()
    );
    let record = |id: &str, cluster: &str, more: &str| {
        format!(
            "{{\"id\": \"{id}\", \"intent\": \"drain\", \"cluster\": \"{cluster}\", \"starts\": 1,
              \"created\": {{\"time\": 1, \"actor\": \"ann\", \"reason\": \"test\"}}{more}}}"
        )
    };
    let over = ", \"ended\": {\"time\": 2, \"actor\": \"ann\", \"reason\": \"long ago\"}";
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = since.unwrap().as_millis();
    // Stands for ten minutes.
    let challenge = format!(
        "{{\"id\": \"proof\", \"intent\": \"challenge\", \"name\": \"two.svc.mesh\", \"token\": \"abc\", \"starts\": {now},
          \"expires\": {}, \"created\": {{\"time\": {now}, \"actor\": \"ann\", \"reason\": \"test\"}}}}",
        now + 600_000
    );
    let records = [
        record("waiting", "a", ""),
        record("held", "c", ""),
        // Old enough to be forgotten: the file has to be written.
        record("old", "b", over),
    ];
    let file = format!(
        "{{\"version\": 1, \"records\": [{}], \"challenges\": [{challenge}]}}",
        records.join(", ")
    );
    Node::start_on(loopback(), "", &text, |folder| {
        let state = folder.join("state");
        std::fs::create_dir_all(state.join("operators.tmp")).unwrap();
        std::fs::write(state.join("operators.json"), file).unwrap();
    })
}

/// A node with two member clusters: one that nobody has ever seen, and one that has Services, of which one may not be
/// probed, and takes no Events; and with a directory that has a file that is none of a cluster, and Secrets that nobody can read.
fn following(objects: &Objects) -> Node {
    let text = "
kubernetes: {writeBack: events}
zones: [{name: svc.mesh, nameservers: [{name: ns1.svc.mesh, addresses: [192.0.2.53]}], contact: h.svc.mesh}]
clustersFrom: [{directory: clusters.d, admit: serve}, {secrets: {cluster: away, namespace: dns}}]
clusters:
  - {name: away, location: {country: DE}, kubeconfig: {file: away.yaml}}
  - {name: here, location: {country: FR}, kubeconfig: {file: here.yaml}}
";
    let away = kubeconfig(&format!("http://{}:1", loopback()));
    Node::start_on(loopback(), "", text, |folder| {
        std::fs::write(folder.join("away.yaml"), away).unwrap();
        std::fs::write(folder.join("here.yaml"), objects.kubeconfig()).unwrap();
        std::fs::create_dir(folder.join("clusters.d")).unwrap();
        std::fs::write(folder.join("clusters.d/Bad.yaml"), "no kubeconfig").unwrap();
    })
}

/// Takes all Services away, once they are known: that is held.
fn lose(node: &Node, objects: &Objects) {
    wait_for("the member cluster", PATIENCE, || {
        (node.metric("meridian_member_synced{cluster=\"here\"}") == 1.0).then_some(())
    });
    objects.lose_all();
}

/// Breaks all that it reads, and where it writes.
fn worsen(node: &Node) {
    let folder = node.folder();
    std::fs::remove_dir_all(folder.join("state")).unwrap();
    std::fs::write(folder.join("state"), "no folder").unwrap();
    // The state is written when it changes: another configuration, another serial.
    node.write_config(&node.config().replace("ttl: 10", "ttl: 11"));
    wait_for("a good reload", PATIENCE, || {
        (node.metric("meridian_config_reloads_total") == 1.0).then_some(())
    });
    std::fs::write(folder.join("svc.mesh.zone"), "( broken").unwrap();
    std::fs::write(folder.join("geo.mmdb"), "broken").unwrap();
    node.write_config(&node.config().replace("version: 1", "version: 2"));
}

/// A configuration whose every publish takes long; `ttl` differs from one to the next.
fn many(ttl: u32) -> String {
    let mut text = String::from(
        "zones: [{name: svc.mesh, nameservers: [{name: ns1.svc.mesh, addresses: [192.0.2.53]}], contact: h.svc.mesh}]
clusters: [{name: a, location: {country: DE}}]
services:
",
    );
    for number in 0..MANY {
        text += &format!(
            "  - {{namespace: n, name: s{number}, hostnames: [s{number}.svc.mesh, t{number}.svc.mesh], ttl: {ttl}, endpoints: [{{cluster: a, addresses: [192.0.2.1]}}]}}\n"
        );
    }
    text
}

#[test]
fn every_alert_fires_in_its_condition_and_none_without() {
    need(&[PROMETHEUS]);
    let well = Node::start(
        "zones: [{name: a.mesh, nameservers: [{name: ns.example.net}], contact: h.example.net}]\n",
    );
    let (sick, worsening, slow) = (sick(), worsening(), Node::start(&many(1)));
    let dying = Node::start(
        "zones: [{name: a.mesh, nameservers: [{name: ns.example.net}], contact: h.example.net}]\n",
    );
    let draining = draining();
    let objects = Objects::start(loopback());
    let following = following(&objects);
    let nodes = [
        &well, &sick, &worsening, &slow, &draining, &following, &dying,
    ];
    let targets = nodes.map(|node| node.http());
    let mut prometheus = Prometheus::start(&targets);
    let begun = Instant::now();
    let gone = dying.http();
    drop(dying);
    worsen(&worsening);
    lose(&following, &objects);
    let expected: BTreeSet<(String, String)> = [
        (&sick, "MeridianClusterDown"),
        (&sick, "MeridianLastResort"),
        (&sick, "MeridianPanic"),
        (&sick, "MeridianMonitorNeverSucceeded"),
        (&sick, "MeridianDatabaseOld"),
        (&sick, "MeridianLogLinesLost"),
        (&sick, "MeridianSpansLost"),
        (&worsening, "MeridianReloadFailing"),
        (&worsening, "MeridianDatabaseOld"),
        (&worsening, "MeridianDatabaseRefused"),
        (&worsening, "MeridianZoneRefused"),
        (&worsening, "MeridianLastGoodNotWritten"),
        (&worsening, "MeridianDrops"),
        (&worsening, "MeridianSendersTranslated"),
        (&slow, "MeridianPublishSlow"),
        (&draining, "MeridianDrainNotEverywhere"),
        (&draining, "MeridianDrainHeld"),
        (&draining, "MeridianPeerUnreachable"),
        (&draining, "MeridianChallengeNotEverywhere"),
        (&draining, "MeridianRecordsUnwritten"),
        (&following, "MeridianMemberStale"),
        (&following, "MeridianDeletionsHeld"),
        (&following, "MeridianObjectsRefused"),
        (&following, "MeridianTargetsRefused"),
        (&following, "MeridianDirectoryRefused"),
        (&following, "MeridianSecretsRefused"),
        (&following, "MeridianEventsNotWritten"),
    ]
    .into_iter()
    .map(|(node, alert)| (alert.to_owned(), node.http().to_string()))
    .chain([("MeridianDown".to_owned(), gone.to_string())])
    .collect();
    let rules = repository("deploy/observability/alerts.yaml");
    let names = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    let fired = expected.iter().map(|(name, _)| name.as_str());
    assert_eq!(
        names.collect::<BTreeSet<_>>(),
        fired.collect(),
        "every alert has its condition"
    );
    let flood = UdpSocket::bind((loopback(), 0)).unwrap();
    // With a header, and it names one address in the place of all: one after the other, so that each is looked at.
    let query = Ask::a("www.svc.mesh").message().to_vec().unwrap();
    for _ in 0..QUERIES {
        let translated = proxied([10, 1, 2, 3].into(), &query);
        ask(&flood, worsening.dns(), &translated);
    }
    let head = slow.config();
    let head = head.split_once("zones:").unwrap().0;
    let (mut seen, mut round) = (BTreeSet::new(), 1);
    while !expected.is_subset(&seen) {
        let missing: Vec<_> = expected.difference(&seen).collect();
        assert!(begun.elapsed() < PATIENCE, "not fired: {missing:?}");
        for name in ["www.svc.mesh", "panic.svc.mesh"] {
            Ask::a(name).udp(sick.dns());
        }
        for _ in 0..20 {
            // No PROXY header where one is due.
            flood.send_to(&[0; 40], worsening.dns()).unwrap();
        }
        if slow.metric("meridian_config_reloads_total") >= f64::from(round - 1) {
            round += 1;
            slow.write_config(&format!("{head}{}", many(round)));
        }
        seen.extend(prometheus.firing());
        std::thread::sleep(Duration::from_millis(200));
    }
    println!("all fired after {:?}", begun.elapsed());
    let here = well.http().to_string();
    let of_the_well: Vec<_> = seen
        .iter()
        .filter(|(_, instance)| *instance == here)
        .collect();
    assert!(of_the_well.is_empty(), "{of_the_well:?}");
}
