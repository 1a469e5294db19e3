//! What the controller tells: the status after each publish, and what is refused.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, warn};

use super::drains::News;
use super::driver::Controller;
use super::journal::{Event, Kind, Weightiness};
use super::status::{KEPT_REJECTIONS, Status, World};
use super::told::tenant_of;
use crate::inventory::Dirty;
use crate::model::{Chunked, ClusterIndex, EndpointIndex, Rejection, fair};
use crate::snapshot::Refused;
use crate::telemetry::wall_time;

impl Controller {
    /// Tells the world what was published.
    pub(super) fn report(&self, build_time: Duration, news: News<'_>) {
        let last = Arc::clone(&self.status.borrow().world);
        let world = match news {
            News::All => Arc::new(self.world()),
            // Entries were told apart for an operator, or member clusters said something.
            News::Services(dirty) => Arc::new(World {
                endpoint_clusters: self.renewed_clusters(&last.endpoint_clusters, dirty),
                services: self.inventory.service_count(),
                ..World::clone(&last)
            }),
            News::States => last,
        };
        let generation = self.current.generation();
        self.publish_times.observe(build_time, 1);
        let status = Status {
            generation,
            inventory: match news {
                News::States => self.status.borrow().inventory,
                News::Services(_) | News::All => generation,
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
        let (rejections, claims) = self.refused_claims();
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
            // Made anew soon: it is a walk over all objects.
            refused_objects: self.told.kept.clone(),
            rejected: claims + self.told.count,
            rejected_objects: self.told.count,
        }
    }

    /// Lists the cluster of each entry of the table of endpoint states.
    fn endpoint_clusters(&self) -> Chunked<Option<ClusterIndex>> {
        let end = u32::try_from(self.inventory.endpoint_count()).unwrap_or(u32::MAX);
        let entries = (0..end).map(|index| self.cluster_at(EndpointIndex(index)));
        Chunked::default().with(entries)
    }

    /// The same after a change, at the cost of what changed: entries come and go with it alone.
    fn renewed_clusters(
        &self,
        last: &Chunked<Option<ClusterIndex>>,
        dirty: &Dirty,
    ) -> Chunked<Option<ClusterIndex>> {
        let judged = dirty.watch.iter().map(|(index, _)| index);
        let others = dirty.conditioned.iter().chain(&dirty.unwatch);
        last.with(judged.chain(others).map(|index| self.cluster_at(*index)))
    }

    /// Gives the place and the cluster of an entry.
    fn cluster_at(&self, index: EndpointIndex) -> (usize, Option<ClusterIndex>) {
        let entry = self.inventory.endpoint(index);
        (index.get(), entry.map(|(cluster, ..)| cluster))
    }

    /// Lists the claims that are refused, and how many there are.
    fn refused_claims(&self) -> (Vec<Rejection>, usize) {
        let service = |refused: &Refused<'_>| self.inventory.service(refused.service);
        let namespace =
            |refused: &Refused<'_>| service(refused).map(|service| service.key.namespace());
        let (kept, count) = fair(self.current.refused(), KEPT_REJECTIONS, namespace);
        let in_words = |refused: Refused<'_>| Rejection {
            source: service(&refused).map_or_else(String::new, |service| service.key.to_string()),
            place: refused.name.to_string(),
            reason: refused.reason.to_string(),
        };
        let kept = kept.into_iter().map(|(_, refused)| in_words(refused));
        (kept.collect(), count)
    }

    /// Tells what is refused of Kubernetes objects now, and was not before.
    pub(super) fn tell_refusals(&mut self) {
        let begun = Instant::now();
        let inventory = &self.inventory;
        let refused = tokio::task::block_in_place(|| {
            let tenant = |rejection: &Rejection| tenant_of(&rejection.source);
            fair(inventory.refusals(), KEPT_REJECTIONS, tenant)
        });
        for text in self.told.take(refused) {
            warn!(rejection = %text, "Part of an object refused; the rest is served");
            let text = format!("Refused: {text}");
            let event = Event::new(Kind::Conflict, Weightiness::Warning, text);
            self.channels.journal.record(event, wall_time());
        }
        let (rejections, claims) = self.refused_claims();
        let world = World {
            rejections,
            refused_objects: self.told.kept.clone(),
            rejected: claims + self.told.count,
            rejected_objects: self.told.count,
            ..World::clone(&self.status.borrow().world)
        };
        let status = Status {
            world: Arc::new(world),
            ..Status::clone(&self.status.borrow())
        };
        self.status.send_replace(Arc::new(status));
        self.told.looked(begun.elapsed());
    }
}
