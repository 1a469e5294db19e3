//! What configuration says of other nodes.

use std::path::PathBuf;

/// One entry of `peers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its admin listener, such as `https://ns2.example.com:8053`; clear text on loopback only.
    pub url: String,
    /// The file with the token that it knows us by, role `peer` there.
    pub token_file: Option<PathBuf>,
    /// Certificates to trust for it in place of the system's, PEM.
    pub ca: Option<PathBuf>,
}

/// `peers`, and who we are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// This node's name.
    pub node: String,
    /// The others, and perhaps this one too.
    pub peers: Vec<Peer>,
}
