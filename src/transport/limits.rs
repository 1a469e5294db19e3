//! How many TCP connections, and whose.
//!
//! Three bounds. A client (an IPv4 address or an IPv6 /64) and a prefix (/24 or /48) at its bound get no more connections:
//! the new one is closed at once, so a flood from one place costs its own place only. When all connections of the node are
//! taken, the one that has been useless for longest (no reply since, or ever) makes room: idlers, tricklers and clients
//! that do not read age, honest clients do not. RFC 7766 section 6.2.3 lets a server close so.
//! Knows addresses and counts; sockets and deadlines are the listener's.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::config::TcpLimits;

/// A prefix may have this many times what a client may: several resolvers of one site share it.
const CLIENTS_PER_PREFIX: usize = 4;

/// Who is counted as one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Client {
    /// An IPv4 address.
    V4(u32),
    /// The first 64 bits of an IPv6 address: what one host gets to choose from.
    V6(u64),
}

impl Client {
    /// Takes a canonical address.
    fn new(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => Self::V6(u64::try_from(address.to_bits() >> 64).unwrap_or(0)),
        }
    }

    /// Gives the prefix that it is counted under: the first 24 or 48 bits.
    fn prefix(self) -> Self {
        match self {
            Self::V4(bits) => Self::V4(bits >> 8),
            Self::V6(bits) => Self::V6(bits >> 16),
        }
    }
}

/// Why a connection is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Its client has as many as it may have.
    Client,
    /// Its prefix has as many as it may have.
    Prefix,
}

/// One connection held.
#[derive(Debug)]
struct Held {
    client: Option<Client>,
    cut: CancellationToken,
}

/// Who holds what.
#[derive(Debug, Default)]
struct Table {
    /// The turn of the next use; grows only.
    next: u64,
    /// Turn of the last use -> connection: the first is the one useless for longest.
    by_use: BTreeMap<u64, Held>,
    by_client: HashMap<Client, usize>,
    by_prefix: HashMap<Client, usize>,
}

impl Table {
    /// Puts a connection at the end of the line and gives its turn.
    fn insert(&mut self, held: Held) -> u64 {
        let turn = self.next;
        self.next += 1;
        self.by_use.insert(turn, held);
        turn
    }

    /// Counts a client in, unless it or its prefix has its share.
    fn claim(&mut self, client: Client, per_client: usize) -> Result<(), Refusal> {
        let count = |counts: &HashMap<Client, usize>, key| counts.get(key).copied().unwrap_or(0);
        if count(&self.by_client, &client) >= per_client {
            return Err(Refusal::Client);
        }
        if count(&self.by_prefix, &client.prefix()) >= per_client.saturating_mul(CLIENTS_PER_PREFIX)
        {
            return Err(Refusal::Prefix);
        }
        *self.by_client.entry(client).or_default() += 1;
        *self.by_prefix.entry(client.prefix()).or_default() += 1;
        Ok(())
    }

    /// Counts a client out.
    fn release(&mut self, client: Client) {
        decrement(&mut self.by_client, client);
        decrement(&mut self.by_prefix, client.prefix());
    }

    /// Takes a connection out.
    fn remove(&mut self, turn: u64) -> Option<Held> {
        let held = self.by_use.remove(&turn)?;
        if let Some(client) = held.client {
            self.release(client);
        }
        Some(held)
    }

    /// Cuts the connection that has been useless for longest.
    fn evict(&mut self) -> bool {
        let first = self.by_use.first_key_value().map(|(&turn, _)| turn);
        match first.and_then(|turn| self.remove(turn)) {
            Some(held) => {
                held.cut.cancel();
                true
            }
            None => false,
        }
    }
}

/// Counts one less, and forgets who has none: the tables never outgrow the connections.
fn decrement<K: Hash + Eq>(counts: &mut HashMap<K, usize>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

/// The connections of the node, over all listeners.
#[derive(Debug)]
pub(super) struct Limits {
    connections: usize,
    per_client: usize,
    table: Mutex<Table>,
}

/// The right to one connection; dropped, it is free again.
#[derive(Debug)]
#[must_use]
pub(super) struct Permit {
    limits: Arc<Limits>,
    turn: u64,
    cut: CancellationToken,
}

/// What admission gave beside the permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pressure {
    /// There was room.
    None,
    /// Another connection had to go.
    Evicted,
}

