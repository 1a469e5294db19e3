//! The last hour in steps of 5 seconds, for charts: rates, times, answers by cluster, clients by country.
//!
//! A task takes a step from the counters; whoever draws takes the view, which shares all steps. Bounded: 720 steps of at most
//! 1.3 KB each, and eleven looks at the countries.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::geo::countries;
use crate::model::{ClusterIndex, CountryCode, Moment};
use crate::telemetry::{CLUSTERS, Counters, ReplyCode, Times};

/// From one step to the next.
pub(super) const STEP: Duration = Duration::from_secs(5);
/// Steps kept: an hour.
const STEPS: usize = 720;
/// Steps from one look at the countries to the next.
const COUNTRY_STEPS: usize = 6;
/// Looks at the countries kept: those of 5 minutes and the one before.
const COUNTRY_LOOKS: usize = 11;
/// A probe's time is kept in units of this.
pub(super) const PROBE_UNIT: Duration = Duration::from_micros(100);

/// When a step is taken.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Time since some start, for rates.
    pub moment: Moment,
    /// Unix time in seconds, for people.
    pub unix: u64,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Unix time of its end, seconds.
    pub unix: u64,
    /// Queries a second.
    pub queries: f32,
    /// Replies a second, in the order of [`ReplyCode::ALL`].
    pub replies: [f32; ReplyCode::ALL.len()],
    /// Time that half of the queries over UDP took at most, seconds; `None`: there was none.
    pub p50: Option<f32>,
    /// The same of 99 of a hundred.
    pub p99: Option<f32>,
    /// Clusters with answers or probes in this step, by index. The last may stand for all beyond [`CLUSTERS`].
    pub clusters: Box<[ClusterStep]>,
}

/// One cluster in one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusterStep {
    /// Which; [`CLUSTERS`] stands for all beyond.
    pub cluster: ClusterIndex,
    /// Mean time of the last probes that succeeded, in units of 0.1 ms, at most 6.5 s; 0: there was none.
    pub probe_tenths_ms: u16,
    /// Answers a second.
    pub answers: f32,
}

/// All that is kept. Cheap to clone: steps are shared.
#[derive(Clone, Debug, Default)]
pub struct HistoryView {
    /// Oldest first; at most 720.
    pub steps: Vec<Arc<Step>>,
    /// Queries for names of ours in the last 5 minutes by the client's country, most first; `None`: nobody knows where. Estimated,
    /// as `meridian_answer_country_queries_total` is.
    pub countries: Vec<(Option<CountryCode>, u64)>,
}

/// Takes the steps and keeps them.
#[derive(Debug, Default)]
pub struct History {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    steps: VecDeque<Arc<Step>>,
    /// The counters at the last step.
    last: Option<Look>,
    /// Queries by country ever, some steps apart, oldest first. In the order of [`countries`], the unknown behind.
    countries: VecDeque<Box<[u64]>>,
    taken: usize,
    view: Arc<HistoryView>,
}

/// The counters at one moment.
#[derive(Debug)]
struct Look {
    moment: Moment,
    replies: [u64; ReplyCode::ALL.len()],
    queries: u64,
    by_cluster: Box<[u64]>,
    batches: Times,
}

impl History {
    /// Begins with nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives what is kept.
    #[must_use]
    pub fn view(&self) -> Arc<HistoryView> {
        Arc::clone(&self.lock().view)
    }

    /// Takes a step: from the last one to now. The first only looks.
    ///
    /// `probes` has the mean time of the last successful probes by cluster, in [`PROBE_UNIT`]; 0: there is none.
    pub(super) fn sample(&self, counters: &[Arc<Counters>], probes: &[u16], now: Now) {
        let look = Look::at(counters, now.moment);
        let countries = (0..=countries().len()).map(|at| by_country(counters, at));
        self.lock()
            .take(look, probes, countries.collect(), now.unix);
    }

