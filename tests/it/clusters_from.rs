//! Directories of kubeconfigs, where no cluster answers.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::harness::door::token;
use crate::harness::node::{Node, meridian};
use crate::harness::raw_http::Web;
use crate::harness::wait_for;

const PATIENCE: Duration = Duration::from_secs(20);
const REFUSED: &str = "meridian_source_refused_files{kind=\"directory\"}";

const REST: &str = "
zones: [{name: g.example, nameservers: [{name: ns.g.example, addresses: [192.0.2.53]}]}]
clusters: [{name: written, kubeconfig: {file: written.yaml}}]
clustersFrom: [{directory: clusters.d}]
";

/// A kubeconfig of a server that nobody listens at.
const NOBODY: &str = "
current-context: x
clusters: [{name: x, cluster: {server: 'https://127.0.0.1:9'}}]
contexts: [{name: x, context: {cluster: x}}]
";

fn names(node: &Node) -> Vec<String> {
    let all = Web::get(node.http(), "/api/v1/clusters").send().json();
    let all = all["items"].as_array().cloned().unwrap_or_default();
    let names = all.iter().filter_map(|one| one["name"].as_str());
    names.map(ToOwned::to_owned).collect()
}

fn await_names(node: &Node, wanted: &[&str]) {
    wait_for(&format!("{wanted:?}"), PATIENCE, || {
        (names(node) == wanted).then_some(())
    });
}

