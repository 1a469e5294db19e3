//! Which targets may be probed: all of operators, and those of tenants that lead to nothing of this node or of somebody's own
//! network.
//!
//! A target is an address already, so that no name can mean another machine at the time of the probe (FAULTS F24, F25). What
//! an IPv6 address carries of IPv4 counts like the IPv4 address itself: a translator or relay on the way would unpack it.
//!
//! `probes.allow` opens ranges. A private range opens to every prefix that holds the address, 0.0.0.0/0 and ::/0 among them.
//! Everything else opens only to a prefix that lies within the special range itself, so that no wide prefix opens loopback or a
//! metadata service by the way; carried IPv4 that is not merely private only to the very IPv6 address. An address of this node
//! opens only to a prefix that names it alone, and its listeners to nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::health::Refusal;
use crate::model::{Origin, Target};

/// Knows what is special, what is allowed all the same, and where this node itself listens.
#[derive(Debug)]
pub(super) struct Guard {
    allow: Vec<IpNet>,
    /// Listeners of this node, ports resolved.
    own: Vec<SocketAddr>,
}

impl Guard {
    /// Makes a guard. `own` are the addresses this node listens on; an unspecified one stands for all of its addresses.
    pub(super) fn new(allow: &[IpNet], own: &[SocketAddr]) -> Self {
        Self {
            allow: allow.to_vec(),
            own: own.to_vec(),
        }
    }

    /// Sets what is allowed from now on.
    pub(super) fn allow(&mut self, allow: &[IpNet]) {
        self.allow = allow.to_vec();
    }

    /// Tells why a target may not be probed; `None`: it may. `is_here` tells whether an address is one of this node's; `None`: that
    /// cannot be told.
    pub(super) fn refuse(
        &self,
        target: &Target,
        is_here: impl Fn(IpAddr) -> Option<bool>,
    ) -> Option<Refusal> {
        if target.spec.origin == Origin::Operator {
            return None;
        }
        let address = target.address.ip().to_canonical();
        let port = target.address.port();
        if faces(address).any(|face| self.is_own(face, port, &is_here)) {
            return Some(Refusal::Own);
        }
        if faces(address).any(|face| self.is_this_node(address, face, &is_here)) {
            return Some(Refusal::Own);
        }
        let (range, why) = special(address)?;
        let opens = |allowed: &IpNet| {
            allowed.contains(&address) && (why == Refusal::Private || range.contains(allowed))
        };
        (!self.allow.iter().any(opens)).then_some(why)
    }

    /// Tells whether this node listens at an address and port.
    fn is_own(&self, address: IpAddr, port: u16, is_here: impl Fn(IpAddr) -> Option<bool>) -> bool {
        self.own.iter().any(|own| {
            let at = own.ip().to_canonical();
            // Linux connects the unspecified address to this machine.
            let is_at = at == address
                || address.is_unspecified()
                || at.is_unspecified() && is_here(address) != Some(false);
            own.port() == port && is_at
        })
    }

    /// Tells whether a face of an address is one of this node's, and nobody opened it. What else runs on this machine is none of
    /// the tenants' business, whatever its address is. An address of which that cannot be told cannot be connected to either.
    fn is_this_node(
        &self,
        address: IpAddr,
        face: IpAddr,
        is_here: impl Fn(IpAddr) -> Option<bool>,
    ) -> bool {
        let names = |allowed: &IpNet| {
            allowed.prefix_len() == allowed.max_prefix_len() && allowed.addr() == address
        };
        !is_everywhere(face) && is_here(face) == Some(true) && !self.allow.iter().any(names)
    }
}

/// Tells whether a face is of those that lead to this machine on every machine: they have their ranges.
fn is_everywhere(face: IpAddr) -> bool {
    let range = SPECIAL.iter().find(|(range, _)| range.contains(&face));
    range.is_some_and(|(_, why)| matches!(why, Refusal::Loopback | Refusal::Unspecified))
}

/// Lists an address and those that it carries.
fn faces(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    let carried = match address {
        IpAddr::V4(_) => [None; 2],
        IpAddr::V6(address) => carried(address),
    };
    let carried = carried.into_iter().flatten().map(IpAddr::V4);
    std::iter::once(address).chain(carried)
}

