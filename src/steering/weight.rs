//! Weights: the wheel for draws per query, and weighted rendezvous for ties (DESIGN section 4.2).
//!
//! Both give the same on every node: no seed, no state but the counter handed in, and floating point of basic operations only.

use std::net::IpAddr;

use crate::model::{ClientSubnet, PrefixLen};

// === The wheel ===

/// The share of a turn between two draws: 1/golden ratio, as a fraction of 2^32. The draws of any stretch are then spread as
/// evenly as a fixed step can spread them.
const GOLDEN: u64 = 2_654_435_769;
/// Totals up to here have their step in a table.
const TABLE: usize = 256;
/// The step of each small total.
#[expect(
    clippy::indexing_slicing,
    reason = "at compile time: beyond the end it would not compile"
)]
const STEPS: [u32; TABLE] = {
    let mut steps = [1; TABLE];
    let mut total = 1_u32;
    while (total as usize) < TABLE {
        steps[total as usize] = search_step(total);
        total += 1;
    }
    steps
};

/// Gives the greatest common divisor; of 0 and `b` it is `b`.
const fn gcd(mut a: u32, mut b: u32) -> u32 {
    while a != 0 {
        (a, b) = (b % a, a);
    }
    b
}

/// Finds the step for a wheel of `total` units: the number nearest to the golden share that has no divisor in common with it,
/// so that each unit is visited once a turn. `total` is above 0.
const fn search_step(total: u32) -> u32 {
    let ideal = ((total as u64 * GOLDEN) >> 32) as u32;
    let mut off = 0;
    while off < total {
        if ideal + off < total && gcd(ideal + off, total) == 1 {
            return ideal + off;
        }
        if off < ideal && gcd(ideal - off, total) == 1 {
            return ideal - off;
        }
        off += 1;
    }
    1
}

/// A wheel of weights: collects them, then tells where it stands at a draw.
///
/// Weights are divided by what they have in common, so that 80 and 20 turn once in 5 draws. In each turn every unit comes up
/// exactly once; neighbors of one cluster are spread over the turn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wheel {
    sum: u32,
    common: u32,
}

impl Wheel {
    /// Adds one cluster's weight, above 0. The sum of a service's weights is below 2^30 (see [`crate::model::Pools`]).
    pub(super) fn add(&mut self, weight: u32) {
        self.sum = self.sum.saturating_add(weight);
        if self.common != 1 {
            self.common = gcd(self.common, weight);
        }
    }

    /// Gives the unit that comes up at this draw, in the weights' own units: the cluster is the first whose weight, added to
    /// those before it, is above it. 0 for an empty wheel.
    pub(super) fn unit(self, draw: u32) -> u32 {
        let Some(total) = self.sum.checked_div(self.common).filter(|&total| total > 1) else {
            return 0;
        };
        let step = usize::try_from(total)
            .ok()
            .and_then(|total| STEPS.get(total).copied())
            .unwrap_or_else(|| search_step(total));
        let at = u64::from(draw % total) * u64::from(step) % u64::from(total);
        u32::try_from(at).unwrap_or(0) * self.common
    }
}

// === Ties ===

/// Leading bits of an IPv4 client that a tie looks at.
const SLICE_V4: PrefixLen = PrefixLen(24);
/// Leading bits of an IPv6 client that a tie looks at: a site's usual prefix.
const SLICE_V6: PrefixLen = PrefixLen(48);

/// Gives the least scope of an answer that a tie may have decided: the slice's length.
pub(super) fn slice_scope(subnet: ClientSubnet) -> PrefixLen {
    if subnet.address.is_ipv4() {
        SLICE_V4
    } else {
        SLICE_V6
    }
}

/// Spreads a number over 64 bits, one to one: the finalizer of SplitMix64.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Hashes a client's slice: its /24 (IPv4) or /48 (IPv6).
pub(super) fn slice_key(subnet: ClientSubnet) -> u64 {
    mix(match subnet.address {
        IpAddr::V4(address) => (4 << 56) | u64::from(u32::from(address) >> 8),
        IpAddr::V6(address) => {
            let [a, b, c, ..] = address.segments();
            (6 << 56) | (u64::from(a) << 32) | (u64::from(b) << 16) | u64::from(c)
        }
    })
}

/// Hashes a cluster's name: FNV-1a over its octets, then mixed. By name, so that nodes that list clusters in another order agree.
pub(super) fn cluster_key(name: &str) -> u64 {
    mix(name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3)
    }))
}

/// Scores a cluster for a client's slice; the least score wins the tie. A share of `weight` / sum of the slices goes to each
/// cluster, and when one leaves only its own slices move (weighted rendezvous: -ln(u) / weight). `weight` is above 0.
pub(super) fn score(slice: u64, cluster: u64, weight: u32) -> f64 {
    negative_ln(mix(slice ^ cluster)) / f64::from(weight)
}

