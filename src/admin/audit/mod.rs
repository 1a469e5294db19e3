//! Who did what, when, from where, and what came of it: kept in a file that rotates, and the newest in memory.
//!
//! A change never waits for the disk: entries wait in memory until they can be written, and are synced before they count as
//! written. What is beyond [`WAITING`] is counted as lost, and the next entry written says so.

mod file;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::identity::Identity;
use file::AuditFile;

/// Entries that wait for the disk.
const WAITING: usize = 10_000;
/// Entries that [`Audit::recent`] knows.
const RECENT: usize = 2_000;
/// Entries written and synced as one.
const BATCH: usize = 256;
/// After a failure the disk is tried again so often.
const AGAIN: Duration = Duration::from_secs(2);
/// Longest text of an entry in octets, its reason and what was before and after apart.
const MAX_TEXT: usize = 256;
/// Longest reason in octets.
const MAX_REASON: usize = 1024;
/// Longest JSON text of what was before and after, each.
const MAX_VALUE: usize = 2048;

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// It was done.
    Done,
    /// It was so already.
    Unchanged,
    /// The caller may not.
    Refused,
    /// It could not be done.
    Failed,
}

/// What somebody did.
#[derive(Clone, Debug)]
pub(crate) struct Act<'a> {
    /// A verb, such as `drain`.
    pub(crate) action: &'a str,
    /// What it was done to, such as `cluster/aws-use1`.
    pub(crate) target: &'a str,
    /// Why, in their words.
    pub(crate) reason: &'a str,
    /// What held before.
    pub(crate) before: Option<Value>,
    /// What holds now.
    pub(crate) after: Option<Value>,
    /// What came of it.
    pub(crate) outcome: Outcome,
}

/// One entry, as the file has it: one JSON object a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Its number; later ones are higher.
    pub(crate) id: u64,
    /// When, RFC 3339 with milliseconds.
    pub(crate) time: String,
    /// Who: the name of a token, or what the identity provider calls them.
    pub(crate) actor: String,
    /// What they may; empty when they showed nothing.
    pub(crate) role: String,
    /// Where they asked from; empty for the node itself.
    pub(crate) from: String,
    /// What they did.
    pub(crate) action: String,
    /// What they did it to.
    pub(crate) target: String,
    /// Why.
    pub(crate) reason: String,
    /// What held before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<Value>,
    /// What holds now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<Value>,
    /// What came of it.
    pub(crate) outcome: Outcome,
    /// The request, as the answer's `X-Request-Id` names it.
    pub(crate) request: String,
}

/// Whoever acts, as an entry names them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actor<'a> {
    pub(crate) name: &'a str,
    pub(crate) role: &'a str,
    pub(crate) from: Option<IpAddr>,
    pub(crate) request: &'a str,
}

impl<'a> From<&'a Identity> for Actor<'a> {
    fn from(identity: &'a Identity) -> Self {
        Self {
            name: &identity.name,
            role: identity.role.word(),
            from: Some(identity.from),
            request: &identity.request,
        }
    }
}

/// The audit log. Cloned handles write into the same.
#[derive(Clone, Debug)]
pub struct Audit {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    changed: Notify,
    file: Option<Arc<AuditFile>>,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    recent: VecDeque<Arc<Entry>>,
    /// Oldest first.
    waiting: VecDeque<Arc<Entry>>,
    lost: u64,
    /// Of those, the ones that no entry written has told of.
    untold: u64,
    /// That some were lost was said since the disk last worked.
    said: bool,
}

