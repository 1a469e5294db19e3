//! Queries, made before the clock runs.

use std::net::Ipv4Addr;

use meridian::model::LowerName;

/// Gives the next number of a sequence that is the same in every run.
pub(crate) fn random(seed: usize) -> u64 {
    let mut value = (seed as u64)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Makes one query: a name, a type, ECS with the /24 of an address.
pub(crate) fn packet(name: &LowerName, rtype: u8, client: Ipv4Addr) -> Vec<u8> {
    let mut packet = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1];
    packet.extend_from_slice(name.as_wire());
    packet.extend([0, rtype, 0, 1]);
    packet.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 11, 0, 8, 0, 7, 0, 1, 24, 0]);
    packet.extend(&client.octets()[..3]);
    packet
}

/// Queries of one length, side by side. One length, so that the kernel can cut many out of one message.
pub(crate) struct Queries {
    octets: Vec<u8>,
    length: usize,
}

impl Queries {
    /// Takes packets, at least a batch of them, all as long as the first.
    pub(crate) fn new(packets: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let (mut octets, mut length) = (Vec::new(), 0);
        for packet in packets {
            if octets.is_empty() {
                length = packet.len();
            }
            assert_eq!(packet.len(), length, "queries of one length");
            octets.extend(packet);
        }
        assert!(octets.len() >= length * super::messages::BATCH);
        Self { octets, length }
    }

    /// Gives their number.
    pub(crate) fn count(&self) -> usize {
        self.octets.len() / self.length
    }

    /// Gives the octets of each.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Gives one, to put an id in.
    pub(crate) fn packet_mut(&mut self, index: usize) -> &mut [u8] {
        &mut self.octets[index * self.length..][..self.length]
    }
}
