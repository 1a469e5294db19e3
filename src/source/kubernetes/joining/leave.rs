//! Leaving: takes away in a member what joining made there.

use std::path::Path;

use super::error::{JoinError, refused};
use super::file::failed;
use super::join::connect;
use super::manifest::{Manifest, Namespace};
use super::steps::{Deed, Step};
use crate::source::kubernetes::members::{Connection, FaultKind, Verb};
use crate::source::kubernetes::rules::{Access, Trust};

/// What is to be taken away, and by whose rights.
#[derive(Clone, Debug)]
pub struct Leaving {
    /// The kubeconfig and context of somebody who may take rights away.
    pub access: Access,
    /// The namespace of the service account.
    pub namespace: Namespace,
}

impl Leaving {
    /// Gives the server where it is to be taken away, and asks nobody.
    ///
    /// # Errors
    /// When the kubeconfig cannot be used.
    pub async fn server(&self) -> Result<String, JoinError> {
        let endpoint = Connection::leads_to(&self.access).await;
        let endpoint = endpoint.map_err(|fault| JoinError::Kubeconfig(fault.text))?;
        Ok(endpoint.url)
    }

    /// Tells whether a cluster's own kubeconfig leads to the same server; one that is not there, or cannot be read, says nothing.
    ///
    /// # Errors
    /// When it leads elsewhere, or that of whoever asks cannot be used.
    pub async fn fits(&self, file: &Path) -> Result<bool, JoinError> {
        if !file.exists() {
            return Ok(false);
        }
        let url = self.server().await?;
        let own = Access::Kubeconfig {
            file: file.to_owned(),
            context: None,
            trust: Trust::Whole,
        };
        // What cannot be read may be removed all the same.
        match Connection::leads_to(&own).await {
            Ok(endpoint) if endpoint.url != url => Err(failed(
                file,
                &format!(
                    "leads to {}, and --kubeconfig to {url}; if both are the same cluster, leave in two steps: with --directory, \
                     then with --kubeconfig",
                    endpoint.url
                ),
            )),
            Ok(_) => Ok(true),
            Err(_) => Ok(false),
        }
    }
}

/// Takes away the token, the rights and the service account. The namespace stays: others may have things in it.
///
/// # Errors
/// In one sentence: what the server or the kubeconfig does not allow. What was taken away until then stays away.
pub async fn leave(leaving: &Leaving) -> Result<Vec<Step>, JoinError> {
    let admin = connect(&leaving.access).await?;
    // Whether Events were written back or not: nothing of it stays.
    let manifest = Manifest::of(&leaving.namespace, true);
    let secret = manifest.secret();
    let made = manifest.objects.iter().rev();
    let ours = made.filter(|object| object.resource.kind != "Namespace");
    let mut steps = Vec::new();
    for object in [&secret].into_iter().chain(ours) {
        let deed = match admin.ask(Verb::Delete, &object.path(), None).await {
            Ok(_) => Deed::Deleted,
            Err(fault) if fault.kind == FaultKind::Missing => Deed::Absent,
            Err(fault) => {
                return Err(refused(&admin.endpoint().url, Verb::Delete, object, &fault));
            }
        };
        steps.push(Step::new(object, deed));
    }
    Ok(steps)
}