    /// Locks what is kept; it is whole between two steps.
    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Look {
    fn at(counters: &[Arc<Counters>], moment: Moment) -> Self {
        let total = |count: &dyn Fn(&Counters) -> u64| -> u64 {
            counters.iter().map(|counters| count(counters)).sum()
        };
        let mut replies = [0; ReplyCode::ALL.len()];
        for (place, &code) in replies.iter_mut().zip(ReplyCode::ALL) {
            *place = total(&|counters| counters.replies_with(None, None, Some(code)));
        }
        let clusters = (0..=u16::try_from(CLUSTERS).unwrap_or(u16::MAX)).map(ClusterIndex);
        Self {
            moment,
            queries: replies.iter().sum(),
            replies,
            by_cluster: clusters
                .map(|cluster| total(&|counters| counters.cluster(cluster)))
                .collect(),
            batches: Times::of(counters.iter().map(|counters| counters.batches())),
        }
    }
}

impl Kept {
    /// Adds a step.
    fn take(&mut self, look: Look, probes: &[u16], countries: Box<[u64]>, unix: u64) {
        if let Some(last) = &self.last {
            let step = step(last, &look, probes, unix);
            if self.steps.len() >= STEPS {
                self.steps.pop_front();
            }
            self.steps.push_back(Arc::new(step));
        }
        self.last = Some(look);
        if self.countries.is_empty() {
            self.countries.push_back(countries.clone());
        }
        let earlier = self.countries.front().map_or(&*countries, |looked| looked);
        self.view = Arc::new(HistoryView {
            steps: self.steps.iter().cloned().collect(),
            countries: since(earlier, &countries),
        });
        self.taken += 1;
        if self.taken.is_multiple_of(COUNTRY_STEPS) {
            if self.countries.len() >= COUNTRY_LOOKS - 1 {
                self.countries.pop_front();
            }
            self.countries.push_back(countries);
        }
    }
}

/// Makes a step out of two looks.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a chart needs no more digits than f32 has"
)]
fn step(last: &Look, look: &Look, probes: &[u16], unix: u64) -> Step {
    let seconds = look.moment.since(last.moment).as_secs_f64().max(0.001);
    let rate = |now: u64, before: u64| (now.saturating_sub(before) as f64 / seconds) as f32;
    let mut replies = [0.0; ReplyCode::ALL.len()];
    for (place, (now, before)) in replies
        .iter_mut()
        .zip(look.replies.iter().zip(&last.replies))
    {
        *place = rate(*now, *before);
    }
    let batches = look.batches.since(&last.batches);
    let quantile = |share| Some(batches.quantile(share)?.as_secs_f64() as f32);
    let rows = look.by_cluster.iter().zip(&last.by_cluster).zip(probes);
    let rows = (0..)
        .zip(rows)
        .map(|(index, ((now, before), probe))| ClusterStep {
            cluster: ClusterIndex(index),
            probe_tenths_ms: *probe,
            answers: rate(*now, *before),
        });
    let has_any = |row: &ClusterStep| row.answers > 0.0 || row.probe_tenths_ms > 0;
    Step {
        unix,
        queries: rate(look.queries, last.queries),
        replies,
        p50: quantile(0.5),
        p99: quantile(0.99),
        clusters: rows.filter(has_any).collect(),
    }
}

/// Gives what came by country since an earlier look, most first.
fn since(earlier: &[u64], now: &[u64]) -> Vec<(Option<CountryCode>, u64)> {
    let codes = countries().iter().map(|country| Some(country.code));
    let mut came: Vec<_> = codes
        .chain([None])
        .zip(now.iter().zip(earlier))
        .map(|(code, (now, before))| (code, now.saturating_sub(*before)))
        .filter(|(_, queries)| *queries > 0)
        .collect();
    came.sort_by_key(|(_, queries)| std::cmp::Reverse(*queries));
    came
}

/// Counts the queries of the country at a position, or of the unknown one behind the last.
fn by_country(counters: &[Arc<Counters>], at: usize) -> u64 {
    let code = countries().get(at).map(|country| country.code);
    counters.iter().map(|counters| counters.country(code)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ZoneSlot;
    use crate::telemetry::QueryType;

    /// Plays so many steps of 5 s with some queries in each; gives what is kept.
    fn play(steps: u64) -> Kept {
        let counters = Arc::new(Counters::default());
        let all = [Arc::clone(&counters)];
        let mut kept = Kept::default();
        for at in 0..=steps {
            let moment = Moment(STEP * u32::try_from(at).unwrap());
            let probes = [20; CLUSTERS + 1];
            let countries = (0..=countries().len())
                .map(|at| by_country(&all, at))
                .collect();
            kept.take(Look::at(&all, moment), &probes, countries, 1000 + 5 * at);
            for _ in 0..10 {
                counters.bump_reply(ZoneSlot::NONE, QueryType::A, ReplyCode::NoError);
            }
            for cluster in 0..=u16::try_from(CLUSTERS).unwrap() {
                counters.bump_cluster(ClusterIndex(cluster));
            }
            counters.batches().observe(Duration::from_micros(100), 10);
            counters.add_country("FR".parse().ok(), 10);
            counters.add_country(None, 1);
        }
        kept
    }

    #[test]
    fn steps_are_rates_and_the_hour_is_bounded() {
        let kept = play(1000);
        let view = &kept.view;
        assert_eq!(view.steps.len(), STEPS);
        let last = view.steps.last().unwrap();
        assert_eq!((last.unix, last.queries), (6000, 2.0));
        assert_eq!(last.replies[ReplyCode::NoError as usize], 2.0);
        assert_eq!(last.p50, Some(112e-6));
        assert_eq!(last.clusters.len(), CLUSTERS + 1);
        assert_eq!(last.clusters[7].answers, 0.2);
        assert_eq!(last.clusters[7].probe_tenths_ms, 20);
        // Five minutes: sixty steps of ten queries, give or take the steps between two looks.
        let [(first, queries), (second, _)] = view.countries[..] else {
            panic!("{:?}", view.countries)
        };
        assert_eq!((first.unwrap().as_str(), second), ("FR", None));
        assert!((540..=600).contains(&queries), "{queries}");
        let octets = STEPS
            * (size_of::<Step>()
                + (CLUSTERS + 1) * size_of::<ClusterStep>()
                + 2 * size_of::<usize>());
        let octets = octets + COUNTRY_LOOKS * (countries().len() + 1) * size_of::<u64>();
        assert!(octets < 1 << 20, "{octets}");
    }

    #[test]
    fn the_first_look_is_no_step() {
        assert!(play(0).view.steps.is_empty());
        assert_eq!(play(1).view.steps.len(), 1);
        assert_eq!(play(1).view.countries.len(), 2);
    }
}
