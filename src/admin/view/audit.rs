//! The audit log, as the API shows it.

use super::{Actor, Paging, View, ViewError};
use crate::admin::audit::{Act, Actor as Author, Audit, Entry, Outcome};
use crate::admin::dto::{AuditDto, Page};

/// Entries that are looked through for a page: all that are kept in memory.
const KEPT: usize = usize::MAX;

impl View {
    /// Writes down what somebody did: the action, its target and the reason; what came of it, and what was before and after.
    pub(super) fn note(
        &self,
        actor: &Actor,
        (action, target, reason): (&'static str, String, String),
        (outcome, before, after): (
            Outcome,
            Option<serde_json::Value>,
            Option<serde_json::Value>,
        ),
    ) {
        let by = Author {
            name: &actor.name,
            role: &actor.role,
            from: Some(actor.from),
            request: &actor.request,
        };
        let act = Act {
            action,
            target: &target,
            reason: &reason,
            before,
            after,
            outcome,
        };
        self.audit_log().record(by, act);
    }
}

/// Lists entries, newest first; the cursor is the number of the last one of the page before.
///
/// # Errors
/// When the cursor is none.
pub(super) fn page(audit: &Audit, paging: &Paging) -> Result<Page<AuditDto>, ViewError> {
    let before = paging.cursor.as_deref().map(str::parse::<u64>).transpose();
    let before = before.map_err(|_| super::bad_cursor())?;
    let total = audit.recent(KEPT, None).len();
    let mut found = audit.recent(paging.limit() + 1, before);
    let more = found.len() > paging.limit();
    found.truncate(paging.limit());
    Ok(Page {
        next: found
            .last()
            .filter(|_| more)
            .map(|entry| entry.id.to_string()),
        items: found.iter().map(|entry| dto(entry)).collect(),
        total: super::number(total),
    })
}

/// Shows one entry.
fn dto(entry: &Entry) -> AuditDto {
    AuditDto {
        time: entry.time.clone(),
        actor: entry.actor.clone(),
        role: entry.role.clone(),
        from: entry.from.clone(),
        action: entry.action.clone(),
        target: entry.target.clone(),
        reason: entry.reason.clone(),
        outcome: match entry.outcome {
            Outcome::Done => "done",
            Outcome::Unchanged => "unchanged",
            Outcome::Refused => "refused",
            Outcome::Failed => "failed",
        }
        .to_owned(),
        before: entry.before.clone(),
        after: entry.after.clone(),
    }
}
