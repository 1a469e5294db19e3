//! The option Client Subnet (RFC 7871).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::model::{ClientSubnet, PrefixLen};

/// Its option code.
pub(super) const OPTION: u16 = 8;
/// Address families (IANA address family numbers).
const IPV4: u16 = 1;
const IPV6: u16 = 2;
/// Octets of the option's data before the address.
const FIXED: usize = 4;
/// Leading bits of `::ffff:0:0/96`, under which IPv6 holds IPv4 (RFC 4291 section 2.5.5.2).
const MAPPED: u8 = 96;
/// That block's first address.
const BLOCK: Ipv6Addr = Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0);

/// What network an option gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    /// No bit of any.
    Nothing,
    /// IPv4.
    V4,
    /// IPv4 written inside IPv6.
    Mapped,
    /// IPv6.
    V6,
}

/// The option as a query carries it, checked. Four octets, as a batch holds one a query: the address is read again from the
/// packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EcsQuery {
    given: Given,
    /// SOURCE PREFIX-LENGTH as written, at most 128.
    written: u8,
    /// Where the option's address begins in the packet.
    at: u16,
}

impl EcsQuery {
    /// Reads and checks the option's data, which begins at `at` in the packet; `None` is FORMERR (RFC 7871 section 7.1.2).
    ///
    /// Family 0 with nothing in it is accepted as "no subnet given": clients send it to keep their network private. Other
    /// families are refused: section 6 gives meaning to 1 and 2 only.
    #[inline(always)]
    pub(super) fn read(data: &[u8], at: usize) -> Option<Self> {
        let (&[f0, f1, written, scope], address) = data.split_first_chunk::<FIXED>()?;
        // Bits beyond the source prefix must be zero, and the scope of a query too (section 6).
        if scope != 0 || address.len() != octets_of(written) {
            return None;
        }
        let given = match u16::from_be_bytes([f0, f1]) {
            IPV4 => check_v4(written, data)?,
            IPV6 => check_v6(written, address)?,
            0 if written == 0 => Given::Nothing,
            _ => return None,
        };
        Some(Self {
            given,
            written,
            at: u16::try_from(at + FIXED).ok()?,
        })
    }

    /// Gives the network to answer for; `None` when no bit of it is given. IPv4 inside IPv6 is IPv4, so that `::ffff:0:0/96`
    /// gives no bit either. `packet` is the query's.
    #[inline(always)]
    pub(super) fn subnet(&self, packet: &[u8]) -> Option<ClientSubnet> {
        let source = self.written - self.offset();
        if source == 0 {
            return None;
        }
        let address = match self.given {
            Given::Nothing => return None,
            Given::V4 | Given::Mapped => {
                let data = packet.get(..usize::from(self.at) + octets_of(self.written))?;
                IpAddr::V4(Ipv4Addr::from_bits(last_v4(source, data)?))
            }
            Given::V6 => IpAddr::V6(filled(self.address(packet)?)?),
        };
        Some(ClientSubnet {
            address,
            source: PrefixLen(source),
        })
    }

    /// Counts the bits that stand before the network's own: 96 for IPv4 inside IPv6, else 0. A scope is longer by as much.
    #[inline]
    pub(super) fn offset(&self) -> u8 {
        if self.given == Given::Mapped {
            MAPPED
        } else {
            0
        }
    }

    /// Gives the address's octets as written.
    #[inline]
    fn address<'p>(&self, packet: &'p [u8]) -> Option<&'p [u8]> {
        let from = usize::from(self.at);
        packet.get(from..from + octets_of(self.written))
    }
}

/// Counts the octets that a prefix takes (RFC 7871 section 6).
#[inline]
fn octets_of(prefix: u8) -> usize {
    usize::from(prefix).div_ceil(8)
}

/// Gives the least scope of an answer for an IPv6 address: as many bits as tell it from `::ffff:0:0/96`, which is IPv4 and may
/// get another answer (RFC 7871 section 7.2.1). 0 inside that block.
pub(super) fn beside_mapped(address: Ipv6Addr) -> PrefixLen {
    let shared = (u128::from(address) ^ u128::from(BLOCK)).leading_zeros();
    let shared = u8::try_from(shared).unwrap_or(MAPPED);
    PrefixLen(if shared < MAPPED { shared + 1 } else { 0 })
}

/// Checks an IPv4 network, and tells what is given.
#[inline(always)]
fn check_v4(source: u8, data: &[u8]) -> Option<Given> {
    if source == 0 {
        return Some(Given::Nothing);
    }
    let address = last_v4(source, data)?;
    let beyond = u32::MAX.checked_shr(source.into()).unwrap_or(0);
    (address & beyond == 0).then_some(Given::V4)
}

/// Reads the IPv4 network that data ends in, which has as many octets of it as a prefix of `source` bits takes, and four before
/// them; `None` above 32 bits.
///
/// One read for any length: the last four octets of all that are there, with those before the network shifted out.
#[inline(always)]
fn last_v4(source: u8, data: &[u8]) -> Option<u32> {
    let bits = u32::from(source).next_multiple_of(8);
    u32::from_be_bytes(*data.last_chunk()?).checked_shl(32_u32.checked_sub(bits)?)
}

/// Checks an IPv6 network, or IPv4 inside one, and tells what is given.
#[inline(never)]
fn check_v6(source: u8, address: &[u8]) -> Option<Given> {
    // More than 128 bits take more than sixteen octets.
    let address = filled(address)?;
    let beyond = u128::MAX.checked_shr(source.into()).unwrap_or(0);
    if address.to_bits() & beyond != 0 {
        return None;
    }
    Some(match address.to_ipv4_mapped() {
        Some(_) if source >= MAPPED => Given::Mapped,
        _ if source == 0 => Given::Nothing,
        _ => Given::V6,
    })
}

