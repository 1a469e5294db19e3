//! Dense indices: what the frozen tables use in place of names.

use std::fmt;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident($int:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $int);

        impl $name {
            /// Gives the index as a slice position.
            #[must_use]
            pub fn get(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

index!(
    /// A cluster's place in the inventory's list of clusters; stable while the process lives.
    ClusterIndex(u16)
);
index!(
    /// A region, or a zone of the clusters, in one snapshot.
    AreaIndex(u32)
);
index!(
    /// A service's place in the inventory; reused after the service is gone.
    ServiceIndex(u32)
);
index!(
    /// An entry of the table of endpoint states: one per distinct (cluster, address, monitor), so that a flip of an ingress
    /// shared by many services touches one entry.
    EndpointIndex(u32)
);
index!(
    /// A compiled policy: one per distinct (policy as written, set of clusters).
    PolicyIndex(u32)
);
index!(
    /// A zone's place in the zone set.
    ZoneIndex(u32)
);
index!(
    /// A node of one zone's static records.
    NodeIndex(u32)
);

/// Counts publishes: each snapshot carries one more than the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation(pub u64);

impl Generation {
    /// Gives the generation after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A zone's row in the tables of counters. Given at its first publish and kept while the process lives, so that counts of one
/// zone stay its own across reloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ZoneSlot(u8);

impl ZoneSlot {
    /// Zones counted one by one: a node's series are bounded.
    pub const NAMED: usize = 24;
    /// No zone of ours.
    pub const NONE: Self = Self(0);
    /// The row that all zones share that came when no other was left.
    pub const OTHER: Self = Self(1);
    /// How many rows there are.
    pub const COUNT: usize = Self::NAMED + 2;

    /// Gives the row of the zone at this position of the list of those counted one by one.
    #[must_use]
    pub fn named(position: usize) -> Self {
        match u8::try_from(position + 2) {
            Ok(row) if position < Self::NAMED => Self(row),
            _ => Self::OTHER,
        }
    }

    /// Gives the row as a position.
    #[must_use]
    #[inline]
    pub fn get(self) -> usize {
        usize::from(self.0)
    }
}
