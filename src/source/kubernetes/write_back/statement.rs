//! What stands of an object, in words for those who made it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::inventory::ObjectRef;
use crate::model::ClusterIndex;

/// Octets of a message, at most: events.k8s.io/v1 takes 1024.
const MAX_MESSAGE: usize = 1024;

/// Why something is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// A part of what it says was refused.
    InvalidAnnotation,
    /// It asks to be served, and what it is does not allow that.
    NotServed,
    /// Another has a name that it asks for.
    HostnameConflict,
    /// Members of its service do not agree.
    PolicyConflict,
    /// Where its traffic enters is not followed, or not answered.
    TargetRefused,
    /// No endpoint of its service is healthy.
    NoHealthyCluster,
    /// The check of one of its addresses never succeeded.
    MonitorNeverSucceeded,
    /// It is drained, by its own word or by an operator.
    Draining,
    /// And nobody has its addresses any more.
    SafeToStop,
    /// Its names are answered with its addresses.
    Published,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::InvalidAnnotation,
        Self::NotServed,
        Self::HostnameConflict,
        Self::PolicyConflict,
        Self::TargetRefused,
        Self::NoHealthyCluster,
        Self::MonitorNeverSucceeded,
        Self::Draining,
        Self::SafeToStop,
        Self::Published,
    ];

    /// Gives its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidAnnotation => "InvalidAnnotation",
            Self::NotServed => "NotServed",
            Self::HostnameConflict => "HostnameConflict",
            Self::PolicyConflict => "PolicyConflict",
            Self::TargetRefused => "TargetRefused",
            Self::NoHealthyCluster => "NoHealthyCluster",
            Self::MonitorNeverSucceeded => "MonitorNeverSucceeded",
            Self::Draining => "Draining",
            Self::SafeToStop => "SafeToStop",
            Self::Published => "Published",
        }
    }

    /// Tells whether somebody should look: such a thing is said again while it stands.
    #[must_use]
    pub fn is_warning(self) -> bool {
        match self {
            Self::InvalidAnnotation
            | Self::NotServed
            | Self::HostnameConflict
            | Self::PolicyConflict
            | Self::TargetRefused
            | Self::NoHealthyCluster
            | Self::MonitorNeverSucceeded => true,
            Self::Draining | Self::SafeToStop | Self::Published => false,
        }
    }

    /// Gives what was being done.
    pub(super) fn action(self) -> &'static str {
        match self {
            Self::InvalidAnnotation | Self::NotServed => "Read",
            Self::HostnameConflict | Self::PolicyConflict => "Claim",
            Self::TargetRefused => "Follow",
            Self::NoHealthyCluster | Self::MonitorNeverSucceeded => "Monitor",
            Self::Draining | Self::SafeToStop => "Drain",
            Self::Published => "Publish",
        }
    }

    /// Gives how long it must stand before it is said: what flips by itself a while, the others until a list is read to its end
    /// and services are made of it.
    pub(super) fn hold(self) -> Duration {
        Duration::from_secs(match self {
            Self::NoHealthyCluster => 10,
            Self::MonitorNeverSucceeded => 5,
            // A node that starts sees one object after the other, and one cluster after the other.
            Self::HostnameConflict | Self::PolicyConflict | Self::TargetRefused => 3,
            Self::InvalidAnnotation | Self::NotServed | Self::Published => 1,
            Self::Draining | Self::SafeToStop => 0,
        })
    }
}

/// What stands of an object of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Statement {
    /// The object.
    pub object: ObjectRef,
    /// Why.
    pub reason: Reason,
    /// For people: one line of at most 1,024 octets. It changes only when something else is to be said.
    message: Box<str>,
}

impl Statement {
    /// Makes one. What could break the line is left out of the message, and what is too long is cut.
    #[must_use]
    pub fn new(object: ObjectRef, reason: Reason, message: &str) -> Self {
        let is_plain = |c: &char| {
            !c.is_control()
                && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        };
        let mut plain: String = message.chars().filter(is_plain).collect();
        if plain.len() > MAX_MESSAGE {
            plain.truncate(plain.floor_char_boundary(MAX_MESSAGE - '…'.len_utf8()));
            plain.push('…');
        }
        Self {
            object,
            reason,
            message: plain.into(),
        }
    }

    /// Gives the message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// All that stands, by cluster.
pub type Statements = Arc<BTreeMap<ClusterIndex, Vec<Arc<Statement>>>>;
