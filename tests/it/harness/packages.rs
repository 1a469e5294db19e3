//! What the tests need beyond Rust: Debian packages, installed when they are missing.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// A program and the package that has it.
pub type Need = (&'static str, &'static str);

pub const NSD: Need = ("/usr/sbin/nsd", "nsd");
pub const UNBOUND: Need = ("/usr/sbin/unbound", "unbound");
pub const BIND: Need = ("/usr/sbin/named", "bind9");
pub const KNOT_RESOLVER: Need = ("/usr/sbin/kresd", "knot-resolver");
pub const RECURSOR: Need = ("/usr/sbin/pdns_recursor", "pdns-recursor");
pub const DIG: Need = ("/usr/bin/dig", "bind9-dnsutils");
pub const DELV: Need = ("/usr/bin/delv", "bind9-dnsutils");
pub const KDIG: Need = ("/usr/bin/kdig", "knot-dnsutils");
pub const IP: Need = ("/usr/sbin/ip", "iproute2");
pub const SCRIPT: Need = ("/usr/bin/script", "bsdutils");
pub const CURL: Need = ("/usr/bin/curl", "curl");
pub const JQ: Need = ("/usr/bin/jq", "jq");
/// What makes virtual environments; the program alone is there without it.
pub const PYTHON_VENV: Need = ("/var/lib/dpkg/info/python3-venv.list", "python3-venv");
pub const CHROMIUM: Need = ("/usr/bin/chromium", "chromium");
pub const CHROMEDRIVER: Need = ("/usr/bin/chromedriver", "chromium-driver");
/// Letters, and the shapes that states have.
pub const FONTS: Need = (
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
    "fonts-dejavu-core",
);
pub const NPM: Need = ("/usr/bin/npm", "npm");
pub const GO: Need = ("/usr/bin/go", "golang-go");
pub const SETPRIV: Need = ("/usr/bin/setpriv", "util-linux");
pub const SYSTEMD_ANALYZE: Need = ("/usr/bin/systemd-analyze", "systemd");
pub const PROMTOOL: Need = ("/usr/bin/promtool", "prometheus");
pub const PROMETHEUS: Need = ("/usr/bin/prometheus", "prometheus");

/// Makes sure that programs are there, or fails and says what to install.
///
/// Services of the packages are kept from starting: the tests start their own on addresses of their own.
pub fn need(needs: &[Need]) {
    // Two test processes, or two tests of one, must not call the package manager at once.
    let lock = File::create(std::env::temp_dir().join("meridian-tests-packages.lock")).unwrap();
    lock.lock().unwrap();
    let missing: Vec<&str> = needs
        .iter()
        .filter(|(path, _)| !Path::new(path).exists())
        .map(|need| need.1)
        .collect();
    if missing.is_empty() {
        return;
    }
    println!("installing {missing:?}");
    let policy = Path::new("/usr/sbin/policy-rc.d");
    let ours = !policy.exists();
    if ours {
        fs::write(policy, "#!/bin/sh\nexit 101\n")
            .unwrap_or_else(|error| refuse(&missing, &error.to_string()));
        fs::set_permissions(policy, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let update = apt(&["update", "-qq"]);
    let install = apt(&[
        &["install", "-y", "-qq", "--no-install-recommends"],
        missing.as_slice(),
    ]
    .concat());
    if ours {
        fs::remove_file(policy).unwrap();
    }
    if let Err(error) = install {
        refuse(
            &missing,
            &format!("{error}\n{}", update.err().unwrap_or_default()),
        );
    }
}

/// Runs apt-get; gives what it said when it failed.
fn apt(args: &[&str]) -> Result<(), String> {
    let output = Command::new("apt-get")
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Fails the test with what a person should do.
fn refuse(missing: &[&str], error: &str) -> ! {
    panic!(
        "this test needs packages that could not be installed ({error}); run: apt-get install {}",
        missing.join(" ")
    )
}
