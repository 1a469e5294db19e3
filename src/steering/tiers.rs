//! Tiers: sets of clusters to be used one after the other (DESIGN section 4.2).
//!
//! A cluster is in the first tier that names it. Clusters that no tier names form one more tier, the last: they are used
//! when no other tier has anything, so that a configured name always has an address (promise 1).

use super::selector::position;
use crate::model::{Cluster, ClusterSelector, Groups};

/// Gives a cluster's tier, from 0. Tiers beyond the 255th count as the 255th.
pub(super) fn tier_of(tiers: &[Vec<ClusterSelector>], cluster: &Cluster, groups: &Groups) -> u8 {
    let tier = tiers
        .iter()
        .position(|tier| position(tier, cluster, groups).is_some())
        .unwrap_or(tiers.len());
    u8::try_from(tier).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steering::tests::world::{cluster, selectors};

    #[test]
    fn a_cluster_is_in_the_first_tier_that_names_it() {
        let tiers = [selectors(&["a", "b"]), selectors(&["a", "c"])];
        for (name, expected) in [("a", 0), ("b", 0), ("c", 1), ("d", 2)] {
            let tier = tier_of(&tiers, &cluster(name), &Groups::default());
            assert_eq!(tier, expected, "{name}");
        }
        let many: Vec<_> = (0..300).map(|_| selectors(&["a"])).collect();
        assert_eq!(tier_of(&many, &cluster("z"), &Groups::default()), u8::MAX);
        assert_eq!(tier_of(&[], &cluster("z"), &Groups::default()), 0);
    }
}
