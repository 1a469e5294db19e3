//! The commands that talk to nodes, with two real nodes that are each other's peers.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::node::meridian;
use crate::harness::packages::{SCRIPT, need};
use crate::harness::process::Process;
use crate::harness::raw_http::Web;
use crate::harness::{loopback, wait_for};
use crate::samples::FIVE;

/// How long nodes may take to start and to find each other.
const PATIENCE: Duration = Duration::from_secs(20);

/// Two nodes, and a token of each role.
struct Pair {
    folder: TempDir,
    http: [SocketAddr; 2],
    nodes: [Option<Process>; 2],
}

impl Pair {
    /// Starts both, and waits until they have heard of each other.
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for role in ["operator", "viewer", "peer"] {
            let made = meridian(&["token", "--output", "json"]);
            let made: Value = serde_json::from_slice(&made.stdout).unwrap();
            let write = |name: String, key: &str| {
                std::fs::write(folder.path().join(name), made[key].as_str().unwrap()).unwrap();
            };
            write(format!("{role}.token"), "token");
            write(format!("{role}.hash"), "line");
        }
        let http = [(); 2].map(|()| SocketAddr::new(loopback(), 8053));
        let mut pair = Self {
            folder,
            http,
            nodes: [None, None],
        };
        for at in 0..2 {
            pair.run(at);
        }
        wait_for("peers in step", PATIENCE, || {
            let (_, out, _) = pair.ask(&["status", "peers", "-o", "json"], None);
            let peers: Value = serde_json::from_str(&out).ok()?;
            (peers["items"][0]["inStep"] == true).then_some(())
        });
        pair
    }

    /// Starts one.
    fn run(&mut self, at: usize) {
        let path = self.folder.path().join(format!("n{at}.yaml"));
        let services = FIVE
            .replace("    file: svc.mesh.zone\n", "    ttl: 1\n")
            .replace("ttl: 10\n", "ttl: 1\n");
        let text = format!(
            "version: 1
node: {{name: n{at}, stateDirectory: state{at}}}
dns: {{listen: [\"{}:53\"], workers: 1}}
admin:
  listen: [\"{}\"]
  tokens: [{{name: ops, file: operator.hash, role: operator}}, {{name: eyes, file: viewer.hash, role: viewer}}, {{name: other, file: peer.hash, role: peer}}]
peers: [{{url: \"http://{}\", tokenFile: peer.token}}]
{services}",
            loopback(),
            self.http[at],
            self.http[1 - at]
        );
        std::fs::write(&path, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_meridian"));
        command.arg("run").arg("--config").arg(&path);
        let mut process = Process::start(&format!("n{at}"), self.folder.path(), &mut command);
        wait_for("readyz", PATIENCE, || {
            process.assert_running();
            let stream = std::net::TcpStream::connect(self.http[at]).is_ok();
            (stream && Web::get(self.http[at], "/readyz").send().status == 200).then_some(())
        });
        self.nodes[at] = Some(process);
    }

    /// Gives the URL of one.
    fn url(&self, at: usize) -> String {
        format!("http://{}", self.http[at])
    }

    /// Makes a command with both nodes, and a token.
    fn command(&self, args: &[&str], token: Option<&str>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_meridian"));
        command
            .args(args)
            .args(["--server", &self.url(0), "--server", &self.url(1)])
            .env_remove("MERIDIAN_CONFIG")
            .stdin(Stdio::null());
        if let Some(role) = token {
            let file = self.folder.path().join(format!("{role}.token"));
            command.arg("--token-file").arg(file);
        }
        command
    }

    /// Runs it; gives exit code, standard output and standard error.
    fn ask(&self, args: &[&str], token: Option<&str>) -> (i32, String, String) {
        let output = self.command(args, token).output().unwrap();
        let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).unwrap();
        (
            output.status.code().unwrap(),
            text(&output.stdout),
            text(&output.stderr),
        )
    }

    /// As above, as the operator; must end with a code.
    fn operate(&self, args: &[&str], wanted: i32) -> String {
        let (code, out, err) = self.ask(args, Some("operator"));
        assert_eq!(code, wanted, "{args:?}: {out}{err}");
        format!("{out}{err}")
    }
}

#[test]
fn every_list_comes_in_every_form() {
    let pair = Pair::start();
    for (what, known) in [
        ("clusters", "europe"),
        ("services", "shop/web"),
        ("monitors", ""),
        ("events", ""),
        ("drains", ""),
        ("forces", ""),
        ("challenges", ""),
        ("peers", "n1"),
        ("zones", "svc.mesh"),
        ("sources", "n0.yaml"),
    ] {
        for form in ["table", "wide", "json", "yaml"] {
            let (code, out, err) = pair.ask(&["status", what, "--output", form], None);
            assert_eq!((code, err.as_str()), (0, ""), "{what} {form}: {out}");
            assert!(
                out.contains(known) && !out.contains('\x1b'),
                "{what} {form}: {out}"
            );
            if form == "json" {
                let list: Value = serde_json::from_str(&out).unwrap();
                assert_eq!(
                    list["items"].as_array().unwrap().len() as u64,
                    list["total"].as_u64().unwrap(),
                    "{what}: {out}"
                );
            }
        }
    }
    let (code, out, err) = pair.ask(&["status", "audit"], Some("operator"));
    assert_eq!(code, 0, "{out}{err}");
    for (args, words) in [
        (
            &["services", "--search", "web", "-o", "json"][..],
            "\"total\": 1",
        ),
        (&["services", "--namespace", "none"], "no services"),
        (&["services", "--cluster", "africa"], "shop/web"),
        (&["services", "--state", "down"], "no services"),
        (&["monitors", "--never-succeeded"], "no monitors"),
        (&["monitors", "--verdict", "up"], "no monitors"),
        (&["events", "--kind", "publish", "--severity", "info"], ""),
        (&["clusters", "europe"], "eu-central-1"),
        (&["services", "shop/web"], "192.0.2.14"),
        (&["services", "www.svc.mesh"], "192.0.2.14"),
        (&["zones", "svc.mesh"], "Serial"),
    ] {
        let args = [&["status"], args].concat();
        let (code, out, err) = pair.ask(&args, None);
        assert_eq!(code, 0, "{args:?}: {out}{err}");
        assert!(out.contains(words), "{args:?}: {out}");
    }
    let (_, out, err) = pair.ask(&["status", "services", "--limit", "2", "-o", "json"], None);
    let list: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (
            list["items"].as_array().unwrap().len(),
            list["total"].as_u64()
        ),
        (2, Some(5))
    );
    assert!(err.contains("2 of 5 shown"), "{err}");
    for (args, words) in [
        (&["clusters", "europ"][..], "did you mean `europe`?"),
        (&["services", "shop/wbe"], "did you mean `shop/web`?"),
        (&["services", "ww.svc.mesh"], "did you mean `www.svc.mesh`?"),
        (&["zones", "svc.mash"], "did you mean `svc.mesh`?"),
        (&["drains", "d-1"], "d-1"),
    ] {
        let args = [&["status"], args].concat();
        let (code, out, err) = pair.ask(&args, None);
        assert_eq!((code, out.as_str()), (1, ""), "{args:?}: {err}");
        assert!(err.contains(words), "{args:?}: {err}");
    }
}

#[test]
fn the_summary_is_of_all_nodes_and_names_the_silent_one() {
    let mut pair = Pair::start();
    let (code, out, err) = pair.ask(&["status"], None);
    assert_eq!(code, 0, "{out}{err}");
    for words in ["n0 ", "n1 ", "ready", "Clusters", "Queries", "http://"] {
        assert!(out.contains(words), "`{words}` is not in {out}");
    }
    assert!(!out.contains("PEER"), "{out}");
    pair.nodes[1].take().unwrap().kill();
    let (code, out, _) = pair.ask(&["status"], None);
    assert_eq!(code, 1, "{out}");
    let silent = format!("critical  no word from {}", pair.url(1));
    assert!(out.starts_with(&silent) && out.contains("refused"), "{out}");
    let (code, out, _) = pair.ask(&["status", "-o", "json"], None);
    let summary: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &summary["ok"]), (1, &Value::Bool(false)));
    assert_eq!(summary["nodes"][0]["status"]["node"]["name"], "n0");
    assert!(
        summary["nodes"][1]["error"]
            .as_str()
            .unwrap()
            .contains("refused")
    );
    // Whoever is left answers, and it is said who.
    let first = pair.url(0);
    pair.nodes[0].take().unwrap().kill();
    pair.run(1);
    let (code, out, err) = pair.ask(&["status", "clusters"], None);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("europe"), "{out}");
    assert!(err.contains("answered by") && err.contains(&first), "{err}");
}

#[test]
fn a_drain_is_waited_for_said_again_and_ended() {
    let pair = Pair::start();
    let drain = ["drain", "cluster", "brazil", "--reason", "kernel update"];
    let out = pair.operate(&[&drain[..], &["--wait", "--timeout", "60s"]].concat(), 0);
    assert!(out.starts_with("cluster brazil: "), "{out}");
    assert!(out.trim_end().ends_with("safe to stop"), "{out}");
    assert!(out.contains("waiting") && !out.contains('\r'), "{out}");
    let again = pair.operate(&drain, 0);
    assert!(
        again.contains("already drained since") && again.contains("ops: kernel update"),
        "{again}"
    );
    let (_, out, _) = pair.ask(&["status", "drains", "-o", "json"], None);
    let drains: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(drains["items"][0]["state"], "safe", "{out}");
    let id = drains["items"][0]["id"].as_str().unwrap().to_owned();
    let (_, out, _) = pair.ask(&["status", "drains", &id], None);
    assert!(
        out.contains("n0") && out.contains("n1") && out.contains("safe to stop"),
        "{out}"
    );
    let (_, out, _) = pair.ask(&["status"], None);
    assert!(out.contains("cluster brazil: safe to stop"), "{out}");
    let undrain = ["undrain", "cluster", "brazil", "--reason", "done"];
    assert!(pair.operate(&undrain, 0).contains("no longer drained"));
    assert!(
        pair.operate(&undrain, 0)
            .contains("not drained, nothing to end")
    );
    assert!(
        pair.operate(&["undrain", &id, "--reason", "done"], 0)
            .contains("no longer drained")
    );
    let (_, out, _) = pair.ask(&["status", "drains", "--all"], None);
    assert!(out.contains("ended"), "{out}");
    let (_, out, _) = pair.ask(&["status", "audit", "-o", "json"], Some("operator"));
    let audit: Value = serde_json::from_str(&out).unwrap();
    let actions: Vec<&str> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["action"].as_str())
        .collect();
    assert!(
        actions.contains(&"drain") && actions.contains(&"undrain"),
        "{actions:?}"
    );
    // Words for machines stand alone.
    let announce = [
        "drain",
        "service",
        "shop/web",
        "--cluster",
        "asia",
        "--reason",
        "x",
        "--in",
        "1h",
        "--for",
        "2h",
        "-o",
        "yaml",
    ];
    let out = pair.operate(&announce, 0);
    assert!(
        out.contains("state: announced") && out.contains("safeToStop: false"),
        "{out}"
    );
}

#[test]
fn what_cannot_become_safe_is_told_with_what_blocks_it() {
    let mut pair = Pair::start();
    let held = [
        "drain",
        "service",
        "shop/alias",
        "--reason",
        "x",
        "--wait",
        "--timeout",
        "30s",
    ];
    let out = pair.operate(&held, 3);
    assert!(
        out.contains("cannot become safe") && out.contains("shop/alias"),
        "{out}"
    );
    pair.nodes[1].take().unwrap().kill();
    let cut = [
        "drain",
        "cluster",
        "africa",
        "--reason",
        "x",
        "--wait",
        "--timeout",
        "3s",
    ];
    let out = pair.operate(&cut, 3);
    assert!(
        out.contains("not safe within 3 s") && out.contains(&pair.url(1)),
        "{out}"
    );
    assert!(out.contains("it stays drained"), "{out}");
    // The node that was not given is asked by its peer, and blocks all the same.
    let token = pair.folder.path().join("operator.token");
    let url = pair.url(0);
    let alone = [
        &cut[..],
        &[
            "--server",
            &url,
            "--token-file",
            token.to_str().unwrap(),
            "-o",
            "json",
        ],
    ]
    .concat();
    let output = meridian(&alone);
    assert_eq!(output.status.code(), Some(3));
    let last: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(last["safeToStop"], false);
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("not safe within"),
        "{output:?}"
    );
}