impl Limits {
    /// Takes the bounds; zeros count as one.
    pub(super) fn new(limits: &TcpLimits) -> Self {
        Self {
            connections: limits.connections.max(1),
            per_client: limits.per_client.max(1),
            table: Mutex::default(),
        }
    }

    /// Admits a connection of `client` (canonical); `None`: a trusted proxy that has not said yet for whom it speaks,
    /// counted against the whole only.
    ///
    /// # Errors
    /// When the client or its prefix has its share.
    pub(super) fn admit(
        self: &Arc<Self>,
        client: Option<IpAddr>,
    ) -> Result<(Permit, Pressure), Refusal> {
        let client = client.map(Client::new);
        let cut = CancellationToken::new();
        let mut table = self.table();
        if let Some(client) = client {
            table.claim(client, self.per_client)?;
        }
        let full = table.by_use.len() >= self.connections;
        let pressure = if full && table.evict() {
            Pressure::Evicted
        } else {
            Pressure::None
        };
        let turn = table.insert(Held {
            client,
            cut: cut.clone(),
        });
        drop(table);
        let permit = Permit {
            limits: Arc::clone(self),
            turn,
            cut,
        };
        Ok((permit, pressure))
    }

    /// Cuts the connection useless for longest, if there is one: when the process has no descriptors left.
    pub(super) fn evict(&self) -> bool {
        self.table().evict()
    }

    /// Counts the connections held.
    pub(super) fn open(&self) -> usize {
        self.table().by_use.len()
    }

    /// Locks the table. Held for a few map operations, never across an await.
    fn table(&self) -> MutexGuard<'_, Table> {
        // A panic while it was held cannot leave the counts torn worse than by one.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    /// Says for whom a proxy's connection speaks.
    ///
    /// # Errors
    /// When that client or its prefix has its share.
    pub(super) fn claim(&mut self, client: IpAddr) -> Result<(), Refusal> {
        let client = Client::new(client);
        let mut table = self.limits.table();
        if table.by_use.contains_key(&self.turn) {
            table.claim(client, self.limits.per_client)?;
            if let Some(held) = table.by_use.get_mut(&self.turn) {
                held.client = Some(client);
            }
        }
        Ok(())
    }

    /// Notes that the connection was of use: a reply went out.
    pub(super) fn used(&mut self) {
        let mut table = self.limits.table();
        if let Some(held) = table.by_use.remove(&self.turn) {
            self.turn = table.insert(held);
        }
    }

