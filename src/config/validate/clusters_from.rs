//! `clustersFrom`: where clusters come from that this file does not name.
//!
//! Nothing is looked at here: what a directory or a namespace has is no part of whether the configuration is right.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::clusters::Clusters;
use super::{Files, labels, members, read};
use crate::config::faults::Report;
use crate::config::spec::{Fields, Node, fields, v1};
use crate::model::ClusterId;
use crate::source::kubernetes::{Access, Admit, ClusterSource, FoundIn, SecretsPlace};

/// Most sources.
const MAX: usize = 100;
/// The labels of Secrets that are looked for, where nothing is said.
const SELECTOR: &str = "meridian-dns.io/cluster=true";
/// The key of a kubeconfig, where nothing is said.
const KEY: &str = "kubeconfig";
/// What stands for each key.
const EVERY_KEY: &str = "*";

/// Checks `clustersFrom`.
pub(super) fn read(
    node: Option<Node<'_, '_>>,
    known: (&Files, &Clusters<'_, '_>),
    report: &mut Report,
) -> Vec<ClusterSource> {
    let mut all: Vec<ClusterSource> = Vec::new();
    let Some(node) = node else { return all };
    let _: Vec<()> = read::list(node, report, |item, report| {
        let found = source(item, known, report)?;
        // They are known again by their names.
        let name = found.place.to_string();
        if all.iter().any(|other| other.place.to_string() == name) {
            report.fault(item, format_args!("`{name}` is written twice"));
        } else if all.len() == MAX {
            report.fault(
                item,
                format_args!("at most {MAX} sources of clusters are wanted"),
            );
        } else {
            all.push(found);
        }
        None
    });
    all
}

/// Checks one source.
fn source(
    node: Node<'_, '_>,
    known: (&Files, &Clusters<'_, '_>),
    report: &mut Report,
) -> Option<ClusterSource> {
    let before = report.count();
    let fields = fields(node, &v1::CLUSTER_SOURCE, report)?;
    let (directory, within) = (fields.get("directory"), fields.get("secrets"));
    let path = directory.and_then(|node| known.0.path(node, report));
    let place = within.and_then(|node| secrets(node, known, report));
    let admit = fields.get("admit");
    let admit = match admit.and_then(|node| read::word(node, v1::ADMIT, report)) {
        Some("observe") => Admit::Observe,
        _ => Admit::Serve,
    };
    let exec = fields.get("exec").map_or_else(Vec::new, |node| {
        read::list(node, report, |item, report| program(item, report))
    });
    match (directory, within) {
        (None, None) if report.count() == before => {
            report.fault(node, "a source of clusters needs `directory` or `secrets`");
        }
        (Some(_), Some(within)) => {
            report.fault(within, "beside `directory`: write two sources");
        }
        _ => {}
    }
    let place = path
        .map(FoundIn::Directory)
        .or_else(|| place.map(|place| FoundIn::Secrets(Arc::new(place))));
    Some(ClusterSource {
        place: place?,
        admit,
        exec: exec.into(),
    })
}

/// Checks `secrets`.
fn secrets(
    node: Node<'_, '_>,
    (files, clusters): (&Files, &Clusters<'_, '_>),
    report: &mut Report,
) -> Option<SecretsPlace> {
    let fields = fields(node, &v1::SECRETS, report)?;
    let reached = server(node, fields, (files, clusters), report);
    let namespace = fields.get("namespace").and_then(|node| {
        let text = read::text(node, report)?;
        let is_label = text.len() <= 63 && !text.contains('.') && text.parse::<ClusterId>().is_ok();
        if !is_label {
            report.fault(node, format_args!("`{text}` is no name of a namespace"));
        }
        is_label.then_some(text)
    });
    let selector = match fields.get("selector") {
        Some(node) => labels::selector(node, report),
        None => Some(SELECTOR),
    };
    let key = match fields.get("key") {
        Some(node) => data_key(node, report),
        None => Some(KEY),
    };
    let label = fields.get("nameLabel");
    let name_label = label.and_then(|node| labels::label_key(node, report));
    if let (Some(node), Some(EVERY_KEY)) = (label, key) {
        report.fault(node, "beside `key: \"*\"` the keys are the names");
    }
    let (server, cluster, access) = reached?;
    Some(SecretsPlace {
        server,
        cluster,
        access,
        namespace: namespace?.into(),
        selector: selector?.into(),
        key: Some(key?).filter(|key| *key != EVERY_KEY).map(Into::into),
        name_label: match label {
            Some(_) => Some(name_label?.into()),
            None => None,
        },
    })
}

/// Checks which API server has the Secrets: in words, what it is called in the log, and how it is reached.
fn server(
    node: Node<'_, '_>,
    fields: Fields<'_, '_>,
    (files, clusters): (&Files, &Clusters<'_, '_>),
    report: &mut Report,
) -> Option<(Box<str>, ClusterId, Access)> {
    let before = report.count();
    let named = fields.get("cluster");
    let own = members::access(fields, files, report);
    if report.count() > before {
        return None;
    }
    match (named, own) {
        (None, None) => {
            report.fault(
                node,
                "whose Secrets? Write `cluster`, `kubeconfig` or `inCluster: true`",
            );
            None
        }
        (Some(node), Some(_)) => {
            report.fault(
                node,
                "beside `kubeconfig` or `inCluster`: leave one of them out",
            );
            None
        }
        (Some(node), None) => {
            let name = read::text(node, report)?;
            let (_, cluster) = clusters.find(node, name, report)?;
            let access = clusters.access(name);
            if access.is_none() {
                report.fault(
                    node,
                    format_args!("`{name}` has neither `kubeconfig` nor `inCluster`"),
                );
            }
            let words = format!("cluster {name}");
            Some((words.into(), cluster.id.clone(), access?.clone()))
        }
        (None, Some(access)) => {
            let words = match &access {
                Access::Kubeconfig { file, context, .. } => match context {
                    Some(context) => format!("{}, context {context}", file.display()),
                    None => file.display().to_string(),
                },
                _ => "the cluster that this runs in".to_owned(),
            };
            // A word of letters and hyphens is a name.
            Some((words.into(), "clusters-from".parse().ok()?, access))
        }
    }
}

/// Reads the key of a Secret's data.
fn data_key<'t>(node: Node<'t, '_>, report: &mut Report) -> Option<&'t str> {
    let text = read::text(node, report)?;
    let fits = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_' | b'.');
    let is_key = (1..=253).contains(&text.len()) && text.bytes().all(fits);
    if !is_key && text != EVERY_KEY {
        report.fault(
            node,
            "a key of a Secret is wanted (letters, digits, `-`, `_` and `.`), or `*` for each",
        );
        return None;
    }
    Some(text)
}

/// Reads the path of a program. It is compared with what a kubeconfig says octet by octet, so it has one form only.
fn program(node: Node<'_, '_>, report: &mut Report) -> Option<PathBuf> {
    let text = read::text(node, report)?;
    let path = Path::new(text);
    let is_plain = path
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let is_program = path.is_absolute() && is_plain && path.file_name().is_some();
    if !is_program || text.ends_with('/') || text.chars().any(char::is_control) {
        report.fault(
            node,
            format_args!("`{text}`: the absolute path of a program is wanted"),
        );
        return None;
    }
    Some(path.to_owned())
}
