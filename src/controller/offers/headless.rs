//! The mirror of a shard's endpoints, where it is a Service without an address of its own.

use std::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::dto::{PortDto, read_port, written_port};
use crate::model::{HeadlessEndpoint, NamedPort};

/// The endpoints of one shard.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct HeadlessDto {
    /// Sets of named ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ports: Vec<Vec<PortDto>>,
    /// Label, address, and the position of its set of ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    endpoints: Vec<(String, IpAddr, usize)>,
}

impl From<&[HeadlessEndpoint]> for HeadlessDto {
    fn from(endpoints: &[HeadlessEndpoint]) -> Self {
        let mut sets: Vec<&Arc<[NamedPort]>> = Vec::new();
        let mut written = Vec::with_capacity(endpoints.len());
        for endpoint in endpoints {
            let known = sets.iter().position(|set| **set == endpoint.ports);
            let at = known.unwrap_or_else(|| {
                sets.push(&endpoint.ports);
                sets.len() - 1
            });
            written.push((endpoint.label.to_string(), endpoint.address, at));
        }
        let ports = sets.into_iter();
        Self {
            ports: ports
                .map(|set| set.iter().map(written_port).collect())
                .collect(),
            endpoints: written,
        }
    }
}

impl HeadlessDto {
    /// Reads them back; `None` where a part is not what we write.
    pub(super) fn read(self) -> Option<Box<[HeadlessEndpoint]>> {
        let sets = self.ports.iter();
        let sets = sets.map(|set| set.iter().map(read_port).collect::<Option<Arc<[_]>>>());
        let sets: Vec<Arc<[NamedPort]>> = sets.collect::<Option<_>>()?;
        let endpoints = self.endpoints.into_iter();
        let read = endpoints.map(|(label, address, at)| {
            Some(HeadlessEndpoint {
                label: label.parse().ok()?,
                address,
                ports: Arc::clone(sets.get(at)?),
            })
        });
        read.collect()
    }
}
