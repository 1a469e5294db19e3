//! Who asks, and what they may.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Reads.
    Viewer,
    /// Reads, and changes: drains and forces.
    Operator,
    /// Another node: observations and operators' records, nothing else.
    Peer,
}

impl Role {
    /// Gives its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Peer => "peer",
        }
    }

    /// Tells whether it includes another one: operators view, and nodes do only what nodes do.
    #[must_use]
    pub const fn includes(self, other: Self) -> bool {
        matches!(
            (self, other),
            (Self::Operator | Self::Viewer, Self::Viewer)
                | (Self::Operator, Self::Operator)
                | (Self::Peer, Self::Peer)
        )
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// How somebody showed who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Not at all: on this machine, and the configuration lets them view.
    Anonymous,
    /// By a token of `admin.tokens`.
    Token,
    /// By the cookie of a session.
    Session,
    /// By a bearer token of the identity provider.
    Oidc,
}

/// Somebody who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The token's name in the configuration, what the identity provider calls them, or `anonymous`. Without control
    /// characters, at most 128 octets.
    pub(crate) name: Arc<str>,
    /// What they may.
    pub(crate) role: Role,
    /// How they showed it.
    pub(crate) how: How,
    /// Where they ask from.
    pub(crate) from: IpAddr,
    /// The request, for the audit log.
    pub(crate) request: Arc<str>,
}
