//! What a peer said last.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::exchange::DrainWord;
use crate::model::{RecordId, WallTime};

/// A peer whose last word is older has not said anything.
const FRESH: Duration = Duration::from_secs(10);

/// What a peer said last, and how it was asked last.
#[derive(Clone, Debug, Default)]
pub struct PeerWord {
    /// Its URL.
    pub url: String,
    /// Its name, once it was heard of.
    pub name: Option<String>,
    /// It is this node itself.
    pub own: bool,
    /// How long ago it was heard of.
    pub heard: Option<Duration>,
    /// When that was.
    pub heard_at: Option<WallTime>,
    /// Why it could not be reached the last time.
    pub error: Option<String>,
    /// It had the same records as this node when it was heard of last.
    pub in_step: bool,
    /// Records that are not over there.
    pub standing: BTreeSet<RecordId>,
    /// How far drains are there.
    pub drains: BTreeMap<RecordId, DrainWord>,
    /// Challenges that are answered there.
    pub serving: BTreeSet<RecordId>,
}

impl PeerWord {
    /// Tells whether its last word still counts.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.heard.is_some_and(|heard| heard < FRESH)
    }

    /// Gives the name to show: its own, or its URL.
    #[must_use]
    pub fn shown(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.url)
    }
}
