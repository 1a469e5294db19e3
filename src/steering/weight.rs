//! Shares: the interleaved wheel for draws, and rendezvous hashing for ties.

use std::net::IpAddr;

/// Network bits that a tie is drawn by: one slice is an IPv4 /24 or an IPv6 /48, the networks that resolvers commonly send.
pub(super) fn slice_bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 24 } else { 48 }
}

/// Hashes the slice that an address lies in. The same on every node and in every process (FNV-1a with a final mix).
pub(super) fn slice_hash(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => hash(address.octets().get(..3).unwrap_or(&[])),
        IpAddr::V6(address) => hash(address.octets().get(..6).unwrap_or(&[])),
    }
}

/// Hashes octets, the same everywhere and for ever.
pub(super) fn hash(octets: &[u8]) -> u64 {
    let fnv = octets
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| {
            (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3)
        });
    mix(fnv)
}

/// Spreads every bit over all others (the finalizer of SplitMix64).
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Scores one member for one slice: the highest score wins, and each member wins a share of the slices in proportion to its
/// weight (weighted rendezvous hashing). When a member goes, only its own slices move. Weight 0 loses to any other weight.
pub(super) fn score(slice: u64, member: u64, weight: u32) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "53 of 64 random bits are enough"
    )]
    let uniform = ((mix(slice ^ member) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    if weight == 0 {
        uniform - 1.0
    } else {
        -f64::from(weight) / uniform.ln()
    }
}

/// Finds the place on the wheel for one draw: a number below `total` so that consecutive draws lie far apart and `total`
/// consecutive draws meet each number once. `total` must not be 0.
pub(super) fn wheel(draw: u32, total: u64) -> u64 {
    let draw = u64::from(draw) % total;
    // A step near the golden ratio interleaves best; coprime to the total it visits every place.
    let mut step = (total.saturating_mul(618) / 1000).max(1);
    while gcd(step, total) != 1 {
        step -= 1;
    }
    // total is below 2^25 (255 clusters of weight 65535 at most), so the product fits.
    draw * step % total
}

/// Gives the greatest common divisor.
pub(super) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_of_the_wheel_meets_every_place_once() {
        for total in 1..500 {
            let mut seen = vec![false; usize::try_from(total).unwrap()];
            for draw in 0..u32::try_from(total).unwrap() {
                let place = usize::try_from(wheel(draw + 7, total)).unwrap();
                assert!(!std::mem::replace(&mut seen[place], true), "{total} {draw}");
            }
        }
    }

    #[test]
    fn draws_are_interleaved() {
        // 80 to 20: never more than eight of the first in a row.
        let (mut run, mut longest) = (0, 0);
        for draw in 0..1000 {
            run = if wheel(draw, 5) < 4 { run + 1 } else { 0 };
            longest = longest.max(run);
        }
        assert!(longest <= 8, "{longest}");
    }

    #[test]
    fn slices_are_shared_by_weight_and_move_little() {
        let members = [(hash(b"a"), 1), (hash(b"b"), 3)];
        let winner = |slice: u64, members: &[(u64, u32)]| {
            let best = members
                .iter()
                .max_by(|x, y| score(slice, x.0, x.1).total_cmp(&score(slice, y.0, y.1)));
            best.unwrap().0
        };
        let slices: Vec<u64> = (0..20_000_u32)
            .map(|n| slice_hash(IpAddr::from((n << 8).to_be_bytes())))
            .collect();
        let share = slices
            .iter()
            .filter(|slice| winner(**slice, &members) == members[1].0)
            .count();
        assert!((14_500..15_500).contains(&share), "{share}");
        let more = [members[0], members[1], (hash(b"c"), 4)];
        for slice in &slices {
            let (before, after) = (winner(*slice, &members), winner(*slice, &more));
            assert!(after == before || after == more[2].0);
        }
        assert!(score(1, 2, 0) < 0.0 && score(1, 2, 1) > 0.0);
    }
}