impl Audit {
    /// Begins a log in a folder, and reads the newest entries that it has; in memory alone without a folder.
    #[must_use]
    pub fn open(folder: Option<&Path>) -> Self {
        let file = folder.map(|folder| Arc::new(AuditFile::at(folder)));
        let recent = file.as_ref().map(|file| file.newest(RECENT));
        let recent: VecDeque<_> = recent.into_iter().flatten().map(Arc::new).collect();
        let state = State {
            last: recent.back().map_or(0, |entry| entry.id),
            recent,
            ..State::default()
        };
        Self {
            inner: Arc::new(Inner {
                state: Mutex::new(state),
                changed: Notify::new(),
                file,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change leaves it whole.
        let state = self.inner.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down what somebody did. Never waits.
    pub(crate) fn record<'a>(&self, by: impl Into<Actor<'a>>, act: Act<'_>) {
        let by = by.into();
        let mut state = self.state();
        let entry = entry(&mut state, by, act);
        state.recent.push_back(Arc::clone(&entry));
        if state.recent.len() > RECENT {
            state.recent.pop_front();
        }
        if self.inner.file.is_none() {
            return;
        }
        if state.waiting.len() < WAITING {
            state.waiting.push_back(entry);
        } else {
            state.lost += 1;
            state.untold += 1;
            if !std::mem::replace(&mut state.said, true) {
                warn!(
                    waiting = WAITING,
                    "Audit entries are lost: the disk took none for too long"
                );
            }
        }
        drop(state);
        self.inner.changed.notify_one();
    }

    /// Lists entries, newest first: at most `limit`, and only those with a number below `before`.
    pub(crate) fn recent(&self, limit: usize, before: Option<u64>) -> Vec<Arc<Entry>> {
        let state = self.state();
        let before = before.unwrap_or(u64::MAX);
        let older = state.recent.iter().rev().filter(|one| one.id < before);
        older.take(limit).cloned().collect()
    }

    /// Counts entries that wait for the disk, and those that were lost.
    #[must_use]
    pub fn backlog(&self) -> (usize, u64) {
        let state = self.state();
        (state.waiting.len(), state.lost)
    }

    /// Writes what waits until the token falls, and then what still does.
    pub async fn run(self, token: CancellationToken) {
        let Some(file) = self.inner.file.clone() else {
            token.cancelled().await;
            return;
        };
        let mut failing = false;
        loop {
            match self.write(&file).await {
                Ok(true) => {
                    if std::mem::replace(&mut failing, false) {
                        info!("Audit log is written again");
                    }
                    continue;
                }
                Ok(false) if token.is_cancelled() => return,
                Ok(false) => {
                    // Cancel-safe: both arms only wait.
                    tokio::select! {
                        () = token.cancelled() => {}
                        () = self.inner.changed.notified() => {}
                    }
                }
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        warn!(%error, "Audit log cannot be written; its entries wait in memory");
                    }
                    // Cancel-safe: both arms only wait.
                    tokio::select! {
                        () = token.cancelled() => return,
                        () = tokio::time::sleep(AGAIN) => {}
                    }
                }
            }
        }
    }

    /// Writes one batch. Tells whether there was one.
    async fn write(&self, file: &Arc<AuditFile>) -> std::io::Result<bool> {
        let (batch, untold) = {
            let state = self.state();
            let batch: Vec<_> = state.waiting.iter().take(BATCH).cloned().collect();
            (batch, state.untold)
        };
        if batch.is_empty() {
            return Ok(false);
        }
        let count = batch.len();
        let mut lines: Vec<u8> = Vec::new();
        for entry in &batch {
            // Texts, numbers and JSON cannot fail to become JSON.
            let _ = serde_json::to_writer(&mut lines, &**entry);
            lines.push(b'\n');
        }
        let file = Arc::clone(file);
        let writing = tokio::task::spawn_blocking(move || file.append(&lines));
        writing.await.map_err(std::io::Error::other)??;
        let mut state = self.state();
        state.waiting.drain(..count);
        state.said = false;
        state.untold -= untold;
        drop(state);
        if untold > 0 {
            let reason = format!("{untold} entries were lost: the disk took none for too long");
            self.record(
                NODE,
                Act {
                    action: "audit",
                    target: "",
                    reason: &reason,
                    before: None,
                    after: None,
                    outcome: Outcome::Failed,
                },
            );
        }
        Ok(true)
    }
}

/// The node itself.
pub(super) const NODE: Actor<'static> = Actor {
    name: "meridian",
    role: "",
    from: None,
    request: "",
};

/// Makes the next entry.
fn entry(state: &mut State, by: Actor<'_>, act: Act<'_>) -> Arc<Entry> {
    state.last += 1;
    Arc::new(Entry {
        id: state.last,
        time: format!("{:.3}", Timestamp::now()),
        actor: bounded(by.name, MAX_TEXT),
        role: bounded(by.role, MAX_TEXT),
        from: by.from.map(|from| from.to_string()).unwrap_or_default(),
        action: bounded(act.action, MAX_TEXT),
        target: bounded(act.target, MAX_TEXT),
        reason: bounded(act.reason, MAX_REASON),
        before: act.before.map(bounded_value),
        after: act.after.map(bounded_value),
        outcome: act.outcome,
        request: bounded(by.request, MAX_TEXT),
    })
}

/// Cuts a text.
fn bounded(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    match text.get(..end) {
        Some(cut) if end < text.len() => format!("{cut}…"),
        _ => text.to_owned(),
    }
}

/// Makes a text of a value that is too large, and cuts it.
fn bounded_value(value: Value) -> Value {
    let text = value.to_string();
    if text.len() <= MAX_VALUE {
        value
    } else {
        Value::String(bounded(&text, MAX_VALUE))
    }
}

#[cfg(test)]
mod tests;
