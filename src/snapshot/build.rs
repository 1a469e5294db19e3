//! From inventory, zones and places to a snapshot.

use std::sync::Arc;

use super::frozen::Snapshot;
use super::settings::Settings;
use crate::geo::GeoDb;
use crate::inventory::{Dirty, Inventory};
use crate::model::{EndpointIndex, EndpointState, Groups, Rejection};
use crate::zone::ZoneSet;

/// All that a snapshot is made of. What is the same `Arc` as before is not looked at again.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// Clusters and services.
    pub inventory: &'a Inventory,
    /// Zones.
    pub zones: &'a Arc<ZoneSet>,
    /// Places.
    pub geo: &'a Arc<GeoDb>,
    /// Groups of countries.
    pub groups: &'a Arc<Groups>,
    /// Settings of answering.
    pub settings: &'a Arc<Settings>,
    /// Endpoint states that changed since the last build.
    pub states: &'a [(EndpointIndex, EndpointState)],
}

/// What building gave.
#[derive(Debug)]
pub struct Built {
    /// The next snapshot.
    pub snapshot: Snapshot,
    /// Claims refused (conflicts with static records, names outside our zones); the rest is served.
    pub rejections: Vec<Rejection>,
}

/// Builds the next snapshot out of the last one. Pure. The cost follows the size of the change: a changed set of zones or
/// clusters, or a new geo table, is a change of everything that hangs on it.
#[must_use]
pub fn build(inputs: &Inputs<'_>, dirty: &Dirty, last: &Snapshot) -> Built {
    let _ = (inputs, dirty, last);
    todo!()
}
