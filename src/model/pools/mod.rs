//! A service's endpoints in one compact allocation, shared by the inventory and every snapshot.
//!
//! Layout (little endian): cluster count `n: u8`, one octet zero, `n` offsets `u16` to the first pool of each cluster, then
//! the pools grouped by cluster in ascending order. A pool: cluster `u16`, weight `u16`, clients `u8` (0 none, else one more
//! than the position in the list of client sets), hostname `u8` (0 none, else one more than the position in the list of
//! hostnames), IPv4 count `u8`, IPv6 count `u8`, then state `u32` of the host name, if it is one, per IPv4 endpoint state
//! `u32` and 4 octets, per IPv6 endpoint state `u32` and 16 octets.

use std::ffi::c_void;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use triomphe::{Arc, ThinArc};

use super::endpoint::{Endpoint, Weight};
use super::index::{ClusterIndex, EndpointIndex};

/// Octets of a pool before its endpoints.
const POOL_HEADER: usize = 8;
/// Octets of a host name: its state.
const HOST_SIZE: usize = 4;
/// Octets of an IPv4 endpoint.
const V4_SIZE: usize = 8;
/// Octets of an IPv6 endpoint.
const V6_SIZE: usize = 20;

/// Why endpoints could not be packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolsError {
    /// More than 255 clusters in one service, 255 client sets, or 255 hostnames.
    #[error("a service has at most 255 clusters, 255 sets of clients and 255 host names")]
    TooMany,
    /// More than 64 KiB of endpoints in one service (about 3,000 addresses).
    #[error("a service has at most 64 KiB of endpoints")]
    TooLarge,
}

/// All endpoints of one service, grouped by cluster. Cheap to clone. May be empty. One word: how many octets there are stands
/// before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pools(ThinArc<(), u8>);

impl Default for Pools {
    fn default() -> Self {
        Self::packed(&[0, 0])
    }
}

impl Pools {
    fn packed(octets: &[u8]) -> Self {
        Self(ThinArc::from_header_and_slice((), octets))
    }

    /// Counts the distinct clusters.
    #[must_use]
    #[inline]
    pub fn cluster_count(&self) -> usize {
        self.as_bytes().first().copied().map_or(0, usize::from)
    }

