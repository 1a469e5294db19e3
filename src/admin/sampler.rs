//! Takes a step of the history, and of who asks, every five seconds.

use std::sync::Arc;

use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::history::{Now, PROBE_UNIT, STEP};
use super::sources::Sources;
use crate::model::Moment;
use crate::telemetry::CLUSTERS;

/// Takes steps until the token falls.
pub(super) async fn run(sources: Sources, token: CancellationToken) {
    let started = Instant::now();
    let mut steps = tokio::time::interval(STEP);
    // A step that was missed makes the next one longer.
    steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        // Cancel-safe: both arms only wait.
        tokio::select! {
            () = token.cancelled() => return,
            _ = steps.tick() => {}
        }
        let now = Now {
            moment: Moment(started.elapsed()),
            unix: unix_now(),
        };
        let probes = mean_probes(&sources);
        sources.history.sample(&sources.counters, &probes, now);
        sources.senders.sample(&sources.counters, now.moment);
    }
}

/// Gives the mean time of the last successful probe of each monitor by cluster, in units; 0: there is none.
fn mean_probes(sources: &Sources) -> Vec<u16> {
    let reports = sources.reports.borrow().clone();
    let world = Arc::clone(&sources.controller.status().world);
    let mut sums = vec![(0_u128, 0_u128); CLUSTERS + 1];
    for report in reports.iter() {
        let (Some(Ok(time)), Some(cluster)) = (report.last, world.cluster_of(report.endpoint))
        else {
            continue;
        };
        if let Some((sum, count)) = sums.get_mut(cluster.get().min(CLUSTERS)) {
            *sum += time.as_micros();
            *count += 1;
        }
    }
    let mean = |(sum, count): (u128, u128)| match sum.checked_div(count) {
        None => 0,
        Some(micros) => u16::try_from(micros / PROBE_UNIT.as_micros())
            .unwrap_or(u16::MAX)
            .max(1),
    };
    sums.into_iter().map(mean).collect()
}

/// Gives the Unix time in seconds.
fn unix_now() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "the shell reads the clock: when a step ended"
    )]
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
