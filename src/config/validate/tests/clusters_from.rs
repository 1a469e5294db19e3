//! `clustersFrom`.

use std::path::PathBuf;

use super::*;
use crate::source::kubernetes::{Access, Admit, FoundIn};

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
    let directories = &config.kubernetes.sources;
    let paths = directories.iter().map(|one| match &one.place {
        FoundIn::Directory(path) => path.clone(),
        FoundIn::Secrets(place) => panic!("{place}"),
    });
    let paths: Vec<PathBuf> = paths.collect();
    assert!(paths[0].is_absolute() && paths[0].ends_with("clusters.d"));
    assert_eq!(paths[1], PathBuf::from("/etc/c"));
    assert!(directories.iter().all(|one| one.admit == Admit::Serve));
    assert!(directories[0].exec.is_empty());
    assert_eq!(directories[1].exec[..], [PathBuf::from("/bin/aws")]);
}

#[test]
fn secrets_are_sources_of_clusters() {
    let sources = "[{secrets: {cluster: hub, namespace: meridian}}, \
                   {secrets: {kubeconfig: {file: h, context: c}, namespace: fleet, selector: cluster.x-k8s.io/cluster-name, key: value, nameLabel: cluster.x-k8s.io/cluster-name}, admit: observe}, \
                   {secrets: {inCluster: true, namespace: istio-system, selector: 'istio/multiCluster=true', key: '*'}, exec: [/bin/aws]}]";
    let clusters =
        "clusters: [{name: hub, provider: aws, region: us-east-1, kubeconfig: {file: k}}]\n";
    let (config, warnings) = parse(&text(sources, clusters)).unwrap();
    assert_eq!(warnings, []);
    let places = config
        .kubernetes
        .sources
        .iter()
        .map(|one| match &one.place {
            FoundIn::Secrets(place) => place.clone(),
            FoundIn::Directory(path) => panic!("{path:?}"),
        });
    let places: Vec<_> = places.collect();
    let names: Vec<String> = places.iter().map(ToString::to_string).collect();
    assert_eq!(
        names[0],
        "Secrets meridian-dns.io/cluster=true in meridian of cluster hub"
    );
    assert!(names[1].ends_with("/h, context c"), "{names:?}");
    let keys: Vec<Option<&str>> = places.iter().map(|one| one.key.as_deref()).collect();
    assert_eq!(keys, [Some("kubeconfig"), Some("value"), None]);
    assert_eq!(places[0].cluster.as_str(), "hub");
    assert_eq!(places[0].access, config.kubernetes.members[0].access);
    assert!(
        matches!(&places[1].access, Access::Kubeconfig { context, .. } if context.as_deref() == Some("c"))
    );
    assert_eq!(
        places[1].name_label.as_deref(),
        Some("cluster.x-k8s.io/cluster-name")
    );
    assert_eq!(places[2].access, Access::InCluster);
    let admits: Vec<Admit> = config
        .kubernetes
        .sources
        .iter()
        .map(|one| one.admit)
        .collect();
    assert_eq!(admits, [Admit::Serve, Admit::Observe, Admit::Serve]);
}

/// Fails unless each of these sources has such a fault at its place.
fn check_faults(rows: &[(&str, &str, &str)]) {
    let clusters = "clusters: [{name: hub, kubeconfig: {file: k}}, {name: plain}]\n";
    for (sources, path, part) in rows {
        let faults = parse(&text(sources, clusters)).unwrap_err();
        let found = faults.iter();
        let mut found = found.filter(|fault| fault.path == *path && fault.message.contains(part));
        assert!(found.next().is_some(), "{sources}: {faults:#?}");
    }
}

#[test]
fn what_is_wrong_of_a_source_is_told_at_its_place() {
    check_faults(&[
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
    ]);
}

#[test]
fn what_is_wrong_of_secrets_is_told_at_its_place() {
    check_faults(&[
        ("[{}]", "clustersFrom[0]", "needs `directory` or `secrets`"),
        ("[{directory: ''}]", "clustersFrom[0].directory", "path"),
        (
            "[{secrets: {namespace: x}}]",
            "clustersFrom[0].secrets",
            "whose Secrets?",
        ),
        (
            "[{secrets: {inCluster: true}}]",
            "clustersFrom[0].secrets",
            "namespace",
        ),
        (
            "[{secrets: {inCluster: true, namespace: a.b}}]",
            "clustersFrom[0].secrets.namespace",
            "no name of a namespace",
        ),
        (
            "[{secrets: {cluster: nobody, namespace: x}}]",
            "clustersFrom[0].secrets.cluster",
            "no cluster is called `nobody`",
        ),
        (
            "[{secrets: {cluster: plain, namespace: x}}]",
            "clustersFrom[0].secrets.cluster",
            "neither `kubeconfig` nor `inCluster`",
        ),
        (
            "[{secrets: {cluster: hub, inCluster: true, namespace: x}}]",
            "clustersFrom[0].secrets.cluster",
            "leave one of them out",
        ),
        (
            "[{secrets: {kubeconfig: {file: h}, inCluster: true, namespace: x}}]",
            "clustersFrom[0].secrets.inCluster",
            "leave one of them out",
        ),
        (
            "[{secrets: {inCluster: true, namespace: x, selector: 'a=b&limit=1'}}]",
            "clustersFrom[0].secrets.selector",
            "no requirement",
        ),
        (
            "[{secrets: {inCluster: true, namespace: x, selector: ''}}]",
            "clustersFrom[0].secrets.selector",
            "no requirement",
        ),
        (
            "[{secrets: {inCluster: true, namespace: x, key: a/b}}]",
            "clustersFrom[0].secrets.key",
            "a key of a Secret",
        ),
        (
            "[{secrets: {inCluster: true, namespace: x, key: '*', nameLabel: a}}]",
            "clustersFrom[0].secrets.nameLabel",
            "the keys are the names",
        ),
        (
            "[{directory: a, secrets: {inCluster: true, namespace: x}}]",
            "clustersFrom[0].secrets",
            "write two sources",
        ),
        (
            "[{secrets: {inCluster: true, namespace: x}}, {secrets: {inCluster: true, namespace: x, key: k}}]",
            "clustersFrom[1]",
            "written twice",
        ),
    ]);
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
