//! Joining a cluster and leaving it: what is made there, what it allows, and what is said when something is in the way.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use data_encoding::BASE64;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cluster::{Cluster, shared};
use crate::harness::node::meridian;
use crate::harness::wait_for;
use crate::keys::User;
use crate::kinds::{
    ACCOUNT, BINDING, NAMESPACE, ROLE, SECRET, SERVICE, SLICE, load_balancer, namespace, service,
};
use crate::node::{CONTINENTS, Member, Meridian};
use crate::objects::{Admin, Failure};

/// How long something may take that has no number of its own, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// The zone, and readiness alone decides: nothing is probed.
const ZONE: &str = "
zones: [{name: j.example, nameservers: [{name: ns.j.example, addresses: [192.0.2.53]}]}]
";

/// Somebody at the keyboard, with a folder for kubeconfigs and one cluster.
struct Desk<'c> {
    cluster: &'c Cluster,
    namespace: &'static str,
    folder: TempDir,
}

impl<'c> Desk<'c> {
    fn new(cluster: &'c Cluster, namespace: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            cluster,
            namespace,
            folder,
        }
    }

    /// The file that joining writes into the folder.
    fn file(&self) -> PathBuf {
        self.folder
            .path()
            .join(format!("{}.yaml", self.cluster.name()))
    }

    /// The words that name the cluster with all rights.
    fn admin(&self) -> [String; 4] {
        let file = self.cluster.kubeconfig(User::Admin);
        [
            "--kubeconfig".to_owned(),
            file.to_str().unwrap().to_owned(),
            "--namespace".to_owned(),
            self.namespace.to_owned(),
        ]
    }

    /// Joins it into the folder.
    fn join(&self, more: &[&str]) -> Output {
        let admin = self.admin();
        let mut args = vec!["cluster", "join"];
        args.extend(admin.iter().map(String::as_str));
        args.extend(["--directory", self.folder.path().to_str().unwrap()]);
        args.extend(more);
        meridian(&args)
    }

    /// A client with the new kubeconfig.
    fn reader(&self) -> Admin {
        Admin::new(&self.file(), self.cluster.name())
    }

    /// What is in the folder.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }
}

/// Gives what a command wrote to standard output; it must have gone well.
fn told(output: &Output) -> String {
    let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// Gives what a command complained of; it must have failed so.
fn complained(output: &Output, code: i32) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{text}");
    text
}

/// Checks that a request was refused for want of rights.
fn forbidden<T: std::fmt::Debug>(what: &str, result: Result<T, Failure>) {
    match result {
        Err(failure) => assert_eq!(failure.code(), Some(403), "{what}: {failure}"),
        Ok(answer) => panic!("{what} is allowed: {answer:?}"),
    }
}

/// Plays the token controller: fills the Secret of a service account when it appears.
fn fill_secret(admin: &Admin, namespace: &str) {
    let name = "meridian-reader-token";
    wait_for("the Secret", PATIENCE, || {
        admin.get(SECRET, namespace, name).ok()
    });
    let token = admin.token(namespace, "meridian-reader").unwrap();
    let data = json!({"data": {"token": BASE64.encode(token.as_bytes())}});
    admin.patch(SECRET, (namespace, name), &data).unwrap();
}

