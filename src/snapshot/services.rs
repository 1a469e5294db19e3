//! Pages of services by index.

use std::sync::Arc;

use crate::inventory::Extras;
use crate::model::{PolicyIndex, Pools, Ttl};

/// What a query reads of one service.
#[derive(Clone, Debug)]
pub struct ServiceSlot {
    /// Its endpoints.
    pub pools: Pools,
    /// Its compiled policy.
    pub policy: PolicyIndex,
    /// Its TTL; `None`: that of the zone its name was found in.
    pub ttl: Option<Ttl>,
    /// What few services have.
    pub extras: Option<Arc<Extras>>,
}