#[test]
fn a_force_is_set_said_again_turned_and_cleared() {
    let pair = Pair::start();
    let address = ["endpoint", "europe", "192.0.2.1", "--reason", "wrong"];
    let force = |verb: &'static str| [&["force", verb][..], &address].concat();
    assert!(
        pair.operate(&force("down"), 0)
            .contains("forced down until somebody ends it")
    );
    assert!(
        pair.operate(&force("down"), 0)
            .contains("already forced down since")
    );
    let out = pair.operate(&[force("up"), vec!["--for", "1h"]].concat(), 0);
    assert!(out.contains("forced up until in "), "{out}");
    let (_, out, _) = pair.ask(&["status", "forces"], None);
    assert!(out.contains("endpoint 192.0.2.1 of europe"), "{out}");
    assert!(
        pair.operate(&force("clear"), 0)
            .contains("no longer forced")
    );
    let unforce = [&["unforce"][..], &address].concat();
    assert!(
        pair.operate(&unforce, 0)
            .contains("not forced, nothing to end")
    );
}

#[test]
fn refusals_say_which_role_and_which_name() {
    let pair = Pair::start();
    let drain = ["drain", "cluster", "brasil", "--reason", "x"];
    for (token, words) in [
        (
            None,
            &["wants a token", "role operator", "meridian token"][..],
        ),
        (
            Some("viewer"),
            &["role operator is needed", "meridian token"],
        ),
        (Some("operator"), &["brasil", "did you mean `brazil`?"]),
    ] {
        let (code, out, err) = pair.ask(&drain, token);
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        for word in words {
            assert!(err.contains(word), "{token:?}: `{word}` is not in {err}");
        }
    }
    let out = pair.operate(&["undrain", "cluster", "brasil", "--reason", "x"], 1);
    assert!(out.contains("did you mean `brazil`?"), "{out}");
    let out = pair.operate(&["undrain", "brazil", "--reason", "x"], 1);
    assert!(out.contains("write `cluster` before it"), "{out}");
    let out = pair.operate(&["drain", "service", "shop/wbe", "--reason", "x"], 1);
    assert!(out.contains("did you mean `shop/web`?"), "{out}");
}

