//! What the controller tells: the status after each publish, and what is refused.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, warn};

use super::driver::Controller;
use super::journal::{Event, Kind, Weightiness};
use super::status::{KEPT_REJECTIONS, Status, World};
use crate::model::{ClusterIndex, EndpointIndex, Rejection, fair};
use crate::snapshot::Refused;
use crate::telemetry::wall_time;

/// How often refusals of Kubernetes objects are told at most: there may be many of them.
const TELL: Duration = Duration::from_secs(1);
/// A pause is at least so many times as long as the walk over all objects before it: meanwhile nothing is published.
const SHARE: u32 = 20;
/// Refusals told one by one at a time.
const TOLD_AT_ONCE: usize = 20;
/// Refusals of one namespace of one cluster that are told; the others are listed and counted.
const TOLD_OF_TENANT: usize = 20;

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
    fn endpoint_clusters(&self) -> Arc<[Option<ClusterIndex>]> {
        let end = u32::try_from(self.inventory.endpoint_count()).unwrap_or(u32::MAX);
        let entries = (0..end).map(|index| self.inventory.endpoint(EndpointIndex(index)));
        entries.map(|entry| Some(entry?.0)).collect()
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
        self.told.last = Some((Instant::now(), begun.elapsed()));
    }
}

/// Gives the namespace and the cluster that a refusal is of: `shop` and `a` of `Service shop/web in a`.
fn tenant_of(source: &str) -> (String, String) {
    let (object, cluster) = source.rsplit_once(" in ").unwrap_or((source, ""));
    let (place, _) = object.split_once('/').unwrap_or((object, ""));
    let namespace = place.rsplit(' ').next().unwrap_or_default();
    (namespace.to_owned(), cluster.to_owned())
}

/// What is refused of Kubernetes objects, as far as it was told.
#[derive(Debug, Default)]
pub(super) struct ToldRefusals {
    /// Those listed at the last look.
    kept: Vec<Rejection>,
    /// How many there were then.
    count: usize,
    /// Those of them that were told.
    known: BTreeSet<String>,
    /// It may have changed since, or there is more to tell.
    pub(super) is_stale: bool,
    /// The last look, and how long it took.
    last: Option<(Instant, Duration)>,
}

impl ToldRefusals {
    /// Gives when it may be told again.
    pub(super) fn due(&self) -> Instant {
        let due = |(last, took): (Instant, Duration)| last + TELL.max(took * SHARE);
        self.last.map_or_else(Instant::now, due)
    }

    /// Takes what is refused now, each with its place among those of its tenant, and how many there are. Gives what is to be told:
    /// a few, the first of each tenant first.
    fn take(&mut self, (kept, count): (Vec<(usize, Rejection)>, usize)) -> Vec<String> {
        let told = kept.iter().filter(|(place, _)| *place < TOLD_OF_TENANT);
        let mut told: Vec<(usize, String)> = told
            .map(|(place, rejection)| (*place, rejection.to_string()))
            .collect();
        // Stable: of one place in the order of all.
        told.sort_by_key(|(place, _)| *place);
        let former = std::mem::take(&mut self.known);
        let mut news = Vec::new();
        for (_, text) in told {
            if former.contains(&text) {
                self.known.insert(text);
            } else {
                news.push(text);
            }
        }
        self.is_stale = news.len() > TOLD_AT_ONCE;
        news.truncate(TOLD_AT_ONCE);
        self.known.extend(news.iter().cloned());
        self.kept = kept.into_iter().map(|(_, rejection)| rejection).collect();
        self.count = count;
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejection(source: &str, place: usize) -> Rejection {
        Rejection {
            source: source.to_owned(),
            place: place.to_string(),
            reason: "no".to_owned(),
        }
    }

    fn look(told: &mut ToldRefusals, all: &[Rejection]) -> Vec<String> {
        let tenant = |rejection: &Rejection| tenant_of(&rejection.source);
        told.take(fair(all.iter().cloned(), KEPT_REJECTIONS, tenant))
    }

    #[test]
    fn a_refusal_is_of_a_namespace_of_a_cluster() {
        for (source, namespace, cluster) in [
            ("Service shop/web in a", "shop", "a"),
            ("HTTPRoute in/in in in", "in", "in"),
            ("service shop/web", "shop", ""),
        ] {
            let tenant = (namespace.to_owned(), cluster.to_owned());
            assert_eq!(tenant_of(source), tenant, "{source}");
        }
    }

    #[test]
    fn one_tenant_hides_nobody() {
        let mut all: Vec<Rejection> = (0..5_000)
            .map(|at| rejection(&format!("Service loud/s{at} in a"), at))
            .collect();
        all.push(rejection("Service quiet/web in a", 7));
        all.push(rejection("Service loud/web in b", 8));
        let mut told = ToldRefusals::default();
        let news = look(&mut told, &all);
        assert_eq!(news.len(), TOLD_AT_ONCE);
        let others = ["Service quiet/web in a", "Service loud/web in b"];
        for source in others {
            assert!(news.iter().any(|text| text.contains(source)), "{news:?}");
            assert!(told.kept.iter().any(|one| one.source == source));
        }
        assert_eq!((told.kept.len(), told.count), (KEPT_REJECTIONS, 5_002));
        // What was left over comes next; then all is told that ever will be.
        assert!(told.is_stale);
        assert_eq!(
            look(&mut told, &all).len(),
            TOLD_OF_TENANT + 2 - TOLD_AT_ONCE
        );
        assert!(!told.is_stale);
        assert_eq!(look(&mut told, &all), Vec::<String>::new());
    }

    #[test]
    fn what_was_mended_is_told_when_it_comes_again() {
        let one = [rejection("Service shop/web in a", 1)];
        let mut told = ToldRefusals::default();
        assert_eq!(look(&mut told, &one).len(), 1);
        assert_eq!(look(&mut told, &one).len(), 0);
        assert_eq!(look(&mut told, &[]).len(), 0);
        assert_eq!(look(&mut told, &one).len(), 1);
    }

    #[test]
    fn a_long_look_has_a_long_pause() {
        let at = Instant::now();
        for (took, pause) in [(1, 1000), (50, 1000), (400, 8000)] {
            let told = ToldRefusals {
                last: Some((at, Duration::from_millis(took))),
                ..ToldRefusals::default()
            };
            assert_eq!(told.due(), at + Duration::from_millis(pause));
        }
    }
}
