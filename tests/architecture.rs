//! The house rules that a compiler does not know: rooms and their imports, crates and their homes, sizes, licenses.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every room and the rooms of ours it may import, in the order of the map. `app` and `config` stand at the root.
const ROOMS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("lifecycle", &[]),
    ("telemetry", &["model"]),
    ("disk", &[]),
    ("prefix", &["model"]),
    ("inventory", &["model"]),
    ("geo", &["model", "prefix"]),
    ("steering", &["model", "prefix"]),
    ("zone", &["model"]),
    ("health", &["model"]),
    (
        "snapshot",
        &[
            "model",
            "prefix",
            "inventory",
            "geo",
            "steering",
            "zone",
            "health",
        ],
    ),
    (
        "answer",
        &[
            "model",
            "telemetry",
            "prefix",
            "geo",
            "steering",
            "zone",
            "snapshot",
        ],
    ),
    ("resolving", &["model", "lifecycle", "telemetry"]),
    (
        "source",
        &[
            "model",
            "lifecycle",
            "telemetry",
            "inventory",
            "geo",
            "zone",
            "resolving",
        ],
    ),
    ("prober", &["model", "lifecycle", "telemetry", "health"]),
    ("vantage", &["model", "lifecycle", "telemetry", "disk"]),
    (
        "controller",
        &[
            "model",
            "telemetry",
            "disk",
            "inventory",
            "geo",
            "steering",
            "zone",
            "health",
            "snapshot",
        ],
    ),
    (
        "transport",
        &["model", "lifecycle", "telemetry", "snapshot", "answer"],
    ),
    (
        "admin",
        &[
            "model",
            "lifecycle",
            "telemetry",
            "disk",
            "inventory",
            "geo",
            "steering",
            "zone",
            "health",
            "snapshot",
            "answer",
            "controller",
            "vantage",
            "resolving",
            "source",
        ],
    ),
    (
        "config",
        &[
            "model",
            "telemetry",
            "geo",
            "inventory",
            "snapshot",
            "zone",
            "source",
            "resolving",
            "transport",
            "prober",
            "vantage",
            "admin",
        ],
    ),
    (
        "app",
        &[
            "model",
            "lifecycle",
            "telemetry",
            "disk",
            "inventory",
            "geo",
            "steering",
            "zone",
            "health",
            "snapshot",
            "answer",
            "resolving",
            "source",
            "prober",
            "vantage",
            "controller",
            "transport",
            "admin",
            "config",
        ],
    ),
];

/// Who speaks TLS.
const TLS_CLIENTS: &[&str] = &[
    "src/prober/",
    "src/vantage/",
    "src/admin/access/oidc/",
    "src/telemetry/traces.rs",
    "src/app/client",
    "src/admin/tls.rs",
    "src/source/kubernetes/members/",
];

/// Crates that nothing may bring along: ring is the only crypto.
const OTHER_CRYPTO: &str = "openssl openssl-sys aws-lc-rs aws-lc-sys native-tls boring";

/// Where tables by hash are made.
const TABLES: &[&str] = &["src/snapshot/", "src/inventory/", "src/model/lookup.rs"];

