//! The story goes on: a fourth cluster joins by a Secret that any of the others has, and leaves by its removal.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use data_encoding::BASE64;
use hickory_proto::op::ResponseCode;
use serde_json::{Value, json};

use crate::cluster::{Cluster, shared};
use crate::clusters_from::{AFRICANS, JOINED, PATIENCE, Site, africa, put_service_in};
use crate::deployed::documents;
use crate::harness::client::Ask;
use crate::harness::wait_for;
use crate::keys::User;
use crate::kinds::{ACCOUNT, BINDING, SECRET, SERVICE, load_balancer, object};
use crate::watchman::Watchman;

/// The namespace that the manifest gives to such Secrets.
const HOME: &str = "meridian-clusters";
const LABEL: &str = "meridian-dns.io/cluster";

/// Gives a kubeconfig for a cluster with a token of one of its service accounts, and the token.
fn of_account(cluster: &Cluster, account: &str) -> (Value, String) {
    let token = wait_for("a token", PATIENCE, || {
        cluster.admin().token("meridian", account).ok()
    });
    let text = fs::read_to_string(cluster.kubeconfig(User::Admin)).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["users"][0]["user"] = json!({"token": token});
    (config, token)
}

/// Gives a cluster the rights of the manifests.
fn give_rights(cluster: &Cluster, names: &[&str]) {
    for object in names.iter().flat_map(|name| documents(name)) {
        cluster.admin().apply_strictly(&object).unwrap();
    }
}

/// Makes a Secret with data and annotations, both without what is common to all.
fn secret(name: &str, label: &str, data: &[(&str, &[u8])], annotations: &[(&str, &str)]) -> Value {
    let mut made = object(SECRET, HOME, name);
    made["metadata"]["labels"] = json!({LABEL: label});
    made["metadata"]["annotations"] = annotations
        .iter()
        .map(|(key, value)| (format!("meridian-dns.io/{key}"), json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    made["data"] = data
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(BASE64.encode(value))))
        .collect::<serde_json::Map<_, _>>()
        .into();
    made
}

/// The same with one kubeconfig.
fn of_kubeconfig(name: &str, label: &str, config: &Value, annotations: &[(&str, &str)]) -> Value {
    let text = config.to_string();
    secret(name, label, &[("kubeconfig", text.as_bytes())], annotations)
}

/// A second service account that may read what the first one may.
fn second_account(cluster: &Cluster) {
    let admin = cluster.admin();
    admin.create(object(ACCOUNT, "meridian", "second")).unwrap();
    let mut binding = object(BINDING, "", "second");
    binding["roleRef"] = json!({
        "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "meridian-reader",
    });
    binding["subjects"] =
        json!([{"kind": "ServiceAccount", "name": "second", "namespace": "meridian"}]);
    admin.create(binding).unwrap();
}

/// Everything that a node says where anybody may look, and its log.
fn all_it_says(site: &mut Site) -> String {
    let mut all = String::new();
    for path in [
        "/api/v1/status",
        "/api/v1/clusters",
        "/api/v1/clusters/africa",
        "/api/v1/sources",
        "/api/v1/events?limit=500",
        "/api/v1/drains",
        "/metrics",
        "/clusters",
        "/clusters/africa",
        "/sources",
        "/events",
        "/",
    ] {
        all += &site.node.get(path).unwrap_or_else(|| panic!("{path}"));
    }
    all + &site.node.process().log()
}

/// The only source of Secrets.
fn source(site: &Site) -> Value {
    let sources = site.api("/api/v1/sources");
    let all = sources["items"].as_array().cloned().unwrap_or_default();
    let source = all.into_iter().find(|one| one["kind"] == "secrets");
    source.expect("a source of Secrets")
}

/// What is refused of it.
fn refusals(site: &Site) -> String {
    source(site)["refused"].to_string()
}

/// Waits until so much is refused of it.
fn await_refusals(site: &Site, count: u64) {
    wait_for(&format!("{count} refusals"), PATIENCE, || {
        (source(site)["refusedCount"] == count).then_some(())
    });
}

