//! `docs/kubernetes.md`, walked from its beginning to its end: each of its commands is run, in its order.
//!
//! Programs are run as they are. kubectl is played, for no test machine has it: what it would send goes through a client by the
//! same kubeconfig, and what of it is not known here is a fault.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use data_encoding::BASE64;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cluster::Cluster;
use crate::harness::packages::{DIG, need};
use crate::harness::process::Process;
use crate::harness::{loopback, wait_for};
use crate::keys::User;
use crate::kinds::{ACCOUNT, BINDING, SECRET, SERVICE, load_balancer, object};
use crate::objects::Admin;

/// How long a command may take to do what the document says.
const PATIENCE: Duration = Duration::from_secs(20);
/// The address that the load balancer's controller gives.
const ADDRESS: &str = "192.0.2.97";

/// A reader at the keyboard, in an empty folder with a kubeconfig.
struct Reader {
    cluster: Cluster,
    folder: TempDir,
    /// Stands for 127.0.0.1, which others use too.
    address: String,
    node: Option<Process>,
}

/// One thing of the document, in its order.
enum Part {
    /// A command.
    Command(String),
    /// A file, by what it has.
    Yaml(String),
}

/// Reads the document's blocks.
fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    for block in text.split("\n```").skip(1).step_by(2) {
        let (kind, body) = block.split_once('\n').unwrap();
        match kind {
            "yaml" => parts.push(Part::Yaml(format!("{body}\n"))),
            "console" => parts.extend(body.lines().map(|line| {
                let command = line.strip_prefix("$ ").expect("commands alone");
                Part::Command(command.to_owned())
            })),
            other => panic!("a block of {other:?}"),
        }
    }
    parts
}

/// Splits a command into words; double quotes hold words together.
fn in_words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in command.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            letter => words.last_mut().unwrap().push(letter),
        }
    }
    words
}

