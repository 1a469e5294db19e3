//! The course of one watch: what is asked next and when, and what an answer means.
//!
//! Pure: time comes in. Versions are opaque: they are given back as they came, never compared.
//!
//! ```text
//!             a page, and there are more            the last page
//!   Unlisted ---------------------------> Paging ------------------> Watching
//!      |  ^                                 |                          |  ^ |
//!      |  '---------------------------------'                          |  '-' events and bookmarks; ended: again from there
//!      |     any failure                                               |
//!      |  ^------------------------------------------------------------'
//!      |     gone (410), 404, no JSON, a line too long, turned down three times
//!      '---------- events of a stream, up to the end of its list ------^
//! ```
//!
//! A list that begins anew is compared with what is known; nothing here empties anything.

use std::time::Duration;

use super::backoff::Backoff;
use super::fault::FaultKind;
use crate::model::{Chance, Moment};

/// Objects of a page, as all clients of Kubernetes ask for them.
const PAGE: u32 = 500;
/// A page that is too large is asked for again with so many fewer.
const SMALLER: u32 = 4;
/// The shortest time between two requests, on average; two may come in a row, a list and its watch.
const EVERY: Duration = Duration::from_secs(1);
/// The wait after a refusal: rights are given by people.
const REFUSED: Duration = Duration::from_secs(15);
/// A watch that lived for so long was none that failed.
const LIVED: Duration = Duration::from_secs(10);
/// So many watches in a row that end as soon as they begin are something to speak of.
pub(super) const SHORT: u32 = 2;
/// After so many streams in a row without a list the server is asked for pages.
const STREAMS: u32 = 2;
/// After so many refusals in a row of a version, whatever the reason, the list begins anew.
const TURNED_DOWN: u32 = 3;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// The list as a stream of events that goes on as a watch (KEP-3157).
    Stream,
    /// A page of the list.
    Page {
        /// Where it begins; `None`: with the first object.
        rest: Option<Box<str>>,
        /// Objects of it, at most.
        limit: u32,
    },
    /// What came after a version.
    Watch {
        /// The version.
        from: Box<str>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Unlisted,
    /// `brought`: the page before brought something.
    Paging {
        rest: Box<str>,
        brought: bool,
    },
    Watching(Box<str>),
}

/// The course of one watch.
#[derive(Debug)]
pub(super) struct Course {
    phase: Phase,
    may_stream: bool,
    limit: u32,
    /// When the last request began.
    begun: Moment,
    /// The next may not begin before.
    until: Moment,
    /// Requests that were made count up to here: one a second.
    paid: Moment,
    listing: Backoff,
    watching: Backoff,
    streams: u32,
    turned_down: u32,
    /// Watches in a row that the server ended as soon as they began.
    short: u32,
    /// Versions in a row that were gone before a watch lived.
    gone: u32,
    chance: Chance,
}

impl Course {
    /// Starts without a list. `may_stream`: the server is one that can be asked for a stream.
    pub(super) fn new(may_stream: bool, chance: Chance) -> Self {
        Self {
            phase: Phase::Unlisted,
            may_stream,
            limit: PAGE,
            begun: Moment::default(),
            until: Moment::default(),
            paid: Moment::default(),
            listing: Backoff::default(),
            watching: Backoff::default(),
            streams: 0,
            turned_down: 0,
            short: 0,
            gone: 0,
            chance,
        }
    }

    /// Gives what is to be asked.
    pub(super) fn ask(&self) -> Ask {
        match &self.phase {
            Phase::Unlisted if self.may_stream => Ask::Stream,
            Phase::Unlisted => Ask::Page {
                rest: None,
                limit: self.limit,
            },
            Phase::Paging { rest, .. } => Ask::Page {
                rest: Some(rest.clone()),
                limit: self.limit,
            },
            Phase::Watching(from) => Ask::Watch { from: from.clone() },
        }
    }

    /// Tells how long to wait before that; zero: not at all. Pages of one list follow each other at once, as long as each brings
    /// something.
    pub(super) fn wait(&self, now: Moment) -> Duration {
        let pause = self.until.since(now);
        if self.follows_at_once() {
            return pause;
        }
        pause.max(self.paid.since(now).saturating_sub(EVERY))
    }

