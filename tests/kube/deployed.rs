//! Manifests that run nodes inside a cluster: a real server takes them, and a node lives on what they give it.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::shared;
use crate::harness::client::Ask;
use crate::harness::node::{Node, meridian};
use crate::harness::packages::{SETPRIV, need};
use crate::harness::{loopback, wait_for};
use crate::kinds::{namespace, service};

/// How long something may take that has no number of its own, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Reads the documents of a manifest in `deploy/kubernetes/`.
pub fn documents(name: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/kubernetes");
    let text = fs::read_to_string(folder.join(name)).unwrap();
    let documents = text.split("\n---\n");
    documents
        .map(|text| serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}")))
        .collect()
}

/// Gives the one document of a kind.
fn document(name: &str, kind: &str) -> Value {
    let mut all = documents(name)
        .into_iter()
        .filter(|one| one["kind"] == kind);
    let found = all.next().expect(kind);
    assert!(all.next().is_none(), "{name} has one {kind}");
    found
}

/// The configuration that the manifests give to nodes.
fn configuration() -> String {
    let map = document("configuration.yaml", "ConfigMap");
    map["data"]["meridian.yaml"].as_str().unwrap().to_owned()
}

#[test]
fn a_server_takes_the_manifests_as_they_are_written() {
    let admin = shared()[0].admin();
    for name in [
        "reader.yaml",
        "clusters-reader.yaml",
        "configuration.yaml",
        "daemonset.yaml",
        "deployment.yaml",
    ] {
        for object in documents(name) {
            let taken = admin.apply_strictly(&object);
            taken.unwrap_or_else(|failure| panic!("{name}: {}: {failure}", object["kind"]));
        }
    }
    // A field that is misspelled would not pass.
    let mut wrong = document("daemonset.yaml", "DaemonSet");
    wrong["spec"]["template"]["spec"]["hostNetwrok"] = json!(true);
    let refused = admin.apply_strictly(&wrong).unwrap_err();
    assert!(refused.to_string().contains("hostNetwrok"), "{refused}");
}