#[test]
fn clusters_come_and_go_whatever_else_is_wrong() {
    let node = Node::start_on(crate::harness::loopback(), "", REST, |folder| {
        fs::create_dir(folder.join("clusters.d")).unwrap();
        fs::write(folder.join("clusters.d/a.yaml"), NOBODY).unwrap();
    });
    let directory = node.folder().join("clusters.d");
    await_names(&node, &["a", "written"]);
    node.await_metric(REFUSED, 0.0);
    // Files that are refused, each with its reason, cost nobody anything.
    for name in ["Bad.yaml", "written.yaml", "a.conf"] {
        fs::write(directory.join(name), NOBODY).unwrap();
    }
    node.await_metric(REFUSED, 1.0);
    let sources = Web::get(node.http(), "/api/v1/sources").send().json();
    let sources = sources["items"].as_array().unwrap().clone();
    let shown = sources
        .iter()
        .find(|one| one["kind"] == "directory")
        .unwrap();
    assert_eq!(
        (&shown["state"], &shown["refusedCount"]),
        (&"refused".into(), &3.into())
    );
    let shown = shown.to_string();
    for part in [
        "no name of a cluster",
        "has a kubeconfig of its own",
        "is that of",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // Which file it is stands in the overview and in the status, and has a row of its own.
    let status = Web::get(node.http(), "/api/v1/status").send().json();
    let problems = status["problems"].to_string();
    assert!(
        problems.contains("Bad.yaml") && problems.contains("2 more"),
        "{problems}"
    );
    let row = format!("{{kind=\"directory\",name=\"{}\"}} 1", directory.display());
    let metrics = node.get("/metrics").unwrap();
    let family = "meridian_source_file_refused";
    assert!(
        metrics.contains(&format!("{family}{row}")),
        "{row}: {metrics}"
    );
    assert_eq!(names(&node), ["a", "written"]);
    for name in ["Bad.yaml", "written.yaml"] {
        fs::remove_file(directory.join(name)).unwrap();
    }
    // A configuration that is broken on disk does not keep a cluster out.
    node.write_config("version: 1\nbroken: [");
    node.await_metric("meridian_config_reload_failing", 1.0);
    fs::write(directory.join("b.yml"), "no kubeconfig: [").unwrap();
    await_names(&node, &["a", "b", "written"]);
    // What stands in it is refused too; and so is what takes the place of a good one, which stays in use.
    fs::write(directory.join("a.yaml"), "current-context: [").unwrap();
    fs::remove_file(directory.join("a.conf")).unwrap();
    wait_for("two files to be refused", PATIENCE, || {
        let all = Web::get(node.http(), "/api/v1/sources").send().json();
        let all = all["items"].as_array()?.clone();
        let shown = all.iter().find(|one| one["kind"] == "directory")?;
        let refused = shown["refused"].to_string();
        let is_told = |file: &str| refused.contains(&format!("clusters.d/{file}"));
        let is_all = shown["refusedCount"] == 2 && is_told("a.yaml") && is_told("b.yml");
        (is_all && refused.contains("is no kubeconfig in YAML: line 1")).then_some(())
    });
    let status = Web::get(node.http(), "/api/v1/status").send().json();
    let problems = status["problems"].to_string();
    for part in ["clusters.d has faults", "Nothing of it is served"] {
        assert!(problems.contains(part), "{part}: {problems}");
    }
    // A directory that is gone is not empty.
    let aside = node.folder().join("aside");
    fs::rename(&directory, &aside).unwrap();
    wait_for("the directory to be refused", PATIENCE, || {
        let status = Web::get(node.http(), "/api/v1/status").send().json();
        let problems = status["problems"].to_string();
        problems.contains("clusters.d is refused").then_some(())
    });
    assert_eq!(names(&node), ["a", "b", "written"]);
    fs::rename(&aside, &directory).unwrap();
    node.await_metric(REFUSED, 1.0);
    // Who offers nothing has nobody to be drained: it goes at once.
    fs::remove_file(directory.join("b.yml")).unwrap();
    await_names(&node, &["a", "written"]);
    let dropping = Web::new(node.http(), "DELETE", "/api/v1/clusters/a?reason=x").send();
    assert_eq!(dropping.status, 401, "{dropping:?}");
}

#[test]
fn a_cluster_that_nobody_can_tell_of_is_kept_until_an_operator_drops_it() {
    let operator = token();
    let admin = "tokens: [{name: ops, file: ops.token, role: operator}], ";
    let node = Node::start_admin(admin, REST, |folder| {
        fs::write(folder.join("ops.token"), &operator.line).unwrap();
        fs::create_dir(folder.join("clusters.d")).unwrap();
        for name in ["a.yaml", "b.yaml"] {
            fs::write(folder.join("clusters.d").join(name), NOBODY).unwrap();
        }
    });
    await_names(&node, &["a", "b", "written"]);
    let drop = |name: &str| {
        let path = format!("/api/v1/clusters/{name}?reason=gone");
        let request = Web::new(node.http(), "DELETE", &path);
        request.bearer(&operator.text).send()
    };
    // It is there.
    let refused = drop("a");
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.body.contains("is there"), "{refused:?}");
    // Another directory, which there is not: they may be in it.
    node.write_config(&node.config().replace("clusters.d", "later.d"));
    node.await_metric("meridian_config_reloads_total", 1.0);
    assert_eq!(names(&node), ["a", "b", "written"]);
    let dropped = drop("a");
    assert_eq!(dropped.status, 200, "{dropped:?}");
    await_names(&node, &["b", "written"]);
    assert_eq!(drop("a").status, 404);
    // Found where it is after all, it is there again.
    fs::rename(
        node.folder().join("clusters.d"),
        node.folder().join("later.d"),
    )
    .unwrap();
    await_names(&node, &["a", "b", "written"]);
}

/// Runs `check`; gives what it prints.
fn check(folder: &Path) -> String {
    let path = folder.join("m.yaml");
    fs::write(&path, format!("version: 1\n{REST}")).unwrap();
    let output = meridian(&["check", "--config", path.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn check_tells_of_directories_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let said = check(folder.path());
    let place = "m.yaml:5:28: warning: clustersFrom[0].directory: ";
    assert!(
        said.contains(place) && said.contains("cannot read"),
        "{said}"
    );
    let directory = folder.path().join("clusters.d");
    fs::create_dir(&directory).unwrap();
    for (name, text) in [("Bad.yaml", NOBODY), ("a.yaml", NOBODY), ("b.yaml", "{}")] {
        fs::write(directory.join(name), text).unwrap();
    }
    let said = check(folder.path());
    for part in [
        "Bad.yaml: its name is no name",
        "`b` is not watched",
        "3 clusters",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("`a` is not watched"), "{said}");
}
