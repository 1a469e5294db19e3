//! The connections of one listener: who has how many, and which one gives way when there are too many.
//!
//! A client beyond its share gives up its own oldest idle connection; when all are too many, the client with the most does.
//! So whoever only holds connections keeps nobody out, and a scraper's open connection outlives another client's flood.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

/// Connections at once a listener: those of two hundred browsers that come back at the same moment, streams included, for a
/// connection is plain until it streams.
pub(super) const CONNECTIONS: usize = 512;
/// Connections at once a client: a browser or two, a scraper and a prober have far fewer; some sit behind one proxy.
pub(super) const PER_CLIENT: usize = 64;

/// One connection, as the table of all knows it.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    client: IpAddr,
    /// A request is being answered.
    pub(super) busy: Arc<AtomicBool>,
    /// A stream of events is open, which has bounds of its own: it neither gives way nor takes a place of others.
    pub(super) streams: Arc<AtomicBool>,
    /// Falls when the connection must give way.
    pub(super) leave: CancellationToken,
}

/// All connections of a listener, oldest first.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    next: u64,
    seats: BTreeMap<u64, Seat>,
}

impl Crowd {
    /// Takes a connection in; another one may have to leave for it. Gives its number and its seat.
    pub(super) fn enter(&mut self, address: IpAddr) -> (u64, Seat) {
        let client = client(address);
        let own = self.of(client).count();
        if own >= PER_CLIENT {
            self.dismiss(client);
        } else if self.plain().count() >= CONNECTIONS
            && let Some(greediest) = self.greediest()
        {
            self.dismiss(greediest);
        }
        let seat = Seat {
            client,
            busy: Arc::default(),
            streams: Arc::default(),
            leave: CancellationToken::new(),
        };
        self.next += 1;
        self.seats.insert(self.next, seat.clone());
        (self.next, seat)
    }

    /// Forgets a connection that ended.
    pub(super) fn forget(&mut self, number: u64) {
        self.seats.remove(&number);
    }

    /// Lists all that do not stream, oldest first.
    fn plain(&self) -> impl Iterator<Item = (&u64, &Seat)> {
        let is_plain = |(_, seat): &(&u64, &Seat)| !seat.streams.load(Ordering::Relaxed);
        self.seats.iter().filter(is_plain)
    }

    /// Lists a client's connections that do not stream, oldest first.
    fn of(&self, client: IpAddr) -> impl Iterator<Item = (&u64, &Seat)> {
        let is_its = move |(_, seat): &(&u64, &Seat)| seat.client == client;
        self.plain().filter(is_its)
    }

    /// Finds the client with the most connections.
    fn greediest(&self) -> Option<IpAddr> {
        let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for (_, seat) in self.plain() {
            *counts.entry(seat.client).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        most.map(|(client, _)| client)
    }

    /// Sends a client's oldest idle connection away, or its oldest when none is idle.
    fn dismiss(&mut self, client: IpAddr) {
        let idle = |(_, seat): &(&u64, &Seat)| !seat.busy.load(Ordering::Relaxed);
        let found = self
            .of(client)
            .find(idle)
            .or_else(|| self.of(client).next());
        let number = found.map(|(number, _)| *number);
        if let Some(seat) = number.and_then(|number| self.seats.remove(&number)) {
            seat.leave.cancel();
        }
    }
}

/// Names a client: an IPv6 network has one user, whatever the last 64 bits are.
pub(super) fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            IpAddr::V6(network.into())
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn a_client_beyond_its_share_loses_its_own_oldest_idle_connection() {
        let mut crowd = Crowd::default();
        let (_, other) = crowd.enter(address(1));
        let seats: Vec<Seat> = (0..PER_CLIENT).map(|_| crowd.enter(address(2)).1).collect();
        seats[0].busy.store(true, Ordering::Relaxed);
        let (_, newest) = crowd.enter(address(2));
        assert!(seats[1].leave.is_cancelled());
        assert!(!seats[0].leave.is_cancelled() && !seats[2].leave.is_cancelled());
        assert!(!other.leave.is_cancelled() && !newest.leave.is_cancelled());
    }

    #[test]
    fn when_all_are_too_many_the_greediest_client_gives_way() {
        let mut crowd = Crowd::default();
        let (first, lone) = crowd.enter(address(1));
        let mut seats = Vec::new();
        for at in 0..CONNECTIONS - 1 {
            let last = u8::try_from(2 + at / 20).unwrap();
            seats.push(crowd.enter(address(last)).1);
        }
        let (_, newest) = crowd.enter(address(200));
        assert_eq!(
            seats
                .iter()
                .filter(|seat| seat.leave.is_cancelled())
                .count(),
            1
        );
        assert!(!lone.leave.is_cancelled() && !newest.leave.is_cancelled());
        crowd.forget(first);
        assert_eq!(crowd.seats.len(), CONNECTIONS - 1);
    }

    #[test]
    fn streams_keep_nobody_out_and_nobody_keeps_them_out() {
        let mut crowd = Crowd::default();
        let streams: Vec<Seat> = (0..2 * CONNECTIONS)
            .map(|_| {
                let (_, seat) = crowd.enter(address(1));
                seat.streams.store(true, Ordering::Relaxed);
                seat
            })
            .collect();
        let plain: Vec<Seat> = (0..PER_CLIENT).map(|_| crowd.enter(address(1)).1).collect();
        assert!(plain.iter().all(|seat| !seat.leave.is_cancelled()));
        let (_, other) = crowd.enter(address(1));
        assert!(plain[0].leave.is_cancelled() && !other.leave.is_cancelled());
        assert!(streams.iter().all(|seat| !seat.leave.is_cancelled()));
    }

    #[test]
    fn clients_are_addresses_and_ipv6_networks() {
        let read = |text: &str| client(text.parse().unwrap());
        assert_eq!(read("2001:db8::1"), read("2001:db8::2"));
        assert_ne!(read("2001:db8:0:1::1"), read("2001:db8::1"));
        assert_eq!(read("::ffff:192.0.2.1"), address(1));
        assert_ne!(address(1), client(address(2)));
    }
}
