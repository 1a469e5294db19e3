//! The commands that talk to nodes, as people and scripts use them.

use std::net::TcpListener;
use std::process::{Command, Stdio};

use crate::harness::node::meridian;

/// Commands that talk to nodes.
const TALKING: [&str; 6] = ["status", "drain", "undrain", "force", "unforce", "acme"];

/// Runs a command; gives exit code, standard output and standard error.
fn run(args: &[&str]) -> (i32, String, String) {
    let output = meridian(args);
    let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).unwrap();
    (
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// Gives a URL where nobody listens.
fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn every_command_has_help_with_examples_and_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let (code, _, err) = run(&["man", "--directory", pages.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    let (_, whole, _) = run(&["--help"]);
    for command in TALKING.iter().chain(&["man", "explain"]) {
        assert!(whole.contains(command), "{command}");
        let (code, help, _) = run(&[command, "--help"]);
        assert_eq!(code, 0);
        assert!(help.contains("Examples:\n  meridian "), "{command}: {help}");
        let page = std::fs::read_to_string(pages.join(format!("meridian-{command}.1"))).unwrap();
        assert!(
            page.starts_with(".ie") && page.contains(".SH NAME"),
            "{command}"
        );
    }
    for page in ["meridian.1", "meridian-run.1", "meridian-status-services.1"] {
        assert!(pages.join(page).exists(), "{page}");
    }
    let (code, page, _) = run(&["man"]);
    assert_eq!(code, 0);
    assert_eq!(
        page,
        std::fs::read_to_string(pages.join("meridian.1")).unwrap()
    );
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (code, _, err) = run(&["man", "--directory", file.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(err.contains("cannot write manual pages"), "{err}");
    for shell in ["bash", "zsh", "fish"] {
        let (_, script, _) = run(&["completions", shell]);
        for word in TALKING
            .iter()
            .chain(&["unforce", "--token-file", "monitors"])
        {
            let word = if shell == "fish" {
                word.trim_start_matches('-')
            } else {
                word
            };
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn wrong_arguments_are_told_what_would_be_right() {
    for (args, words) in [
        (&["drain", "cluster", "a"][..], "--reason"),
        (&["drain", "clutser", "a", "--reason", "x"], "cluster NAME"),
        (
            &["drain", "service", "web", "--reason", "x"],
            "NAMESPACE/NAME",
        ),
        (
            &["drain", "cluster", "a", "--reason", "x", "--in", "soon"],
            "10m",
        ),
        (
            &["drain", "cluster", "a", "--reason", "x", "--timeout", "5m"],
            "--wait",
        ),
        (&["undrain", "--reason", "x"], "TARGET|ID"),
        (
            &["undrain", "endpoint", "a", "--reason", "x"],
            "CLUSTER ADDRESS",
        ),
        (
            &["force", "sideways", "cluster", "a", "--reason", "x"],
            "up, down, clear",
        ),
        (
            &[
                "force", "clear", "cluster", "a", "--reason", "x", "--for", "1h",
            ],
            "not with `clear`",
        ),
        (&["force", "up", "a", "--reason", "x"], "cluster NAME"),
        (&["status", "servces"], "services"),
        (&["status", "services", "--state", "bad"], "degraded"),
        (&["status", "--server", "ns1:8053"], "http://127.0.0.1:8053"),
        (&["status", "--watch=0"], "30s"),
        (
            &["explain", "www.svc.mesh", "--client", "192.0.2.0/24"],
            "--server URL",
        ),
        (
            &[
                "explain",
                "www.svc.mesh",
                "--client",
                "192.0.2.0/24",
                "-c",
                "x",
                "--server",
                "http://x",
            ],
            "cannot be used with",
        ),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_meridian"))
            .args(args)
            .env_remove("MERIDIAN_CONFIG")
            .env_remove("MERIDIAN_SERVER")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: `{words}` is not in {said}");
    }
}

#[test]
fn nobody_there_is_told_with_what_to_do() {
    let (a, b) = (nowhere(), nowhere());
    let target = ["cluster", "aws-use1", "--reason", "x"];
    let explain = ["explain", "www.svc.mesh", "--client", "192.0.2.0/24"];
    let with = |head: &[&'static str], tail: &[&'static str]| [head, tail].concat();
    for args in [
        with(&["status"], &[]),
        with(&["status", "clusters"], &[]),
        with(&["status", "drains", "--output", "json"], &[]),
        with(&["drain"], &target),
        with(&["undrain"], &target),
        with(&["force", "down"], &target),
        with(&["unforce"], &target),
        with(&explain, &[]),
    ] {
        let mut args: Vec<&str> = args;
        args.extend(["--server", &a, "--server", &b]);
        let (code, out, err) = run(&args);
        assert_eq!((code, out.as_str()), (1, ""), "{args:?}");
        assert!(err.contains(&a) && err.contains(&b), "{args:?}: {err}");
        assert!(
            err.contains("meridian run") && err.contains("admin.listen"),
            "{err}"
        );
        assert!(err.starts_with("error: ") && !err.contains('\x1b'), "{err}");
    }
}

#[test]
fn nodes_and_tokens_are_taken_from_the_environment_too() {
    let (server, folder) = (nowhere(), tempfile::tempdir().unwrap());
    let token = folder.path().join("token");
    std::fs::write(&token, "s3cret-t0ken\n").unwrap();
    let with = |server: &str, token: &std::path::Path, args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_meridian"))
            .args(args)
            .env_remove("MERIDIAN_CONFIG")
            .env("MERIDIAN_SERVER", server)
            .env("MERIDIAN_TOKEN_FILE", token)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(!said.contains("s3cret"), "{said}");
        said
    };
    let explain = ["explain", "www.svc.mesh", "--client", "192.0.2.0/24"];
    for args in [&["status"][..], &explain] {
        let several = format!("{server},{}", nowhere());
        let said = with(&several, &token, args);
        assert!(
            said.contains(&server) && said.lines().count() == 2,
            "{said}"
        );
        // A token never goes in the clear to another machine.
        let said = with("http://192.0.2.1:8053", &token, args);
        assert!(
            said.contains("plain http") && said.contains("https://"),
            "{said}"
        );
        let said = with(&server, &folder.path().join("nowhere"), args);
        assert!(
            said.contains("token file") && said.contains("nowhere"),
            "{said}"
        );
        let said = with("https://me:s3cret@ns1.example.com", &token, args);
        assert!(said.contains("--token-file FILE"), "{said}");
    }
}
