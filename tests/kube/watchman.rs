//! Somebody who asks all the time for names that must always have an address.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::harness::client::Ask;

/// Answers without an address that are remembered.
const MOST: usize = 10;

/// Asks in a thread until it is relieved.
pub struct Watchman {
    ends: Arc<AtomicBool>,
    asking: thread::JoinHandle<(u64, Vec<String>)>,
}

impl Watchman {
    /// Asks a server for each of these names from each of these prefixes, in turn.
    pub fn post(server: SocketAddr, names: &[&str], clients: &[&str]) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ends);
        let own = |all: &[&str]| -> Vec<String> { all.iter().map(|&one| one.to_owned()).collect() };
        let (names, clients) = (own(names), own(clients));
        let asking = thread::spawn(move || {
            let (mut asked, mut empty) = (0, Vec::new());
            while !end.load(Ordering::Relaxed) {
                for (name, client) in names
                    .iter()
                    .flat_map(|name| clients.iter().map(move |client| (name, client)))
                {
                    let reply = Ask::a(name).from(client).udp(server);
                    asked += 1;
                    if reply.addresses().is_empty() && empty.len() < MOST {
                        empty.push(format!("{name} from {client}: {:?}", reply.rcode()));
                    }
                }
            }
            (asked, empty)
        });
        Self { ends, asking }
    }

    /// Ends it; there must have been no answer without an address.
    pub fn relieve(self) {
        self.ends.store(true, Ordering::Relaxed);
        let (asked, empty) = self.asking.join().unwrap();
        println!("{asked} answers, {} without an address", empty.len());
        assert!(
            asked > 100 && empty.is_empty(),
            "{asked} answers, empty: {empty:?}"
        );
    }
}