#[test]
fn a_fourth_cluster_joins_by_a_secret_rotates_its_token_and_leaves_by_its_removal() {
    let www = "www.secrets.g.example";
    let europe = &shared()[0];
    let [africa, mut hub] = std::thread::scope(|scope| {
        let africa = scope.spawn(africa);
        let hub = scope.spawn(|| Cluster::start("hub"));
        [africa.join().unwrap(), hub.join().unwrap()]
    });
    let key = ("secrets", "web");
    put_service_in(europe.admin(), key, www, "192.0.2.41");
    put_service_in(africa.admin(), key, www, "192.0.2.44");
    give_rights(&africa, &["reader.yaml"]);
    give_rights(&hub, &["reader.yaml", "clusters-reader.yaml"]);
    second_account(&africa);
    // The node has just the rights of the manifests, there and here.
    let (reading, hub_token) = of_account(&hub, "meridian-reader");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hub.yaml");
    fs::write(&file, reading.to_string()).unwrap();
    let sources = json!([{"secrets": {"kubeconfig": {"file": file}, "namespace": HOME}}]);
    let mut site = Site::start(&[europe], &sources);
    site.expect(www, AFRICANS, "192.0.2.41");
    let watchman = Watchman::post(site.node.dns(), &[www], &[AFRICANS]);

    // It joins.
    let (config, first) = of_account(&africa, "meridian-reader");
    let annotations = [
        ("geo-tag", "south,ZA-1"),
        ("capacity", "5"),
        ("zone", "af-south-1z"),
    ];
    let begun = Instant::now();
    let made = of_kubeconfig("africa", "true", &config, &annotations);
    hub.admin().create(made).unwrap();
    site.expect(www, AFRICANS, "192.0.2.44");
    let took = begun.elapsed();
    println!("answered {took:?} after the Secret was made");
    assert!(took < JOINED, "{took:?}");
    let joined = site.cluster("africa").unwrap();
    assert_eq!(
        joined["from"],
        "Secret meridian-clusters/africa, key kubeconfig"
    );
    assert_eq!(
        (&joined["country"], &joined["tags"]),
        (&json!("ZA"), &json!(["south", "ZA-1"]))
    );
    assert_eq!(joined["zones"], json!(["af-south-1z"]));
    let evidence = joined["evidence"].to_string();
    assert!(
        evidence.contains("annotation meridian-dns.io/zone"),
        "{evidence}"
    );
    assert_eq!(site.cluster("europe").unwrap()["from"], "configuration");
    let refused = refusals(&site);
    assert!(
        refused.contains("capacity") && refused.contains("not supported yet"),
        "{refused}"
    );

    // Another token, and the account of the first one is gone.
    let (config, second) = of_account(&africa, "second");
    let made = of_kubeconfig("africa", "true", &config, &annotations);
    hub.admin().apply(&made).unwrap();
    wait_for("the other token", PATIENCE, || {
        let log = site.node.process().log();
        (log.matches("Credentials of a cluster are in use").count() >= 4).then_some(())
    });
    let admin = africa.admin();
    admin
        .delete(ACCOUNT, "meridian", "meridian-reader")
        .unwrap();
    admin
        .patch_status(SERVICE, key, &load_balancer(&["192.0.2.45"]))
        .unwrap();
    site.expect(www, AFRICANS, "192.0.2.45");
    assert_eq!(
        site.cluster("africa").unwrap()["kubernetes"]["link"],
        "synced"
    );

    // The server that has the Secrets is gone: nothing changes, over a restart neither.
    hub.kill9_api();
    await_refusals(&site, 2);
    watchman.relieve();
    site.node.kill();
    let kept = site.node.folder().join("state/kubeconfigs.json");
    let mode = fs::metadata(&kept).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "nobody else reads it");
    site.node.spawn();
    let watchman = Watchman::post(site.node.dns(), &[www], &[AFRICANS]);
    site.expect(www, AFRICANS, "192.0.2.45");
    admin
        .patch_status(SERVICE, key, &load_balancer(&["192.0.2.46"]))
        .unwrap();
    site.expect(www, AFRICANS, "192.0.2.46");
    assert_eq!(site.cluster("africa").unwrap()["leaving"], Value::Null);

    // It is back, and the cluster leaves for good.
    hub.restart_api();
    await_refusals(&site, 1);
    hub.admin().delete(SECRET, HOME, "africa").unwrap();
    site.expect(www, AFRICANS, "192.0.2.41");
    wait_for("the cluster to be gone", PATIENCE, || {
        site.cluster("africa").is_none().then_some(())
    });
    site.expect(www, AFRICANS, "192.0.2.41");
    watchman.relieve();
    let events = site.events();
    for part in ["is leaving", "has left"] {
        assert!(events.contains(part), "{part}: {events}");
    }
    wait_for("the kubeconfig to be gone from the disk", PATIENCE, || {
        let text = fs::read_to_string(&kept).ok()?;
        (!text.contains(&second)).then_some(())
    });
    europe.admin().delete_all(SERVICE, "secrets").unwrap();
    let log = site.node.process().log();
    for token in [&first, &second, &hub_token] {
        assert!(!log.contains(&**token), "a token is in the log");
    }
}