#[test]
fn a_node_explains_as_the_configuration_does() {
    let pair = Pair::start();
    let ask = [
        "explain",
        "www.svc.mesh",
        "--client",
        "46.114.0.0/24",
        "-o",
        "json",
    ];
    let (code, online, err) = pair.ask(&ask, None);
    assert_eq!(code, 0, "{err}");
    let config = pair.folder.path().join("n0.yaml");
    let offline = meridian(&[&ask[..], &["--config", config.to_str().unwrap()]].concat());
    let online: Value = serde_json::from_str(&online).unwrap();
    let offline: Value = serde_json::from_slice(&offline.stdout).unwrap();
    let keys = |value: &Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(&online), keys(&offline));
    for key in [
        "name", "type", "client", "rcode", "cluster", "ttl", "scope", "answer",
    ] {
        assert_eq!(online[key], offline[key], "{key}");
    }
    assert!(online["steps"][0].is_string(), "{online}");
}

/// Sends SIGINT, as Ctrl-C does.
fn interrupt(pid: u32) {
    let sent = Command::new("kill")
        .args(["-s", "INT", &pid.to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

#[test]
fn watching_appends_in_a_pipe_and_ends_well() {
    let pair = Pair::start();
    let mut child = pair
        .command(&["status", "--watch=1", "-o", "json"], None)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        let line = lines.next().unwrap().unwrap();
        let summary: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(summary["nodes"].as_array().unwrap().len(), 2, "{line}");
    }
    interrupt(child.id());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn watching_redraws_in_place_on_a_terminal() {
    need(&[SCRIPT]);
    let pair = Pair::start();
    let log = pair.folder.path().join("typescript");
    let program = env!("CARGO_BIN_EXE_meridian");
    let pid = pair.folder.path().join("pid");
    let line = format!(
        "echo $$ > {}; exec {program} status clusters --watch=1 --server {}",
        pid.display(),
        pair.url(0)
    );
    let mut child = Command::new(SCRIPT.0)
        .args(["--quiet", "--flush", "--return", "--command", &line])
        .arg(&log)
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let shown =
        |log: &Path| std::fs::read(log).map(|octets| String::from_utf8_lossy(&octets).into_owned());
    wait_for("two frames", PATIENCE, || {
        let text = shown(&log).ok()?;
        (text.matches("europe").count() >= 2).then_some(())
    });
    interrupt(
        std::fs::read_to_string(&pid)
            .unwrap()
            .trim()
            .parse()
            .unwrap(),
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let text = shown(&log).unwrap();
    let (enter, leave) = (text.find("\x1b[?1049h"), text.rfind("\x1b[?1049l"));
    assert!(enter.unwrap() < leave.unwrap(), "{text:?}");
    assert!(
        text.contains("\x1b[?25h") && text.contains("Ctrl-C ends it"),
        "{text:?}"
    );
}
