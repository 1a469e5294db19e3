//! A Go that is new enough for the servers: the machine's own, or one that an older Go fetches.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::harness::packages::{GO, need};

/// The least that the module in `servers/` asks for.
const LEAST: (u32, u32) = (1, 26);

/// What is fetched where the machine has only an older one.
const TOOLCHAIN: &str = "go1.26.8";

/// Makes a toolchain of a downloaded module: modules hold no modes, and no modules within.
const UNPACK: &str = r#"
set -eu
rm -rf "$2.new"
cp -r "$1" "$2.new"
chmod -R u+w "$2.new"
chmod -R a+x "$2.new/bin" "$2.new/pkg/tool"
cp "$2.new/src/_go.mod" "$2.new/src/go.mod"
cp "$2.new/src/cmd/_go.mod" "$2.new/src/cmd/go.mod"
mv "$2.new" "$2"
"#;

/// Gives a Go command that uses no other toolchain, and no settings but those of this machine's module cache and proxy.
pub fn command(go: &Path) -> Command {
    let mut command = Command::new("nice");
    command
        .arg(go)
        .env("GOTOOLCHAIN", "local")
        .env("GOFLAGS", "")
        .env("GOWORK", "off")
        .env_remove("GOROOT");
    command
}

/// Finds a Go that is new enough; installs and fetches what is missing, below `cache`. The error says what a person should do.
pub fn find(cache: &Path) -> Result<PathBuf, String> {
    let fetched = cache.join(TOOLCHAIN);
    let known = [PathBuf::from("go"), fetched.join("bin/go"), GO.0.into()];
    let new_enough = || {
        known
            .iter()
            .find(|go| version(go).is_some_and(|version| version >= LEAST))
            .cloned()
    };
    if let Some(go) = new_enough() {
        return Ok(go);
    }
    if !known.iter().any(|go| version(go).is_some()) {
        need(&[GO]);
    }
    if let Some(go) = new_enough() {
        return Ok(go);
    }
    let older = known.iter().find_map(|go| Some((go, version(go)?)));
    let why = match older {
        Some((older, (major, minor))) => match fetch(older, &fetched) {
            Ok(()) => format!("{TOOLCHAIN} was fetched and does not run"),
            Err(why) => format!(
                "{} is Go {major}.{minor}, and could not fetch {TOOLCHAIN}: {why}",
                older.display()
            ),
        },
        None => format!("{} does not run", GO.0),
    };
    let (major, minor) = LEAST;
    new_enough()
        .ok_or_else(|| format!("this test needs Go {major}.{minor} or newer on the PATH; {why}"))
}

/// Asks a Go for its version; `None` when it does not run.
fn version(go: &Path) -> Option<(u32, u32)> {
    let output = command(go).arg("version").output().ok()?;
    parse(&String::from_utf8_lossy(&output.stdout))
}

/// Reads what `go version` says: major and minor version.
fn parse(text: &str) -> Option<(u32, u32)> {
    let word = text
        .split_whitespace()
        .find_map(|word| word.strip_prefix("go1."))?;
    let end = word.find(|c: char| !c.is_ascii_digit());
    let minor = &word[..end.unwrap_or(word.len())];
    Some((1, minor.parse().ok()?))
}

/// Fetches the toolchain, which is a module like others, by an older Go of any age.
fn fetch(older: &Path, to: &Path) -> Result<(), String> {
    println!("fetching {TOOLCHAIN}");
    let cache = to.parent().ok_or("no folder")?;
    let platform = output(
        command(older)
            .args(["env", "GOOS", "GOARCH"])
            .current_dir(cache),
    )?;
    let platform: Vec<&str> = platform.split_whitespace().collect();
    let module = format!(
        "golang.org/toolchain@v0.0.1-{TOOLCHAIN}.{}",
        platform.join("-")
    );
    let args = ["mod", "download", "-json", &module];
    let said = output(command(older).args(args).current_dir(cache))?;
    let said: Value = serde_json::from_str(&said).map_err(|error| error.to_string())?;
    let folder = said["Dir"].as_str().ok_or_else(|| said.to_string())?;
    output(
        Command::new("sh")
            .args(["-c", UNPACK, "sh", folder])
            .arg(to),
    )?;
    Ok(())
}

/// Runs a program that must not fail; gives what it wrote.
fn output(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stdout) + &text(&output.stderr))
    }
}

#[test]
fn versions_are_read_and_compared() {
    for (text, read) in [
        ("go version go1.26.8 linux/amd64", Some((1, 26))),
        ("go version go1.19.8 linux/amd64", Some((1, 19))),
        ("go version go1.26rc1 linux/arm64", Some((1, 26))),
        ("go version go1.30 linux/amd64", Some((1, 30))),
        (
            "go version devel go1.27-5e8c3f4 Thu Oct 1 00:00:00 2026 linux/amd64",
            Some((1, 27)),
        ),
        ("gccgo (Debian 12.2.0-14) 12.2.0", None),
        ("", None),
    ] {
        assert_eq!(parse(text), read, "{text}");
    }
    assert!((1, 19) < LEAST && (1, 26) >= LEAST && (1, 100) >= LEAST);
}