/// Makes Secrets that are all wrong, each with a canary, and what is said of each.
fn hostile(config: &Value, ran: &Path) -> Vec<(Value, &'static str)> {
    let with_user = |user: Value| {
        let mut hostile = config.clone();
        hostile["users"][0]["user"] = user;
        hostile
    };
    let exec = with_user(json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/touch", "args": [ran],
        "env": [{"name": "X", "value": "c4n4ry"}],
    }}));
    let file = with_user(json!({"tokenFile": "/etc/shadow", "token": "c4n4ry"}));
    let huge = vec![b'x'; 900 << 10];
    let mut hidden = secret("no-label", "true", &[("kubeconfig", b"c4n4ry")], &[]);
    hidden["metadata"]["labels"] = json!({LABEL: "false"});
    let europe = of_kubeconfig("europe", "bad", config, &[]);
    vec![
        (of_kubeconfig("exec", "bad", &exec, &[]), "exec:"),
        (of_kubeconfig("file", "bad", &file, &[]), "tokenFile:"),
        (
            secret("huge", "bad", &[("kubeconfig", &huge)], &[]),
            "is no kubeconfig in YAML",
        ),
        (
            secret("binary", "bad", &[("kubeconfig", b"c4n4ry\xff\x00")], &[]),
            "is no UTF-8 text",
        ),
        (
            secret("empty", "bad", &[("other", b"c4n4ry")], &[]),
            "has no key `kubeconfig`",
        ),
        (
            secret("text", "bad", &[("kubeconfig", b"c4n4ry: [")], &[]),
            "is no kubeconfig in YAML",
        ),
        (europe, "has a kubeconfig of its own in the configuration"),
        (hidden, ""),
    ]
}

#[test]
fn hostile_secrets_are_refused_by_their_place_and_lose_nothing() {
    let (europe, america) = (&shared()[0], &shared()[1]);
    let www = "www.hostile.g.example";
    put_service_in(europe.admin(), ("hostile", "web"), www, "192.0.2.51");
    give_rights(america, &["reader.yaml", "clusters-reader.yaml"]);
    let sources = json!([{"secrets": {
        "kubeconfig": {"file": america.kubeconfig(User::Admin)}, "namespace": HOME,
        "selector": format!("{LABEL}=bad"),
    }}]);
    let mut site = Site::start(&[europe], &sources);
    site.expect(www, AFRICANS, "192.0.2.51");
    let watchman = Watchman::post(site.node.dns(), &[www], &[AFRICANS]);
    let (config, _) = of_account(america, "meridian-reader");
    let ran = site.node.folder().join("ran");
    let all = hostile(&config, &ran);
    for (made, _) in &all {
        america.admin().create(made.clone()).unwrap();
    }
    for (made, why) in &all {
        let name = made["metadata"]["name"].as_str().unwrap();
        wait_for(&format!("the refusal of {name}: {why}"), PATIENCE, || {
            let of_member = site
                .cluster(name)
                .map(|one| one["kubernetes"]["lastError"].to_string());
            let said = refusals(&site) + &of_member.unwrap_or_default();
            let is_placed = said.contains(&format!("Secret {HOME}/{name}"));
            (why.is_empty() || is_placed && said.contains(why)).then_some(())
        });
    }
    assert!(site.cluster("no-label").is_none(), "it has another label");
    assert!(!ran.exists(), "nothing was run");
    assert_eq!(site.cluster("europe").unwrap()["from"], "configuration");
    site.expect(www, AFRICANS, "192.0.2.51");
    watchman.relieve();
    site.node
        .await_metric("meridian_source_refused_files{kind=\"secrets\"}", 1.0);
    let said = all_it_says_but_africa(&mut site);
    for word in ["c4n4ry", &BASE64.encode(b"c4n4ry")[..8]] {
        assert!(!said.contains(word), "{word} is said");
    }
    for (made, _) in &all {
        let name = made["metadata"]["name"].as_str().unwrap();
        america.admin().delete(SECRET, HOME, name).unwrap();
    }
    europe.admin().delete_all(SERVICE, "hostile").unwrap();
}

/// The same where there is no Africa.
fn all_it_says_but_africa(site: &mut Site) -> String {
    let mut all = String::new();
    for path in [
        "/api/v1/status",
        "/api/v1/clusters",
        "/api/v1/sources",
        "/metrics",
        "/sources",
        "/clusters",
    ] {
        all += &site.node.get(path).unwrap_or_else(|| panic!("{path}"));
    }
    all + &site.node.process().log()
}

