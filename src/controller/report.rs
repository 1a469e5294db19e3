//! What the controller tells: the status after each publish, and what is refused.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, warn};

use super::driver::Controller;
use super::journal::{Event, Kind, Weightiness};
use super::status::{KEPT_REJECTIONS, Status, World};
use crate::model::{ClusterIndex, EndpointIndex, Rejection};
use crate::snapshot::Refused;
use crate::telemetry::wall_time;

/// How often refusals of Kubernetes objects are told at most: there may be many of them.
const TELL: Duration = Duration::from_secs(1);
/// Refusals told one by one at a time.
const TOLD_AT_ONCE: usize = 20;

impl Controller {
    /// Tells the world what was published.
    pub(super) fn report(&self, build_time: Duration, (whole, fresh): (bool, bool)) {
        let last = Arc::clone(&self.status.borrow().world);
        let world = match (whole, fresh) {
            (true, _) => Arc::new(self.world()),
            // Entries were told apart for an operator, or member clusters said something.
            (false, true) => Arc::new(World {
                endpoint_clusters: self.endpoint_clusters(),
                services: self.inventory.service_count(),
                ..World::clone(&last)
            }),
            (false, false) => last,
        };
        let generation = self.current.generation();
        self.publish_times.observe(build_time, 1);
        let status = Status {
            generation,
            inventory: if fresh {
                generation
            } else {
                self.status.borrow().inventory
            },
            build_time,
            publish_times: Arc::clone(&self.publish_times),
            names: self.current.names().len(),
            flips: self.flips,
            world,
        };
        debug!(generation = %status.generation, names = status.names, ?build_time, "Published");
        self.status.send_replace(Arc::new(status));
    }

    /// Lists what changes rarely.
    fn world(&self) -> World {
        let (rejections, rejected, rejected_objects) = self.refusals();
        World {
            clusters: self
                .inventory
                .clusters()
                .map(|(index, cluster)| (index, Arc::clone(cluster)))
                .collect(),
            zones: self
                .zones
                .iter()
                .map(|(_, zone)| (zone.apex().clone(), zone.serial()))
                .collect(),
            counted_zones: Arc::clone(self.current.counted_zones()),
            endpoint_clusters: self.endpoint_clusters(),
            databases: self.geo.databases().to_vec(),
            services: self.inventory.service_count(),
            rejections,
            rejected,
            rejected_objects,
        }
    }

    /// Lists the cluster of each entry of the table of endpoint states.
    fn endpoint_clusters(&self) -> Arc<[Option<ClusterIndex>]> {
        let end = u32::try_from(self.inventory.endpoint_count()).unwrap_or(u32::MAX);
        let entries = (0..end).map(|index| self.inventory.endpoint(EndpointIndex(index)));
        entries.map(|entry| Some(entry?.0)).collect()
    }

    /// Says who was refused what.
    fn in_words(&self, refused: &Refused<'_>) -> Rejection {
        let key = self
            .inventory
            .service(refused.service)
            .map_or_else(String::new, |service| service.key.to_string());
        Rejection {
            source: key,
            place: refused.name.to_string(),
            reason: refused.reason.to_string(),
        }
    }

    /// Lists the claims and the parts of objects that are refused: the first, how many there are, and how many of them are of
    /// objects, which come last.
    fn refusals(&self) -> (Vec<Rejection>, usize, usize) {
        let claims = self.current.refused().count();
        let refused = self.current.refused();
        let refused = refused.map(|refused| self.in_words(&refused));
        let mut all = refused.chain(self.inventory.refusals());
        let kept: Vec<Rejection> = all.by_ref().take(KEPT_REJECTIONS).collect();
        let count = kept.len() + all.count();
        (kept, count, count.saturating_sub(claims))
    }

    /// Tells what is refused of Kubernetes objects now, and was not before.
    pub(super) fn tell_refusals(&mut self) {
        let (rejections, rejected, rejected_objects) =
            tokio::task::block_in_place(|| self.refusals());
        self.told.is_stale = false;
        self.told.last = Some(Instant::now());
        let federation = self.inventory.federation();
        let of_objects: BTreeSet<String> = federation
            .refusals()
            .take(KEPT_REJECTIONS)
            .map(|rejection| rejection.to_string())
            .collect();
        let news = of_objects.difference(&self.told.known);
        for text in news.take(TOLD_AT_ONCE) {
            warn!(rejection = %text, "Part of an object refused; the rest is served");
            let text = format!("Refused: {text}");
            let event = Event::new(Kind::Conflict, Weightiness::Warning, text);
            self.channels.journal.record(event, wall_time());
        }
        self.told.known = of_objects;
        let world = World {
            rejections,
            rejected,
            rejected_objects,
            ..World::clone(&self.status.borrow().world)
        };
        let status = Status {
            world: Arc::new(world),
            ..Status::clone(&self.status.borrow())
        };
        self.status.send_replace(Arc::new(status));
    }
}

/// What is refused of Kubernetes objects, as far as it was told.
#[derive(Debug, Default)]
pub(super) struct ToldRefusals {
    known: BTreeSet<String>,
    /// It may have changed since.
    pub(super) is_stale: bool,
    last: Option<Instant>,
}

impl ToldRefusals {
    /// Gives when it may be told again.
    pub(super) fn due(&self) -> Instant {
        self.last.map_or_else(Instant::now, |last| last + TELL)
    }
}
