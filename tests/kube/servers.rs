//! The two servers, built from the Go module in `servers/` and kept in the target folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};

use crate::go;
use crate::harness::process::Process;

/// How long a build may take: a download of up to 250 MB and some 8 minutes of a processor, with much patience.
const BUILD: Duration = Duration::from_secs(30 * 60);

/// What the servers are made of.
const INPUTS: [&str; 4] = ["go.mod", "go.sum", "tools.go", "cmd/kube-apiserver/main.go"];

/// Both binaries and their packages.
const BINARIES: [(&str, &str); 2] = [
    ("kube-apiserver", "./cmd/kube-apiserver"),
    ("etcd", "go.etcd.io/etcd/server/v3"),
];

/// What both are built with. No clouds, no C.
const FLAGS: [&str; 5] = [
    "build",
    "-trimpath",
    "-mod=readonly",
    "-buildvcs=false",
    "-tags=providerless netgo osusergo",
];

/// Where the binaries are.
#[derive(Debug)]
pub struct Servers {
    pub api: PathBuf,
    pub etcd: PathBuf,
}

/// Gives the servers; the first who asks builds them.
pub fn servers() -> &'static Servers {
    static BUILT: OnceLock<Result<Servers, String>> = OnceLock::new();
    BUILT
        .get_or_init(build)
        .as_ref()
        .unwrap_or_else(|why| panic!("{why}"))
}

/// Gives the folder in the target folder for all that these tests keep.
pub fn cache() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let cache = target.join("kube");
    fs::create_dir_all(&cache).unwrap();
    cache
}

/// Builds what is missing.
fn build() -> Result<Servers, String> {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kube/servers");
    let read = |name: &str| {
        fs::read_to_string(module.join(name)).map_err(|error| format!("{name}: {error}"))
    };
    let sources = INPUTS
        .iter()
        .map(|name| read(name))
        .collect::<Result<Vec<_>, _>>()?;
    let linker = linker_flags(&sources[0])?;
    let cache = cache();
    // Other test processes want the same binaries.
    let lock = File::create(cache.join("lock")).unwrap();
    lock.lock().unwrap();
    let all = [sources.concat(), FLAGS.join(" "), linker.clone()].concat();
    let name = HEXLOWER.encode(&digest(&SHA256, all.as_bytes()).as_ref()[..8]);
    let folder = cache.join(name);
    fs::create_dir_all(&folder).unwrap();
    for (binary, package) in BINARIES {
        if !folder.join(binary).exists() {
            let go = go::find(&cache)?;
            println!("building {binary}; the first time takes minutes");
            let mut command = go::command(&go);
            command
                .args(FLAGS)
                .arg(format!("-ldflags={linker}"))
                .arg("-o")
                .arg(folder.join(format!("{binary}.new")))
                .arg(package)
                .env("CGO_ENABLED", "0")
                .current_dir(&module);
            run(Process::start(
                &format!("build-{binary}"),
                &folder,
                &mut command,
            ))?;
            fs::rename(folder.join(format!("{binary}.new")), folder.join(binary)).unwrap();
        }
    }
    let [api, etcd] = BINARIES.map(|(binary, _)| folder.join(binary));
    Ok(Servers { api, etcd })
}

/// Waits for the end of a build.
fn run(mut process: Process) -> Result<(), String> {
    let begun = Instant::now();
    let ended = loop {
        if let Some(status) = process.ended() {
            if status.success() {
                return Ok(());
            }
            break format!("ended with {status}");
        }
        if begun.elapsed() > BUILD {
            break format!("did not end within {BUILD:?}");
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    Err(format!(
        "`go build` of tests/kube/servers {ended}; it needs its modules, from Go's module proxy or cache, 4 GB of disk and 3 GB \
         of memory. Its log ends with\n{}",
        process.tail(40)
    ))
}

/// Makes the linker's flags: no symbols, and the version that the API server tells of itself, which is its module's.
fn linker_flags(go_mod: &str) -> Result<String, String> {
    let version = go_mod
        .lines()
        .find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes v"))
        .ok_or("go.mod does not require k8s.io/kubernetes")?;
    let mut parts = version.split('.');
    let (major, minor) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    let package = "k8s.io/component-base/version";
    Ok(format!(
        "-s -w -X {package}.gitVersion=v{version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    ))
}
