//! A sample of who asked: by it is judged whether addresses are translated on the way.
//!
//! Each worker keeps the last few in a ring of words. A sender is one word: a store, which no reader can see half of. An IPv4 address
//! fits whole; of an IPv6 address the network of 48 bits and a few bits of a hash, enough to tell the addresses of one network apart.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Senders that a worker keeps: 2 KiB. Taken every 5 seconds, these are all of a worker that answers 50 batches a second.
pub const KEPT_SENDERS: usize = 256;
/// The word holds a sender.
const TAKEN: u64 = 1 << 63;
/// Its address is of IPv6.
const V6: u64 = 1 << 62;
/// Its address is of a private network.
const PRIVATE: u64 = 1 << 61;
/// A place is known for its address, though that is private.
const PLACED: u64 = 1 << 60;
/// Its query had a believed Client Subnet.
const WITH_SUBNET: u64 = 1 << 59;
/// The address, or what stands for it.
const ADDRESS: u64 = WITH_SUBNET - 1;
/// Bits of the hash behind the 48 of an IPv6 network.
const HASH_BITS: u32 = 11;

/// What kind of address a sender has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SenderKind {
    /// One that is the same wherever it is seen.
    Public,
    /// One that can only be seen from inside a network, and nobody knows where that is.
    Private,
    /// Such a one for which a place is known: whoever wrote that expects it.
    Placed,
}

/// The sender of one query, as far as it takes to tell senders apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SampledSender(u64);

impl SampledSender {
    /// Makes one; `address` is canonical. `with_subnet`: the query says itself where its client is.
    #[must_use]
    pub fn new(address: IpAddr, kind: SenderKind, with_subnet: bool) -> Self {
        let mut word = TAKEN;
        word |= match address {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                let (network, host) = ((bits >> 80) as u64, bits & ((1 << 80) - 1));
                #[expect(clippy::cast_possible_truncation, reason = "both halves go in")]
                let folded = (host >> 64) as u64 ^ host as u64;
                // Fibonacci hashing: the upper bits depend on all.
                let hash = folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - HASH_BITS);
                V6 | network << HASH_BITS | hash
            }
        };
        word |= match kind {
            SenderKind::Public => 0,
            SenderKind::Private => PRIVATE,
            SenderKind::Placed => PRIVATE | PLACED,
        };
        if with_subnet {
            word |= WITH_SUBNET;
        }
        Self(word)
    }

    /// Gives what is equal where the addresses are.
    #[must_use]
    pub fn address(self) -> u64 {
        self.0 & (V6 | ADDRESS)
    }

    /// Gives the kind of its address.
    #[must_use]
    pub fn kind(self) -> SenderKind {
        match (self.0 & PRIVATE != 0, self.0 & PLACED != 0) {
            (false, _) => SenderKind::Public,
            (true, false) => SenderKind::Private,
            (true, true) => SenderKind::Placed,
        }
    }

    /// Tells whether the query had a believed Client Subnet.
    #[must_use]
    pub fn with_subnet(self) -> bool {
        self.0 & WITH_SUBNET != 0
    }

    /// Gives the network that it lies in: 24 bits of IPv4, 48 of IPv6.
    #[must_use]
    pub fn network(self) -> IpNet {
        let address = self.0 & ADDRESS;
        let net = if self.0 & V6 == 0 {
            let address = Ipv4Addr::from_bits(u32::try_from(address).unwrap_or_default());
            Ipv4Net::new(address, 24).map(|net| IpNet::V4(net.trunc()))
        } else {
            let bits = u128::from(address >> HASH_BITS) << 80;
            Ipv6Net::new(Ipv6Addr::from_bits(bits), 48).map(IpNet::V6)
        };
        net.unwrap_or_default()
    }
}

/// The last senders that a worker sampled. One writer; nothing is allocated.
#[derive(Debug)]
pub struct SenderRing {
    words: [AtomicU64; KEPT_SENDERS],
    /// How many there ever were.
    count: AtomicU64,
}

