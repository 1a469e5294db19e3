//! Who may ask what: tokens, bearer tokens of an identity provider, browser sessions, and the guard before every route.
//!
//! A handler says who may call it by what it takes: [`Viewer`], [`Operator`], [`PeerNode`], or [`MaybeIdentity`] where all
//! may. This part knows nothing of what the routes do.

mod extract;
mod identity;

pub(super) use extract::{MaybeIdentity, Operator, PeerNode, Viewer};
pub use identity::Role;
pub(super) use identity::{How, Identity};
