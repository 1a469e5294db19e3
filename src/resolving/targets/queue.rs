//! Whose question is next. Names whose servers are silent hold a place for seconds, so they have few, and can take none from
//! names that are answered.

use std::collections::{BTreeMap, BTreeSet};

use super::known::Family;
use crate::model::{LowerName, Moment};

/// Questions out at once.
pub(super) const IN_FLIGHT: usize = 64;
/// Of those, questions that were never asked before, at most: how they end is not known.
pub(super) const NEW_IN_FLIGHT: usize = 32;
/// Of those, questions that had no answer last time, at most. Both together leave a quarter to what was answered.
pub(super) const FAILED_IN_FLIGHT: usize = 16;

/// How a question ended last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// With an answer, be it that there is no address.
    Answered,
    /// It was never asked.
    New,
    /// Without an answer.
    Failed,
}

impl Class {
    const ALL: [Self; 3] = [Self::Answered, Self::New, Self::Failed];

    /// Tells how many may be out.
    fn places(self) -> usize {
        match self {
            Self::Answered => IN_FLIGHT,
            Self::New => NEW_IN_FLIGHT,
            Self::Failed => FAILED_IN_FLIGHT,
        }
    }
}

/// A question that waits: when it is due, and what it asks.
pub(super) type Waiting = (Moment, LowerName, Family);

/// Questions that wait, and those that are out. Every step costs O(log n).
#[derive(Debug, Default)]
pub(super) struct Queue {
    answered: Row,
    new: Row,
    failed: Row,
    /// Ticket of each question out -> how it ended last.
    out: BTreeMap<u64, Class>,
}

/// Questions of one class.
#[derive(Debug, Default)]
struct Row {
    /// The next one first.
    waiting: BTreeSet<Waiting>,
    /// How many are out.
    out: usize,
}

impl Queue {
    /// Takes a question that waits.
    pub(super) fn enter(&mut self, class: Class, waiting: Waiting) {
        self.row_mut(class).waiting.insert(waiting);
    }

    /// Takes it away.
    pub(super) fn remove(&mut self, class: Class, waiting: &Waiting) {
        self.row_mut(class).waiting.remove(waiting);
    }

    /// Takes out the question that has been due for the longest and has a place; `None`: there is none.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<(Class, Waiting)> {
        let class = self.next().filter(|(moment, _)| *moment <= now)?.1;
        let waiting = self.row_mut(class).waiting.pop_first()?;
        Some((class, waiting))
    }

    /// Tells when the next question is due that has a place.
    pub(super) fn next_due(&self) -> Option<Moment> {
        Some(self.next()?.0)
    }

    /// A question goes out.
    pub(super) fn go_out(&mut self, class: Class, ticket: u64) {
        self.row_mut(class).out += 1;
        self.out.insert(ticket, class);
    }

    /// A question is answered, or given up. Tells whether it was out.
    pub(super) fn come_back(&mut self, ticket: u64) -> bool {
        let Some(class) = self.out.remove(&ticket) else {
            return false;
        };
        self.row_mut(class).out -= 1;
        true
    }

    /// Finds whose turn it is, and since when. Of those equally long due, what was answered goes first.
    fn next(&self) -> Option<(Moment, Class)> {
        if self.out.len() >= IN_FLIGHT {
            return None;
        }
        let mut next: Option<(Moment, Class)> = None;
        for class in Class::ALL {
            let row = self.row(class);
            let first = row.waiting.first().filter(|_| row.out < class.places());
            if let Some((moment, ..)) = first
                && next.is_none_or(|(other, _)| *moment < other)
            {
                next = Some((*moment, class));
            }
        }
        next
    }

    fn row(&self, class: Class) -> &Row {
        match class {
            Class::Answered => &self.answered,
            Class::New => &self.new,
            Class::Failed => &self.failed,
        }
    }

    fn row_mut(&mut self, class: Class) -> &mut Row {
        match class {
            Class::Answered => &mut self.answered,
            Class::New => &mut self.new,
            Class::Failed => &mut self.failed,
        }
    }
}
