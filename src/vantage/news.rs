//! What is told of peers: one word when one is lost, and one when it is back.

use std::sync::Arc;

/// A peer is lost, or back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerNews {
    /// Its URL.
    pub url: String,
    /// Its name, once it was heard of.
    pub name: Option<String>,
    /// Why it cannot be reached; `None` when it is heard of again.
    pub error: Option<String>,
}

/// Whom peers' comings and goings are told. It must not ask the vantage, and not wait.
#[derive(Clone)]
pub struct Listener(pub Arc<dyn Fn(PeerNews) + Send + Sync>);

impl Default for Listener {
    /// Tells nobody.
    fn default() -> Self {
        Self(Arc::new(drop))
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}