    /// Notes that the request begins.
    pub(super) fn begin(&mut self, now: Moment) {
        if !self.follows_at_once() {
            self.paid = self.paid.max(now).after(EVERY);
        }
        self.begun = now;
    }

    /// Tells whether the next request is one for a page after one that brought something.
    fn follows_at_once(&self) -> bool {
        matches!(self.phase, Phase::Paging { brought: true, .. })
    }

    /// Takes a page: how many objects it had, where the next begins, `None` after the last, and the version of the list. Tells
    /// whether it is complete.
    pub(super) fn page(
        &mut self,
        objects: usize,
        rest: Option<Box<str>>,
        version: Box<str>,
    ) -> bool {
        let is_last = rest.is_none();
        self.phase = match rest {
            Some(rest) => {
                let is_same =
                    matches!(&self.phase, Phase::Paging { rest: before, .. } if *before == rest);
                let brought = objects > 0 && !is_same;
                Phase::Paging { rest, brought }
            }
            None => Phase::Watching(version),
        };
        if is_last {
            self.listed();
        }
        is_last
    }

    /// Takes the end of a stream's list.
    pub(super) fn streamed(&mut self, version: Box<str>) {
        self.phase = Phase::Watching(version);
        self.listed();
    }

    fn listed(&mut self) {
        self.limit = PAGE;
        self.listing = Backoff::default();
        self.streams = 0;
        self.turned_down = 0;
    }

    /// Takes the version of an event, or of a bookmark, of a watch. Those of a stream's list are of its objects alone.
    pub(super) fn seen(&mut self, version: &str) {
        if let Phase::Watching(from) = &mut self.phase
            && !version.is_empty()
            && **from != *version
        {
            *from = version.into();
        }
        self.turned_down = 0;
    }

    /// Takes the end of a watch that did not fail: the server ended it, or nothing had come for long. Tells how many in a row
    /// did so as soon as they began; 0: this one lived.
    pub(super) fn closed(&mut self, now: Moment) -> u32 {
        if !matches!(self.phase, Phase::Watching(_)) {
            self.failed(FaultKind::Unfinished, now);
        } else if self.has_lived(now) {
            self.until = now;
        } else {
            self.short = self.short.saturating_add(1);
            self.until = now.after(self.watching.failed(&mut self.chance));
        }
        self.short
    }

    /// Tells whether watches last: not several in a row ended as soon as they began, or the one that goes on has lived.
    pub(super) fn is_lasting(&self, now: Moment) -> bool {
        self.short < SHORT || now.since(self.begun) >= LIVED
    }

    /// Takes the failure of a request, at its beginning or in its middle. Tells whether it is one to speak of: a version that grew
    /// too old, and a server without streams, are the usual way of things.
    pub(super) fn failed(&mut self, kind: FaultKind, now: Moment) -> bool {
        let was = self.phase.clone();
        self.short = 0;
        if matches!(was, Phase::Watching(_)) {
            self.has_lived(now);
        }
        if matches!(kind, FaultKind::Unauthorized | FaultKind::Forbidden) {
            // What is known stands, and so does the version: a right that comes back may come back soon.
            if matches!(was, Phase::Paging { .. }) {
                self.phase = Phase::Unlisted;
            }
            self.until = now.after(REFUSED + self.chance.part(REFUSED));
            return true;
        }
        match was {
            Phase::Unlisted if self.may_stream => self.stream_failed(kind, now),
            Phase::Unlisted | Phase::Paging { .. } => self.page_failed(kind, now),
            Phase::Watching(_) => self.watch_failed(kind, now),
        }
    }

    fn stream_failed(&mut self, kind: FaultKind, now: Moment) -> bool {
        self.streams += 1;
        let is_told = match kind {
            // Too many requests: not what was asked, but that it was.
            FaultKind::Answered(status) => status != 429,
            FaultKind::TooLong | FaultKind::Malformed | FaultKind::Unfinished => true,
            _ => false,
        };
        if is_told || self.streams >= STREAMS {
            self.may_stream = false;
        }
        self.until = if is_told {
            now
        } else {
            now.after(self.listing.failed(&mut self.chance))
        };
        !is_told
    }