impl Default for SenderRing {
    fn default() -> Self {
        Self {
            words: std::array::from_fn(|_| AtomicU64::new(0)),
            count: AtomicU64::new(0),
        }
    }
}

impl SenderRing {
    /// Keeps one instead of the oldest.
    #[inline]
    pub fn put(&self, sender: SampledSender) {
        let count = self.count.load(Ordering::Relaxed);
        if let Some(word) = self.word(count) {
            word.store(sender.0, Ordering::Relaxed);
        }
        // Release: who sees the count sees the word, or a later one.
        self.count.store(count.wrapping_add(1), Ordering::Release);
    }

    /// Gives those that came since there were `since` of them, as far as they are still kept; and how many there are now.
    #[must_use]
    pub fn since(&self, since: u64) -> (Vec<SampledSender>, u64) {
        let count = self.count.load(Ordering::Acquire);
        let kept = count.saturating_sub(KEPT_SENDERS as u64);
        let words = (since.max(kept)..count).filter_map(|at| self.word(at));
        let words = words.map(|word| word.load(Ordering::Relaxed));
        let taken = words.filter(|word| word & TAKEN != 0);
        (taken.map(SampledSender).collect(), count)
    }

    /// Gives the word of the sender that came after so many others.
    fn word(&self, at: u64) -> Option<&AtomicU64> {
        self.words
            .get(usize::try_from(at % KEPT_SENDERS as u64).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(address: &str) -> SampledSender {
        SampledSender::new(address.parse().unwrap(), SenderKind::Public, false)
    }

    #[test]
    fn a_sender_is_kept_whole_in_a_word() {
        for (address, network) in [
            ("192.0.2.77", "192.0.2.0/24"),
            ("255.255.255.255", "255.255.255.0/24"),
            ("0.0.0.0", "0.0.0.0/24"),
            ("2001:db8:1:2::77", "2001:db8:1::/48"),
            (
                "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                "ffff:ffff:ffff::/48",
            ),
        ] {
            for kind in [SenderKind::Public, SenderKind::Private, SenderKind::Placed] {
                for with_subnet in [false, true] {
                    let made = SampledSender::new(address.parse().unwrap(), kind, with_subnet);
                    assert_eq!(made.kind(), kind, "{address}");
                    assert_eq!(made.with_subnet(), with_subnet, "{address}");
                    assert_eq!(made.network().to_string(), network);
                    assert_eq!(made.address(), sender(address).address(), "{address}");
                }
            }
        }
    }

    #[test]
    fn addresses_are_told_apart() {
        let of = |text: String| sender(&text).address();
        let v4: std::collections::BTreeSet<u64> =
            (0..=255).map(|at| of(format!("192.0.2.{at}"))).collect();
        assert_eq!(v4.len(), 256);
        // A hash of 11 bits: of 256 addresses some may fall together, few do.
        let v6: std::collections::BTreeSet<u64> = (0..=255)
            .map(|at| of(format!("2001:db8::{at:x}")))
            .collect();
        assert!(v6.len() > 230, "{}", v6.len());
        assert_ne!(sender("0.0.0.1").address(), sender("::1").address());
    }

    #[test]
    fn a_ring_gives_what_came_since_as_far_as_it_is_kept() {
        let ring = SenderRing::default();
        assert_eq!(ring.since(0), (Vec::new(), 0));
        let all: Vec<SampledSender> = (0..1000_u32)
            .map(|at| sender(&format!("198.51.{}.{}", at / 256, at % 256)))
            .collect();
        for one in &all[..10] {
            ring.put(*one);
        }
        assert_eq!(ring.since(0), (all[..10].to_vec(), 10));
        assert_eq!(ring.since(7), (all[7..10].to_vec(), 10));
        assert_eq!(ring.since(10), (Vec::new(), 10));
        for one in &all[10..] {
            ring.put(*one);
        }
        assert_eq!(ring.since(10), (all[1000 - KEPT_SENDERS..].to_vec(), 1000));
    }
}