/// Says what makes an address special, and the range that does: the smallest.
fn special(address: IpAddr) -> Option<(IpNet, Refusal)> {
    let range_of = |face: IpAddr| SPECIAL.iter().find(|(range, _)| range.contains(&face));
    if let Some(found) = range_of(address) {
        return Some(*found);
    }
    let worst = faces(address).filter_map(range_of).map(|(_, why)| *why);
    Some((IpNet::from(address), worst.min()?))
}

/// Gives the IPv4 addresses that an IPv6 address carries, with zero to two of them.
fn carried(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let join =
        |high: u16, low: u16| Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match address.segments() {
        // IPv4-compatible (RFC 4291 s2.5.5.1), IPv4-translated (RFC 2765 s2.1), NAT64 (RFC 6052 s2.1).
        [0, 0, 0, 0, 0, 0, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        // 6to4 (RFC 3056 s2).
        | [0x2002, high, low, ..] => [join(high, low), None],
        // Teredo: its server, and its client with all bits turned (RFC 4380 s4).
        [0x2001, 0, high, low, _, _, turned_high, turned_low] => {
            [join(high, low), join(!turned_high, !turned_low)]
        }
        _ => [None; 2],
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length))
}

const fn v6(segments: [u16; 8], length: u8) -> IpNet {
    let [a, b, c, d, e, f, g, h] = segments;
    IpNet::V6(Ipv6Net::new_assert(
        Ipv6Addr::new(a, b, c, d, e, f, g, h),
        length,
    ))
}