/// Fills an address up with zeros; `None`: it has more than sixteen octets.
fn filled(address: &[u8]) -> Option<Ipv6Addr> {
    let mut octets = [0; 16];
    octets.get_mut(..address.len())?.copy_from_slice(address);
    Some(Ipv6Addr::from(octets))
}

/// The option as a reply carries it: only ever made from the query's. FAMILY, SOURCE PREFIX-LENGTH and ADDRESS are copied,
/// the scope is the one free field (RFC 7871 section 7.2.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct EcsReply {
    query: EcsQuery,
    scope: PrefixLen,
}

impl EcsReply {
    /// Answers an option.
    pub(super) fn new(query: EcsQuery, scope: PrefixLen) -> Self {
        Self { query, scope }
    }

    /// Gives the octets of the option, its code and length included: first the fixed part, then the address. `packet` is the
    /// query's.
    #[inline]
    pub(super) fn parts<'p>(&self, packet: &'p [u8]) -> Option<([u8; 8], &'p [u8])> {
        let address = self.query.address(packet)?;
        let [code0, code1] = OPTION.to_be_bytes();
        let before = packet.get(..self.query.at.into())?;
        let &[f0, f1, ..] = before.last_chunk::<FIXED>()?;
        let length = reply_len(&self.query) - 4;
        let fixed = [
            code0,
            code1,
            0,
            length,
            f0,
            f1,
            self.query.written,
            self.scope.0,
        ];
        Some((fixed, address))
    }
}

/// Counts the octets of the option in a reply.
#[inline]
pub(super) fn reply_len(query: &EcsQuery) -> u8 {
    8 + query.written.div_ceil(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `None`: FORMERR. Else the network (empty for "none given") and the offset.
    fn check(data: &[u8], expected: Option<(&str, u8)>) {
        let found = EcsQuery::read(data, 0);
        let shown = found.map(|ecs| {
            let subnet = ecs.subnet(data).map(|subnet| subnet.to_string());
            (subnet.unwrap_or_default(), ecs.offset())
        });
        let expected = expected.map(|(text, offset)| (text.to_owned(), offset));
        assert_eq!(shown, expected, "{data:?}");
    }

    #[test]
    fn rfc7871_6_the_option_is_checked() {
        check(&[0, 1, 24, 0, 192, 0, 2], Some(("192.0.2.0/24", 0)));
        check(&[0, 1, 32, 0, 192, 0, 2, 1], Some(("192.0.2.1/32", 0)));
        check(&[0, 1, 23, 0, 192, 0, 2], Some(("192.0.2.0/23", 0)));
        check(&[0, 1, 1, 0, 128], Some(("128.0.0.0/1", 0)));
        check(&[0, 1, 0, 0], Some(("", 0)));
        check(&[0, 2, 0, 0], Some(("", 0)));
        check(&[0, 0, 0, 0], Some(("", 0)));
        check(
            &[0, 2, 32, 0, 0x20, 1, 0x0d, 0xb8],
            Some(("2001:db8::/32", 0)),
        );
        let full = [&[0, 2, 128, 0][..], &[0xff; 16]].concat();
        check(
            &full,
            Some(("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", 0)),
        );
        // Too long a prefix, octets missing or left over, bits beyond the prefix, a scope, other families, cut off.
        check(&[0, 1, 33, 0, 192, 0, 2, 1, 0], None);
        check(&[&[0, 2, 129, 0][..], &[0; 17]].concat(), None);
        check(&[0, 1, 24, 0, 192, 0], None);
        check(&[0, 1, 24, 0, 192, 0, 2, 0], None);
        check(&[0, 1, 0, 0, 0], None);
        check(&[0, 1, 23, 0, 192, 0, 3], None);
        check(&[0, 1, 1, 0, 64], None);
        check(&[0, 1, 24, 1, 192, 0, 2], None);
        check(&[0, 3, 8, 0, 1], None);
        check(&[0, 0, 8, 0, 1], None);
        check(&[0, 1, 24], None);
        check(&[], None);
    }

    #[test]
    fn mapped_networks_are_ipv4() {
        let mapped = |source: u8, tail: &[u8]| {
            [&[0, 2, source, 0][..], &[0; 10], &[0xff, 0xff], tail].concat()
        };
        check(&mapped(96, &[]), Some(("", 96)));
        check(&mapped(120, &[192, 0, 2]), Some(("192.0.2.0/24", 96)));
        check(&mapped(128, &[192, 0, 2, 1]), Some(("192.0.2.1/32", 96)));
        let short = [&[0, 2, 95, 0][..], &[0; 10], &[0xff, 0xfe]].concat();
        check(&short, Some(("::fffe:0:0/95", 0)));
    }

    #[test]
    fn rfc7871_7_2_1_a_reply_copies_all_but_the_scope() {
        let data = [0, 1, 20, 0, 192, 0, 0x20];
        let query = EcsQuery::read(&data, 0).unwrap();
        let (fixed, address) = EcsReply::new(query, PrefixLen(17)).parts(&data).unwrap();
        assert_eq!(fixed, [0, 8, 0, 7, 0, 1, 20, 17]);
        assert_eq!(address, &data[4..]);
        assert_eq!(reply_len(&query), 11);
    }
}