    fn page_failed(&mut self, kind: FaultKind, now: Moment) -> bool {
        if kind == FaultKind::TooLarge && self.limit > 1 {
            // The same page again, smaller.
            self.limit = (self.limit / SMALLER).max(1);
            self.until = now;
            return false;
        }
        self.phase = Phase::Unlisted;
        self.until = now.after(self.listing.failed(&mut self.chance));
        true
    }

    fn watch_failed(&mut self, kind: FaultKind, now: Moment) -> bool {
        let pause = self.watching.failed(&mut self.chance);
        self.until = now.after(pause);
        match kind {
            FaultKind::Gone => {
                self.phase = Phase::Unlisted;
                self.gone += 1;
                // No failure, unless it comes again and again.
                if self.gone == 1 {
                    self.until = now;
                    return false;
                }
            }
            FaultKind::Missing | FaultKind::Malformed | FaultKind::Answered(400) => {
                self.phase = Phase::Unlisted;
            }
            FaultKind::TooLong => {
                // A stream would show the same line.
                self.may_stream = false;
                self.phase = Phase::Unlisted;
            }
            FaultKind::Answered(_) => {
                self.turned_down += 1;
                if self.turned_down >= TURNED_DOWN {
                    self.turned_down = 0;
                    self.phase = Phase::Unlisted;
                }
            }
            _ => {}
        }
        true
    }

    /// Tells whether the watch that ends now lived, and forgets the failures before it.
    fn has_lived(&mut self, now: Moment) -> bool {
        let lived = now.since(self.begun) >= LIVED;
        if lived {
            self.watching = Backoff::default();
            self.short = 0;
            self.gone = 0;
        }
        lived
    }

    /// Lets the next request begin now, as far as the pace allows: there are other credentials.
    pub(super) fn hurry(&mut self, now: Moment) {
        self.until = self.until.min(now);
    }

    /// Begins anew with a list: the server was out of reach, and is back.
    pub(super) fn anew(&mut self, now: Moment) {
        self.phase = Phase::Unlisted;
        self.limit = PAGE;
        self.listing = Backoff::default();
        self.watching = Backoff::default();
        self.until = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment(Duration::from_millis(millis))
    }

    fn course(may_stream: bool) -> Course {
        Course::new(may_stream, Chance::new(1))
    }

    /// A course that watches from version 7 since a moment.
    fn watching(since: Moment) -> Course {
        let mut course = course(false);
        course.begin(since);
        assert!(course.page(3, None, "7".into()));
        course.begin(since);
        course
    }

    fn page(rest: Option<&str>, limit: u32) -> Ask {
        Ask::Page {
            rest: rest.map(Into::into),
            limit,
        }
    }

    fn watch(from: &str) -> Ask {
        Ask::Watch { from: from.into() }
    }

    #[test]
    fn pages_follow_at_once_and_end_in_a_watch() {
        let mut course = course(false);
        assert_eq!(course.ask(), page(None, 500));
        for step in 0..50 {
            assert_eq!(course.wait(at(1000)), Duration::ZERO, "{step}");
            course.begin(at(1000));
            let rest = step.to_string();
            assert!(!course.page(3, Some(rest.as_str().into()), "5".into()));
            assert_eq!(course.ask(), page(Some(&rest), 500));
        }
        course.begin(at(1000));
        assert!(course.page(3, None, "5".into()));
        assert_eq!(course.ask(), watch("5"));
        assert_eq!(course.wait(at(1000)), Duration::ZERO);
    }

    #[test]
    fn pages_that_bring_nothing_keep_the_pace() {
        // An empty page, and the page that was there before.
        for (objects, rests) in [(0, ["1", "2"]), (3, ["x", "x"])] {
            let mut course = course(false);
            course.begin(at(0));
            course.page(3, Some(rests[0].into()), "5".into());
            let mut now = at(0);
            for step in 0..100 {
                now = now.after(course.wait(now));
                course.begin(now);
                assert!(!course.page(objects, Some(rests[step % 2].into()), "5".into()));
            }
            assert!(now >= at(97_000), "{now:?}");
            course.page(3, Some("more".into()), "5".into());
            assert_eq!(course.wait(now), Duration::ZERO, "it brought something");
        }
    }

