//! Drains by an object's own word, as what is watched: has the last answer left every cache?

use std::net::IpAddr;
use std::sync::Arc;

use crate::model::{
    ClusterId, Intent, OperatorRecord, OperatorTarget, RecordId, Said, ServiceKey, WallTime,
};

/// Endpoints that are watched at a time.
pub const MAX_WITHDRAWN: usize = 1000;

/// An endpoint of a service that its own object drains.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Withdrawn {
    /// The cluster.
    pub cluster: ClusterId,
    /// The service.
    pub service: ServiceKey,
    /// The address.
    pub address: IpAddr,
}

impl Withdrawn {
    /// Gives the id that its watch has on every node: peers tell each other by it. No record of an operator has such a one.
    #[must_use]
    pub fn id(&self) -> Option<RecordId> {
        let text = format!("{} {} {}", self.cluster, self.service, self.address);
        // FNV-1a over 128 bits: the same on every node.
        let hash = text.bytes().fold(
            0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128,
            |hash, octet| {
                let prime = 0x0000_0000_0100_0000_0000_0000_0000_013b;
                (hash ^ u128::from(octet)).wrapping_mul(prime)
            },
        );
        format!("object-{hash:032x}").parse().ok()
    }

    /// Makes what is watched. Nobody else sees this record: what it says is in force by the object's word.
    pub(super) fn record(&self, now: WallTime) -> Option<Arc<OperatorRecord>> {
        Some(Arc::new(OperatorRecord {
            id: self.id()?,
            target: OperatorTarget::Endpoint {
                cluster: self.cluster.clone(),
                address: self.address,
                service: Some(self.service.clone()),
            },
            intent: Intent::Drain,
            created: Said {
                time: now,
                actor: Box::default(),
                reason: Box::default(),
            },
            starts: now,
            expires: None,
            ended: None,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_has_an_id_of_its_own_and_the_same_everywhere() {
        let withdrawn = |cluster: &str, address: &str| Withdrawn {
            cluster: cluster.parse().unwrap(),
            service: ServiceKey::new("shop", "web").unwrap(),
            address: address.parse().unwrap(),
        };
        let one = withdrawn("aws", "192.0.2.1");
        assert_eq!(one.id(), one.clone().id());
        assert!(one.id().unwrap().as_str().starts_with("object-"));
        for other in [withdrawn("gcp", "192.0.2.1"), withdrawn("aws", "192.0.2.2")] {
            assert_ne!(one.id(), other.id());
        }
    }
}
