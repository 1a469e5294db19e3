//! Colors: on a terminal only, and not where `NO_COLOR` is set (no-color.org).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::harness::packages::{SCRIPT, need};
use crate::samples::FIVE;

/// Writes a configuration that `check` warns of, and that `run` cannot listen for, and gives its path.
fn write(folder: &Path) -> PathBuf {
    let path = folder.join("meridian.yaml");
    let services = FIVE.replace("    file: svc.mesh.zone\n", "");
    // No state can be kept there, which is a line of the log, and nobody has this address, which ends `run`.
    let head =
        "version: 1\nnode: {stateDirectory: /proc/nowhere}\ndns: {listen: [\"192.0.2.53:53\"]}\n";
    std::fs::write(&path, format!("{head}{services}")).unwrap();
    path
}

/// Runs the program with all its output on a terminal, and gives that output.
fn on_terminal(arguments: &str, no_color: Option<&str>) -> String {
    let program = env!("CARGO_BIN_EXE_meridian");
    let mut command = Command::new(SCRIPT.0);
    command
        .args(["--quiet", "--command", &format!("{program} {arguments}")])
        .arg("/dev/null");
    said_by(command, no_color)
}

/// As above, in a pipe.
fn in_pipe(arguments: &str, no_color: Option<&str>) -> String {
    let program = env!("CARGO_BIN_EXE_meridian");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec {program} {arguments} 2>&1")]);
    said_by(command, no_color)
}

/// Runs a command with or without `NO_COLOR`.
fn said_by(mut command: Command, no_color: Option<&str>) -> String {
    command.env_remove("NO_COLOR").stdin(Stdio::null());
    if let Some(value) = no_color {
        command.env("NO_COLOR", value);
    }
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn results_errors_and_log_lines_are_colored_on_a_terminal_unless_unwanted() {
    need(&[SCRIPT]);
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path());
    let path = path.display();
    let (check, run) = (format!("check -c {path}"), format!("run -c {path}"));
    // What each says, and the same in color.
    for (arguments, plain, colored) in [
        (&check, "ok:", "\x1b[32;1mok:\x1b[0m"),
        (
            &run,
            "error: cannot listen",
            "\x1b[31;1merror:\x1b[0m cannot listen",
        ),
        (&run, " WARN", "\x1b[33m WARN\x1b[0m"),
    ] {
        for no_color in [None, Some("")] {
            let said = on_terminal(arguments, no_color);
            assert!(said.contains(colored), "{no_color:?}: {said:?}");
        }
        let unwanted = on_terminal(arguments, Some("1"));
        assert!(
            unwanted.contains(plain) && !unwanted.contains('\x1b'),
            "{unwanted:?}"
        );
        for no_color in [None, Some("1")] {
            let said = in_pipe(arguments, no_color);
            assert!(said.contains(plain) && !said.contains('\x1b'), "{said:?}");
        }
    }
}

#[test]
fn log_lines_for_machines_are_never_colored() {
    need(&[SCRIPT]);
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path());
    let said = on_terminal(
        &format!("--log-format json run -c {}", path.display()),
        None,
    );
    let line = said
        .lines()
        .find(|line| line.contains("State directory"))
        .expect(&said);
    assert!(!line.contains('\x1b'), "{line:?}");
    assert!(
        serde_json::from_str::<serde_json::Value>(line).is_ok(),
        "{line:?}"
    );
}
