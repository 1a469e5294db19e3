//! What is known of all monitors at one moment.
//!
//! What they probe is shared with the fleet, a page at a time: with eighty thousand monitors, one more costs a page. Only what
//! probes change is copied, and kept short.

use std::sync::Arc;

use super::monitor::{Last, Monitor};
use super::observation::{MonitorId, MonitorReport, Refusal};
use crate::model::{EndpointIndex, Target, Verdict};

/// Targets of one page: 4 KiB with the counts before them.
const PAGE: usize = 102;

/// What is probed, by number. Cheap to clone; a change copies one page, if somebody else holds it.
#[derive(Clone, Debug, Default)]
pub(super) struct Targets {
    pages: Vec<Arc<[Option<Target>; PAGE]>>,
}

impl Targets {
    /// Gives one.
    pub(super) fn get(&self, id: MonitorId) -> Option<&Target> {
        let (page, at) = split(id);
        self.pages.get(page)?.get(at)?.as_ref()
    }

    /// Sets or clears one.
    pub(super) fn set(&mut self, id: MonitorId, target: Option<Target>) {
        let (page, at) = split(id);
        while self.pages.len() <= page {
            self.pages.push(Arc::new([const { None }; PAGE]));
        }
        let page = self.pages.get_mut(page).map(Arc::make_mut);
        if let Some(place) = page.and_then(|page| page.get_mut(at)) {
            *place = target;
        }
    }
}

/// Splits a number into page and place.
fn split(id: MonitorId) -> (usize, usize) {
    let at = id.0 as usize;
    (at / PAGE, at % PAGE)
}

/// What is known of one monitor, but for its target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    verdict: Verdict,
    in_doubt: bool,
    never_succeeded: bool,
    refused: Option<Refusal>,
    last: Last,
    /// The first of its endpoints, and how many there are.
    endpoints: (EndpointIndex, u32),
}

impl Row {
    /// Makes one; `endpoints` are the first and how many.
    pub(super) fn of(
        (monitor, target): (&Monitor, &Target),
        refused: Option<Refusal>,
        (endpoint, endpoints): (EndpointIndex, usize),
    ) -> Self {
        Self {
            verdict: monitor.verdict(),
            in_doubt: monitor.in_doubt(),
            never_succeeded: monitor.never_succeeded(&target.spec),
            refused,
            last: monitor.last(),
            endpoints: (endpoint, u32::try_from(endpoints).unwrap_or(u32::MAX)),
        }
    }

    /// Joins it with its target.
    pub(super) fn report(self, target: &Target) -> MonitorReport<'_> {
        let (endpoint, endpoints) = self.endpoints;
        MonitorReport {
            target,
            verdict: self.verdict,
            in_doubt: self.in_doubt,
            refused: self.refused,
            last: self.last.into(),
            never_succeeded: self.never_succeeded,
            endpoint,
            endpoints: endpoints as usize,
        }
    }
}

/// What is known of all monitors at one moment, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub struct MonitorTable {
    targets: Targets,
    /// By number.
    rows: Box<[Option<Row>]>,
}

impl MonitorTable {
    /// Makes one.
    pub(super) fn new(targets: Targets, rows: Box<[Option<Row>]>) -> Self {
        Self { targets, rows }
    }

    /// Counts them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Tells whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Reports on every monitor.
    pub fn iter(&self) -> impl Iterator<Item = MonitorReport<'_>> {
        let rows = (0..).map(MonitorId).zip(&self.rows);
        rows.filter_map(|(id, row)| {
            let target = self.targets.get(id)?;
            row.map(|row| row.report(target))
        })
    }
}
