//! Why a cluster could not be joined or left, in one sentence each.

use std::path::PathBuf;

use super::manifest::Object;
use crate::source::kubernetes::members::{Fault, FaultKind, Verb};

/// Why it came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The kubeconfig cannot be used.
    #[error("kubeconfig: {0}")]
    Kubeconfig(Box<str>),
    /// The server did not do what was asked.
    #[error("{server}: {why}")]
    Server {
        /// Its URL.
        server: String,
        /// Why.
        why: String,
    },
    /// The folder for the kubeconfig is not there.
    #[error("{}: {why}", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The kubeconfig that was written does not lead to what was made.
    #[error("{server}: the new token does not do: {why}; nothing was written")]
    Check {
        /// The server.
        server: String,
        /// What it refused.
        why: String,
    },
    /// A file that is somebody else's.
    #[error("{}: {why}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why it is left alone, or could not be written.
        why: String,
    },
}

/// Says why a server did not do something with an object.
pub(super) fn refused(server: &str, verb: Verb, object: &Object, fault: &Fault) -> JoinError {
    let place = match &object.namespace {
        Some(namespace) => format!("in namespace {namespace}"),
        None => "in the whole cluster".to_owned(),
    };
    let right = format!("{} {} {place}", verb.word(), object.resource.plural);
    let why = match fault.kind {
        FaultKind::Answered(409) => format!(
            "{object} is there, and somebody else keeps it otherwise ({}); apply deploy/kubernetes/reader.yaml by hand, or delete it first",
            fault.text
        ),
        _ => said(
            &format!("cannot {} {object}", verb_word(verb)),
            &right,
            fault,
        ),
    };
    JoinError::Server {
        server: server.to_owned(),
        why,
    }
}

/// Says why a server did not do something. `right` is the right that it takes.
pub(super) fn said(doing: &str, right: &str, fault: &Fault) -> String {
    let text = &fault.text;
    match fault.kind {
        // RBAC's own words have "cannot"; other refusals with 403 are of another kind.
        FaultKind::Forbidden if text.contains(" cannot ") => {
            format!("{doing}: the user of this kubeconfig lacks the right to {right} ({text})")
        }
        FaultKind::Unauthorized => {
            format!("the credentials of this kubeconfig are not accepted ({text})")
        }
        FaultKind::Unreachable => format!("the API server cannot be reached ({text})"),
        _ => format!("{doing} ({text})"),
    }
}

/// Gives the word for what was to be done.
fn verb_word(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "look at",
        Verb::Apply => "apply",
        Verb::Create => "make a token for",
        Verb::Delete => "delete",
    }
}

#[cfg(test)]
mod tests {
    use super::super::manifest::Manifest;
    use super::*;

    #[test]
    fn refusals_say_what_is_missing_and_where() {
        let manifest = Manifest::of(&"meridian".parse().unwrap(), false);
        let account = &manifest.account;
        let role = &manifest.objects[2];
        for (kind, text, verb, object, wanted) in [
            (
                FaultKind::Forbidden,
                "status 403: User \"v\" cannot patch resource",
                Verb::Apply,
                account,
                "https://a: cannot apply ServiceAccount meridian/meridian-reader: the user of this kubeconfig lacks the right to \
                 patch serviceaccounts in namespace meridian (status 403: User \"v\" cannot patch resource)",
            ),
            (
                FaultKind::Forbidden,
                "status 403: namespace is being terminated",
                Verb::Apply,
                account,
                "https://a: cannot apply ServiceAccount meridian/meridian-reader (status 403: namespace is being terminated)",
            ),
            (
                FaultKind::Unreachable,
                "connection refused",
                Verb::Get,
                role,
                "https://a: the API server cannot be reached (connection refused)",
            ),
            (
                FaultKind::Answered(409),
                "status 409: conflict with \"kubectl\"",
                Verb::Apply,
                role,
                "https://a: ClusterRole meridian-reader is there, and somebody else keeps it otherwise \
                 (status 409: conflict with \"kubectl\"); apply deploy/kubernetes/reader.yaml by hand, or delete it first",
            ),
            (
                FaultKind::Unauthorized,
                "status 401: Unauthorized",
                Verb::Delete,
                role,
                "https://a: the credentials of this kubeconfig are not accepted (status 401: Unauthorized)",
            ),
        ] {
            let fault = Fault::new(kind, text);
            assert_eq!(
                refused("https://a", verb, object, &fault).to_string(),
                wanted
            );
        }
    }
}
