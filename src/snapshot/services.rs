//! Pages of services by index.

use std::ops::Deref;
use std::sync::Arc;

use super::grouped::{Grouped, GroupedEdit};
use super::names::Steered;
pub use crate::inventory::Extras;
use crate::model::ServiceIndex;

/// Services of one page: a change of one service copies the slots of one page, and touches the endpoints of all of them.
const PAGE: usize = 64;

/// What a query reads of one service.
#[derive(Clone, Debug)]
pub struct ServiceSlot {
    /// What it reads of every service; of most also in the table of names, beside the name.
    pub steered: Steered,
    /// What few services have.
    pub extras: Option<Arc<Extras>>,
}

impl Deref for ServiceSlot {
    type Target = Steered;

    fn deref(&self) -> &Steered {
        &self.steered
    }
}

/// One page.
type Page = [Option<ServiceSlot>; PAGE];

/// All services by index. Cheap to clone: pages are shared.
#[derive(Clone, Debug, Default)]
pub(super) struct ServiceTable {
    pages: Grouped<Option<Arc<Page>>>,
}

impl ServiceTable {
    /// Gives a service.
    #[inline]
    pub(super) fn get(&self, index: ServiceIndex) -> Option<&ServiceSlot> {
        let (page, at) = split(index);
        self.pages.get(page)?.as_ref()?.get(at)?.as_ref()
    }

    /// Gives what stands in the table of names beside those of a service; `None`: it has more than that.
    pub(super) fn steered(&self, index: ServiceIndex) -> Option<Steered> {
        let slot = self.get(index)?;
        let is_all = |extras: &Arc<Extras>| extras.is_about_names();
        let is_alone = slot.extras.as_ref().is_none_or(is_all);
        is_alone.then(|| slot.steered.clone())
    }

    /// Iterates over all services.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ServiceIndex, &ServiceSlot)> {
        let pages = (0..).step_by(PAGE).zip(self.pages.iter());
        pages.flat_map(|(start, page)| {
            let slots = page.iter().flat_map(|page| page.iter());
            let slots = (start..).map(ServiceIndex).zip(slots);
            slots.filter_map(|(index, slot)| Some((index, slot.as_ref()?)))
        })
    }

    /// Counts the slots, free ones included: every index is below.
    pub(super) fn end(&self) -> usize {
        self.pages.len() * PAGE
    }

    /// Gives the octets held, endpoints included (shared with the inventory).
    pub(super) fn memory(&self) -> usize {
        let pools: usize = self
            .iter()
            .map(|(_, slot)| slot.pools.as_bytes().len())
            .sum();
        let pages = self.pages.iter().flatten().count() * size_of::<Page>();
        self.pages.memory() + pages + pools
    }

    /// Begins to change the table.
    pub(super) fn edit(&self) -> ServiceEdit {
        ServiceEdit {
            pages: self.pages.edit(),
        }
    }
}

/// A table being changed. Pages are copied when they are first touched.
#[derive(Debug)]
pub(super) struct ServiceEdit {
    pages: GroupedEdit<Option<Arc<Page>>>,
}

impl ServiceEdit {
    /// Fills or empties a slot.
    pub(super) fn set(&mut self, index: ServiceIndex, slot: Option<ServiceSlot>) {
        let (page, at) = split(index);
        if slot.is_none() && self.pages.get(page).is_none_or(Option::is_none) {
            return;
        }
        let Some(page) = self.pages.get_mut(page) else {
            return;
        };
        let page = page.get_or_insert_with(|| Arc::new(std::array::from_fn(|_| None)));
        if let Some(place) = Arc::make_mut(page).get_mut(at) {
            *place = slot;
        }
    }

    /// Freezes.
    pub(super) fn seal(self) -> ServiceTable {
        ServiceTable {
            pages: self.pages.seal(),
        }
    }
}

/// Splits an index into page and position.
#[inline]
fn split(index: ServiceIndex) -> (usize, usize) {
    (index.get() / PAGE, index.get() % PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{PolicyIndex, Pools};

    fn slot(policy: u32) -> ServiceSlot {
        ServiceSlot {
            steered: Steered {
                pools: Pools::default(),
                policy: PolicyIndex(policy),
                ttl: None,
            },
            extras: None,
        }
    }

    #[test]
    fn a_change_copies_one_page() {
        let mut edit = ServiceTable::default().edit();
        edit.set(ServiceIndex(700), None);
        for index in 0..600 {
            edit.set(ServiceIndex(index), Some(slot(index)));
        }
        let first = edit.seal();
        let mut edit = first.edit();
        edit.set(ServiceIndex(300), Some(slot(7)));
        edit.set(ServiceIndex(301), None);
        let second = edit.seal();
        let policy =
            |table: &ServiceTable, index| table.get(ServiceIndex(index)).map(|s| s.policy.0);
        for (index, before, after) in [
            (0, Some(0), Some(0)),
            (300, Some(300), Some(7)),
            (301, Some(301), None),
            (599, Some(599), Some(599)),
            (600, None, None),
            (70_000, None, None),
        ] {
            assert_eq!(
                (policy(&first, index), policy(&second, index)),
                (before, after)
            );
        }
        let pages = first.pages.iter().zip(second.pages.iter());
        let copied = pages.filter(|pages| match pages {
            (Some(a), Some(b)) => !Arc::ptr_eq(a, b),
            (a, b) => a.is_some() || b.is_some(),
        });
        assert_eq!(copied.count(), 1);
        assert_eq!(second.iter().count(), 599);
    }

    #[test]
    fn a_slot_is_small() {
        assert!(size_of::<Option<ServiceSlot>>() == 24);
    }
}
