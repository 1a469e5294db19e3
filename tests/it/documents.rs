//! Every command in a document is run here, or is one of the README's two that run this very test.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::harness::node::{Node, meridian};

/// Commands that a test runs elsewhere, or that only make sense on the reader's machine, by their first words.
const KNOWN: &[&str] = &[
    "cargo run --release -- demo",
    "cargo install --path .",
    "cargo test --release",
    "cargo bench",
    "dig ",
    "systemctl ",
    "sudo ",
];

/// Lists the commands of a document: lines of `console` blocks that begin with `$`.
fn commands(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("```") {
            inside = !inside && kind == "console";
        } else if inside && let Some(command) = line.strip_prefix("$ ") {
            found.push(command.to_owned());
        }
    }
    found
}

/// Commands that ask a node.
const ASK_A_NODE: &[&str] = &["status", "drain", "undrain", "force", "unforce"];

/// A node that serves the document's configuration, and whoever may operate it.
struct Operated {
    node: Node,
    token: PathBuf,
}

impl Operated {
    /// Starts it. What the document listens on is somebody else's.
    fn start(yaml: &str) -> Self {
        let rest: String = yaml
            .lines()
            .filter(|line| {
                !["version:", "node:", "dns:"]
                    .iter()
                    .any(|key| line.starts_with(key))
            })
            .map(|line| format!("{line}\n"))
            .collect();
        let mut node = Node::start(&rest);
        let output = meridian(&["token", "--output", "json"]);
        let token: Value = serde_json::from_slice(&output.stdout).unwrap();
        let path = node.folder().join("token");
        std::fs::write(&path, token["token"].as_str().unwrap()).unwrap();
        std::fs::write(node.folder().join("hash"), token["line"].as_str().unwrap()).unwrap();
        let plain = format!("admin: {{listen: [\"{}\"]}}", node.http());
        let admin = plain.replace('}', ", tokens: [{name: ann, file: hash, role: operator}]}");
        let text = node.config().replace(&plain, &admin);
        node.kill();
        node.write_config(&text);
        node.spawn();
        Self { node, token: path }
    }

    /// Runs a command against it.
    fn ask(&self, args: &[&str]) -> std::process::Output {
        let server = format!("http://{}", self.node.http());
        let mut args = args.to_vec();
        if let Some(at) = args.iter().position(|arg| *arg == "--server") {
            args[at + 1] = &server;
        }
        Command::new(env!("CARGO_BIN_EXE_meridian"))
            .args(args)
            .env("MERIDIAN_SERVER", &server)
            .env("MERIDIAN_TOKEN_FILE", &self.token)
            .output()
            .unwrap()
    }
}

/// Splits a command into words; double quotes hold words together.
fn in_words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in command.chars() {
        match c {
            '"' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}

/// Gives the first `yaml` block of a document.
fn first_yaml(text: &str) -> Option<&str> {
    text.split_once("```yaml\n")?
        .1
        .split_once("```")
        .map(|(yaml, _)| yaml)
}

#[test]
fn the_readme_holds_what_it_promises() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let all = commands(&readme);
    assert_eq!(
        all.first().map(String::as_str),
        Some("cargo run --release -- demo")
    );
    assert_eq!(all.get(1).map(String::as_str), Some("cargo test --release"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("meridian.yaml"),
        first_yaml(&readme).expect("a configuration"),
    )
    .unwrap();
    let node = Operated::start(first_yaml(&readme).unwrap());
    for command in all {
        if KNOWN.iter().any(|known| command.starts_with(known)) {
            continue;
        }
        let words = in_words(&command);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(words.first(), Some(&"meridian"), "no test runs `{command}`");
        // `run` serves until stopped and `delegation` asks the world: their arguments are checked by their siblings.
        let args: Vec<String> = words[1..]
            .iter()
            .map(|word| {
                word.replace(
                    "meridian.yaml",
                    folder.path().join("meridian.yaml").to_str().unwrap(),
                )
            })
            .collect();
        let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
        match args.first() {
            Some(&"run") => args[0] = "check",
            Some(&"delegation") => args.push("--offline"),
            _ => {}
        }
        let output = if ASK_A_NODE.contains(&args[0]) || args.contains(&"--server") {
            node.ask(&args)
        } else {
            meridian(&args)
        };
        // The document's endpoints do not exist, and `status` says with its code that something is wrong.
        let is_well = output.status.success()
            || args.first() == Some(&"status") && output.status.code() == Some(1);
        assert!(
            is_well,
            "`{command}` fails: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn other_documents_name_only_commands_that_are_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for document in ["CONTRIBUTING.md", "config/README.md", "geoip/README.md"] {
        let Ok(text) = std::fs::read_to_string(root.join(document)) else {
            panic!("{document} is missing")
        };
        for command in commands(&text) {
            assert!(
                KNOWN.iter().any(|known| command.starts_with(known)),
                "{document}: no test runs `{command}`"
            );
        }
    }
}

/// Lists what stands between backticks and begins with the program's name.
fn mentioned(text: &str) -> Vec<&str> {
    let spans = text.split('`').skip(1).step_by(2);
    spans
        .filter(|span| span.starts_with("meridian ") && !span.contains('\n'))
        .collect()
}

#[test]
fn commands_mentioned_in_documents_exist_with_their_options() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for document in [
        "README.md",
        "docs/operations.md",
        "docs/api.md",
        "docs/kubernetes.md",
        "docs/metrics.md",
        "CONTRIBUTING.md",
    ] {
        let text = std::fs::read_to_string(root.join(document)).unwrap();
        for command in mentioned(&text) {
            let words: Vec<&str> = command.split(' ').skip(1).collect();
            let is_small = |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase());
            // Commands come first; `status drains` and `cluster join` have two.
            let depth = if ["status", "cluster"].contains(&words[0]) {
                2
            } else {
                1
            };
            let names = words.iter().take(depth).take_while(is_small).copied();
            let output = meridian(&names.chain(["--help"]).collect::<Vec<_>>());
            let help = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(
                output.status.success(),
                "{document}: `{command}` is no command"
            );
            for option in words.iter().filter(|word| word.starts_with("--")) {
                assert!(
                    help.contains(option),
                    "{document}: `{command}` has no {option}"
                );
            }
            count += 1;
        }
    }
    assert!(count > 10, "{count}");
}

