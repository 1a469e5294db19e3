//! The search tree: every network once, in order, in a bounded number of steps.
//!
//! A tree of IPv6 holds IPv4 below ::/96, and writers point other prefixes at that same subtree: ::ffff:0:0/96 (mapped),
//! 2002::/16 (6to4), 2001::/32 (Teredo). The IPv4 subtree is read once, as IPv4. In the IPv6 walk it and the prefixes that
//! point at it are holes: mapped addresses are IPv4 before they are looked up, and the other two are retired (RFC 7526) or
//! name a relay and not the client.

use super::MmdbError;

/// An address family, as the walk sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// 32 bits.
    V4,
    /// 128 bits.
    V6,
}

/// The search tree of a file: the first bytes of it, `nodes` times two records of 24, 28 or 32 bits.
///
/// A record below the number of nodes is a node, equal to it is "nothing here", above it points into the data section.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    bytes: &'a [u8],
    nodes: u32,
    record_bits: u16,
    family: Family,
    /// Where IPv4 begins: the root, or what 96 zero bits lead to, or the leaf met on the way.
    v4: u32,
}

/// The zero octets between tree and data section.
const SEPARATOR: usize = 16;

impl<'a> Tree<'a> {
    /// Takes the tree of a file whose metadata was read.
    pub(super) fn new(
        bytes: &'a [u8],
        nodes: u32,
        record_bits: u16,
        family: Family,
    ) -> Result<Self, MmdbError> {
        let size = (nodes as usize).saturating_mul(usize::from(record_bits / 4));
        let (Some(tree), Some(separator)) = (
            bytes.get(..size),
            bytes.get(size..size.saturating_add(SEPARATOR)),
        ) else {
            return Err(MmdbError::Tree("it is longer than the file"));
        };
        if separator.iter().any(|&octet| octet != 0) {
            return Err(MmdbError::Tree("it does not end where the metadata says"));
        }
        let mut tree = Self {
            bytes: tree,
            nodes,
            record_bits,
            family,
            v4: 0,
        };
        if family == Family::V6 {
            for _ in 0..96 {
                if tree.v4 < nodes {
                    tree.v4 = tree.child(tree.v4, Side::Left)?;
                }
            }
        }
        Ok(tree)
    }

    /// Visits all leaves of a family by rising address: the first address, aligned to the left of 128 bits, and the record's
    /// pointer, or `None` where there is none. Together they cover the family without a gap.
    ///
    /// # Errors
    /// When the tree is deeper than addresses are long, or has more paths than nodes allow (a cycle, or subtrees shared
    /// beyond the aliases above); or what `visit` returns.
    pub(super) fn walk(
        &self,
        family: Family,
        mut visit: impl FnMut(u128, Option<u32>) -> Result<(), MmdbError>,
    ) -> Result<(), MmdbError> {
        if family == Family::V6 && self.family == Family::V4 {
            return Ok(());
        }
        let (root, width) = match family {
            Family::V4 => (self.v4, 32),
            Family::V6 => (0, 128),
        };
        // A tree of n nodes has n + 1 leaves; the rest is slack for writers that share a few subtrees.
        let mut steps = u64::from(self.nodes) * 4 + 1024;
        let mut open = vec![(root, 0_u128, 0_u32)];
        while let Some((node, start, depth)) = open.pop() {
            steps = steps
                .checked_sub(1)
                .ok_or(MmdbError::Tree("it has more paths than nodes: a cycle"))?;
            if node >= self.nodes {
                visit(start, (node > self.nodes).then_some(node))?;
            } else if family == Family::V6 && node == self.v4 {
                visit(start, None)?;
            } else if depth == width {
                return Err(MmdbError::Tree(
                    "it is deeper than addresses are long: a cycle",
                ));
            } else {
                // The left child is on top, so leaves come in order.
                let bit = 1_u128 << (127 - depth);
                open.push((self.child(node, Side::Right)?, start | bit, depth + 1));
                open.push((self.child(node, Side::Left)?, start, depth + 1));
            }
        }
        Ok(())
    }

    /// Reads one of the two records of a node.
    fn child(&self, node: u32, side: Side) -> Result<u32, MmdbError> {
        let octets = usize::from(self.record_bits / 4);
        let node = (node as usize)
            .checked_mul(octets)
            .and_then(|at| self.bytes.get(at..)?.get(..octets))
            .ok_or(MmdbError::Tree("a node lies beyond its end"))?;
        let record = match (node, side) {
            (&[a, b, c, _, _, _], Side::Left) | (&[_, _, _, a, b, c], Side::Right) => [0, a, b, c],
            // 28 bits: the octet in the middle holds the highest four bits of both.
            (&[a, b, c, high, _, _, _], Side::Left) => [high >> 4, a, b, c],
            (&[_, _, _, high, a, b, c], Side::Right) => [high & 15, a, b, c],
            (&[a, b, c, d, _, _, _, _], Side::Left) | (&[_, _, _, _, a, b, c, d], Side::Right) => {
                [a, b, c, d]
            }
            _ => return Err(MmdbError::Tree("its records are not of 24, 28 or 32 bits")),
        };
        Ok(u32::from_be_bytes(record))
    }
}

/// Which record of a node: the next bit is 0 or 1.
#[derive(Clone, Copy, Debug)]
enum Side {
    /// 0
    Left,
    /// 1
    Right,
}
