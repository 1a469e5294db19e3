//! Failed authentications by client: who guesses must wait.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

/// Failures within [`WINDOW`] after which a client must wait.
pub(super) const ALLOWED: u32 = 10;
/// How long failures count, from the first on.
const WINDOW: Duration = Duration::from_secs(60);
/// Clients remembered. Beyond it the one that began longest ago is forgotten: whoever has so many addresses gets ten
/// guesses each, of 2^256.
const CLIENTS: usize = 4096;

/// The failures of one client.
#[derive(Clone, Copy, Debug)]
struct Failures {
    first: Instant,
    count: u32,
}

/// The failures of all clients: IPv4 addresses and IPv6 networks of 64 bits.
#[derive(Debug, Default)]
pub(super) struct Guesses {
    by_client: BTreeMap<IpAddr, Failures>,
}

impl Guesses {
    /// Tells how long a client must wait; `None`: it may try.
    pub(super) fn wait(&self, client: IpAddr, now: Instant) -> Option<Duration> {
        let failures = self.by_client.get(&client)?;
        let over = failures.first + WINDOW;
        (failures.count >= ALLOWED && now < over).then(|| over - now)
    }

    /// Notes a failure. Tells whether the client must wait from now on.
    pub(super) fn note(&mut self, client: IpAddr, now: Instant) -> bool {
        self.by_client
            .retain(|_, failures| now < failures.first + WINDOW);
        if self.by_client.len() >= CLIENTS && !self.by_client.contains_key(&client) {
            let oldest = self.by_client.iter().min_by_key(|(_, one)| one.first);
            if let Some(oldest) = oldest.map(|(client, _)| *client) {
                self.by_client.remove(&oldest);
            }
        }
        let failures = self.by_client.entry(client).or_insert(Failures {
            first: now,
            count: 0,
        });
        failures.count = failures.count.saturating_add(1);
        failures.count == ALLOWED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u32) -> IpAddr {
        IpAddr::V4(std::net::Ipv4Addr::from(number))
    }

    #[tokio::test]
    async fn ten_failures_a_minute_and_then_a_wait() {
        let (mut guesses, now) = (Guesses::default(), Instant::now());
        for count in 1..=ALLOWED {
            assert_eq!(guesses.wait(client(1), now), None);
            assert_eq!(guesses.note(client(1), now), count == ALLOWED);
        }
        let later = now + Duration::from_secs(20);
        let rest = Duration::from_secs(40);
        assert_eq!(guesses.wait(client(1), later), Some(rest));
        assert_eq!(guesses.wait(client(2), later), None);
        let over = now + WINDOW;
        assert_eq!(guesses.wait(client(1), over), None);
        assert!(!guesses.note(client(1), over));
        assert_eq!(guesses.wait(client(1), over), None);
    }

    #[tokio::test]
    async fn the_table_is_bounded() {
        let (mut guesses, begun) = (Guesses::default(), Instant::now());
        for number in 0..2 * u32::try_from(CLIENTS).unwrap() {
            let now = begun + Duration::from_millis(number.into());
            guesses.note(client(number), now);
        }
        assert_eq!(guesses.by_client.len(), CLIENTS);
        assert!(!guesses.by_client.contains_key(&client(0)));
    }
}