/// Crates that may only be named in some places. Those not listed (vocabulary such as ipnet and thiserror) may be anywhere.
const HOMES: &[(&str, &[&str])] = &[
    ("anyhow", &["src/app/"]),
    ("arc_swap", &["src/snapshot/cell.rs"]),
    ("askama", &["src/admin/"]),
    ("async_trait", &["src/transport/rare"]),
    ("axum", &["src/admin/"]),
    ("clap", &["src/app/"]),
    ("clap_complete", &["src/app/"]),
    ("clap_mangen", &["src/app/"]),
    ("comfy_table", &["src/app/"]),
    ("domain", &["src/zone/master_file"]),
    (
        "futures_util",
        &[
            "src/app/client/",
            "src/app/operate/",
            "src/admin/",
            "src/vantage/",
        ],
    ),
    ("foldhash", TABLES),
    ("hashbrown", TABLES),
    ("hickory_proto", &["src/transport/rare", "src/resolving/"]),
    ("hickory_resolver", &["src/resolving/"]),
    ("hickory_server", &["src/transport/rare"]),
    (
        "http_body_util",
        &["src/prober/", "src/source/kubernetes/members/"],
    ),
    (
        "hyper",
        &[
            "src/prober/",
            "src/admin/connection.rs",
            "src/admin/deadline.rs",
            "src/source/kubernetes/members/",
        ],
    ),
    ("hyper_util", &["src/prober/", "src/admin/connection.rs"]),
    ("jsonwebtoken", &["src/admin/access/oidc/"]),
    ("k8s_openapi", &["src/source/kubernetes/"]),
    ("kube", &["src/source/kubernetes/"]),
    ("libc", &["src/transport/udp/mmsg.rs"]),
    ("libmimalloc_sys", &["src/app/allocator.rs"]),
    ("maxminddb", &["src/geo/mmdb"]),
    (
        "memchr",
        &[
            "src/admin/view/services.rs",
            "src/source/kubernetes/members/server.rs",
        ],
    ),
    ("mimalloc", &["src/main.rs"]),
    ("opentelemetry", &["src/telemetry/traces.rs"]),
    ("opentelemetry_otlp", &["src/telemetry/traces.rs"]),
    ("opentelemetry_sdk", &["src/telemetry/traces.rs"]),
    ("resolv_conf", &["src/resolving/"]),
    (
        "reqwest",
        &[
            "src/admin/access/oidc/",
            "src/vantage/",
            "src/app/client",
            "src/app/args/",
            "src/telemetry/traces.rs",
        ],
    ),
    (
        "ring",
        &[
            "src/admin/api/output.rs",
            "src/controller/folder.rs",
            "src/prober/tls.rs",
            "src/vantage/",
            "src/admin/access/",
            "src/admin/tls.rs",
        ],
    ),
    (
        "rustix",
        &[
            "src/source/kubernetes/members/plugin.rs",
            "src/app/allocator.rs",
        ],
    ),
    ("rustls", TLS_CLIENTS),
    ("rustls_native_certs", TLS_CLIENTS),
    ("saphyr_parser", &["src/config/spec/"]),
    ("secrecy", &["src/source/kubernetes/members/"]),
    ("serde_saphyr", &["src/app/", "src/source/kubernetes/"]),
    ("socket2", &["src/transport/"]),
    ("subtle", &["src/admin/access/"]),
    ("tokio_rustls", &["src/prober/", "src/admin/tls.rs"]),
    ("tor_geoip_db", &["src/geo/country.rs"]),
    ("tracing_opentelemetry", &["src/telemetry/traces.rs"]),
    ("tracing_subscriber", &["src/telemetry/"]),
    ("triomphe", &["src/model/pools/"]),
    ("utoipa", &["src/admin/"]),
    ("utoipa_axum", &["src/admin/api/"]),
];

/// Rooms without socket, task, clock or log.
const CORE: &[&str] = &[
    "model",
    "prefix",
    "inventory",
    "geo",
    "steering",
    "zone",
    "health",
    "snapshot",
    "answer",
];

/// The only files with unsafe code.
const UNSAFE: &[&str] = &[
    "src/transport/udp/mmsg.rs",
    "src/prefix/prefetch.rs",
    "src/app/allocator.rs",
];

/// Licenses that dependencies may have.
const LICENSES: &str = "MIT, MIT-0, Apache-2.0, Apache-2.0 WITH LLVM-exception, BSD-2-Clause, BSD-3-Clause, ISC, MPL-2.0, \
    Zlib, Unicode-3.0, CC0-1.0, CDLA-Permissive-2.0, 0BSD, Unlicense";

/// One source file.
struct Source {
    path: String,
    text: String,
}

