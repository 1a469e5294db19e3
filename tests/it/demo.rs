//! The demo, as a newcomer runs it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::harness::wait_for;

#[test]
fn the_scripted_demo_shows_ten_cities_and_a_failover() {
    let begun = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_meridian"))
        .args(["demo", "--script"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{log}");
    assert!(begun.elapsed() < Duration::from_secs(30));
    for (city, cluster) in [
        ("New York", "aws-use1"),
        ("Toronto", "aws-use1"),
        ("São Paulo", "oci-gru"),
        ("London", "gcp-euw3"),
        ("Frankfurt", "gcp-euw3"),
        ("Johannesburg", "aws-afs1"),
        ("Nairobi", "aws-afs1"),
        ("Mumbai", "azure-sea"),
        ("Tokyo", "azure-sea"),
        ("Sydney", "azure-sea"),
    ] {
        let row = text
            .lines()
            .find(|line| line.trim_start().starts_with(city))
            .unwrap_or_else(|| panic!("{text}"));
        assert!(row.contains(cluster), "{row}");
        assert!(row.contains("nearest, ") && row.ends_with(" km"), "{row}");
    }
    let moved = text
        .lines()
        .find(|line| line.contains("moved to"))
        .expect("the move");
    let took: u64 = moved
        .split(" after ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!(took < 2500, "{moved}");
    assert!(text.contains("dig @127.0.0.1"));
    assert!(!text.contains('\x1b'));
}

/// Reads lines until one holds a text; gives them all.
fn until(lines: &mpsc::Receiver<String>, text: &str) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        let line = lines.recv_timeout(Duration::from_secs(30));
        let line = line.unwrap_or_else(|_| panic!("{text} is not in {seen:#?}"));
        let is_it = line.contains(text);
        seen.push(line);
        if is_it {
            return seen;
        }
    }
}

#[test]
fn enter_stops_the_nearest_cluster_and_starts_it_again() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_meridian"))
        .arg("demo")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (sender, lines) = mpsc::channel();
    let output = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        for line in output.lines() {
            if sender.send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    let mut keys = child.stdin.take().unwrap();
    let shown = until(&lines, "Press Enter to stop");
    let suggested = shown.iter().find(|line| line.contains("meridian explain"));
    let suggested: Vec<String> = suggested
        .unwrap_or_else(|| panic!("{shown:#?}"))
        .split_whitespace()
        .skip(1)
        .map(str::to_owned)
        .collect();
    // What it suggests says what is answered now.
    let explain = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_meridian"));
        let output = command.args(&suggested).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let chosen = |text: &str| {
        let answer = text.lines().find(|line| line.contains(" IN A "));
        answer.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    let before = chosen(&explain());
    keys.write_all(b"\n").unwrap();
    let moved = until(&lines, "Press Enter to start it again");
    assert!(
        moved.iter().any(|line| line.contains("answer moved to")),
        "{moved:#?}"
    );
    assert_ne!(chosen(&explain()), before);
    keys.write_all(b"\n").unwrap();
    let back = until(&lines, "Press Enter to stop");
    assert!(
        back.iter().any(|line| line.contains("Frankfurt is back")),
        "{back:#?}"
    );
    assert_eq!(chosen(&explain()), before);
    keys.write_all(b"q\n").unwrap();
    assert!(child.wait().unwrap().success());
    reader.join().unwrap();
}

#[test]
fn control_c_and_a_closed_terminal_leave_nothing_behind() {
    for signal in ["INT", "TERM", "HUP", "QUIT"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_meridian"))
            .arg("demo")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let folder = std::env::temp_dir().join(format!("meridian-demo-{}", child.id()));
        wait_for("the demo's folder", Duration::from_secs(10), || {
            folder.join("meridian.yaml").exists().then_some(())
        });
        let status = Command::new("kill")
            .args(["-s", signal, &child.id().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
        let status = wait_for("the end", Duration::from_secs(10), || {
            child.try_wait().unwrap()
        });
        assert!(status.success(), "{signal}: {status}");
        assert!(!folder.exists(), "{signal}");
    }
}

#[test]
fn demos_that_begin_together_each_find_ports_of_their_own() {
    let start = || {
        Command::new(env!("CARGO_BIN_EXE_meridian"))
            .args(["demo"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    // With no keys to come each ends after its first act.
    let demos: Vec<_> = (0..6).map(|_| start()).collect();
    for demo in demos {
        let output = demo.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}
