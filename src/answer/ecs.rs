//! The option Client Subnet (RFC 7871).

use std::net::{IpAddr, Ipv6Addr};

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

/// The option as a query carries it, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EcsQuery<'p> {
    family: u16,
    source: u8,
    /// As sent: `source` bits, rounded up to octets.
    address: &'p [u8],
}

impl<'p> EcsQuery<'p> {
    /// Reads and checks the option's data; `None` is FORMERR (RFC 7871 section 7.1.2).
    ///
    /// Family 0 with nothing in it is accepted as "no subnet given": clients send it to keep their network private. Other
    /// families are refused: section 6 gives meaning to 1 and 2 only.
    #[inline]
    pub(super) fn read(data: &'p [u8]) -> Option<Self> {
        let (&[f0, f1, source, scope], address) = data.split_first_chunk::<FIXED>()?;
        let family = u16::from_be_bytes([f0, f1]);
        let longest = match family {
            IPV4 => 32,
            IPV6 => 128,
            0 => 0,
            _ => return None,
        };
        // Bits beyond the source prefix must be zero, and the scope of a query too (section 6).
        let spare = address
            .last()
            .map_or(0, |last| last & (0xff >> (source % 8)));
        let spare = if source % 8 == 0 { 0 } else { spare };
        let exact = address.len() == usize::from(source).div_ceil(8);
        (source <= longest && exact && spare == 0 && scope == 0).then_some(Self {
            family,
            source,
            address,
        })
    }

    /// Gives the network to answer for; `None` when no bit of it is given. IPv4 inside IPv6 is IPv4, so that `::ffff:0:0/96`
    /// gives no bit either.
    #[inline(always)]
    pub(super) fn subnet(&self) -> Option<ClientSubnet> {
        if self.source == 0 {
            return None;
        }
        if self.family == IPV4 {
            // Written out, for a copy of a few octets costs a call.
            let octets = match *self.address {
                [a] => [a, 0, 0, 0],
                [a, b] => [a, b, 0, 0],
                [a, b, c] => [a, b, c, 0],
                [a, b, c, d] => [a, b, c, d],
                _ => return None,
            };
            return Some(ClientSubnet {
                address: IpAddr::from(octets),
                source: PrefixLen(self.source),
            });
        }
        let address = self.address_v6()?;
        let mapped = address.to_ipv4_mapped().filter(|_| self.source >= MAPPED);
        match mapped {
            Some(_) if self.source == MAPPED => None,
            Some(address) => Some(ClientSubnet {
                address: IpAddr::V4(address),
                source: PrefixLen(self.source - MAPPED),
            }),
            None => Some(ClientSubnet {
                address: IpAddr::V6(address),
                source: PrefixLen(self.source),
            }),
        }
    }

    /// Counts the bits that stand before the network's own: 96 for IPv4 inside IPv6, else 0. A scope is longer by as much.
    #[inline(always)]
    pub(super) fn offset(&self) -> u8 {
        let mapped = self.family == IPV6
            && self.source >= MAPPED
            && self
                .address_v6()
                .is_some_and(|address| address.to_ipv4_mapped().is_some());
        if mapped { MAPPED } else { 0 }
    }

    /// Fills the address up with zeros.
    fn address_v6(&self) -> Option<Ipv6Addr> {
        let mut octets = [0; 16];
        octets
            .get_mut(..self.address.len())?
            .copy_from_slice(self.address);
        Some(Ipv6Addr::from(octets))
    }
}

/// The option as a reply carries it: only ever made from the query's. FAMILY, SOURCE PREFIX-LENGTH and ADDRESS are copied,
/// the scope is the one free field (RFC 7871 section 7.2.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct EcsReply<'p> {
    query: EcsQuery<'p>,
    scope: PrefixLen,
}

impl<'p> EcsReply<'p> {
    /// Answers an option.
    pub(super) fn new(query: EcsQuery<'p>, scope: PrefixLen) -> Self {
        Self { query, scope }
    }

    /// Gives the octets of the option, its code and length included: first the fixed part, then the address.
    #[inline]
    pub(super) fn parts(&self) -> ([u8; 8], &'p [u8]) {
        let [code0, code1] = OPTION.to_be_bytes();
        // An address has 16 octets at most, so that the length is one octet.
        let length = u8::try_from(FIXED + self.query.address.len()).unwrap_or(0);
        let [f0, f1] = self.query.family.to_be_bytes();
        let fixed = [
            code0,
            code1,
            0,
            length,
            f0,
            f1,
            self.query.source,
            self.scope.0,
        ];
        (fixed, self.query.address)
    }
}

/// Counts the octets of the option in a reply.
#[inline]
pub(super) fn reply_len(query: EcsQuery<'_>) -> usize {
    4 + FIXED + query.address.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `None`: FORMERR. Else the network (empty for "none given") and the offset.
    fn check(data: &[u8], expected: Option<(&str, u8)>) {
        let found = EcsQuery::read(data);
        let shown = found.map(|ecs| {
            let subnet = ecs.subnet().map(|subnet| subnet.to_string());
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
        let query = EcsQuery::read(&data).unwrap();
        let (fixed, address) = EcsReply::new(query, PrefixLen(17)).parts();
        assert_eq!(fixed, [0, 8, 0, 7, 0, 1, 20, 17]);
        assert_eq!(address, &data[4..]);
        assert_eq!(reply_len(query), 11);
    }
}