impl Reader {
    fn new() -> Self {
        let cluster = Cluster::start("europe");
        let folder = tempfile::tempdir().unwrap();
        fs::copy(
            cluster.kubeconfig(User::Admin),
            folder.path().join("admin.yaml"),
        )
        .unwrap();
        let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/kubernetes");
        let copies = folder.path().join("deploy/kubernetes");
        fs::create_dir_all(&copies).unwrap();
        for entry in fs::read_dir(manifests).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), copies.join(entry.file_name())).unwrap();
        }
        Self {
            cluster,
            folder,
            address: loopback().to_string(),
            node: None,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file of the document. Those that only show something are left out.
    fn write(&self, text: &str) {
        let text = text.replace("127.0.0.1", &self.address);
        let name = match () {
            () if text.starts_with("version: 1\n") => "meridian.yaml",
            () if text.contains("kind: Namespace") => "web.yaml",
            () => return,
        };
        fs::write(self.path(name), text).unwrap();
    }

    /// Runs a program in the folder.
    fn run(&self, program: &str, args: &[String]) -> Output {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.folder.path());
        let server = format!("http://{}:8053", self.address);
        command.env("MERIDIAN_SERVER", server).output().unwrap()
    }

    /// Does what a command of the document says.
    fn follow(&mut self, command: &str) {
        let words = in_words(&command.replace("127.0.0.1", &self.address));
        let (program, args) = words.split_first().unwrap();
        match (program.as_str(), args.first().map_or("", String::as_str)) {
            ("meridian", "run") => self.serve(args),
            ("meridian", "cluster") if args[1] == "leave" => {
                // Outside of the document its nodes' servers are named by an environment that this reader has.
                let output = Command::new(env!("CARGO_BIN_EXE_meridian"))
                    .args(args)
                    .current_dir(self.folder.path())
                    .output();
                well(command, &output.unwrap());
            }
            // What a change leads to may take a moment.
            ("meridian", "status" | "explain") => {
                wait_for(command, PATIENCE, || {
                    let output = self.run(env!("CARGO_BIN_EXE_meridian"), args);
                    output.status.success().then_some(())
                });
            }
            ("meridian", _) => well(command, &self.run(env!("CARGO_BIN_EXE_meridian"), args)),
            ("dig", _) => {
                need(&[DIG]);
                wait_for(command, PATIENCE, || {
                    let output = self.run("dig", args);
                    (output.stdout == format!("{ADDRESS}\n").as_bytes()).then_some(())
                });
            }
            ("mkdir" | "sed", _) => well(command, &self.run(program, args)),
            ("kubectl", _) => self.kubectl(args),
            _ => panic!("no test runs `{command}`"),
        }
    }

    /// Starts the node, which goes on while the rest is read.
    fn serve(&mut self, args: &[String]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_meridian"));
        command.args(args).current_dir(self.folder.path());
        self.node = Some(Process::start("meridian", self.folder.path(), &mut command));
    }

    /// Plays kubectl: `apply --server-side -f FILE`, `annotate service NAME KEY=VALUE`, `create secret generic NAME --from-file KEY=FILE`
    /// and `label secret NAME KEY=VALUE`.
    fn kubectl(&self, args: &[String]) {
        let mut namespace = "default";
        let mut rest = Vec::new();
        let mut words = args.iter().map(String::as_str);
        let mut admin = None;
        while let Some(word) = words.next() {
            match word {
                "--kubeconfig" => {
                    let file = self.path(words.next().unwrap());
                    admin = Some(Admin::new(&file, self.cluster.name()));
                }
                "--namespace" => namespace = words.next().unwrap(),
                word => rest.push(word),
            }
        }
        let admin = admin.expect("a kubeconfig");
        match rest[..] {
            ["apply", "--server-side", "-f", file] => {
                let text = fs::read_to_string(self.path(file)).unwrap();
                for text in text.split("\n---\n") {
                    let object: Value = serde_saphyr::from_str(text).unwrap();
                    admin.apply_strictly(&object).unwrap();
                }
            }
            ["annotate", "service", name, annotation] => {
                let (key, value) = annotation.split_once('=').unwrap();
                let patch = json!({"metadata": {"annotations": {key: value}}});
                let place = (namespace, name);
                admin.patch(SERVICE, place, &patch).unwrap();
                // What the cloud's controller does by itself.
                admin
                    .patch_status(SERVICE, place, &load_balancer(&[ADDRESS]))
                    .unwrap();
            }
            ["create", "secret", "generic", name, "--from-file", pair] => {
                let (key, file) = pair.split_once('=').unwrap();
                let mut secret = object(SECRET, namespace, name);
                let content = fs::read(self.path(file)).unwrap();
                secret["data"] = json!({key: BASE64.encode(&content)});
                admin.create(secret).unwrap();
            }
            ["label", "secret", name, label] => {
                let (key, value) = label.split_once('=').unwrap();
                let patch = json!({"metadata": {"labels": {key: value}}});
                admin.patch(SECRET, (namespace, name), &patch).unwrap();
            }
            _ => panic!("no test plays `kubectl {args:?}`"),
        }
    }
}

/// Fails when a command has failed.
fn well(command: &str, output: &Output) {
    assert!(
        output.status.success(),
        "`{command}` fails: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_document_leads_from_nothing_to_an_annotated_service() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/kubernetes.md");
    let text = fs::read_to_string(document).unwrap();
    let mut reader = Reader::new();
    let mut commands = 0;
    for part in parts(&text) {
        match part {
            Part::Yaml(text) => reader.write(&text),
            Part::Command(command) => {
                reader.follow(&command);
                commands += 1;
            }
        }
    }
    assert!(commands >= 19, "{commands}");
    // It has left at the end, and the manifests were applied after that.
    assert!(!reader.path("clusters.d/europe.yaml").exists());
    let admin = reader.cluster.admin();
    assert!(admin.get(ACCOUNT, "meridian", "meridian-reader").is_ok());
    assert!(admin.get(BINDING, "", "meridian-reader").is_ok());
    let manifest = admin
        .get(("apps/v1", "DaemonSet"), "meridian", "meridian")
        .unwrap();
    let image = &manifest.data["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "registry.example.com/meridian:0.1.0");
    let mut node = reader.node.take().expect("a running node");
    node.assert_running();
}