#[test]
fn pictures_in_documents_are_there_and_small() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let text = std::fs::read_to_string(root.join("operations.md")).unwrap();
    let shown: Vec<&str> = text
        .split("](pictures/")
        .skip(1)
        .map(|rest| rest.split(')').next().unwrap())
        .collect();
    assert!(!shown.is_empty());
    for name in shown {
        let octets = std::fs::read(root.join("pictures").join(name)).unwrap();
        assert!(octets.starts_with(b"\x89PNG\r\n"), "{name}");
        assert!(
            octets.len() < 300 << 10,
            "{name} has {} octets",
            octets.len()
        );
    }
}

/// Writes the reference of annotations as the table of keys has it.
fn reference() -> String {
    use meridian::source::kubernetes::annotations::{Level, keys};
    let mut text =
        "| Key | Whose word | Written | Default | What it does |\n|---|---|---|---|---|\n"
            .to_owned();
    for key in keys() {
        let level = match key.level {
            Level::Shard => "shard",
            Level::Name => "name",
        };
        let also: Vec<String> = key
            .aliases
            .iter()
            .map(|alias| format!(", `{alias}`"))
            .collect();
        let cell = |words: &str| words.replace('|', "\\|");
        text += &format!(
            "| `{}`{} | {level} | {} | {} | {} |\n",
            key.name,
            also.concat(),
            cell(key.grammar),
            cell(key.default),
            cell(key.about),
        );
    }
    text
}

/// Writes the reference of other programs' annotations as the tables of keys have it.
fn reference_of_others() -> String {
    use meridian::source::kubernetes::annotations::compat::Reader;
    let mut text = "| `compat` | Their key | Ours | Written |\n|---|---|---|---|\n".to_owned();
    for reader in Reader::ALL {
        for key in reader.keys() {
            let names: Vec<String> = key.names.iter().map(|name| format!("`{name}`")).collect();
            let ours = key.ours.map_or_else(
                || "not supported yet".to_owned(),
                |ours| format!("`{ours}`"),
            );
            text += &format!(
                "| `{}` | {} | {ours} | {} |\n",
                reader.as_str(),
                names.join(", "),
                key.grammar.replace('|', "\\|"),
            );
        }
    }
    text
}

#[test]
fn the_reference_of_others_annotations_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/kubernetes.md");
    let text = std::fs::read_to_string(path).unwrap();
    let reference = reference_of_others();
    assert!(
        text.contains(&reference),
        "docs/kubernetes.md must have:\n{reference}"
    );
}

/// Writes the reference of annotations about clusters as the table of keys has it.
fn reference_of_clusters() -> String {
    use meridian::source::kubernetes::annotations::cluster_keys;
    let cell = |words: &str| words.replace('|', "\\|");
    let rows = cluster_keys().iter();
    let rows = rows.map(|key| {
        let (grammar, about) = (cell(key.grammar), cell(key.about));
        format!("| `{}` | {grammar} | {about} |\n", key.name)
    });
    let head = "| Key | Written | What it does |\n|---|---|---|\n";
    std::iter::once(head.to_owned()).chain(rows).collect()
}

#[test]
fn the_reference_of_annotations_about_clusters_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/kubernetes.md");
    let text = std::fs::read_to_string(path).unwrap();
    let reference = reference_of_clusters();
    assert!(
        text.contains(&reference),
        "docs/kubernetes.md must have:\n{reference}"
    );
}

#[test]
fn the_reference_of_annotations_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/kubernetes.md");
    let text = std::fs::read_to_string(path).unwrap();
    let reference = reference();
    assert!(
        text.ends_with(&reference),
        "docs/kubernetes.md must end with:\n{reference}"
    );
}

/// Lists the packages that tests install when they are missing.
fn packages() -> Vec<&'static str> {
    let source = include_str!("harness/packages.rs");
    let needs = source.split("pub const ").skip(1);
    let package = |need: &'static str| {
        let (_, rest) = need.split_once("Need = (")?;
        // The program comes first, the package second.
        rest.split('"').nth(3)
    };
    needs.filter_map(package).collect()
}

#[test]
fn contributors_are_told_which_packages_are_installed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("CONTRIBUTING.md");
    let text = std::fs::read_to_string(path).unwrap();
    let packages = packages();
    assert!(packages.len() > 20, "{packages:?}");
    for package in packages {
        assert!(text.contains(&format!("`{package}`")), "{package}");
    }
}
