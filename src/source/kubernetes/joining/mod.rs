//! Joining a member cluster and leaving it: what is made there for a node to read by, and the kubeconfig that leads to it.
//!
//! `manifest` knows the objects, which are those of `deploy/kubernetes/reader.yaml`, `entry` the text of a kubeconfig, `file` where
//! it is kept; `join` and `leave` carry it out with somebody's own rights. Called by `app`'s command `cluster`. A node that runs
//! never comes here: it writes nothing into a cluster.

mod entry;
mod error;
mod file;
mod join;
mod leave;
mod manifest;
mod steps;
mod token;

pub use entry::Entry;
pub use error::JoinError;
pub use file::{kubeconfig_file, remove_file};
pub use join::{Granted, Joined, Place, Wish, join};
pub use leave::{Leaving, leave};
pub use manifest::Namespace;
pub use steps::{Deed, Step};