/// Gives -ln((hash + 1) / 2^64), within 1e-8 or so. Basic operations only, as `f64::ln` may differ from machine to machine.
fn negative_ln(hash: u64) -> f64 {
    let hash = hash | 1;
    let zeros = hash.leading_zeros();
    // 1.0..2.0: the bits below the first one, as a mantissa.
    let mantissa = f64::from_bits(((hash << zeros << 1) >> 12) | (1023 << 52));
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    // ln(mantissa) = 2 artanh(s); s is at most 1/3, so that eight terms are enough.
    let series = [15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0]
        .into_iter()
        .fold(0.0, |sum, odd| sum * square + 1.0 / odd);
    std::f64::consts::LN_2 * f64::from(zeros + 1) - 2.0 * s * series
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    /// Which of the weights each of `draws` comes to.
    fn turn(weights: &[u32], draws: std::ops::Range<u32>) -> Vec<usize> {
        let mut wheel = Wheel::default();
        weights.iter().for_each(|&weight| wheel.add(weight));
        draws
            .map(|draw| {
                let mut unit = wheel.unit(draw);
                weights
                    .iter()
                    .position(|&weight| {
                        let here = unit < weight;
                        unit = unit.saturating_sub(weight);
                        here
                    })
                    .unwrap()
            })
            .collect()
    }

    #[test]
    fn every_turn_is_exact_and_spread() {
        for weights in [
            &[1, 1][..],
            &[80, 20],
            &[1],
            &[7],
            &[3, 3, 3],
            &[5, 3, 2],
            &[65_535, 1],
            &[997, 1013],
            &[100, 1, 1, 50],
            &[65_535, 65_534, 65_533],
        ] {
            let common = weights.iter().fold(0, |a, &b| gcd(a, b));
            let total = weights.iter().sum::<u32>() / common;
            for start in [0, total * 3] {
                let drawn = turn(weights, start..start + total);
                for (at, &weight) in weights.iter().enumerate() {
                    let count = drawn.iter().filter(|&&got| got == at).count();
                    assert_eq!(count, (weight / common) as usize, "{weights:?} {at}");
                    // In each stretch, a cluster's share is never off by more than a few draws.
                    let mut count = 0.0;
                    for (draws, &got) in (1_u32..).zip(&drawn) {
                        count += f64::from(u8::from(got == at));
                        let share =
                            f64::from(draws) * f64::from(weight / common) / f64::from(total);
                        assert!(
                            (count - share).abs() < 4.0,
                            "{weights:?} {at} after {draws}"
                        );
                    }
                }
            }
        }
        assert_eq!(Wheel::default().unit(7), 0);
        assert_eq!(turn(&[80, 20], 0..5).iter().sum::<usize>(), 1);
    }

    #[test]
    fn steps_visit_every_unit() {
        for total in 1..2000 {
            assert_eq!(gcd(search_step(total), total), 1, "{total}");
        }
    }

    #[test]
    fn the_logarithm_is_right() {
        for hash in [
            0,
            1,
            2,
            3,
            1 << 20,
            1 << 62,
            u64::MAX / 3,
            u64::MAX / 2,
            u64::MAX - 1,
            u64::MAX,
        ] {
            #[expect(clippy::cast_precision_loss, reason = "an oracle")]
            let expected = -((hash | 1) as f64 / 2.0_f64.powi(64)).ln();
            assert!((negative_ln(hash) - expected).abs() < 1e-7, "{hash}");
        }
    }

    /// The winner among clusters with names and weights.
    fn winner(subnet: ClientSubnet, clusters: &[(&str, u32)]) -> String {
        clusters
            .iter()
            .map(|&(name, weight)| (score(slice_key(subnet), cluster_key(name), weight), name))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, name)| name.to_owned())
            .unwrap()
    }

    #[test]
    fn ties_share_by_weight_and_move_little() {
        let all = [("a", 5), ("b", 3), ("c", 2)];
        for v6 in [false, true] {
            let mut counts = [0_u32; 3];
            for n in 0..20_000_u32 {
                let subnet = ClientSubnet::host(if v6 {
                    IpAddr::V6(Ipv6Addr::from(0x2001_0db8_u128 << 96 | u128::from(n) << 80))
                } else {
                    IpAddr::V4(Ipv4Addr::from(n << 8))
                });
                let before = winner(subnet, &all);
                let at = all.iter().position(|(name, _)| *name == before).unwrap();
                counts[at] += 1;
                let left: Vec<_> = all
                    .iter()
                    .copied()
                    .filter(|(name, _)| *name != "b")
                    .collect();
                let after = winner(subnet, &left);
                assert!(
                    before == "b" || before == after,
                    "only b's own clients move"
                );
            }
            for (count, (name, weight)) in counts.iter().zip(all) {
                let expected = weight * 2000;
                assert!(
                    count.abs_diff(expected) < 300,
                    "{name}: {count} of {expected}"
                );
            }
        }
    }

    #[test]
    fn a_slice_is_one_client_and_hashes_never_change() {
        let subnet = |text: &str| ClientSubnet::host(text.parse().unwrap());
        let key = |text: &str| slice_key(subnet(text));
        assert_eq!(key("192.0.2.1"), key("192.0.2.254"));
        assert_ne!(key("192.0.2.1"), key("192.0.3.1"));
        assert_eq!(key("2001:db8:1::1"), key("2001:db8:1:ffff::9"));
        assert_ne!(key("2001:db8:1::1"), key("2001:db8:2::1"));
        assert_eq!(slice_scope(subnet("192.0.2.1")), PrefixLen(24));
        assert_eq!(slice_scope(subnet("2001:db8::1")), PrefixLen(48));
        // Nodes of different builds must agree (promise 9): these values are for ever.
        assert_eq!(key("192.0.2.1"), KEY_192_0_2);
        assert_eq!(cluster_key("aws-use1"), KEY_AWS_USE1);
    }

    const KEY_192_0_2: u64 = 0x6bb4_a1d3_902e_fab6;
    const KEY_AWS_USE1: u64 = 0xfde4_b529_f779_0f22;
}