#[test]
fn a_joined_cluster_is_read_and_nothing_else_is_allowed() {
    let cluster = &shared()[0];
    let desk = Desk::new(cluster, "joined");
    let admin = cluster.admin();

    // A dry run says the same and leaves nothing.
    let said = told(&desk.join(&["--expires", "24h", "--dry-run"]));
    for part in [
        "Namespace joined: would be created",
        "ServiceAccount joined/meridian-reader: would be created",
        "ClusterRole meridian-reader-joined: would be created",
        "token: would be asked for, for 24 h",
        "europe.yaml: would be created",
        "nothing was changed",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(admin.get(NAMESPACE, "", "joined").is_err());
    assert!(admin.get(ROLE, "", "meridian-reader-joined").is_err());
    assert!(desk.names().is_empty(), "{:?}", desk.names());

    let said = told(&desk.join(&["--expires", "24h"]));
    for part in [
        "ServiceAccount joined/meridian-reader: created",
        "ClusterRoleBinding meridian-reader-joined: created",
        "token: holds for 24 h, until 20",
        "europe.yaml: created",
        "checked: the new kubeconfig lists Services",
        "next: nodes that watch",
        "warning: the server is a loopback address",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("eyJ"), "a token is shown: {said}");
    assert_eq!(desk.names(), ["europe.yaml"]);
    let mode = fs::metadata(desk.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // A node lives on it.
    admin.create(namespace("joined-shop")).unwrap();
    let hostname = "www.joined-shop.j.example";
    let annotations = [
        ("meridian-dns.io/hostname", hostname),
        ("meridian-dns.io/health-check", "none"),
    ];
    let name = ("joined-shop", "web");
    admin
        .create(service(name, &annotations, &["192.0.2.91"]))
        .unwrap();
    let file = desk.file();
    let member = Member {
        name: "europe",
        region: CONTINENTS[0].region,
        kubeconfig: Some((&file, "europe")),
    };
    let node = Meridian::start(&[member], ZONE);
    let clients = CONTINENTS[0].clients;
    node.wait_answer(hostname, clients, &["192.0.2.91"], PATIENCE);
    admin
        .patch_status(SERVICE, name, &load_balancer(&["192.0.2.92"]))
        .unwrap();
    node.wait_answer(hostname, clients, &["192.0.2.92"], PATIENCE);
    let cluster = node.api("/api/v1/clusters/europe");
    for kind in cluster["kubernetes"]["kinds"].as_array().unwrap() {
        assert_ne!(kind["state"], "refused", "{kind}");
    }

    // And may do nothing else.
    let reader = desk.reader();
    assert!(reader.list(SLICE, "").is_ok());
    forbidden("to list Secrets", reader.list(SECRET, ""));
    forbidden("to read a Secret", reader.get(SECRET, "joined", "any"));
    forbidden("to read a ConfigMap", reader.list(("v1", "ConfigMap"), ""));
    forbidden("to read Pods", reader.list(("v1", "Pod"), ""));
    forbidden("to read accounts", reader.list(ACCOUNT, "joined"));
    forbidden("to make a namespace", reader.create(namespace("joined-2")));
    forbidden("to delete", reader.delete(SERVICE, name.0, name.1));
    forbidden("to get a token", reader.token("joined", "meridian-reader"));
    let change = json!({"metadata": {"labels": {"a": "b"}}});
    forbidden("to change a Service", reader.patch(SERVICE, name, &change));
    let status = load_balancer(&["192.0.2.93"]);
    forbidden(
        "to change its status",
        reader.patch_status(SERVICE, name, &status),
    );
    let all = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    forbidden(
        "to raise its rights",
        reader.patch(ROLE, ("", "meridian-reader-joined"), &all),
    );

    // A second time makes nothing anew but the token.
    let before = fs::read(desk.file()).unwrap();
    let again = desk.join(&["--expires", "30m", "--output", "json"]);
    let again: Value = serde_json::from_str(&told(&again)).unwrap();
    let deeds = again["objects"].as_array().unwrap();
    assert_eq!(deeds.len(), 4);
    assert!(
        deeds.iter().all(|step| step["deed"] == "unchanged"),
        "{again}"
    );
    assert_eq!(again["file"]["deed"], "changed");
    assert!(
        again["expires"].as_str().unwrap().starts_with("20"),
        "{again}"
    );
    assert_ne!(fs::read(desk.file()).unwrap(), before);
}

#[test]
fn a_token_without_an_end_is_waited_for_and_kept() {
    let cluster = &shared()[1];
    let desk = Desk::new(cluster, "lasting");
    let admin = cluster.admin();
    let first = thread::scope(|scope| {
        scope.spawn(|| fill_secret(admin, "lasting"));
        desk.join(&[])
    });
    let said = told(&first);
    assert!(
        said.contains("Secret lasting/meridian-reader-token: created"),
        "{said}"
    );
    assert!(desk.reader().list(SERVICE, "").is_ok());
    forbidden("to read Secrets", desk.reader().list(SECRET, "lasting"));

    // Another time changes nothing, in the cluster or in the folder.
    let version = |kind, namespace, name| {
        let found = admin.get(kind, namespace, name).unwrap();
        found.metadata.resource_version.unwrap()
    };
    let versions = || {
        [
            version(NAMESPACE, "", "lasting"),
            version(ACCOUNT, "lasting", "meridian-reader"),
            version(SECRET, "lasting", "meridian-reader-token"),
            version(ROLE, "", "meridian-reader-lasting"),
            version(BINDING, "", "meridian-reader-lasting"),
        ]
    };
    let text = fs::read_to_string(desk.file()).unwrap();
    let before = versions();
    let said = told(&desk.join(&[]));
    assert_eq!(said.matches(": unchanged").count(), 6, "{said}");
    assert_eq!(versions(), before);
    assert_eq!(fs::read_to_string(desk.file()).unwrap(), text);

    // To standard output comes the kubeconfig and nothing else.
    let admin_words = desk.admin();
    let mut args = vec!["cluster", "join", "--file", "-"];
    args.extend(admin_words.iter().map(String::as_str));
    let written = meridian(&args);
    assert_eq!(told(&written), text);
    assert!(complained(&written, 0).contains("unchanged"), "{written:?}");

    // What others made of the rights is not overwritten.
    let mut role = json!({
        "apiVersion": ROLE.0, "kind": ROLE.1, "metadata": {"name": "meridian-reader-lasting"},
        "rules": [{"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list", "watch"]}],
    });
    admin.apply(&role).unwrap();
    let why = complained(&desk.join(&[]), 1);
    assert!(
        why.contains(
            "ClusterRole meridian-reader-lasting is there, and somebody else keeps it otherwise"
        ),
        "{why}"
    );
    assert!(why.contains("meridian-tests"), "{why}");
    role["rules"] = json!([]);
    admin.apply(&role).unwrap();

    // Leaving takes all of it away, and may be said again.
    let admin_words = desk.admin();
    let folder = desk.folder.path().to_str().unwrap();
    let mut args = vec!["cluster", "leave", cluster.name(), "--directory", folder];
    args.extend(admin_words.iter().map(String::as_str));
    let said = told(&meridian(&args));
    assert_eq!(said.matches(": deleted").count(), 5, "{said}");
    assert!(desk.names().is_empty());
    for (kind, namespace, name) in [
        (ACCOUNT, "lasting", "meridian-reader"),
        (SECRET, "lasting", "meridian-reader-token"),
        (ROLE, "", "meridian-reader-lasting"),
        (BINDING, "", "meridian-reader-lasting"),
    ] {
        let gone = admin.get(kind, namespace, name);
        assert_eq!(gone.unwrap_err().code(), Some(404), "{name}");
    }
    assert!(
        admin.get(NAMESPACE, "", "lasting").is_ok(),
        "it may be others' too"
    );
    let said = told(&meridian(&args));
    assert_eq!(said.matches(": not there").count(), 9, "{said}");
}

#[test]
fn without_a_token_controller_a_token_with_an_end_is_suggested() {
    let desk = Desk::new(&shared()[2], "unfilled");
    let why = complained(&desk.join(&[]), 1);
    assert!(
        why.contains("Secret unfilled/meridian-reader-token has no token after 10 s"),
        "{why}"
    );
    assert!(why.contains("--expires 8760h"), "{why}");
    // Who waits is told so.
    let waiting = "waiting for the cluster to fill Secret unfilled/meridian-reader-token";
    assert!(why.contains(waiting), "{why}");
    assert!(desk.names().is_empty());
}

#[test]
fn what_stands_in_the_way_is_said() {
    let cluster = &shared()[2];
    let desk = Desk::new(cluster, "refused");
    let viewer = cluster.kubeconfig(User::Viewer);
    let admin = cluster.kubeconfig(User::Admin);
    let [viewer, admin] = [viewer, admin].map(|file| file.to_str().unwrap().to_owned());
    let folder = desk.folder.path().to_str().unwrap();
    let missing = desk.folder.path().join("missing");
    let missing = missing.to_str().unwrap();
    // A server that nobody serves, a name that is none, and a file that is not ours.
    let dead = desk.folder.path().join("dead");
    let text = fs::read_to_string(&admin).unwrap();
    let url = cluster.api().url();
    fs::write(
        &dead,
        text.replace(&url, "https://127.0.0.1:9")
            .replace("\"asia\"", "\"A_sia\""),
    )
    .unwrap();
    let dead = dead.to_str().unwrap();
    fs::write(
        desk.folder.path().join("other.yaml"),
        text.replace(&url, "https://192.0.2.1"),
    )
    .unwrap();
    fs::write(desk.folder.path().join("notes.yaml"), "notes").unwrap();
    let names = desk.names();
    for (args, parts) in [
        (
            vec!["--kubeconfig", &viewer, "--directory", folder],
            vec![
                &*url,
                "cannot look at Namespace refused",
                "lacks the right to get namespaces",
                "User \"viewer\"",
            ],
        ),
        (
            vec![
                "--kubeconfig",
                &admin,
                "--context",
                "aisa",
                "--directory",
                folder,
            ],
            vec!["has no context `aisa`; did you mean `asia`?"],
        ),
        (
            vec!["--kubeconfig", missing, "--directory", folder],
            vec!["--kubeconfig: ", "missing: cannot read: No such file"],
        ),
        (
            vec!["--kubeconfig", &admin, "--directory", missing],
            vec!["missing: there is no such directory"],
        ),
        (
            vec![
                "--kubeconfig",
                &admin,
                "--name",
                "other",
                "--directory",
                folder,
            ],
            vec!["other.yaml: is there for another server, https://192.0.2.1; it is left alone"],
        ),
        (
            vec![
                "--kubeconfig",
                &admin,
                "--name",
                "notes",
                "--directory",
                folder,
            ],
            vec!["notes.yaml: is there, and is no kubeconfig"],
        ),
        (
            vec!["--kubeconfig", dead, "--directory", folder],
            vec!["`A_sia` is no name of a cluster; give one with --name"],
        ),
        (
            vec![
                "--kubeconfig",
                dead,
                "--name",
                "dead",
                "--directory",
                folder,
            ],
            vec![
                "https://127.0.0.1:9: the API server cannot be reached",
                "refused",
            ],
        ),
    ] {
        let whole = [&["cluster", "join", "--namespace", "refused"][..], &args].concat();
        let why = complained(&meridian(&whole), 1);
        assert_eq!(why.trim_end().lines().count(), 1, "{why}");
        for part in parts {
            assert!(why.contains(part), "{args:?}: {part}: {why}");
        }
    }
    for args in [
        vec!["--kubeconfig", &admin],
        vec!["--kubeconfig", &admin, "--directory", folder, "--file", "-"],
        vec![
            "--kubeconfig",
            &admin,
            "--directory",
            folder,
            "--expires",
            "1m",
        ],
        vec!["--kubeconfig", &admin, "--file", "-", "--output", "json"],
        vec![
            "--kubeconfig",
            &admin,
            "--directory",
            folder,
            "--namespace",
            "A/b",
        ],
    ] {
        let whole = [&["cluster", "join"][..], &args].concat();
        complained(&meridian(&whole), 2);
    }
    // Nothing was made of all that.
    assert_eq!(desk.names(), names);
    assert!(cluster.admin().get(NAMESPACE, "", "refused").is_err());

    // The same server by two names would be answered twice.
    let again = desk.join(&["--name", "again", "--dry-run", "--expires", "1h"]);
    assert!(!told(&again).contains("asia.yaml"), "{again:?}");
    fs::write(desk.file(), &text).unwrap();
    let again = told(&desk.join(&["--name", "again", "--dry-run", "--expires", "1h"]));
    assert!(
        again.contains("asia.yaml leads to the same server: nodes that follow both"),
        "{again}"
    );
    fs::remove_file(desk.file()).unwrap();

    let leave = |args: &[&str]| meridian(&[&["cluster", "leave"][..], args].concat());
    let why = complained(&leave(&["asia", "--kubeconfig", &viewer]), 1);
    assert!(why.contains("the rights are still there"), "{why}");
    assert!(
        why.contains("lacks the right to delete secrets in namespace meridian"),
        "{why}"
    );
    let why = complained(&leave(&["noets", "--directory", folder]), 1);
    assert!(
        why.contains("noets.yaml: is not there; did you mean notes?"),
        "{why}"
    );
    let why = complained(
        &leave(&["other", "--directory", folder, "--kubeconfig", &admin]),
        1,
    );
    assert!(
        why.contains("other.yaml: leads to https://192.0.2.1, and --kubeconfig to"),
        "{why}"
    );
    complained(&leave(&["asia"]), 2);
    complained(&leave(&["../asia", "--directory", folder]), 2);
    assert_eq!(desk.names(), names);
}

#[test]
fn leaving_waits_until_no_node_has_the_cluster() {
    let cluster = &shared()[1];
    let desk = Desk::new(cluster, "leaving");
    let admin = cluster.admin();
    told(&desk.join(&["--expires", "1h"]));
    admin.create(namespace("leaving-shop")).unwrap();
    let hostname = "www.leaving-shop.j.example";
    let annotations = [
        ("meridian-dns.io/hostname", hostname),
        ("meridian-dns.io/health-check", "none"),
    ];
    let object = service(("leaving-shop", "web"), &annotations, &["192.0.2.94"]);
    admin.create(object).unwrap();
    let file = desk.file();
    let member = Member {
        name: cluster.name(),
        region: CONTINENTS[1].region,
        kubeconfig: Some((&file, cluster.name())),
    };
    let mut node = Meridian::start(&[member], ZONE);
    node.wait_answer(hostname, CONTINENTS[1].clients, &["192.0.2.94"], PATIENCE);

    let url = format!("http://{}", node.node().http());
    let folder = desk.folder.path().to_str().unwrap();
    let admin_words = desk.admin();
    let mut args = vec!["cluster", "leave", cluster.name(), "--server", &url];
    args.extend(["--directory", folder]);
    args.extend(admin_words.iter().map(String::as_str));
    // It has no other cluster, so that the node keeps it: the rights stay too.
    let short = [&args[..], &["--timeout", "1s"]].concat();
    let why = complained(&meridian(&short), 3);
    // Other tests may have names in it too.
    for part in [
        "still has it, for names that have no other cluster: ",
        "web.leaving-shop.j.example",
    ] {
        assert!(why.contains(part), "{why}");
    }
    assert!(admin.get(BINDING, "", "meridian-reader-leaving").is_ok());
    assert!(!Path::new(&file).exists());

    let child = Command::new(env!("CARGO_BIN_EXE_meridian"))
        .args(&args)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let config = node.node().config();
    let without: Vec<&str> = config
        .lines()
        .filter(|line| !line.starts_with("clusters:"))
        .collect();
    node.node().write_config(&without.join("\n"));
    node.node().process().signal("HUP");
    let said = told(&child.wait_with_output().unwrap());
    assert!(said.contains("no node has it"), "{said}");
    assert!(admin.get(BINDING, "", "meridian-reader-leaving").is_err());
}

#[test]
fn rights_to_write_events_come_on_top_and_go_with_the_others() {
    let desk = Desk::new(&shared()[2], "writing");
    let check = |said: String, deed: &str| {
        for object in [
            "ClusterRole meridian-event-writer-writing",
            "ClusterRoleBinding meridian-event-writer-writing",
            "Role writing/meridian-event-writer",
            "RoleBinding writing/meridian-event-writer",
        ] {
            let line = format!("{object}: {deed}");
            assert!(said.contains(&line), "{line}: {said}");
        }
    };
    // That the new token may do it is checked on the way.
    check(
        told(&desk.join(&["--expires", "24h", "--write-back"])),
        "created",
    );
    let words = desk.admin();
    let mut args = vec!["cluster", "leave", desk.cluster.name()];
    args.extend(words.iter().map(String::as_str));
    args.extend(["--directory", desk.folder.path().to_str().unwrap()]);
    check(told(&meridian(&args)), "deleted");
}