    #[test]
    fn versions_are_taken_as_they_come() {
        let mut listed = watching(at(0));
        for version in ["9", "8", "", "opaque"] {
            listed.seen(version);
        }
        assert_eq!(listed.ask(), watch("opaque"));
        let mut listing = course(true);
        listing.seen("12");
        assert_eq!(listing.ask(), Ask::Stream);
        listing.streamed("13".into());
        assert_eq!(listing.ask(), watch("13"));
    }

    #[test]
    fn a_watch_that_ends_goes_on_from_its_version() {
        let mut course = watching(at(0));
        course.seen("8");
        course.closed(at(60_000));
        assert_eq!(course.ask(), watch("8"));
        assert_eq!(course.wait(at(60_000)), Duration::ZERO);
        course.begin(at(60_000));
        // One that ends as soon as it began is a failure.
        assert_eq!(course.closed(at(60_100)), 1);
        assert!(course.is_lasting(at(60_100)), "once may be chance");
        assert_eq!(course.ask(), watch("8"));
        assert!(course.wait(at(60_100)) >= Duration::from_millis(900));
        course.begin(at(70_000));
        assert_eq!(course.closed(at(70_100)), SHORT);
        course.begin(at(80_000));
        assert!(!course.is_lasting(at(89_900)));
        assert!(course.is_lasting(at(90_000)));
        assert_eq!(course.closed(at(90_000)), 0);
        assert!(course.is_lasting(at(90_000)));
    }

    #[test]
    fn what_is_gone_is_listed_anew_at_once_but_not_again_and_again() {
        let mut course = watching(at(0));
        course.failed(FaultKind::Gone, at(50_000));
        assert_eq!(course.ask(), page(None, 500));
        assert_eq!(course.wait(at(50_000)), Duration::ZERO);
        let mut now = at(50_000);
        let mut waits = Vec::new();
        for _ in 0..8 {
            course.begin(now);
            course.page(3, None, "9".into());
            course.begin(now);
            course.failed(FaultKind::Gone, now);
            waits.push(course.wait(now).as_secs());
            now = now.after(course.wait(now));
        }
        assert!(*waits.iter().max().unwrap() > 5, "{waits:?}");
    }

    #[test]
    fn each_failure_of_a_watch_leads_where_it_should() {
        for (kind, next) in [
            (FaultKind::Gone, page(None, 500)),
            (FaultKind::Missing, page(None, 500)),
            (FaultKind::Malformed, page(None, 500)),
            (FaultKind::TooLong, page(None, 500)),
            (FaultKind::Answered(400), page(None, 500)),
            (FaultKind::Answered(504), watch("7")),
            (FaultKind::Unreachable, watch("7")),
            (FaultKind::Forbidden, watch("7")),
            (FaultKind::Unauthorized, watch("7")),
        ] {
            let mut course = watching(at(0));
            course.failed(kind, at(20_000));
            assert_eq!(course.ask(), next, "{kind:?}");
        }
        let mut course = watching(at(0));
        for _ in 0..TURNED_DOWN {
            assert_eq!(course.ask(), watch("7"));
            course.failed(FaultKind::Answered(504), at(20_000));
        }
        assert_eq!(course.ask(), page(None, 500));
    }

