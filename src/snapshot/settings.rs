//! What answering needs to know beside names: part of the snapshot, so that a reload changes all at once.

use std::net::IpAddr;

use ipnet::IpNet;

/// Whose ECS options are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EcsTrust {
    /// Everyone's.
    #[default]
    All,
    /// Nobody's.
    None,
    /// Those of resolvers in these prefixes.
    From(Vec<IpNet>),
}

impl EcsTrust {
    /// Tells whether the option of this sender (canonical address) is believed.
    #[must_use]
    #[inline]
    pub fn allows(&self, sender: &IpAddr) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::From(prefixes) => prefixes.iter().any(|prefix| prefix.contains(sender)),
        }
    }
}

/// Settings of answering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// NSID (RFC 5001); empty: the option is never sent.
    pub identity: Box<[u8]>,
    /// Whose ECS options are believed.
    pub ecs_trust: EcsTrust,
    /// The largest UDP reply and the size we announce: 1232 (RFC 9715).
    pub udp_payload: u16,
    /// Idle time announced by edns-tcp-keepalive, in units of 100 ms (RFC 7828).
    pub keepalive: u16,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            identity: [].into(),
            ecs_trust: EcsTrust::All,
            udp_payload: 1232,
            keepalive: 100,
        }
    }
}
