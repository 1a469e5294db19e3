//! One query of the log, of fixed size.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::model::{ClientSubnet, ClusterIndex, NameRef, PrefixLen, RecordType};
use crate::telemetry::labels::{Given, Order, ReplyCode};

/// Words of the name: 255 octets at most.
const NAME_WORDS: usize = 32;
/// Words of a record: time, client (2), numbers (2), name.
pub(super) const WORDS: usize = 5 + NAME_WORDS;
/// No cluster, and no decision.
const NONE: u16 = u16::MAX;

/// How a logged query came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoggedVia {
    /// Datagrams.
    #[default]
    Udp,
    /// A stream.
    Tcp,
}

/// What is logged of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryRecord {
    /// Unix time in milliseconds.
    pub time_ms: u64,
    /// The client's network, cut.
    pub client: ClientSubnet,
    /// How it came.
    pub via: LoggedVia,
    /// The type asked for.
    pub qtype: RecordType,
    /// What was replied.
    pub code: ReplyCode,
    /// The scope of a reply with Client Subnet.
    pub scope: u8,
    /// The name as asked, in wire form, and its length.
    name: ([u8; NAME_WORDS * 8], u8),
    /// What a policy decided.
    pub decided: Option<(Order, Given)>,
    /// The cluster of the answer, if it is one.
    pub cluster: Option<ClusterIndex>,
    /// The TTL of a steered answer in seconds.
    pub ttl: Option<u32>,
}

impl QueryRecord {
    /// Begins a record of a query for the root.
    #[must_use]
    pub fn begin(time_ms: u64, via: LoggedVia) -> Self {
        Self {
            time_ms,
            client: ClientSubnet {
                address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
                source: PrefixLen(0),
            },
            via,
            qtype: RecordType(0),
            code: ReplyCode::NoError,
            scope: 0,
            name: ([0; NAME_WORDS * 8], 1),
            decided: None,
            cluster: None,
            ttl: None,
        }
    }

    /// Notes the name asked for.
    pub fn set_name(&mut self, name: NameRef<'_>) {
        let wire = name.as_wire();
        if let (Some(place), Ok(length)) =
            (self.name.0.get_mut(..wire.len()), u8::try_from(wire.len()))
        {
            place.copy_from_slice(wire);
            self.name.1 = length;
        }
    }

    /// Gives the name asked for, as written.
    #[must_use]
    pub fn name(&self) -> NameRef<'_> {
        let wire = self.name.0.get(..usize::from(self.name.1));
        wire.map_or(NameRef::ROOT, NameRef::from_checked)
    }

    /// Packs it.
    pub(super) fn to_words(self) -> [u64; WORDS] {
        let (family, bits) = match self.client.address {
            IpAddr::V4(address) => (0, u128::from(address.to_bits())),
            IpAddr::V6(address) => (1, address.to_bits()),
        };
        let [order, given] = self
            .decided
            .map_or([u8::MAX; 2], |(order, given)| [order as u8, given as u8]);
        let via = u8::from(self.via == LoggedVia::Tcp);
        let [q0, q1] = self.qtype.0.to_be_bytes();
        let [c0, c1] = self.cluster.map_or(NONE, |cluster| cluster.0).to_be_bytes();
        let [t0, t1, t2, t3] = self.ttl.unwrap_or(u32::MAX).to_be_bytes();
        let mut words = [0; WORDS];
        let [time, high, low, first, second, name @ ..] = &mut words;
        *time = self.time_ms;
        *high = (bits >> 64) as u64;
        *low = u64::try_from(bits & u128::from(u64::MAX)).unwrap_or(0);
        *first = u64::from_be_bytes([
            q0,
            q1,
            self.code as u8,
            self.scope,
            order,
            given,
            via << 1 | family,
            self.name.1,
        ]);
        *second = u64::from_be_bytes([t0, t1, t2, t3, c0, c1, self.client.source.0, 0]);
        for (word, octets) in name.iter_mut().zip(self.name.0.as_chunks::<8>().0) {
            *word = u64::from_be_bytes(*octets);
        }
        words
    }

    /// Unpacks it.
    pub(super) fn from_words(words: &[u64; WORDS]) -> Self {
        let [time_ms, high, low, first, second, name @ ..] = words;
        let [q0, q1, code, scope, order, given, flags, length] = first.to_be_bytes();
        let [t0, t1, t2, t3, c0, c1, prefix, _] = second.to_be_bytes();
        let bits = u128::from(*high) << 64 | u128::from(*low);
        let address = if flags & 1 == 0 {
            IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(bits).unwrap_or(0)))
        } else {
            IpAddr::V6(Ipv6Addr::from_bits(bits))
        };
        let mut octets = [0; NAME_WORDS * 8];
        for (place, word) in octets.as_chunks_mut::<8>().0.iter_mut().zip(name) {
            *place = word.to_be_bytes();
        }
        let (order, given) = (
            Order::ALL.get(usize::from(order)),
            Given::ALL.get(usize::from(given)),
        );
        let cluster = u16::from_be_bytes([c0, c1]);
        let ttl = u32::from_be_bytes([t0, t1, t2, t3]);
        Self {
            time_ms: *time_ms,
            client: ClientSubnet {
                address,
                source: PrefixLen(prefix),
            },
            via: if flags & 2 == 0 {
                LoggedVia::Udp
            } else {
                LoggedVia::Tcp
            },
            qtype: RecordType(u16::from_be_bytes([q0, q1])),
            code: ReplyCode::ALL
                .get(usize::from(code))
                .copied()
                .unwrap_or(ReplyCode::ServFail),
            scope,
            name: (octets, length),
            decided: order.copied().zip(given.copied()),
            cluster: (cluster != NONE).then_some(ClusterIndex(cluster)),
            ttl: (ttl != u32::MAX).then_some(ttl),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LowerName;

    #[test]
    fn what_is_packed_is_unpacked() {
        let long = format!("{0}.{0}.{0}.{1}", "a".repeat(63), "b".repeat(61));
        for (name, client) in [
            ("www.example", "192.0.2.7"),
            (".", "2001:db8::ff"),
            (&long, "::1"),
        ] {
            let mut record = QueryRecord::begin(1_700_000_000_123, LoggedVia::Tcp);
            let name: LowerName = name.parse().unwrap();
            record.set_name(name.as_ref());
            record.client = ClientSubnet::host(client.parse().unwrap());
            assert_eq!(QueryRecord::from_words(&record.to_words()), record);
            record.via = LoggedVia::Udp;
            record.qtype = RecordType::HTTPS;
            record.code = ReplyCode::NotAuth;
            record.scope = 24;
            record.decided = Some((Order::Inside, Given::Nothing));
            record.cluster = Some(ClusterIndex(300));
            record.ttl = Some(5);
            let back = QueryRecord::from_words(&record.to_words());
            assert_eq!(back, record);
            assert_eq!(back.name(), name.as_ref());
        }
    }
}
