//! What is told of refusals of Kubernetes objects: each once, of every tenant the first, and no more at a time than people read.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use crate::model::Rejection;

/// How often refusals of Kubernetes objects are told at most: there may be many of them.
const TELL: Duration = Duration::from_secs(1);
/// A pause is at least so many times as long as the walk over all objects before it: meanwhile nothing is published.
const SHARE: u32 = 20;
/// Refusals told one by one at a time.
const TOLD_AT_ONCE: usize = 20;
/// Refusals of one namespace of one cluster that are told; the others are listed and counted.
const TOLD_OF_TENANT: usize = 20;

/// Gives the namespace and the cluster that a refusal is of: `shop` and `a` of `Service shop/web in a`.
pub(super) fn tenant_of(source: &str) -> (String, String) {
    let (object, cluster) = source.rsplit_once(" in ").unwrap_or((source, ""));
    let (place, _) = object.split_once('/').unwrap_or((object, ""));
    let namespace = place.rsplit(' ').next().unwrap_or_default();
    (namespace.to_owned(), cluster.to_owned())
}

/// What is refused of Kubernetes objects, as far as it was told.
#[derive(Debug, Default)]
pub(super) struct ToldRefusals {
    /// Those listed at the last look.
    pub(super) kept: Vec<Rejection>,
    /// How many there were then.
    pub(super) count: usize,
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

    /// Notes that a look is over that took so long.
    pub(super) fn looked(&mut self, took: Duration) {
        self.last = Some((Instant::now(), took));
    }

    /// Takes what is refused now, each with its place among those of its tenant, and how many there are. Gives what is to be told:
    /// a few, the first of each tenant first.
    pub(super) fn take(&mut self, (kept, count): (Vec<(usize, Rejection)>, usize)) -> Vec<String> {
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
    use crate::controller::status::KEPT_REJECTIONS;
    use crate::model::fair;

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