    /// Iterates over the distinct clusters, ascending. A *rank* elsewhere is a position in this list.
    pub fn clusters(&self) -> impl Iterator<Item = ClusterIndex> + '_ {
        (0..self.cluster_count()).filter_map(|rank| self.cluster(rank))
    }

    /// Gives the cluster at a position; `None` beyond the last.
    #[must_use]
    pub fn cluster(&self, rank: usize) -> Option<ClusterIndex> {
        let pool = self.as_bytes().get(self.offset(rank)?..)?;
        Some(ClusterIndex(u16::from_le_bytes([
            *pool.first()?,
            *pool.get(1)?,
        ])))
    }

    /// Iterates over the pools of the cluster at a position.
    #[inline]
    pub fn of(&self, rank: usize) -> impl Iterator<Item = PoolRef<'_>> + Clone {
        let octets = self.as_bytes();
        let start = self.offset(rank);
        let end = self.offset(rank + 1).unwrap_or(octets.len());
        let mut at = start.unwrap_or(end);
        std::iter::from_fn(move || {
            let pool = PoolRef::parse(octets.get(..end)?, at)?;
            at += pool.size();
            Some(pool)
        })
    }

    /// Gives the pool of the cluster at a position where it is the only one and plain: of addresses, with a weight, for
    /// everyone. The common case, read with few instructions.
    #[must_use]
    #[inline]
    pub fn plain(&self, rank: usize) -> Option<PoolRef<'_>> {
        let octets = self.as_bytes();
        let start = self.offset(rank)?;
        let end = self.offset(rank + 1).unwrap_or(octets.len());
        let pool = PoolRef::parse(octets, start)?;
        let is_plain = pool.weight().0 > 0 && pool.clients().is_none() && pool.hostname().is_none();
        (is_plain && start + pool.size() == end).then_some(pool)
    }

    /// Gives the pool at a position that [`PoolRef::position`] told; nonsense elsewhere, but never out of bounds.
    #[must_use]
    #[inline]
    pub fn at(&self, position: u16) -> Option<PoolRef<'_>> {
        PoolRef::parse(self.as_bytes(), usize::from(position))
    }

    /// Iterates over all pools.
    pub fn iter(&self) -> impl Iterator<Item = PoolRef<'_>> {
        (0..self.cluster_count()).flat_map(|rank| self.of(rank))
    }

    /// Counts all endpoints.
    #[must_use]
    pub fn endpoint_count(&self) -> usize {
        self.iter()
            .map(|pool| pool.v4_count() + pool.v6_count())
            .sum()
    }

    /// Gives where the pools of the cluster at a position start among the octets; 0 beyond the last. For prefetching.
    #[must_use]
    #[inline]
    pub fn start(&self, rank: usize) -> usize {
        self.offset(rank).unwrap_or(0)
    }

    /// Gives the octets.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0.slice
    }

    /// Gives where they are, for prefetching: nothing is read of what is there.
    #[must_use]
    #[inline]
    pub fn place(&self) -> *const c_void {
        self.0.heap_ptr()
    }

    /// Writes the states that `state_of(cluster, address)` gives into every endpoint; a host name has the unspecified address.
    /// Copies first when shared.
    pub fn assign_states(
        &mut self,
        mut state_of: impl FnMut(ClusterIndex, IpAddr) -> EndpointIndex,
    ) {
        let plan: Vec<(usize, EndpointIndex)> = {
            let base = self.as_bytes().as_ptr() as usize;
            let mut plan = Vec::with_capacity(self.endpoint_count());
            for pool in self.iter() {
                let cluster = pool.cluster();
                if !pool.host.is_empty() {
                    let nowhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
                    plan.push((
                        pool.host.as_ptr() as usize - base,
                        state_of(cluster, nowhere),
                    ));
                }
                for (chunk, endpoint) in pool.v4.chunks_exact(V4_SIZE).zip(pool.v4()) {
                    plan.push((
                        chunk.as_ptr() as usize - base,
                        state_of(cluster, endpoint.address),
                    ));
                }
                for (chunk, endpoint) in pool.v6.chunks_exact(V6_SIZE).zip(pool.v6()) {
                    plan.push((
                        chunk.as_ptr() as usize - base,
                        state_of(cluster, endpoint.address),
                    ));
                }
            }
            plan
        };
        let write = |octets: &mut [u8]| {
            for (at, state) in plan {
                if let Some(slot) = octets.get_mut(at..at + 4) {
                    slot.copy_from_slice(&state.0.to_le_bytes());
                }
            }
        };
        if !self.0.with_arc(Arc::is_unique) {
            *self = Self::packed(self.as_bytes());
        }
        self.0.with_arc_mut(|octets| {
            if let Some(own) = Arc::get_mut(octets) {
                write(own.slice_mut());
            }
        });
    }

    #[inline]
    fn offset(&self, rank: usize) -> Option<usize> {
        if rank >= self.cluster_count() {
            return None;
        }
        let at = 2 + rank * 2;
        Some(usize::from(u16::from_le_bytes([
            *self.as_bytes().get(at)?,
            *self.as_bytes().get(at + 1)?,
        ])))
    }
}

/// One pool: endpoints of one cluster with one weight and one set of clients, as one entry of `endpoints` has them.
#[derive(Clone, Copy, Debug)]
pub struct PoolRef<'a> {
    /// Where its header begins.
    position: u16,
    header: &'a [u8; POOL_HEADER],
    /// The state of the host name; empty where there is none.
    host: &'a [u8],
    v4: &'a [u8],
    v6: &'a [u8],
}

impl<'a> PoolRef<'a> {
    /// Reads the pool whose header begins at a position.
    #[inline]
    fn parse(octets: &'a [u8], at: usize) -> Option<Self> {
        let (header, rest) = octets.get(at..)?.split_first_chunk::<POOL_HEADER>()?;
        let [_, _, _, _, _, hostname, v4, v6] = *header;
        let (host, rest) = rest.split_at_checked(usize::from(hostname > 0) * HOST_SIZE)?;
        let (v4, rest) = rest.split_at_checked(usize::from(v4) * V4_SIZE)?;
        let (v6, _) = rest.split_at_checked(usize::from(v6) * V6_SIZE)?;
        Some(Self {
            // Pools have at most 64 KiB.
            position: u16::try_from(at).ok()?,
            header,
            host,
            v4,
            v6,
        })
    }

    /// Counts its octets.
    #[inline]
    fn size(&self) -> usize {
        POOL_HEADER + self.host.len() + self.v4.len() + self.v6.len()
    }

    /// Gives its position among the octets of all pools: what [`Pools::at`] takes.
    #[must_use]
    #[inline]
    pub fn position(&self) -> u16 {
        self.position
    }

