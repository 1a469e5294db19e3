//! Old addresses of host names: nobody but a probe says that they are still right.

use std::collections::HashSet;

use crate::health::Flip;
use crate::inventory::Inventory;
use crate::model::{Condition, EndpointIndex, Verdict};

/// The entries that need a proof and have one: their monitor, which checks a certificate of the name, passes.
#[derive(Debug, Default)]
pub(super) struct Proofs(HashSet<EndpointIndex>);

impl Proofs {
    /// Takes what a monitor says of entries.
    pub(super) fn note(&mut self, flip: &Flip, endpoints: &[EndpointIndex], inventory: &Inventory) {
        let passes = flip.verdict == Verdict::Up && flip.refused.is_none();
        for endpoint in endpoints {
            if passes && inventory.endpoint_condition(*endpoint).is_unproven {
                self.0.insert(*endpoint);
            } else {
                self.0.remove(endpoint);
            }
        }
    }

    /// Takes that entries are gone: their indices may be others' soon.
    pub(super) fn forget(&mut self, gone: &[EndpointIndex]) {
        for endpoint in gone {
            self.0.remove(endpoint);
        }
    }

    /// Gives what holds of an entry: what needs a proof and has none is as if Down.
    pub(super) fn lay(&self, endpoint: EndpointIndex, condition: Condition) -> Condition {
        let is_proven = !condition.is_unproven || self.0.contains(&endpoint);
        Condition {
            is_unready: condition.is_unready || !is_proven,
            ..condition
        }
    }
}
