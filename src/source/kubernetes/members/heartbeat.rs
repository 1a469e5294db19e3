//! Whether an API server answers at all: a watch that is silent says nothing, and a connection may break without a word.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use super::member::Member;
use super::server::Server;
use crate::model::Moment;

/// What is asked for; the next where this one is not for us.
const PATHS: [&str; 3] = ["/livez", "/readyz", "/version"];
/// An answer comes within, at most, or does not count.
const WITHIN: Duration = Duration::from_secs(3);
/// From beat to beat, at least and at most.
const EVERY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// Gives the time from beat to beat: three at least fit into `stale_after`, so that one that is lost makes nothing stale.
fn interval(stale_after: Duration) -> Duration {
    let (least, most) = EVERY;
    (stale_after / 5).clamp(least, most).min(stale_after / 3)
}

/// Gives the time in which an answer counts: the answer to the beat after one that was lost still comes within `stale_after`.
fn within(stale_after: Duration) -> Duration {
    WITHIN.min(stale_after / 3)
}

/// Remembers the answers.
#[derive(Debug, Default)]
struct Pulse {
    path: usize,
    last: Option<Moment>,
    missed: bool,
}

impl Pulse {
    fn path(&self) -> &'static str {
        PATHS.get(self.path).copied().unwrap_or("/livez")
    }

    /// Takes the status of an answer. Tells whether it is the server's: whatever stands before it says 502 to 504 in its absence.
    fn answered(&mut self, status: StatusCode) -> bool {
        let is_elsewhere = matches!(status.as_u16(), 401 | 403 | 404);
        if is_elsewhere {
            self.path = (self.path + 1).min(PATHS.len() - 1);
        }
        !matches!(status.as_u16(), 502..=504)
    }

    /// Takes an answer of the server. Tells whether everything has to begin anew: it was out of reach for `stale_after`, or from
    /// the start.
    fn beats(&mut self, now: Moment, stale_after: Duration) -> bool {
        let is_back = match self.last {
            Some(last) => now.since(last) >= stale_after,
            None => self.missed,
        };
        self.last = Some(now);
        self.missed = false;
        is_back
    }
}

/// Waits until there is a client for an API server, and gives it; `None`: there will be none.
pub(super) async fn reached(
    servers: &mut watch::Receiver<Option<Arc<Server>>>,
) -> Option<Arc<Server>> {
    let server = servers.wait_for(Option::is_some).await.ok()?;
    server.clone()
}

/// Beats for as long as it is not dropped.
pub(super) async fn beat(member: Arc<Member>, mut servers: watch::Receiver<Option<Arc<Server>>>) {
    let mut pulse = Pulse::default();
    loop {
        let Some(server) = reached(&mut servers).await else {
            return;
        };
        let begun = Instant::now();
        let stale_after = member.stale_after();
        match server.beat(pulse.path(), within(stale_after)).await {
            Ok(status) if pulse.answered(status) => {
                let now = member.clock.stamp();
                let is_back = pulse.beats(now.at, stale_after);
                member.board.contact(now);
                if is_back {
                    debug!(cluster = %member.board.id(), "API server is back; beginning anew");
                    member.begin_anew();
                }
            }
            Ok(status) => {
                pulse.missed = true;
                let why = format!("status {}", status.as_u16());
                member.board.missed(why.into());
            }
            Err(fault) => {
                pulse.missed = true;
                member.board.missed(fault.text);
            }
        }
        let next = begun + interval(stale_after);
        // Cancel-safe: both arms only wait.
        tokio::select! {
            () = sleep_until(next) => {}
            changed = servers.changed() => if changed.is_err() {
                return;
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn several_beats_fit_into_the_time_after_which_a_cluster_is_stale() {
        for (stale_after, every, longest) in [
            (0.9, 0.3, 0.3),
            (1.5, 0.5, 0.5),
            (3.0, 1.0, 1.0),
            (6.0, 1.2, 2.0),
            (15.0, 3.0, 3.0),
            (25.0, 5.0, 3.0),
            (3600.0, 5.0, 3.0),
        ] {
            let stale_after = seconds(stale_after);
            assert_eq!(interval(stale_after), seconds(every));
            assert_eq!(within(stale_after), seconds(longest));
            // One is lost, the next is late by all that it may be.
            let next = (interval(stale_after) * 2).max(interval(stale_after) + within(stale_after));
            assert!(next + within(stale_after) <= stale_after);
        }
    }

    #[test]
    fn every_answer_of_the_server_counts_and_none_of_what_stands_before_it() {
        for (status, is_contact, path) in [
            (200, true, "/livez"),
            (401, true, "/readyz"),
            (403, true, "/readyz"),
            (404, true, "/readyz"),
            (429, true, "/livez"),
            (500, true, "/livez"),
            (502, false, "/livez"),
            (503, false, "/livez"),
            (504, false, "/livez"),
        ] {
            let mut pulse = Pulse::default();
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(pulse.answered(status), is_contact, "{status}");
            assert_eq!(pulse.path(), path, "{status}");
        }
        let mut pulse = Pulse::default();
        for path in ["/livez", "/readyz", "/version", "/version"] {
            assert_eq!(pulse.path(), path);
            assert!(pulse.answered(StatusCode::FORBIDDEN));
        }
    }

    #[test]
    fn everything_begins_anew_after_a_time_out_of_reach() {
        let at = |second| Moment(Duration::from_secs(second));
        let mut pulse = Pulse::default();
        for (second, missed, anew) in [
            (1, false, false),
            (4, false, false),
            (18, true, false),
            (33, true, true),
            (34, false, false),
            (49, false, true),
        ] {
            pulse.missed |= missed;
            assert_eq!(pulse.beats(at(second), seconds(15.0)), anew, "{second}");
        }
        let mut pulse = Pulse {
            missed: true,
            ..Pulse::default()
        };
        assert!(pulse.beats(at(2), seconds(15.0)), "never reached before");
    }
}