    /// Gives the cluster.
    #[must_use]
    #[inline]
    pub fn cluster(&self) -> ClusterIndex {
        let [low, high, ..] = *self.header;
        ClusterIndex(u16::from_le_bytes([low, high]))
    }

    /// Gives the weight.
    #[must_use]
    #[inline]
    pub fn weight(&self) -> Weight {
        let [_, _, low, high, ..] = *self.header;
        Weight(u16::from_le_bytes([low, high]))
    }

    /// Gives the position in the service's list of client sets; `None`: for everyone.
    #[must_use]
    #[inline]
    pub fn clients(&self) -> Option<usize> {
        let [_, _, _, _, clients, ..] = *self.header;
        usize::from(clients).checked_sub(1)
    }

    /// Gives the position in the service's list of hostnames; `None`: this pool has addresses.
    #[must_use]
    #[inline]
    pub fn hostname(&self) -> Option<usize> {
        let [_, _, _, _, _, hostname, ..] = *self.header;
        usize::from(hostname).checked_sub(1)
    }

    /// Gives the state of its host name; `None`: this pool has addresses.
    #[must_use]
    #[inline]
    pub fn host_state(&self) -> Option<EndpointIndex> {
        let state = self.host.first_chunk::<HOST_SIZE>()?;
        Some(EndpointIndex(u32::from_le_bytes(*state)))
    }

    /// Iterates over the states of all that it has: of its host name, or of its addresses.
    pub fn states(&self) -> impl Iterator<Item = EndpointIndex> + use<'a> {
        let addresses = self.v4().chain(self.v6());
        self.host_state()
            .into_iter()
            .chain(addresses.map(|endpoint| endpoint.state))
    }

    /// Counts the IPv4 endpoints.
    #[must_use]
    #[inline]
    pub fn v4_count(&self) -> usize {
        self.v4.len() / V4_SIZE
    }

    /// Counts the IPv6 endpoints.
    #[must_use]
    #[inline]
    pub fn v6_count(&self) -> usize {
        self.v6.len() / V6_SIZE
    }

    /// Gives the IPv4 endpoint at a position, in the order written.
    #[must_use]
    #[inline]
    pub fn v4_at(&self, at: usize) -> Option<Endpoint> {
        let chunk = self.v4.get(at * V4_SIZE..)?;
        let (state, rest) = chunk.split_first_chunk::<4>()?;
        let address = rest.first_chunk::<4>()?;
        Some(Endpoint {
            cluster: self.cluster(),
            address: IpAddr::V4(Ipv4Addr::from(*address)),
            state: EndpointIndex(u32::from_le_bytes(*state)),
        })
    }

    /// Gives the IPv6 endpoint at a position, in the order written.
    #[must_use]
    #[inline]
    pub fn v6_at(&self, at: usize) -> Option<Endpoint> {
        let chunk = self.v6.get(at * V6_SIZE..)?;
        let (state, rest) = chunk.split_first_chunk::<4>()?;
        let address = rest.first_chunk::<16>()?;
        Some(Endpoint {
            cluster: self.cluster(),
            address: IpAddr::V6(Ipv6Addr::from(*address)),
            state: EndpointIndex(u32::from_le_bytes(*state)),
        })
    }

    /// Iterates over the IPv4 endpoints, in the order written.
    #[inline]
    pub fn v4(&self) -> impl Iterator<Item = Endpoint> + Clone + use<'a> {
        let cluster = self.cluster();
        self.v4.chunks_exact(V4_SIZE).filter_map(move |chunk| {
            let (state, address) = chunk.split_first_chunk::<4>()?;
            let address: [u8; 4] = address.try_into().ok()?;
            Some(Endpoint {
                cluster,
                address: IpAddr::V4(Ipv4Addr::from(address)),
                state: EndpointIndex(u32::from_le_bytes(*state)),
            })
        })
    }

    /// Iterates over the IPv6 endpoints, in the order written.
    #[inline]
    pub fn v6(&self) -> impl Iterator<Item = Endpoint> + Clone + use<'a> {
        let cluster = self.cluster();
        self.v6.chunks_exact(V6_SIZE).filter_map(move |chunk| {
            let (state, address) = chunk.split_first_chunk::<4>()?;
            let address: [u8; 16] = address.try_into().ok()?;
            Some(Endpoint {
                cluster,
                address: IpAddr::V6(Ipv6Addr::from(address)),
                state: EndpointIndex(u32::from_le_bytes(*state)),
            })
        })
    }
}

