//! What a snapshot is made of.

use std::sync::Arc;

use super::challenges::Challenges;
use super::settings::Settings;
use crate::geo::GeoDb;
use crate::inventory::Inventory;
use crate::model::{EndpointIndex, EndpointState, Groups};
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
    /// Challenges of certificate authorities.
    pub challenges: &'a Arc<Challenges>,
    /// Endpoint states that changed since the last build. Of two for one endpoint the later wins.
    pub states: &'a [(EndpointIndex, EndpointState)],
}