#[test]
fn a_cluster_of_a_secret_is_observed_admitted_drained_and_steered_by_its_own_words() {
    let (europe, america) = (&shared()[0], &shared()[1]);
    let africa = africa();
    let www = "www.words.g.example";
    let key = ("words", "web");
    put_service_in(europe.admin(), key, www, "192.0.2.61");
    put_service_in(africa.admin(), key, www, "192.0.2.64");
    give_rights(&africa, &["reader.yaml"]);
    give_rights(america, &["reader.yaml", "clusters-reader.yaml"]);
    let source = |label: &str| {
        json!({
            "kubeconfig": {"file": america.kubeconfig(User::Admin)}, "namespace": HOME,
            "selector": format!("{LABEL}={label}"),
            // As remote Secrets of Istio have it: each key is a cluster.
            "key": "*",
        })
    };
    let sources = json!([
        {"secrets": source("seen"), "admit": "observe"}, {"secrets": source("served")},
    ]);
    let mut site = Site::start(&[europe], &sources);
    let (config, canary) = of_account(&africa, "meridian-reader");
    let text = config.to_string();
    let put = |label: &str, annotations: &[(&str, &str)]| {
        let data: [(&str, &[u8]); 1] = [("africa", text.as_bytes())];
        let made = secret("istio-remote-secret-africa", label, &data, annotations);
        america.admin().apply(&made).unwrap();
    };
    let synced = |site: &Site, admitted: bool| {
        wait_for("the cluster to be synced", PATIENCE, || {
            let it = site.cluster("africa")?;
            let is_so = it["kubernetes"]["link"] == "synced" && it["admitted"] == admitted;
            is_so.then_some(())
        });
    };
    // It is watched, and nobody is answered with it.
    put("seen", &[]);
    synced(&site, false);
    site.expect(www, AFRICANS, "192.0.2.61");
    // It is admitted by its label.
    put("served", &[]);
    site.expect(www, AFRICANS, "192.0.2.64");
    synced(&site, true);

    // A drain of its own, which ends with its annotation.
    put("served", &[("drain", "true")]);
    site.expect(www, AFRICANS, "192.0.2.61");
    let drained = site.cluster("africa").unwrap();
    assert_eq!(
        (&drained["state"], &drained["leaving"]),
        (&json!("drained"), &Value::Null)
    );
    assert_eq!(drained["annotations"][0]["key"], "meridian-dns.io/drain");
    put("served", &[]);
    site.expect(www, AFRICANS, "192.0.2.64");
    // Where it is, by its own word: farther than Europe from South Africa.
    put(
        "served",
        &[
            ("latitude", "64.1"),
            ("longitude", "-21.9"),
            ("country", "IS"),
        ],
    );
    site.expect(www, AFRICANS, "192.0.2.61");
    let moved = site.cluster("africa").unwrap();
    let evidence = moved["evidence"][0]["from"].as_str().unwrap().to_owned();
    assert_eq!(evidence, "annotation meridian-dns.io/latitude");
    put("served", &[("geo-tag", "south")]);
    site.expect(www, AFRICANS, "192.0.2.64");

    // Bare words and tags in annotations of a Service: tiers that name Europe first, and then Africa by its tag.
    let steer = |tiers: &str| {
        let patch = json!({"metadata": {"annotations": {"meridian-dns.io/tiers": tiers}}});
        for cluster in [europe, &africa] {
            cluster.admin().patch(SERVICE, key, &patch).unwrap();
        }
    };
    steer("europe,*");
    site.expect(www, AFRICANS, "192.0.2.61");
    steer("south,*");
    site.expect(www, AFRICANS, "192.0.2.64");
    steer("GEO-EU,*");
    site.expect(www, AFRICANS, "192.0.2.61");
    steer("tag:south,*");
    site.expect(www, AFRICANS, "192.0.2.64");
    // A weight of nothing: no answer while another can be given.
    steer("*");
    site.expect(www, AFRICANS, "192.0.2.64");
    put("served", &[("geo-tag", "south"), ("cluster-weight", "0")]);
    site.expect(www, AFRICANS, "192.0.2.61");
    put("served", &[("geo-tag", "south")]);
    site.expect(www, AFRICANS, "192.0.2.64");

    // It is to be ignored: it leaves as any other.
    put("served", &[("ignore", "true")]);
    site.expect(www, AFRICANS, "192.0.2.61");
    let said = all_it_says(&mut site);
    assert!(!said.contains(&canary), "a token is said");
    wait_for("the cluster to be gone", PATIENCE, || {
        site.cluster("africa").is_none().then_some(())
    });
    let reply = Ask::a(www).from(AFRICANS).udp(site.node.dns());
    assert_eq!(reply.rcode(), ResponseCode::NoError);
    let name = "istio-remote-secret-africa";
    america.admin().delete(SECRET, HOME, name).unwrap();
    europe.admin().delete_all(SERVICE, "words").unwrap();
}
