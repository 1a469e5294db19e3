//! `clustersFrom`: where clusters come from that this file does not name.
//!
//! Nothing is looked at here: what a directory has is no part of whether the configuration is right.

use std::path::{Component, Path, PathBuf};

use super::{Files, read};
use crate::config::faults::Report;
use crate::config::spec::{Node, fields, v1};
use crate::source::kubernetes::{Admit, ClusterDirectory};

/// Most sources.
const MAX: usize = 100;

/// Checks `clustersFrom`.
pub(super) fn read(
    node: Option<Node<'_, '_>>,
    files: &Files,
    report: &mut Report,
) -> Vec<ClusterDirectory> {
    let mut all: Vec<ClusterDirectory> = Vec::new();
    let Some(node) = node else { return all };
    let _: Vec<()> = read::list(node, report, |item, report| {
        let found = directory(item, files, report)?;
        if all.iter().any(|other| other.path == found.path) {
            let path = found.path.display();
            report.fault(item, format_args!("`{path}` is written twice"));
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
fn directory(node: Node<'_, '_>, files: &Files, report: &mut Report) -> Option<ClusterDirectory> {
    let before = report.count();
    let fields = fields(node, &v1::CLUSTER_SOURCE, report)?;
    let directory = fields.get("directory");
    let path = directory.and_then(|node| files.path(node, report));
    let admit = fields.get("admit");
    let admit = match admit.and_then(|node| read::word(node, v1::ADMIT, report)) {
        Some("observe") => Admit::Observe,
        _ => Admit::Serve,
    };
    let exec = fields.get("exec").map_or_else(Vec::new, |node| {
        read::list(node, report, |item, report| program(item, report))
    });
    if directory.is_none() && report.count() == before {
        report.fault(node, "a source of clusters needs `directory`");
    }
    Some(ClusterDirectory {
        path: path?,
        admit,
        exec: exec.into(),
    })
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
