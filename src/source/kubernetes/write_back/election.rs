//! Who writes: one node at a time, by a Lease (coordination.k8s.io/v1).
//!
//! ```text
//!              nobody has it, or what it says did not change for its duration
//!   Following ---------------------------------------------------------------> Taking
//!     ^   ^                                                                      |
//!     |   '------------- the server has another version (409) -------------------+
//!     |                                                                          v written
//!     '-- another has it, or HOLD since the last request that was granted --- Leading <--. renewed
//!                                                                                '-------'
//! ```
//!
//! Clocks of nodes are not compared. A follower counts on its own clock how long it has seen the same version, from when it had it
//! in its hands; a leader counts from when it asked to renew, which was before anybody could see that. So as long as no
//! clock runs by `DURATION / HOLD` faster than another, no two believe that they lead.

use std::time::Duration;

use crate::model::Moment;

/// How long the Lease is good for after it was renewed.
pub(super) const DURATION: Duration = Duration::from_secs(15);
/// The leader does nothing more so long after the last renewal.
const HOLD: Duration = Duration::from_secs(10);
/// From renewal to renewal, and from look to look.
const EVERY: Duration = Duration::from_secs(4);
/// After a request that failed, doubled with each in a row up to the longest.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(8));
/// After a refusal: rights are given by people.
const REFUSED: Duration = Duration::from_secs(60);
/// No Lease is believed to be good for longer, whoever wrote it.
const MAX_DURATION: Duration = Duration::from_secs(60);

/// A Lease as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::source::kubernetes) struct Lease {
    /// Its version, opaque.
    pub(in crate::source::kubernetes) version: Box<str>,
    /// Who has it; empty: nobody.
    pub(in crate::source::kubernetes) holder: Box<str>,
    /// How long it is good for.
    pub(in crate::source::kubernetes) duration: Duration,
    /// How often it passed from one to another.
    pub(in crate::source::kubernetes) transitions: u32,
    /// Since when its holder has it, as that wrote it.
    pub(in crate::source::kubernetes) acquired: Option<Box<str>>,
}

/// What to ask the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::source::kubernetes) enum Ask {
    /// How the Lease stands.
    Read,
    /// To make it, ours.
    Create,
    /// To make it ours, if it is still at this version.
    Take(Lease),
    /// To renew it, if it is still at this version.
    Renew(Lease),
}

/// Whether this node is the one who writes.
#[derive(Debug)]
pub(in crate::source::kubernetes) struct Election {
    /// What this node calls itself: no other start of any node is called so.
    me: Box<str>,
    /// What was read last, and when that version was read first.
    seen: Option<(Lease, Moment)>,
    /// There was none.
    is_absent: bool,
    /// The Lease that is ours, and until when we may act on that.
    held: Option<(Lease, Moment)>,
    /// When to ask next.
    due: Moment,
    /// Requests in a row that failed.
    failures: u32,
}

impl Election {
    /// Begins without knowing anything.
    pub(in crate::source::kubernetes) fn new(me: &str) -> Self {
        Self {
            me: me.into(),
            seen: None,
            is_absent: false,
            held: None,
            due: Moment::default(),
            failures: 0,
        }
    }

    /// Gives what this node calls itself.
    pub(in crate::source::kubernetes) fn me(&self) -> &str {
        &self.me
    }

    /// Gives when to ask next.
    pub(in crate::source::kubernetes) fn due(&self) -> Moment {
        self.due
    }

    /// Gives until when this node is the one who writes; `None`: it is not.
    pub(in crate::source::kubernetes) fn leads(&self, now: Moment) -> Option<Moment> {
        let (_, until) = self.held.as_ref()?;
        (now < *until).then_some(*until)
    }

    /// Gives the Lease that is ours, to give it back.
    pub(in crate::source::kubernetes) fn held(&self) -> Option<&Lease> {
        self.held.as_ref().map(|(lease, _)| lease)
    }

    /// Gives what to ask.
    pub(in crate::source::kubernetes) fn ask(&self, now: Moment) -> Ask {
        if let Some((lease, until)) = &self.held
            && now < *until
        {
            return Ask::Renew(lease.clone());
        }
        if self.is_absent {
            return Ask::Create;
        }
        match &self.seen {
            Some((lease, since)) if self.is_free(lease, *since, now) => Ask::Take(lease.clone()),
            _ => Ask::Read,
        }
    }

    /// Tells whether a Lease may be taken that was seen as it is since a moment. One that says that it is ours is: an answer was
    /// lost on its way.
    fn is_free(&self, lease: &Lease, since: Moment, now: Moment) -> bool {
        let lasts = lease.duration.clamp(DURATION, MAX_DURATION);
        let is_ours = lease.holder.is_empty() || lease.holder == self.me;
        is_ours || now.since(since) >= lasts
    }

    /// Takes what was read: the Lease, or that there is none. `now` is after the answer.
    pub(in crate::source::kubernetes) fn read(&mut self, found: Option<Lease>, now: Moment) {
        self.failures = 0;
        self.held = None;
        self.is_absent = found.is_none();
        let Some(lease) = found else {
            self.seen = None;
            self.due = now;
            return;
        };
        let since = match &self.seen {
            Some((known, since)) if known.version == lease.version => *since,
            _ => now,
        };
        let lasts = lease.duration.clamp(DURATION, MAX_DURATION);
        self.due = if self.is_free(&lease, since, now) {
            now
        } else {
            now.after(EVERY).min(since.after(lasts))
        };
        self.seen = Some((lease, since));
    }

    /// Takes that the server did what was asked at a moment: the Lease is ours.
    pub(in crate::source::kubernetes) fn granted(&mut self, lease: Lease, asked: Moment) {
        self.failures = 0;
        self.is_absent = false;
        self.due = asked.after(EVERY);
        self.seen = None;
        self.held = Some((lease, asked.after(HOLD)));
    }

    /// Takes that it stands otherwise than it was thought to (409).
    pub(in crate::source::kubernetes) fn conflicted(&mut self, now: Moment) {
        self.held = None;
        self.seen = None;
        self.is_absent = false;
        self.due = now;
    }

    /// Takes that nothing came of it; nobody knows whether the server did it.
    pub(in crate::source::kubernetes) fn failed(&mut self, now: Moment) {
        let (first, longest) = RETRY;
        let pause = first * (1 << self.failures.min(8));
        self.failures = self.failures.saturating_add(1);
        self.step_back(now, pause.min(longest));
    }

    /// Takes that we may not.
    pub(in crate::source::kubernetes) fn refused(&mut self, now: Moment) {
        self.step_back(now, REFUSED);
    }

    fn step_back(&mut self, now: Moment, pause: Duration) {
        self.is_absent = false;
        if self.leads(now).is_none() {
            self.held = None;
        }
        self.due = now.after(pause);
    }

    /// Gives it back, or forgets it: another server, or nothing to write any more.
    pub(in crate::source::kubernetes) fn reset(&mut self, now: Moment) {
        self.held = None;
        self.seen = None;
        self.is_absent = false;
        self.due = now;
    }
}