/// Special ranges. Narrow ones stand before those they lie in.
const SPECIAL: [(IpNet, Refusal); 36] = {
    use Refusal::{LinkLocal, Loopback, Metadata, Multicast, Private, Reserved, Unspecified};
    [
        // Most clouds.
        (v4(169, 254, 169, 254, 32), Metadata),
        // Credentials of tasks (ECS) and pods (EKS) of AWS.
        (v4(169, 254, 170, 2, 32), Metadata),
        (v4(169, 254, 170, 23, 32), Metadata),
        // Tencent Cloud.
        (v4(169, 254, 0, 23, 32), Metadata),
        (v4(169, 254, 10, 10, 32), Metadata),
        // Scaleway.
        (v4(169, 254, 42, 42, 32), Metadata),
        (v6([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42], 128), Metadata),
        // Alibaba Cloud.
        (v4(100, 100, 100, 200, 32), Metadata),
        (v6([0xfd00, 0x100, 0, 0, 0, 0, 0x100, 0x200], 128), Metadata),
        // Azure's agent of the host: no private address.
        (v4(168, 63, 129, 16, 32), Metadata),
        // Oracle, of old and of now.
        (v4(192, 0, 0, 192, 32), Metadata),
        (
            v6([0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe], 128),
            Metadata,
        ),
        // All that AWS serves its machines over IPv6.
        (v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0], 32), Metadata),
        // Google.
        (v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128), Metadata),
        // Linode.
        (v6([0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1], 128), Metadata),
        // OpenStack.
        (v6([0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe], 128), Metadata),
        // RFC 1122 s3.2.1.3, RFC 4291 s2.5.3.
        (v4(127, 0, 0, 0, 8), Loopback),
        (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), Loopback),
        // RFC 3927, RFC 4291 s2.5.6.
        (v4(169, 254, 0, 0, 16), LinkLocal),
        (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), LinkLocal),
        // "This network" (RFC 791 s3.2), RFC 4291 s2.5.2.
        (v4(0, 0, 0, 0, 8), Unspecified),
        (v6([0; 8], 128), Unspecified),
        // RFC 5771, RFC 4291 s2.7.
        (v4(224, 0, 0, 0, 4), Multicast),
        (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), Multicast),
        // RFC 1112 s4, broadcast among it.
        (v4(240, 0, 0, 0, 4), Reserved),
        // Translators of somebody's own, which may unpack any IPv4 address (RFC 8215).
        (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), Reserved),
        // RFC 1918.
        (v4(10, 0, 0, 0, 8), Private),
        (v4(172, 16, 0, 0, 12), Private),
        (v4(192, 168, 0, 0, 16), Private),
        // RFC 6598.
        (v4(100, 64, 0, 0, 10), Private),
        // For protocols (RFC 6890) and for measuring (RFC 2544): in use within networks only.
        (v4(192, 0, 0, 0, 24), Private),
        (v4(198, 18, 0, 0, 15), Private),
        (v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48), Private),
        // RFC 4193; site-local of old (RFC 3879); segments of somebody's network (RFC 9602).
        (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), Private),
        (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), Private),
        (v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16), Private),
    ]
};

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{Check, MonitorSpec};

    fn target(address: SocketAddr, origin: Origin) -> Target {
        let check = Check::connect(address.port());
        Target {
            address,
            spec: Arc::new(MonitorSpec::new(check, origin)),
        }
    }

    fn tenants(address: &str, port: u16) -> Target {
        target(
            (address.parse::<IpAddr>().unwrap(), port).into(),
            Origin::Tenant,
        )
    }

    fn prefixes(text: &str) -> Vec<IpNet> {
        text.split_whitespace()
            .map(|prefix| prefix.parse().unwrap())
            .collect()
    }

    /// Addresses, why each is refused (`-`: it is not), prefixes that open it, and prefixes that hold it and do not.
    const TABLE: &str = "
        192.0.2.1                     | -           |                                  |
        8.8.8.8                       | -           |                                  |
        172.15.255.255                | -           |                                  |
        172.32.0.0                    | -           |                                  |
        100.63.255.255                | -           |                                  |
        100.128.0.0                   | -           |                                  |
        168.63.129.17                 | -           |                                  |
        2001:db8::1                   | -           |                                  |
        2606:4700::1111               | -           |                                  |
        ::ffff:192.0.2.1              | -           |                                  |
        64:ff9b::192.0.2.1            | -           |                                  |
        2002:c000:201::1              | -           |                                  |
        10.0.0.1                      | private     | 10.0.0.0/8 10.0.0.1/32 0.0.0.0/0 | ::/0
        10.255.255.255                | private     | 0.0.0.0/0 8.0.0.0/5              |
        172.16.0.0                    | private     | 172.16.0.0/12                    |
        172.31.255.255                | private     | 172.31.255.255/32                |
        192.168.1.1                   | private     | 192.168.0.0/16                   | 10.0.0.0/8
        100.64.0.1                    | private     | 100.64.0.0/10                    |
        100.127.255.255               | private     | 0.0.0.0/0                        |
        192.0.0.8                     | private     | 192.0.0.0/24                     |
        198.19.255.255                | private     | 198.18.0.0/15                    |
        fc00::1                       | private     | fc00::/7 ::/0                    | 0.0.0.0/0
        fdff:ffff::1                  | private     | fd00::/8                         |
        fec0::1                       | private     | fec0::/10                        |
        2001:2::1                     | private     | 2001:2::/48                      |
        5f00::1                       | private     | ::/0                             |
        ::ffff:10.0.0.1               | private     | 10.0.0.0/8 0.0.0.0/0             | ::/0
        64:ff9b::10.0.0.1             | private     | 64:ff9b::/96 ::/0                | 10.0.0.0/8 0.0.0.0/0
        2002:a00:1::1                 | private     | 2002:a00::/24                    | 10.0.0.0/8
        2001:0:c0a8:101::f7f7:f7f7    | private     | 2001::/32                        | 192.168.0.0/16
        127.0.0.1                     | loopback    | 127.0.0.1/32 127.0.0.0/8         | 0.0.0.0/0 126.0.0.0/7
        127.255.255.254               | loopback    | 127.255.0.0/16                   | 0.0.0.0/0 127.0.0.1/32
        ::1                           | loopback    | ::1/128                          | ::/0 ::/127
        ::ffff:127.0.0.1              | loopback    | 127.0.0.1/32                     | 0.0.0.0/0 ::/0
        ::127.0.0.1                   | loopback    | ::127.0.0.1/128                  | 127.0.0.1/32 ::/96 ::/0
        ::ffff:0:127.0.0.1            | loopback    | ::ffff:0:127.0.0.1/128           | ::ffff:0:0:0/96
        64:ff9b::7f00:1               | loopback    | 64:ff9b::7f00:1/128              | 64:ff9b::/96 127.0.0.0/8
        2002:7f00:1::                 | loopback    | 2002:7f00:1::/128                | 2002:7f00::/24 2002::/16
        2001:0:c000:201:0:0:80ff:fffe | loopback    | 2001:0:c000:201::80ff:fffe/128   | 2001::/32 ::/0
        2001:0:a00:1:0:0:80ff:fffe    | loopback    |                                  | 2001::/32 ::/0
        169.254.0.1                   | link_local  | 169.254.0.0/16 169.254.0.1/32    | 0.0.0.0/0 168.0.0.0/7
        fe80::1                       | link_local  | fe80::/10 fe80::/64              | ::/0 fe00::/8
        febf:ffff::1                  | link_local  | fe80::/10                        | ::/0
        169.254.169.254               | metadata    | 169.254.169.254/32               | 169.254.0.0/16 0.0.0.0/0
        ::ffff:169.254.169.254        | metadata    | 169.254.169.254/32               | 169.254.0.0/16 ::/0
        64:ff9b::a9fe:a9fe            | metadata    | 64:ff9b::a9fe:a9fe/128           | 64:ff9b::/96 169.254.169.254/32
        2002:a9fe:a9fe::1             | metadata    |                                  | 2002:a9fe:a9fe::/48 ::/0
        169.254.170.2                 | metadata    |                                  | 169.254.0.0/16
        169.254.170.23                | metadata    |                                  | 169.254.170.0/24
        169.254.0.23                  | metadata    |                                  | 169.254.0.0/16
        169.254.10.10                 | metadata    |                                  | 169.254.0.0/16
        169.254.42.42                 | metadata    |                                  | 169.254.0.0/16
        100.100.100.200               | metadata    | 100.100.100.200/32               | 100.64.0.0/10 0.0.0.0/0
        168.63.129.16                 | metadata    |                                  | 168.63.129.0/24 0.0.0.0/0
        192.0.0.192                   | metadata    |                                  | 192.0.0.0/24
        fd00:ec2::254                 | metadata    | fd00:ec2::254/128 fd00:ec2::/32  | fd00::/8 fc00::/7 ::/0
        fd00:ec2::23                  | metadata    | fd00:ec2::23/128                 | fd00:ec2::254/128 ::/0
        fd20:ce::254                  | metadata    |                                  | fd00::/8
        fd00:42::42                   | metadata    |                                  | fd00::/8
        fd00:c1::a9fe:a9fe            | metadata    |                                  | fd00::/8
        fd00:100::100:200             | metadata    |                                  | fd00::/8
        fd00:a9fe:a9fe::1             | metadata    |                                  | fd00:a9fe:a9fe::/48
        fe80::a9fe:a9fe               | metadata    |                                  | fe80::/10
        0.0.0.0                       | unspecified | 0.0.0.0/32 0.0.0.0/8             | 0.0.0.0/0 0.0.0.0/7
        0.1.2.3                       | unspecified |                                  | 0.0.0.0/0
        ::                            | unspecified | ::/128                           | ::/0 ::/96
        224.0.0.1                     | multicast   | 224.0.0.0/4                      | 0.0.0.0/0
        239.255.255.255               | multicast   |                                  | 0.0.0.0/0
        ff02::1                       | multicast   | ff02::/16                        | ::/0
        240.0.0.1                     | reserved    | 240.0.0.0/4                      | 0.0.0.0/0
        255.255.255.255               | reserved    |                                  | 0.0.0.0/0
        64:ff9b:1::a9fe:a9fe          | reserved    | 64:ff9b:1::/48                   | 64:ff9b::/32 ::/0
    ";

    #[test]
    fn addresses_are_refused_unless_a_prefix_names_them() {
        let nowhere = |_: IpAddr| Some(false);
        let rows = TABLE.lines().map(str::trim).filter(|row| !row.is_empty());
        for row in rows {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let [address, why, opening, others] = cells[..] else {
                panic!("{row}");
            };
            let target = tenants(address, 80);
            let said = |allow: &[IpNet]| Guard::new(allow, &[]).refuse(&target, nowhere);
            let label = said(&[]).map_or("-", Refusal::as_str);
            assert_eq!(label, why, "{row}");
            for prefix in prefixes(opening) {
                assert_eq!(said(&[prefix]), None, "{prefix}: {row}");
            }
            let others = prefixes(others);
            for prefix in &others {
                assert_eq!(said(&[*prefix]), said(&[]), "{prefix}: {row}");
            }
            assert_eq!(said(&others), said(&[]), "together: {row}");
            let all = [others, prefixes(opening)].concat();
            assert_eq!(said(&all).is_none(), why == "-" || !opening.is_empty());
            // The same address on an operator's word.
            let trusted = self::target(target.address, Origin::Operator);
            assert_eq!(Guard::new(&[], &[]).refuse(&trusted, nowhere), None);
        }
    }

    #[test]
    fn listeners_of_this_node_are_refused_whatever_is_allowed() {
        let own: Vec<SocketAddr> = [
            "192.0.2.53:53",
            "127.0.0.1:8053",
            "[2001:db8::53]:53",
            "[::]:9100",
        ]
        .map(|listener| listener.parse().unwrap())
        .into();
        let here = |address: IpAddr| Some(address == "198.51.100.7".parse::<IpAddr>().unwrap());
        let everything = prefixes("0.0.0.0/0 ::/0 127.0.0.0/8 0.0.0.0/8 64:ff9b::c000:235/128");
        for (address, port, is_own) in [
            ("192.0.2.53", 53, true),
            ("192.0.2.53", 80, false),
            ("192.0.2.54", 53, false),
            ("::ffff:192.0.2.53", 53, true),
            ("64:ff9b::192.0.2.53", 53, true),
            ("2002:c000:235::1", 53, true),
            ("2001:db8::53", 53, true),
            ("2001:db8::53", 8053, false),
            ("127.0.0.1", 8053, true),
            ("127.0.0.1", 80, false),
            ("0.0.0.0", 8053, true),
            ("0.0.0.0", 80, false),
            ("198.51.100.7", 9100, true),
            ("198.51.100.7", 53, true),
            ("64:ff9b::198.51.100.7", 53, true),
            ("::ffff:198.51.100.7", 9100, true),
            ("64:ff9b::198.51.100.7", 9100, true),
            ("198.51.100.8", 9100, false),
        ] {
            let guard = Guard::new(&everything, &own);
            let why = guard.refuse(&tenants(address, port), here);
            let wanted = is_own.then_some(Refusal::Own);
            assert_eq!(why, wanted, "{address} {port}");
        }
        let operators = target(own[1], Origin::Operator);
        assert_eq!(Guard::new(&[], &own).refuse(&operators, here), None);
    }

    #[test]
    fn addresses_of_this_node_open_to_their_own_prefix_alone() {
        let here = |address: IpAddr| {
            let own = ["198.51.100.7", "10.0.0.5", "2001:db8::7", "127.0.0.1"];
            Some(own.contains(&&*address.to_string()))
        };
        for (address, allow, why) in [
            ("198.51.100.7", "", Some(Refusal::Own)),
            (
                "198.51.100.7",
                "0.0.0.0/0 198.51.100.0/24 ::/0",
                Some(Refusal::Own),
            ),
            ("198.51.100.7", "198.51.100.7/32", None),
            ("198.51.100.8", "", None),
            ("10.0.0.5", "10.0.0.0/8", Some(Refusal::Own)),
            ("10.0.0.5", "10.0.0.5/32", None),
            ("10.0.0.6", "10.0.0.0/8", None),
            ("2001:db8::7", "", Some(Refusal::Own)),
            ("2001:db8::7", "2001:db8::7/128", None),
            (
                "64:ff9b::198.51.100.7",
                "198.51.100.7/32",
                Some(Refusal::Own),
            ),
            ("64:ff9b::198.51.100.7", "64:ff9b::c633:6407/128", None),
            ("127.0.0.1", "127.0.0.0/8", None),
        ] {
            let guard = Guard::new(&prefixes(allow), &[]);
            assert_eq!(
                guard.refuse(&tenants(address, 80), here),
                why,
                "{address} {allow}"
            );
        }
        // A shortage refuses nobody: the probe would fail by itself.
        let guard = Guard::new(&[], &[]);
        assert_eq!(guard.refuse(&tenants("198.51.100.7", 80), |_| None), None);
    }

    #[test]
    fn no_range_hides_behind_a_wider_one() {
        for (at, (range, _)) in SPECIAL.iter().enumerate() {
            let hidden = SPECIAL[..at].iter().any(|(wider, _)| wider.contains(range));
            assert!(!hidden, "{range}");
            assert_eq!(range.trunc(), *range);
        }
    }

    #[test]
    fn what_is_allowed_can_change() {
        let mut guard = Guard::new(&[], &[]);
        let target = tenants("10.0.0.1", 80);
        let said = |guard: &Guard| guard.refuse(&target, |_| Some(false));
        assert_eq!(said(&guard), Some(Refusal::Private));
        guard.allow(&prefixes("10.0.0.0/8"));
        assert_eq!(said(&guard), None);
        guard.allow(&[]);
        assert_eq!(said(&guard), Some(Refusal::Private));
    }
}