#[test]
fn pods_keep_client_addresses_and_have_the_least_they_need() {
    let balanced = document("deployment.yaml", "Service");
    assert_eq!(balanced["spec"]["externalTrafficPolicy"], "Local");
    let protocols: Vec<&Value> = balanced["spec"]["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|port| &port["protocol"])
        .collect();
    assert_eq!(protocols, ["UDP", "TCP"]);
    let host = document("daemonset.yaml", "DaemonSet");
    assert_eq!(host["spec"]["template"]["spec"]["hostNetwork"], true);
    let account = document("reader.yaml", "ServiceAccount");
    let map = document("configuration.yaml", "ConfigMap");
    let stops = [(host, 5), (document("deployment.yaml", "Deployment"), 20)];
    for (workload, least) in stops {
        assert_eq!(
            workload["metadata"]["namespace"],
            account["metadata"]["namespace"]
        );
        let template = &workload["spec"]["template"];
        assert_eq!(
            workload["spec"]["selector"]["matchLabels"],
            template["metadata"]["labels"]
        );
        let pod = &template["spec"];
        assert_eq!(pod["serviceAccountName"], account["metadata"]["name"]);
        assert_eq!(pod["dnsPolicy"], "Default");
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(
            pod["volumes"][0]["configMap"]["name"],
            map["metadata"]["name"]
        );
        let container = &pod["containers"][0];
        let context = &container["securityContext"];
        assert_eq!(context["readOnlyRootFilesystem"], true);
        assert_eq!(context["allowPrivilegeEscalation"], false);
        let capabilities = json!({"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]});
        assert_eq!(context["capabilities"], capabilities);
        assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/readyz");
        assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/livez");
        // Killed before it has stopped by itself, it would drop what is under way.
        let waits = container["lifecycle"]["preStop"]["sleep"]["seconds"]
            .as_u64()
            .unwrap();
        let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
        assert!(grace >= waits + least, "{grace} {waits}");
        // The image is a place to be filled: one that exists would run in its stead.
        assert_eq!(container["image"], "meridian");
    }
}

#[test]
fn the_configuration_of_the_manifests_has_no_fault() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("meridian.yaml");
    fs::write(&file, configuration()).unwrap();
    let checked = meridian(&["check", "--config", file.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success(), "{said}");
    assert!(!said.contains("warning:"), "{said}");
    // What probes ask is where they ask it.
    let read: Value = serde_saphyr::from_str(&configuration()).unwrap();
    assert_eq!(read["metrics"]["listen"], json!(["0.0.0.0:9153"]));
    assert_eq!(read["dns"]["listen"], json!(["0.0.0.0:53"]));
    let pod = &document("daemonset.yaml", "DaemonSet")["spec"]["template"]["spec"];
    let mounts = &pod["containers"][0]["volumeMounts"];
    assert_eq!(mounts[2]["mountPath"], read["node"]["stateDirectory"]);
    assert_eq!(mounts[0]["mountPath"], "/etc/meridian");
}

/// Becomes the program as it runs in a pod: the files of a service account at their place, another user, one capability.
fn in_a_pod(folder: &Path) -> Command {
    need(&[SETPRIV]);
    let script = r#"
        set -e
        account=/run/secrets/kubernetes.io/serviceaccount
        mount -t tmpfs tmpfs /run
        mkdir -p $account
        cp "$0"/account/* $account/
        touch "$0/meridian"
        mount --bind "$1" "$0/meridian"
        chown -R 65532:65532 "$0/state" "$0/meridian.yaml" $account 2>/dev/null || true
        chmod 755 "$0"
        export KUBERNETES_SERVICE_HOST="$(cat "$0/account/host")" KUBERNETES_SERVICE_PORT="$(cat "$0/account/port")"
        shift
        exec setpriv --reuid 65532 --regid 65532 --clear-groups --no-new-privs --bounding-set=-all,+net_bind_service \
            --inh-caps=-all,+net_bind_service --ambient-caps=-all,+net_bind_service "$0/meridian" "$@"
    "#;
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private", "sh", "-c", script])
        .arg(folder)
        .arg(env!("CARGO_BIN_EXE_meridian"));
    command
}

#[test]
fn a_node_lives_on_the_service_account_of_its_pod() {
    let cluster = &shared()[0];
    let admin = cluster.admin();
    for object in documents("reader.yaml") {
        admin.apply_strictly(&object).unwrap();
    }
    let pod = &document("daemonset.yaml", "DaemonSet")["spec"]["template"]["spec"];
    let account = pod["serviceAccountName"].as_str().unwrap();
    let token = wait_for("a token", PATIENCE, || {
        admin.token("meridian", account).ok()
    });
    // The zone and the cluster are those of the manifest.
    let read: Value = serde_saphyr::from_str(&configuration()).unwrap();
    let rest = json!({"zones": read["zones"], "clusters": read["clusters"]});
    let rest = rest
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| format!("{key}: {value}\n"));
    let rest: String = rest.collect();

    let name = ("deployed", "web");
    admin.create(namespace(name.0)).unwrap();
    let annotations = [
        ("meridian-dns.io/enabled", "true"),
        ("meridian-dns.io/health-check", "none"),
    ];
    admin
        .create(service(name, &annotations, &["192.0.2.96"]))
        .unwrap();

    let server: SocketAddr = cluster
        .api()
        .url()
        .strip_prefix("https://")
        .unwrap()
        .parse()
        .unwrap();
    let authority = fs::read(cluster.authority()).unwrap();
    let prepare = |folder: &Path| {
        let files = folder.join("account");
        fs::create_dir(&files).unwrap();
        fs::create_dir(folder.join("state")).unwrap();
        fs::write(files.join("token"), token).unwrap();
        fs::write(files.join("ca.crt"), authority).unwrap();
        fs::write(files.join("namespace"), "meridian").unwrap();
        fs::write(files.join("host"), server.ip().to_string()).unwrap();
        fs::write(files.join("port"), server.port().to_string()).unwrap();
    };
    let mut node = Node::start_wrapped(in_a_pod, (loopback(), ""), &rest, prepare);
    let wanted: IpAddr = "192.0.2.96".parse().unwrap();
    wait_for("the Service", PATIENCE, || {
        let reply = Ask::a("web.deployed.svc.example.com").udp(node.dns());
        (reply.addresses() == [wanted]).then_some(())
    });
    let pid = node.process().id();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let field = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(field("Uid:"), "65532 65532 65532 65532");
    assert_eq!(field("NoNewPrivs:"), "1");
    // CAP_NET_BIND_SERVICE is number 10.
    assert_eq!(u64::from_str_radix(&field("CapEff:"), 16), Ok(1 << 10));
    assert_eq!(u64::from_str_radix(&field("CapBnd:"), 16), Ok(1 << 10));
}
