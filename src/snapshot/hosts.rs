//! Names of endpoints of headless services in cluster sets: `<label>.<cluster>` below a service's own name (KEP-1645).
//!
//! The table of names has the service's own name once; names of its endpoints are taken apart when they are asked for. So an
//! endpoint costs no entry, and comes and goes with its EndpointSlice.

use super::frozen::Snapshot;
use crate::inventory::HostNames;
use crate::model::{ClusterIndex, HeadlessEndpoint, NameRef, ServiceIndex, ZoneIndex};
use crate::zone::{Found, NameTree};

/// What the name of an endpoint stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtHost<'s> {
    /// Endpoints of a service.
    Endpoints {
        /// Which service.
        service: ServiceIndex,
        /// It may be answered as a CNAME.
        is_cname: bool,
        /// In which cluster.
        cluster: ClusterIndex,
        /// All of its endpoints of this name; at least one.
        endpoints: &'s [HeadlessEndpoint],
    },
    /// Nothing; names of endpoints lie below.
    Between,
}

impl Snapshot {
    /// Tells what stands at the name of an endpoint, in lower case, in a zone of ours; `None`: nothing, nor below. Whatever the table
    /// of names has there goes first. Never allocates.
    #[must_use]
    pub fn at_host(&self, zone: ZoneIndex, name: NameRef<'_>) -> Option<AtHost<'_>> {
        self.zones
            .get(zone)
            .filter(|zone| zone.forms().cluster_set)?;
        let (label, above) = (name.first_label()?, name.parent()?);
        if let Some((_, hosts)) = self.hosts_below(zone, above)
            && hosts.find(label).is_some()
        {
            return Some(AtHost::Between);
        }
        let (found, hosts) = self.hosts_below(zone, above.parent()?)?;
        let hosts = hosts.find(above.first_label()?)?;
        let endpoints = hosts.labeled(label);
        (!endpoints.is_empty()).then_some(AtHost::Endpoints {
            service: found.service?,
            is_cname: found.is_cname,
            cluster: hosts.cluster,
            endpoints,
        })
    }

    /// Finds the names of endpoints that lie below a name.
    fn hosts_below(&self, zone: ZoneIndex, name: NameRef<'_>) -> Option<(Found, &HostNames)> {
        let found = self.names.find(name).filter(|found| found.zone == zone)?;
        let extras = self.services.get(found.service?)?.extras.as_deref()?;
        let hosts = extras.hosts.as_ref()?;
        hosts.are_below(name).then_some((found, hosts))
    }
}
