//! Names of ports of services in cluster sets: `_<port>._<carrier>` below a service's own name (KEP-1645).
//!
//! The table of names has the service's own name once; names of its ports are taken apart when they are asked for. So a port costs
//! no entry, and comes and goes with the service.

use std::num::NonZeroU16;

use super::frozen::Snapshot;
use crate::inventory::PortNames;
use crate::model::{Carrier, NameRef, ServiceIndex, ZoneIndex};
use crate::zone::NameTree;

/// What the name of a port stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtPort {
    /// A port of a service.
    Port {
        /// Which service.
        service: ServiceIndex,
        /// Its number.
        number: NonZeroU16,
    },
    /// Nothing; names of ports lie below.
    Between,
}

impl Snapshot {
    /// Tells what stands at the name of a port, in lower case, in a zone of ours; `None`: nothing, nor below. Whatever the table of
    /// names has there goes first. Never allocates.
    #[must_use]
    pub fn at_port(&self, zone: ZoneIndex, name: NameRef<'_>) -> Option<AtPort> {
        let (first, above) = (name.first_label()?, name.parent()?);
        let label = first.strip_prefix(b"_")?;
        if let Some(carrier) = Carrier::from_label(first)
            && let Some((_, ports)) = self.ports_below(zone, above)
            && ports.has(carrier)
        {
            return Some(AtPort::Between);
        }
        let carrier = Carrier::from_label(above.first_label()?)?;
        let (service, ports) = self.ports_below(zone, above.parent()?)?;
        let number = ports.find(label, carrier)?.number;
        Some(AtPort::Port { service, number })
    }

    /// Finds the service whose names of ports lie below a name.
    fn ports_below(
        &self,
        zone: ZoneIndex,
        name: NameRef<'_>,
    ) -> Option<(ServiceIndex, &PortNames)> {
        let found = self.names.find(name).filter(|found| found.zone == zone)?;
        let service = found.service?;
        let extras = self.services.get(service)?.extras.as_deref()?;
        let ports = extras.ports.as_ref()?;
        ports.are_below(name).then_some((service, ports))
    }
}
