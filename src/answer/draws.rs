//! Counters of draws: which turn of the wheel a query gets.

use crate::model::ServiceIndex;
use crate::snapshot::Snapshot;
use crate::steering::Family;

/// Counters of draws: one per worker. Grows in [`Self::fit`], never per packet.
///
/// A and AAAA are counted apart: resolvers ask both in turn, and one counter would give each family every other place of the
/// wheel.
#[derive(Clone, Debug, Default)]
pub struct Draws {
    /// By service: for A, for AAAA.
    by_service: Vec<[u32; 2]>,
    /// For services without a counter: their draw only rotates the order of addresses.
    shared: u32,
    /// How many counters the services met since the last fit need.
    wanted: usize,
}

impl Draws {
    /// Makes room for the services that draw and have no counter yet. Call once a batch, before its first query: until then such
    /// services share one counter, so that their shares are right on average only.
    #[inline]
    pub fn fit(&mut self, snapshot: &Snapshot) {
        // Which services draw is known to their policies only: those that were asked for say so themselves.
        let _ = snapshot;
        if self.wanted > self.by_service.len() {
            self.grow();
        }
    }

    /// Grows, in steps that double, so that many services in a row cost little.
    #[cold]
    fn grow(&mut self) {
        self.by_service
            .resize(self.wanted.next_power_of_two(), [0; 2]);
    }

    /// Gives the next draw of a service whose policy draws.
    #[inline]
    pub(super) fn of(&mut self, service: ServiceIndex, family: Family) -> u32 {
        let counters = self.by_service.get_mut(service.get());
        let counter = counters.map(|[v4, v6]| match family {
            Family::V4 => v4,
            Family::V6 => v6,
        });
        match counter {
            Some(counter) => {
                let draw = *counter;
                *counter = draw.wrapping_add(1);
                draw
            }
            None => {
                self.wanted = self.wanted.max(service.get() + 1);
                self.rotation()
            }
        }
    }

    /// Gives a draw for a level of a federated service: one of all numbers, as good as by chance. Levels are too many to be counted
    /// each, and those who ask for two in turn would get every other place of the wheel from one counter.
    #[inline]
    pub(super) fn scattered(&mut self) -> u32 {
        // The finalizer of MurmurHash3: one to one.
        let mut draw = self.rotation();
        draw = (draw ^ (draw >> 16)).wrapping_mul(0x85eb_ca6b);
        draw = (draw ^ (draw >> 13)).wrapping_mul(0xc2b2_ae35);
        draw ^ (draw >> 16)
    }

    /// Gives the next draw of any other service: a rotation.
    #[inline]
    pub(super) fn rotation(&mut self) -> u32 {
        let draw = self.shared;
        self.shared = draw.wrapping_add(1);
        draw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_has_its_own_counter_once_fitted() {
        let mut draws = Draws::default();
        let v4 = |draws: &mut Draws, service| draws.of(ServiceIndex(service), Family::V4);
        assert_eq!(v4(&mut draws, 5), 0);
        assert_eq!(v4(&mut draws, 2), 1);
        draws.fit(&Snapshot::default());
        let drawn = [5, 5, 2, 5, 2].map(|service| v4(&mut draws, service));
        assert_eq!(drawn, [0, 1, 0, 2, 1]);
        assert_eq!(draws.of(ServiceIndex(5), Family::V6), 0);
        assert_eq!(draws.rotation(), 2);
    }

    #[test]
    fn two_levels_asked_in_turn_each_get_every_share() {
        let mut draws = Draws::default();
        let drawn: Vec<u32> = (0..2000).map(|_| draws.scattered()).collect();
        for first in [0, 1] {
            let own = drawn.iter().skip(first).step_by(2);
            let odd = own.filter(|draw| **draw % 2 == 1).count();
            assert!((400..600).contains(&odd), "{odd} of 1000");
        }
    }
}