    #[test]
    fn each_failure_of_a_list_begins_it_anew_or_makes_its_pages_smaller() {
        for kind in [
            FaultKind::Gone,
            FaultKind::Missing,
            FaultKind::Malformed,
            FaultKind::Answered(500),
            FaultKind::Unreachable,
            FaultKind::Forbidden,
        ] {
            let mut course = course(false);
            course.page(3, Some("more".into()), "5".into());
            course.failed(kind, at(0));
            assert_eq!(course.ask(), page(None, 500), "{kind:?}");
            assert!(course.wait(at(0)) >= EVERY, "{kind:?}");
        }
        let mut course = course(false);
        course.page(3, Some("more".into()), "5".into());
        for limit in [125, 31, 7, 1] {
            course.failed(FaultKind::TooLarge, at(0));
            assert_eq!(course.ask(), page(Some("more"), limit));
            assert_eq!(course.wait(at(0)), Duration::ZERO);
        }
        course.failed(FaultKind::TooLarge, at(0));
        assert_eq!(course.ask(), page(None, 1));
        assert!(course.wait(at(0)) >= EVERY);
        course.page(3, None, "6".into());
        course.anew(at(0));
        assert_eq!(course.ask(), page(None, 500));
    }

    #[test]
    fn a_stream_that_is_turned_down_gives_way_to_pages_for_good() {
        for kind in [
            FaultKind::Answered(400),
            FaultKind::Answered(422),
            FaultKind::Answered(500),
            FaultKind::TooLong,
            FaultKind::Malformed,
            FaultKind::Unfinished,
        ] {
            let mut course = course(true);
            assert_eq!(course.ask(), Ask::Stream);
            course.begin(at(0));
            course.failed(kind, at(0));
            assert_eq!(course.ask(), page(None, 500), "{kind:?}");
            assert_eq!(course.wait(at(0)), Duration::ZERO, "{kind:?}");
            course.page(3, None, "5".into());
            course.anew(at(0));
            assert_eq!(course.ask(), page(None, 500), "{kind:?}");
        }
        for kind in [FaultKind::Unreachable, FaultKind::Answered(429)] {
            let mut course = course(true);
            course.failed(kind, at(0));
            assert_eq!(course.ask(), Ask::Stream, "{kind:?}");
            assert!(course.wait(at(0)) >= EVERY);
            course.failed(kind, at(0));
            assert_eq!(course.ask(), page(None, 500), "{kind:?}");
        }
        let mut course = course(true);
        course.failed(FaultKind::Forbidden, at(0));
        assert_eq!(course.ask(), Ask::Stream);
        course.closed(at(0));
        assert_eq!(
            course.ask(),
            page(None, 500),
            "closed before its list ended"
        );
    }

    #[test]
    fn a_refusal_is_tried_again_slowly_or_with_other_credentials() {
        let mut course = watching(at(0));
        course.failed(FaultKind::Unauthorized, at(100));
        let wait = course.wait(at(100));
        assert!(wait >= REFUSED && wait < REFUSED * 2, "{wait:?}");
        course.hurry(at(5000));
        assert_eq!(course.wait(at(5000)), Duration::ZERO);
    }

    #[test]
    fn no_failure_makes_it_faster_than_one_request_a_second() {
        let kinds = [
            FaultKind::Unreachable,
            FaultKind::Unauthorized,
            FaultKind::Missing,
            FaultKind::Gone,
            FaultKind::Answered(500),
            FaultKind::TooLong,
            FaultKind::Malformed,
            FaultKind::Unfinished,
        ];
        let mut chance = Chance::new(9);
        for seed in 0..50 {
            let mut course = Course::new(seed % 2 == 0, Chance::new(seed));
            let mut now = at(0);
            let mut begun = Vec::new();
            for _ in 0..200 {
                now = now.after(course.wait(now));
                begun.push(now);
                course.begin(now);
                now = now.after(chance.part(Duration::from_millis(20)));
                match chance.seed() % 12 {
                    0 => _ = course.closed(now),
                    1 => course.hurry(now),
                    nth if nth < 4 => match course.ask() {
                        Ask::Stream => course.streamed("1".into()),
                        Ask::Page { .. } => _ = course.page(3, None, "1".into()),
                        Ask::Watch { .. } => _ = course.failed(FaultKind::Gone, now),
                    },
                    nth => _ = course.failed(kinds[usize::try_from(nth).unwrap() - 4], now),
                }
            }
            // Any six in a row take four seconds: two may come at once.
            for six in begun.windows(6) {
                assert!(six[5].since(six[0]) >= EVERY * 4, "{seed}: {six:?}");
            }
        }
    }
}