impl Source {
    /// Gives the room it belongs to; `None` for `lib.rs` and `main.rs`.
    fn room(&self) -> Option<&str> {
        let inside = self.path.strip_prefix("src/")?;
        let (room, _) = inside
            .split_once('/')
            .unwrap_or_else(|| (inside.trim_end_matches(".rs"), ""));
        (!matches!(room, "lib" | "main")).then_some(room)
    }

    /// Tells whether it holds nothing but tests.
    fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs")
            || self.path.contains("/tests/")
            || self.path.starts_with("tests/")
    }

    /// Gives the code without comments, strings left in, and without the tests at its end.
    fn code(&self) -> String {
        let end = self
            .text
            .find("\n#[cfg(test)]\nmod ")
            .unwrap_or(self.text.len());
        let lines = self.text[..end].lines();
        lines
            .map(|line| line.split_once("//").map_or(line, |(code, _)| code))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Reads every Rust file below a folder.
fn sources(folder: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap();
        for entry in entries.map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                let path = entry.strip_prefix(root).unwrap().to_str().unwrap();
                found.push(Source {
                    path: path.to_owned(),
                    text: fs::read_to_string(&entry).unwrap(),
                });
            }
        }
    }
    assert!(!found.is_empty(), "no sources in {folder}");
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Lists the identifiers that follow each `prefix` in a text.
fn after<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(prefix).filter_map(move |(at, _)| {
        let before = text[..at].chars().next_back();
        let rest = &text[at + prefix.len()..];
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        (!before.is_some_and(|c| is_word(c) || c == ':')).then_some(&rest[..end])
    })
}

/// Fails with all findings at once.
fn report(findings: Vec<String>) {
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
}

#[test]
fn rooms_import_only_what_the_map_allows() {
    let rooms: BTreeMap<_, _> = ROOMS.iter().copied().collect();
    let mut findings = Vec::new();
    for source in sources("src").iter().filter(|source| !source.is_test()) {
        let Some(room) = source.room() else { continue };
        let Some(allowed) = rooms.get(room) else {
            findings.push(format!("{}: `{room}` is no room of the map", source.path));
            continue;
        };
        let code = source.code();
        for other in after(&code, "crate::").filter(|other| rooms.contains_key(other)) {
            if other != room && !allowed.contains(&other) {
                findings.push(format!(
                    "{}: `{room}` must not import `{other}`",
                    source.path
                ));
            }
        }
        if code.contains("crate::{") {
            findings.push(format!(
                "{}: write one path each, never `crate::{{..}}`",
                source.path
            ));
        }
    }
    report(findings);
}

#[test]
fn the_map_has_no_circle() {
    for (at, (room, allowed)) in ROOMS.iter().enumerate() {
        for other in *allowed {
            let place = ROOMS.iter().position(|(name, _)| name == other).unwrap();
            assert!(
                place < at,
                "`{room}` imports `{other}`, which does not stand above it"
            );
        }
    }
}

#[test]
fn crates_stay_in_their_homes() {
    let mut findings = Vec::new();
    for source in sources("src").iter().filter(|source| !source.is_test()) {
        let code = source.code();
        for (name, homes) in HOMES {
            let path = format!("{name}::");
            let named = code.match_indices(&path).any(|(at, _)| {
                !code[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':')
            });
            if named && !homes.iter().any(|home| source.path.starts_with(home)) {
                findings.push(format!(
                    "{}: `{name}` may only be named in {}",
                    source.path,
                    homes.join(", ")
                ));
            }
        }
    }
    report(findings);
}

#[test]
fn the_core_has_no_socket_task_clock_log_or_lock() {
    let locks = "Mutex RwLock Condvar";
    let outside = "tokio:: tracing:: std::fs:: std::net::Tcp std::net::Udp std::thread::";
    let mut findings = Vec::new();
    for source in sources("src").iter().filter(|source| !source.is_test()) {
        let forbidden = match source.room() {
            Some(room) if CORE.contains(&room) => format!("{outside} {locks}"),
            // No query waits for anybody.
            _ if source.path.starts_with("src/transport/udp") => locks.to_owned(),
            _ => continue,
        };
        let code = source.code();
        for word in forbidden.split(' ').filter(|word| code.contains(*word)) {
            findings.push(format!("{}: must not name `{word}`", source.path));
        }
    }
    report(findings);
}