    /// Gives the token that falls when the connection must make room.
    pub(super) fn cut(&self) -> &CancellationToken {
        &self.cut
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limits.table().remove(self.turn);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits(connections: usize, per_client: usize) -> Arc<Limits> {
        Arc::new(Limits::new(&TcpLimits {
            connections,
            per_client,
            ..TcpLimits::default()
        }))
    }

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("an address"))
    }

    #[test]
    fn a_client_gets_its_share_and_no_more() {
        let limits = limits(1000, 2);
        for (first, same, other) in [
            ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
            ("2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"),
        ] {
            let held: Vec<_> = (0..2)
                .map(|_| limits.admit(address(first)).expect("room").0)
                .collect();
            assert_eq!(limits.admit(address(same)).err(), Some(Refusal::Client));
            let another = limits.admit(address(other)).expect("another client");
            drop(held);
            assert!(limits.admit(address(same)).is_ok(), "given back");
            drop(another);
        }
        assert_eq!(limits.open(), 0);
    }

    #[test]
    fn a_prefix_gets_four_times_a_client() {
        let limits = limits(1000, 2);
        let mut held = Vec::new();
        for host in 0..4 {
            for _ in 0..2 {
                held.push(
                    limits
                        .admit(address(&format!("192.0.2.{host}")))
                        .expect("room"),
                );
                let v6 = format!("2001:db8:1:{host}::1");
                held.push(limits.admit(address(&v6)).expect("room"));
            }
        }
        assert_eq!(
            limits.admit(address("192.0.2.9")).err(),
            Some(Refusal::Prefix)
        );
        assert_eq!(
            limits.admit(address("2001:db8:1:9::1")).err(),
            Some(Refusal::Prefix)
        );
        assert!(limits.admit(address("192.0.3.9")).is_ok());
        assert!(limits.admit(address("2001:db8:2::1")).is_ok());
    }

    #[test]
    fn when_all_are_taken_the_useless_one_goes() {
        let limits = limits(3, 3);
        let (mut first, _) = limits.admit(address("192.0.2.1")).expect("room");
        let (second, _) = limits.admit(address("192.0.2.1")).expect("room");
        let (_third, _) = limits.admit(address("192.0.2.1")).expect("room");
        first.used();
        let (_fourth, pressure) = limits.admit(address("198.51.100.1")).expect("room is made");
        assert_eq!(pressure, Pressure::Evicted);
        assert!(second.cut().is_cancelled() && !first.cut().is_cancelled());
        assert_eq!(limits.open(), 3);
        // The evicted one gave its place up already; dropping it frees nothing twice.
        drop(second);
        assert_eq!(limits.open(), 3);
        // A refused client makes nobody go.
        let (_fifth, _) = limits.admit(address("192.0.2.1")).expect("two of three");
        assert_eq!(
            limits.admit(address("192.0.2.1")).err(),
            None,
            "the third was evicted by the fifth, so there is room for one more"
        );
    }

    #[test]
    fn a_proxy_counts_for_whom_it_speaks() {
        let limits = limits(100, 1);
        let (mut first, _) = limits.admit(None).expect("room");
        let (mut second, _) = limits.admit(None).expect("room");
        let client = address("192.0.2.1").expect("an address");
        assert_eq!(first.claim(client), Ok(()));
        assert_eq!(second.claim(client), Err(Refusal::Client));
        drop(first);
        assert_eq!(second.claim(client), Ok(()));
        drop(second);
        let table = limits.table();
        assert!(table.by_client.is_empty() && table.by_prefix.is_empty());
    }

    proptest! {
        /// Whatever comes and goes, the table agrees with a plain list of who is there.
        #[test]
        fn counts_agree_with_a_list(steps in proptest::collection::vec((0u8..4, 0u8..6, 0u8..3), 0..200)) {
            let limits = limits(6, 2);
            let mut held: Vec<(IpAddr, Permit)> = Vec::new();
            for (step, host, network) in steps {
                let client = IpAddr::from([192, 0, network, host]);
                held.retain(|(_, permit)| !permit.cut().is_cancelled());
                match step {
                    0 | 1 => {
                        let mine = held.iter().filter(|(other, _)| *other == client).count();
                        let near = held.iter().filter(|(other, _)| Client::new(*other).prefix() == Client::new(client).prefix()).count();
                        match limits.admit(Some(client)) {
                            Ok((permit, _)) => {
                                prop_assert!(mine < 2 && near < 8);
                                held.push((client, permit));
                            }
                            Err(Refusal::Client) => prop_assert!(mine >= 2),
                            Err(Refusal::Prefix) => prop_assert!(near >= 8),
                        }
                    }
                    2 if !held.is_empty() => {
                        let at = usize::from(host) % held.len();
                        drop(held.swap_remove(at));
                    }
                    3 if !held.is_empty() => {
                        let at = usize::from(host) % held.len();
                        held[at].1.used();
                    }
                    _ => {}
                }
                let alive = held.iter().filter(|(_, permit)| !permit.cut().is_cancelled()).count();
                prop_assert_eq!(limits.open(), alive);
                prop_assert!(alive <= 6);
            }
            drop(held);
            let table = limits.table();
            prop_assert!(table.by_use.is_empty() && table.by_client.is_empty() && table.by_prefix.is_empty());
        }
    }
}
