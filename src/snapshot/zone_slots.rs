//! Which row of the counters each zone has, from its first publish on.

use std::sync::Arc;

use crate::model::{LowerName, ZoneIndex, ZoneSlot};
use crate::zone::ZoneSet;

/// Rows of zones. The first [`ZoneSlot::NAMED`] zones that were ever published keep theirs while the process lives, also when they
/// are gone: a row used again would add one zone's counts to another's. All others share one.
#[derive(Clone, Debug, Default)]
pub(super) struct ZoneSlots {
    by_index: Arc<[ZoneSlot]>,
    /// By row.
    named: Arc<[LowerName]>,
}

impl ZoneSlots {
    /// Gives the rows for the next set of zones.
    pub(super) fn with(&self, zones: &ZoneSet) -> Self {
        let mut named = self.named.to_vec();
        let by_index = zones.iter().map(|(_, zone)| {
            let known = named.iter().position(|name| name == zone.apex());
            let at = known.unwrap_or_else(|| {
                if named.len() < ZoneSlot::NAMED {
                    named.push(zone.apex().clone());
                    named.len() - 1
                } else {
                    ZoneSlot::NAMED
                }
            });
            ZoneSlot::named(at)
        });
        let by_index = by_index.collect();
        Self {
            by_index,
            named: named.into(),
        }
    }

    /// Gives a zone's row.
    #[inline]
    pub(super) fn get(&self, zone: ZoneIndex) -> ZoneSlot {
        self.by_index
            .get(zone.get())
            .copied()
            .unwrap_or(ZoneSlot::OTHER)
    }

    /// Names the zones with a row of their own, in the order of [`ZoneSlot::named`].
    pub(super) fn named(&self) -> &Arc<[LowerName]> {
        &self.named
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zone::testing::zone;

    fn set(names: &[String]) -> ZoneSet {
        ZoneSet::new(names.iter().map(|name| zone(name, "")).collect())
    }

    #[test]
    fn rows_survive_reloads_and_are_bounded() {
        let names = |range: std::ops::Range<u32>| -> Vec<String> {
            range.map(|at| format!("z{at}.test")).collect()
        };
        let first = ZoneSlots::default().with(&set(&names(0..2)));
        assert_eq!(first.get(ZoneIndex(1)), ZoneSlot::named(1));
        // The first zone is gone, and many came: the second keeps its row under another index.
        let second = first.with(&set(&names(1..60)));
        assert_eq!(second.get(ZoneIndex(0)), ZoneSlot::named(1));
        assert_eq!(second.get(ZoneIndex(1)), ZoneSlot::named(2));
        let last = u32::try_from(ZoneSlot::NAMED).unwrap() - 2;
        assert_eq!(second.get(ZoneIndex(last)), ZoneSlot::named(23));
        assert_eq!(second.get(ZoneIndex(last + 1)), ZoneSlot::OTHER);
        assert_eq!(second.named().len(), ZoneSlot::NAMED);
        assert_eq!(second.get(ZoneIndex(1000)), ZoneSlot::OTHER);
        // It comes back to the counts it had.
        let third = second.with(&set(&names(0..1)));
        assert_eq!(third.get(ZoneIndex(0)), ZoneSlot::named(0));
    }
}