#[test]
fn unsafe_code_is_in_three_files() {
    let all = sources("src");
    let findings = all
        .iter()
        .filter(|source| !UNSAFE.contains(&source.path.as_str()))
        .filter_map(|source| {
            let code = source.code();
            let found = code.contains("unsafe {")
                || code.contains("unsafe fn")
                || code.contains("unsafe impl");
            found.then(|| format!("{}: unsafe code", source.path))
        });
    report(findings.collect());
}

#[test]
fn files_and_doors_are_small() {
    let mut findings = Vec::new();
    for source in sources("src")
        .iter()
        .chain(&sources("tests"))
        .chain(&sources("benches"))
    {
        let lines = source.text.lines().count();
        if lines > 600 {
            findings.push(format!("{}: {lines} lines, at most 600", source.path));
        }
        if !source.text.starts_with("//!") {
            findings.push(format!("{}: begins without a module doc", source.path));
        }
        if source.path == "src/main.rs" && lines > 40 {
            findings.push("src/main.rs: more than 40 lines".to_owned());
        }
    }
    report(findings);
}

#[test]
fn nothing_is_left_unfinished_or_switched_off() {
    // Spelled in halves, so that this file does not find itself.
    let words = [
        concat!("#[igno", "re"),
        concat!("todo", "!("),
        concat!("unimplement", "ed!("),
        concat!("FIX", "ME"),
    ];
    let mut findings = Vec::new();
    for source in sources("src")
        .iter()
        .chain(&sources("tests"))
        .chain(&sources("benches"))
    {
        for word in words.iter().filter(|word| source.text.contains(**word)) {
            findings.push(format!("{}: `{word}`", source.path));
        }
    }
    report(findings);
}

#[test]
fn every_dependency_says_why() {
    let manifest =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let mut inside = false;
    let mut findings = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]");
        } else if inside && line.contains(" = ") && !line.contains(" # ") {
            findings.push(format!("Cargo.toml: no reason beside `{line}`"));
        }
    }
    report(findings);
}

/// Asks cargo for every package that is built for this platform.
fn packages() -> Vec<Value> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            &host,
        ])
        .current_dir(PathBuf::from(env!("CARGO_MANIFEST_DIR")))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// Tells whether an SPDX expression can be met with our list. `/` is an old way to write OR.
fn is_allowed(expression: &str) -> bool {
    let text = expression.replace('/', " OR ").replace(['(', ')'], " ");
    // AND binds tighter than OR; our dependencies use brackets only around alternatives that are all allowed anyway.
    text.split(" AND ").all(|part| {
        part.split(" OR ")
            .any(|license| LICENSES.split(", ").any(|one| one == license.trim()))
    })
}

#[test]
fn licenses_are_permissive_and_ring_is_the_only_crypto() {
    let mut findings = Vec::new();
    for package in packages() {
        let name = package["name"].as_str().unwrap().to_owned();
        let license = package["license"].as_str().unwrap_or("none");
        if !is_allowed(license) {
            findings.push(format!("{name}: license {license}"));
        }
        if OTHER_CRYPTO.split(' ').any(|other| other == name) {
            findings.push(format!("{name}: ring is the only crypto"));
        }
    }
    report(findings);
}

#[test]
fn license_expressions_are_read_right() {
    for (expression, allowed) in [
        ("MIT OR Apache-2.0", true),
        ("MIT/Apache-2.0", true),
        ("Apache-2.0 AND ISC", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("MIT AND GPL-3.0", false),
        ("none", false),
    ] {
        assert_eq!(is_allowed(expression), allowed, "{expression}");
    }
}
