//! `clustersFrom`.

use std::path::PathBuf;

use super::*;
use crate::source::kubernetes::Admit;

/// A configuration with this section, and what else is written.
fn text(sources: &str, rest: &str) -> String {
    format!("version: 1\nclustersFrom: {sources}\n{ZONE}{rest}")
}

const ZONE: &str =
    "zones: [{name: g.example, nameservers: [{name: ns.g.example, addresses: [192.0.2.53]}]}]\n";

#[test]
fn directories_are_sources_of_clusters() {
    let sources = "[{directory: clusters.d}, {directory: /etc/c, admit: serve, exec: [/bin/aws]}]";
    // Keys about Kubernetes have an effect, though no cluster is written.
    let rest = "kubernetes: {staleAfter: 3s}\nprobes: {allow: [10.0.0.0/8]}\n";
    let (config, warnings) = parse(&text(sources, rest)).unwrap();
    assert_eq!(warnings, []);
    let directories = &config.kubernetes.directories;
    let paths: Vec<_> = directories.iter().map(|one| one.path.clone()).collect();
    assert!(paths[0].is_absolute() && paths[0].ends_with("clusters.d"));
    assert_eq!(paths[1], PathBuf::from("/etc/c"));
    assert!(directories.iter().all(|one| one.admit == Admit::Serve));
    assert!(directories[0].exec.is_empty());
    assert_eq!(directories[1].exec[..], [PathBuf::from("/bin/aws")]);
}

#[test]
fn what_is_wrong_of_a_source_is_told_at_its_place() {
    for (sources, path, part) in [
        ("[{}]", "clustersFrom[0]", "needs `directory`"),
        ("[{directory: ''}]", "clustersFrom[0].directory", "path"),
        (
            "[{secrets: {namespace: x}}]",
            "clustersFrom[0].secrets",
            "not supported yet",
        ),
        (
            "[{directory: a}, {directory: a}]",
            "clustersFrom[1]",
            "written twice",
        ),
        (
            "[{directory: a, admit: maybe}]",
            "clustersFrom[0].admit",
            "observe",
        ),
        (
            "[{directory: a, exec: [aws]}]",
            "clustersFrom[0].exec[0]",
            "absolute path",
        ),
        (
            "[{directory: a, exec: [/bin/../x]}]",
            "clustersFrom[0].exec[0]",
            "absolute path",
        ),
        (
            "[{directory: a, exec: [/]}]",
            "clustersFrom[0].exec[0]",
            "absolute path",
        ),
    ] {
        let faults = parse(&text(sources, "")).unwrap_err();
        let found = faults.iter();
        let mut found = found.filter(|fault| fault.path == path && fault.message.contains(part));
        assert!(found.next().is_some(), "{sources}: {faults:#?}");
    }
}

#[test]
fn whether_a_name_is_known_does_not_hang_on_what_a_directory_has() {
    let map = "services: [{namespace: s, name: w, hostnames: [w.g.example], policy: {maps: [{clusters: [found, here]}]}, endpoints: [{cluster: here, addresses: [192.0.2.1]}]}]\n";
    let one = format!("clusters: [{{name: here, provider: aws, region: us-east-1}}]\n{map}");
    let faults = parse(&text("[{directory: a}]", &one)).unwrap_err();
    let shown = faults[0].to_string();
    assert!(
        shown.contains("`clustersFrom` finds is written there too"),
        "{shown}"
    );
    let both = one.replace(
        "clusters: [{name: here",
        "clusters: [{name: found}, {name: here",
    );
    let (config, warnings) = parse(&text("[{directory: a}]", &both)).unwrap();
    assert_eq!(
        (config.clusters.len(), config.kubernetes.members.len()),
        (2, 0)
    );
    assert_eq!(warnings, []);
}