/// One pool before packing.
#[derive(Debug)]
struct Unpacked {
    cluster: ClusterIndex,
    weight: Weight,
    clients: u8,
    hostname: u8,
    v4: Vec<Ipv4Addr>,
    v6: Vec<Ipv6Addr>,
}

/// Collects pools in any order and packs them.
#[derive(Debug, Default)]
pub struct PoolsBuilder {
    pools: Vec<Unpacked>,
}

impl PoolsBuilder {
    /// Adds one pool of addresses. IPv4-mapped IPv6 addresses are taken as IPv4. `clients` is a position in the service's
    /// list of client sets.
    ///
    /// # Errors
    /// When a position is above 254.
    pub fn addresses(
        &mut self,
        cluster: ClusterIndex,
        weight: Weight,
        clients: Option<usize>,
        addresses: &[IpAddr],
    ) -> Result<(), PoolsError> {
        let mark = mark(clients)?;
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for address in addresses {
            match address.to_canonical() {
                IpAddr::V4(address) => v4.push(address),
                IpAddr::V6(address) => v6.push(address),
            }
        }
        // Counts are one octet each: long lists become several pools of the same cluster.
        let parts = v4.len().div_ceil(255).max(v6.len().div_ceil(255)).max(1);
        for part in 0..parts {
            let v4 = v4.iter().copied().skip(part * 255).take(255).collect();
            let v6 = v6.iter().copied().skip(part * 255).take(255).collect();
            self.pools.push(Unpacked {
                cluster,
                weight,
                clients: mark,
                hostname: 0,
                v4,
                v6,
            });
        }
        Ok(())
    }

    /// Adds one pool that is a host name, given by its position in the service's list of hostnames.
    ///
    /// # Errors
    /// When a position is above 254.
    pub fn hostname(
        &mut self,
        cluster: ClusterIndex,
        weight: Weight,
        clients: Option<usize>,
        hostname: usize,
    ) -> Result<(), PoolsError> {
        let clients = mark(clients)?;
        let hostname = mark(Some(hostname))?;
        self.pools.push(Unpacked {
            cluster,
            weight,
            clients,
            hostname,
            v4: Vec::new(),
            v6: Vec::new(),
        });
        Ok(())
    }

    /// Packs everything; all states are 0 until [`Pools::assign_states`].
    ///
    /// # Errors
    /// When there are more than 255 clusters or 64 KiB.
    pub fn build(mut self) -> Result<Pools, PoolsError> {
        self.pools.sort_by_key(|pool| pool.cluster);
        let mut clusters: Vec<ClusterIndex> = self.pools.iter().map(|pool| pool.cluster).collect();
        clusters.dedup();
        let count = u8::try_from(clusters.len()).map_err(|_| PoolsError::TooMany)?;
        let mut octets = vec![count, 0];
        octets.resize(2 + clusters.len() * 2, 0);
        let mut last = None;
        let mut rank = 0;
        for Unpacked {
            cluster,
            weight,
            clients,
            hostname,
            v4,
            v6,
        } in &self.pools
        {
            if last != Some(*cluster) {
                let offset = u16::try_from(octets.len()).map_err(|_| PoolsError::TooLarge)?;
                if let Some(slot) = octets.get_mut(2 + rank * 2..4 + rank * 2) {
                    slot.copy_from_slice(&offset.to_le_bytes());
                }
                rank += 1;
                last = Some(*cluster);
            }
            octets.extend_from_slice(&cluster.0.to_le_bytes());
            octets.extend_from_slice(&weight.0.to_le_bytes());
            let counts = [v4.len(), v6.len()].map(|count| u8::try_from(count).unwrap_or(u8::MAX));
            octets.extend_from_slice(&[*clients, *hostname]);
            octets.extend_from_slice(&counts);
            if *hostname > 0 {
                octets.extend_from_slice(&[0; HOST_SIZE]);
            }
            for address in v4 {
                octets.extend_from_slice(&[0; 4]);
                octets.extend_from_slice(&address.octets());
            }
            for address in v6 {
                octets.extend_from_slice(&[0; 4]);
                octets.extend_from_slice(&address.octets());
            }
        }
        if octets.len() > usize::from(u16::MAX) {
            Err(PoolsError::TooLarge)
        } else {
            Ok(Pools::packed(&octets))
        }
    }
}

/// Turns a position into the octet of the layout.
fn mark(position: Option<usize>) -> Result<u8, PoolsError> {
    position.map_or(Ok(0), |at| {
        u8::try_from(at + 1).map_err(|_| PoolsError::TooMany)
    })
}

#[cfg(test)]
mod tests;
