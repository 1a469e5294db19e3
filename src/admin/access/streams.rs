//! Streams of events: how many there are, and whose.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Streams at once a node.
const STREAMS: usize = 256;
/// Streams at once a client: half, so that one client never keeps all others out.
const PER_CLIENT: usize = STREAMS / 2;

/// All streams.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams {
    by_client: Arc<Mutex<BTreeMap<IpAddr, usize>>>,
}

/// The place of one stream: held while it is open.
#[derive(Debug)]
pub(in crate::admin) struct Place {
    client: IpAddr,
    streams: Streams,
}

impl Streams {
    /// Takes a place for one more; `None` when there is none.
    pub(super) fn enter(&self, client: IpAddr) -> Option<Arc<Place>> {
        // Every change leaves it whole.
        let mut by_client = self
            .by_client
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if by_client.values().sum::<usize>() >= STREAMS {
            return None;
        }
        let own = by_client.entry(client).or_default();
        if *own >= PER_CLIENT {
            return None;
        }
        *own += 1;
        Some(Arc::new(Place {
            client,
            streams: self.clone(),
        }))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let by_client = self.streams.by_client.lock();
        let mut by_client = by_client.unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = by_client.get_mut(&self.client) {
            *own -= 1;
            if *own == 0 {
                by_client.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_client_and_all_in_all() {
        let client = |last: u8| IpAddr::from([192, 0, 2, last]);
        let streams = Streams::default();
        let mut held: Vec<_> = (0..PER_CLIENT)
            .map(|_| streams.enter(client(1)).unwrap())
            .collect();
        assert!(streams.enter(client(1)).is_none());
        held.extend((0..PER_CLIENT).map(|_| streams.enter(client(2)).unwrap()));
        assert!(streams.enter(client(3)).is_none());
        held.pop();
        assert!(streams.enter(client(1)).is_none());
        let last = streams.enter(client(3));
        assert!(last.is_some() && streams.enter(client(3)).is_none());
        drop((held, last));
        assert!(streams.by_client.lock().unwrap().is_empty());
    }
}
