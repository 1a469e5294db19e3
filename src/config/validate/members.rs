//! Which clusters are members, whose objects are watched: `kubeconfig` and `inCluster` of `clusters`.

use std::collections::HashMap;
use std::path::PathBuf;

use super::{Files, read};
use crate::config::faults::Report;
use crate::config::spec::{Fields, Node, fields, v1};
use crate::model::ClusterId;
use crate::source::kubernetes::{Access, Trust};

/// Longest name of a context in octets: names of cloud resources are long.
const MAX_CONTEXT: usize = 253;

/// Why keys about Kubernetes do nothing.
pub(super) const NO_MEMBER: &str = "no cluster has `kubeconfig` or `inCluster` and none is looked for by `clustersFrom`, so nothing comes from Kubernetes";

/// Whether a cluster is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Membership {
    /// Not: endpoints of this file lie in it, and no others.
    Outside,
    /// It is meant to be, and what was written has a fault.
    Faulty,
    /// By its API server.
    Member(Access),
}

/// Checks how one cluster's API server is reached.
pub(super) fn read(fields: Fields<'_, '_>, files: &Files, report: &mut Report) -> Membership {
    let before = report.count();
    let access = access(fields, files, report);
    if report.count() > before {
        return Membership::Faulty;
    }
    access.map_or(Membership::Outside, Membership::Member)
}

/// Checks `kubeconfig` and `inCluster`; `None`: neither is written, or one of them has a fault.
pub(super) fn access(fields: Fields<'_, '_>, files: &Files, report: &mut Report) -> Option<Access> {
    let (written, inside) = (fields.get("kubeconfig"), fields.get("inCluster"));
    let is_inside = inside.and_then(|node| read::boolean(node, report)) == Some(true);
    let access = written.and_then(|node| kubeconfig(node, files, report));
    if let (Some(_), Some(node), true) = (written, inside, is_inside) {
        report.fault(
            node,
            "beside `kubeconfig`: an API server is reached in one way, so leave one of them out",
        );
    }
    access.or_else(|| is_inside.then_some(Access::InCluster))
}

/// Checks `kubeconfig`. The file is not looked at: it may come later, and change.
fn kubeconfig(node: Node<'_, '_>, files: &Files, report: &mut Report) -> Option<Access> {
    let fields = fields(node, &v1::KUBECONFIG, report)?;
    let file = fields.get("file").and_then(|node| files.path(node, report));
    let context = fields.get("context").map(|node| context(node, report));
    Some(Access::Kubeconfig {
        file: file?,
        context: match context {
            Some(context) => Some(context?),
            None => None,
        },
        trust: Trust::Whole,
    })
}

/// Reads the name of a context: any text, as in the file.
fn context(node: Node<'_, '_>, report: &mut Report) -> Option<Box<str>> {
    let text = read::text(node, report)?;
    if text.is_empty() || text.len() > MAX_CONTEXT || text.chars().any(char::is_control) {
        report.fault(
            node,
            format_args!("1 to {MAX_CONTEXT} printable characters are wanted"),
        );
        return None;
    }
    Some(text.into())
}

/// File and context; `None`: the cluster that this runs in.
type Way = Option<(PathBuf, Option<Box<str>>)>;

/// The members so far, by the way to them.
#[derive(Debug, Default)]
pub(super) struct Seen(HashMap<Way, ClusterId>);

impl Seen {
    /// Notes a member; one that is another one too is told.
    pub(super) fn note(
        &mut self,
        id: &ClusterId,
        access: &Access,
        fields: Fields<'_, '_>,
        report: &mut Report,
    ) {
        let way = match access {
            Access::InCluster | Access::Secret { .. } | Access::Absent(_) => None,
            Access::Kubeconfig { file, context, .. } => Some((file.clone(), context.clone())),
        };
        let Some(other) = self.0.get(&way) else {
            self.0.insert(way, id.clone());
            return;
        };
        if let (Access::InCluster, Some(node)) = (access, fields.get("inCluster")) {
            report.fault(
                node,
                format_args!("`{other}` is the cluster that this runs in already: it runs in one"),
            );
        } else if let Some(node) = fields.get("kubeconfig") {
            report.warn(
                node,
                format_args!("`{other}` has this file and context too: both would be one cluster, and its addresses in both"),
            );
        }
    }
}
