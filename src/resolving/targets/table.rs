//! What is known of all targets.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use crate::model::{LowerName, Moment};

/// All targets that are wanted, by name. Equal entries of two tables are shared: who follows changes compares pointers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    by_name: BTreeMap<LowerName, Arc<Resolution>>,
}

impl Table {
    /// Gives what is known of a target; `None`: it is not wanted.
    #[must_use]
    pub fn get(&self, name: &LowerName) -> Option<&Arc<Resolution>> {
        self.by_name.get(name)
    }

    /// Iterates over all targets, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&LowerName, &Arc<Resolution>)> {
        self.by_name.iter()
    }

    /// Counts the targets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Tells whether nothing is wanted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

impl FromIterator<(LowerName, Arc<Resolution>)> for Table {
    fn from_iter<I: IntoIterator<Item = (LowerName, Arc<Resolution>)>>(entries: I) -> Self {
        Self {
            by_name: entries.into_iter().collect(),
        }
    }
}

/// What is known of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// Where it is, by this TTL period and the one before: sorted, IPv4 first, none twice, at most 64 of each family.
    pub addresses: Box<[IpAddr]>,
    /// Where it was when a name server last said so, more than an hour ago: for use after all others, before there is nothing.
    /// Sorted, none twice, at most 64 of each family; of other families than `addresses`. Those that a TLS-verified probe passes
    /// may be used on (DESIGN section 4.4): that is for whoever has the verdicts.
    pub old: Box<[IpAddr]>,
    /// When the TTL of `addresses` ends, the earlier of both families', by the clock of
    /// [`TargetsHandle::now`](super::TargetsHandle::now). It lies behind when nobody confirmed them since. `None`: there are none.
    pub expires: Option<Moment>,
    /// How well it is known.
    pub state: TargetState,
    /// What is wrong, by record type: one line of at most 500 characters. Beside `Fresh` it is of the family without addresses,
    /// or of refused addresses.
    pub error: Option<Box<str>>,
    /// Its aliases lead in a circle, back into our own zones, or too far; `error` says which. It is asked for again all the same.
    pub is_circular: bool,
    /// Addresses of the last answers that nobody can be sent to: loopback, link-local, multicast and the like, and those above 64.
    pub refused: u32,
}

impl Resolution {
    /// Makes that of a target without addresses.
    pub(super) fn empty(state: TargetState, error: Option<Box<str>>) -> Self {
        Self {
            addresses: Box::default(),
            old: Box::default(),
            expires: None,
            state,
            error,
            is_circular: false,
            refused: 0,
        }
    }
}

/// How well a target is known.
///
/// ```text
/// Unresolved --answer--> Fresh --failure, first denial--> Failing --an hour--> Expired
///                          ^--------------- answer ----------'--------------------'
/// what was known before a start --> Failing, or Expired
/// any but Own --both families denied twice in a row--> Gone --answer--> Fresh
/// ```
///
/// A denial is NXDOMAIN or NODATA. A failure is all else that is no answer: silence, SERVFAIL, a circle of aliases, an answer
/// with nothing but refused addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetState {
    /// It had no address so far. `Resolution::error` says why, once somebody was asked.
    Unresolved,
    /// Its name servers said so within the TTL, or are about to be asked again.
    Fresh,
    /// A family with addresses was not confirmed when it was last asked for, or not since the start. They stay.
    Failing {
        /// Since when.
        since: Moment,
    },
    /// Nothing was confirmed for an hour: there are only `old` addresses.
    Expired {
        /// Since when.
        since: Moment,
    },
    /// Its name servers said twice in a row that it has no address.
    Gone,
    /// It lies in a zone of ours and is never asked for over the network: whoever wants it follows it inside.
    Own,
}
