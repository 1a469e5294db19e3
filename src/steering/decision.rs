//! What was decided, and why.

use std::fmt;

use super::selector::RankSet;
use crate::model::{Endpoint, FallbackSpec, PrefixLen};

/// How bad things were when the choice was made: the last resorts of DESIGN section 4.3, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Up and undrained.
    Up,
    /// The name is in panic: all that is neither drained nor forced down, whatever its health. Drains are an operator's word,
    /// and hold.
    Panic,
    /// Up but drained.
    Drained,
    /// All not forced down, as if Up: nothing is Up.
    AsIfUp,
    /// Forced down.
    ForcedDown,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Up => "up",
            Self::Panic => "neither drained nor forced down, in panic",
            Self::Drained => "up but drained",
            Self::AsIfUp => "not forced down, taken as up",
            Self::ForcedDown => "forced down",
        })
    }
}

/// What the order of clusters came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Basis {
    /// One cluster only, or a policy that does not look at the client.
    Fixed,
    /// The entry of `maps` at this position.
    Map(u8),
    /// Distance from the client's place.
    Distance,
    /// An operator's override put the client inside a cluster.
    Inside,
    /// The place is unknown and no catch-all matched: weights over all clusters.
    UnknownPlace,
    /// Drawn by weight: the policy says so, or no cluster's place is known.
    Weight,
    /// In turn.
    Turn,
    /// Every usable endpoint.
    Everything,
    /// The name of one endpoint was asked for.
    Named,
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed => "no choice of clusters",
            // Counted from 0, as paths of keys in the configuration are.
            Self::Map(entry) => return write!(f, "maps[{entry}]"),
            Self::Distance => "distance",
            Self::Inside => "inside the cluster by override",
            Self::UnknownPlace => "unknown place, weights over all clusters",
            Self::Weight => "weight",
            Self::Turn => "in turn",
            Self::Everything => "every usable endpoint",
            Self::Named => "an endpoint by its name",
        })
    }
}

/// Why this answer: closed sets only, fit for counters, logs and `explain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reason {
    /// What ordered the clusters.
    pub basis: Basis,
    /// The last resort reached: the level of what was chosen. For `fallback` the level that it stands before: [`Level::AsIfUp`].
    pub level: Level,
    /// The tier used, from 0.
    pub tier: u8,
    /// Clusters passed over because they had nothing usable.
    pub skipped: u8,
    /// The share of usable endpoints was below `panic`.
    pub panic: bool,
}

/// What the client gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Chosen<'p> {
    /// Endpoints of one cluster: its position in the service's [`crate::model::Pools`].
    Cluster {
        /// Position of the cluster.
        rank: u8,
        /// Which of its endpoints: those of this level or better.
        level: Level,
    },
    /// Endpoints of every cluster the client may have.
    Everything {
        /// Which endpoints: those of this level or better.
        level: Level,
    },
    /// A CNAME to the service's host name at this position.
    Hostname(u8),
    /// `fallback` of the policy.
    Fallback(&'p FallbackSpec),
    /// `fenceAnswer` of the policy: the fence leaves this client nothing.
    FenceAnswer(&'p FallbackSpec),
    /// NODATA with Extended DNS Error 18: the fence leaves this client nothing and there is no `fenceAnswer`.
    Denied,
    /// NODATA for this family: the client's other family names a usable address of the same cluster.
    OtherFamily,
    /// NODATA: the service has no address (of this family) for this client at all.
    Nothing,
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision<'p> {
    /// What the client gets.
    pub chosen: Chosen<'p>,
    /// Leading bits of the client's network that the answer depends on; 0 where the policy ignores the client.
    pub scope: PrefixLen,
    /// A monitor of an endpoint that was looked at is in doubt, so that the answer may change soon: the TTL is at most 5 s (DESIGN
    /// section 4.6). What comes after the chosen cluster is not looked at: its doubt cannot change this answer.
    pub brief: bool,
    /// Why.
    pub reason: Reason,
    /// The endpoint that is the whole answer, where that was seen on the way: it is what [`super::Policy::endpoints`] gives.
    pub only: Option<Endpoint>,
    /// The clusters that it was narrowed to; `None`: all that the policy has.
    pub(super) within: Option<RankSet>,
}
