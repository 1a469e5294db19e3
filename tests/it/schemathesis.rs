//! The document held against the program by tools that share nothing with either: openapi-spec-validator, jsonschema and
//! schemathesis, of PyPI.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::api::Site;
use crate::harness::packages::{PYTHON_VENV, need};
use crate::harness::raw_http::Web;

/// What the tools are, to the version: a new check of theirs is a change of ours.
const TOOLS: [&str; 2] = ["schemathesis==4.32.5", "openapi-spec-validator==0.9.0"];

/// Where schemathesis begins; the same requests every time.
const SEED: u32 = 90_457;

/// Seconds of one run of schemathesis.
const BUDGET: u32 = 60;

/// What is left out of schemathesis, and why; every other check is on.
///
/// - `ignored_auth`, and headers of the security schemes, try many wrong tokens. Ten of them shut a client out for a minute, by
///   intent, and all that follows is 429. `api::only_operators_change_and_nobody_without_a_token_reads` tries each route instead.
/// - `use_after_free` wants what was deleted to be gone. A drain that ended stays and can be read: that is its history.
/// - `positive_data_acceptance` wants everything that fits its schema to be taken. No schema can say what there is: which
///   clusters, which cursors were handed out, what is an address or a name. It stays on where none of these is needed.
/// - Extra parameters, for events: it would have a header refused that nobody knows. Those of queries are tried everywhere else.
const CONFIG: &str = r#"
[generation]
with-security-parameters = false

[checks]
ignored_auth.enabled = false
use_after_free.enabled = false

[[operations]]
include-operation-id-regex = "^(start_drain|start_force|set_challenge|explain|get_name|get_service|get_zone|list_services|list_monitors|list_drains|list_forces|list_challenges|list_audit)$"
checks.positive_data_acceptance.enabled = false

[[operations]]
include-operation-id = "list_events"
checks.positive_data_acceptance.enabled = false
generation.allow-extra-parameters = false
"#;

/// Gives the folder with the tools' programs; installs them when they are missing.
fn tools() -> PathBuf {
    need(&[PYTHON_VENV]);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let lock = File::create(target.join("schemathesis.lock")).unwrap();
    lock.lock().unwrap();
    let folder = target.join("schemathesis");
    let stamp = folder.join("installed");
    if std::fs::read_to_string(&stamp).ok() != Some(TOOLS.join(" ")) {
        println!("installing {TOOLS:?}");
        let folder = folder.to_str().unwrap();
        run(Command::new("/usr/bin/python3").args(["-m", "venv", "--clear", folder]));
        let pip = Path::new(folder).join("bin/pip");
        run(Command::new(pip)
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .args(TOOLS));
        std::fs::write(&stamp, TOOLS.join(" ")).unwrap();
    }
    folder.join("bin")
}

/// Runs a program that must not fail.
fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Runs schemathesis against a node, with a token or without; it must find nothing.
fn attack(site: &Site, token: Option<&str>) {
    let tools = tools();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("schemathesis.toml");
    std::fs::write(&config, CONFIG).unwrap();
    let log = folder.path().join("log");
    let file = File::create(&log).unwrap();
    let server = format!("http://{}", site.node.http());
    println!("seed {SEED}");
    let mut command = Command::new(tools.join("schemathesis"));
    command
        .arg("--config-file")
        .arg(&config)
        .args(["run", "--no-color", "--continue-on-failure"])
        .args([
            "--seed",
            &SEED.to_string(),
            "--max-time",
            &BUDGET.to_string(),
        ])
        .args(["--generation-database", "none", "--request-timeout", "10"])
        .current_dir(folder.path());
    if let Some(token) = token {
        command
            .arg("--header")
            .arg(format!("Authorization: Bearer {token}"));
    }
    command
        .arg(format!("{server}/api/openapi.json"))
        .stdin(Stdio::null())
        .stdout(file.try_clone().unwrap())
        .stderr(file);
    let mut child = command.spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(u64::from(BUDGET) * 3);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if Instant::now() > until {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let said = std::fs::read_to_string(&log).unwrap();
    println!("{said}");
    assert!(status.is_some_and(|status| status.success()), "{status:?}");
    // Warnings about what is generated stand in the place of "No issues found".
    assert!(said.contains(" generated, "), "nothing was tried");
    // Time ran out for none of the operations and none of the ways to try them.
    let operations = said
        .split_once("Selected: ")
        .and_then(|(_, rest)| rest.split_once('/'))
        .unwrap();
    assert!(
        operations.0.len() > 1 && said.contains(&format!("Tested: {}", operations.0)),
        "not all were tried"
    );
    for phase in ["Examples", "Coverage", "Fuzzing", "Stateful"] {
        let is_done = said.contains(&format!("✅ {phase}\n"));
        assert!(is_done, "{phase} was not tried to its end");
    }
}

#[test]
fn schemathesis_finds_nothing_as_an_operator() {
    let site = Site::start("");
    attack(&site, Some(&site.operator));
    let drains = Web::get(site.node.http(), "/api/v1/drains").send().json();
    assert!(
        drains["total"].as_u64().unwrap() >= 1,
        "it changed nothing: {drains}"
    );
}

#[test]
fn schemathesis_finds_nothing_without_a_token() {
    let site = Site::start("");
    attack(&site, None);
    let drains = Web::get(site.node.http(), "/api/v1/drains").send().json();
    assert_eq!(drains["total"], 0, "{drains}");
}

/// Checks the document, and every example against its schema.
const VALIDATE: &str = r#"
import json, sys
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
document = json.load(open(sys.argv[1]))
assert document["openapi"].startswith("3.1."), document["openapi"]
OpenAPIV31SpecValidator(document).validate()
count = 0
for path, item in document["paths"].items():
    for method, operation in item.items():
        contents = [operation.get("requestBody", {}).get("content", {})]
        for response in operation["responses"].values():
            if "$ref" in response:
                response = document["components"]["responses"][response["$ref"].split("/")[-1]]
            contents.append(response.get("content", {}))
        for content in contents:
            for kind, media in content.items():
                schema = dict(media["schema"], components=document["components"])
                Draft202012Validator(schema).validate(media["example"])
                count += 1
assert count > 200, count
print(count, "examples")
"#;

#[test]
fn the_document_is_openapi_3_1_and_its_examples_fit() {
    let site = Site::start("");
    let answer = Web::get(site.node.http(), "/api/openapi.json").send();
    assert_eq!(answer.status, 200);
    let folder = tempfile::tempdir().unwrap();
    let document = folder.path().join("openapi.json");
    std::fs::write(&document, &answer.body).unwrap();
    let python = tools().join("python");
    let output = run(Command::new(python).args(["-c", VALIDATE]).arg(&document));
    println!("{}", String::from_utf8_lossy(&output.stdout));
}
