//! What happened, and who did what.

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use super::{fields, next};
use crate::admin::dashboard::shell::Dashboard;
use crate::admin::dashboard::shell::{Asked, Shell, page};
use crate::admin::dashboard::words;
use crate::admin::dto::{AuditDto, EventDto, EventKind, Page, Severity};
use crate::admin::view::{EventQuery, Paging, ViewError};

/// Kinds that can be asked for, as the API spells them.
const KINDS: [(EventKind, &str); 9] = [
    (EventKind::Flip, "flip"),
    (EventKind::Service, "service"),
    (EventKind::Publish, "publish"),
    (EventKind::Drain, "drain"),
    (EventKind::Force, "force"),
    (EventKind::Challenge, "challenge"),
    (EventKind::Refusal, "refusal"),
    (EventKind::Conflict, "conflict"),
    (EventKind::Source, "source"),
];

/// A page of events.
#[derive(Template)]
#[template(config = "src/admin/dashboard/askama.toml", path = "events.html", blocks = ["live"])]
pub(in crate::admin::dashboard) struct Events {
    pub(in crate::admin::dashboard) shell: Shell,
    pub(in crate::admin::dashboard) query: EventQuery,
    pub(in crate::admin::dashboard) page: Page<EventDto>,
    pub(in crate::admin::dashboard) next: Option<String>,
}

page!(Events);

impl Events {
    /// Lists the kinds that can be asked for: value, word, and whether it is.
    fn kinds(&self) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
        KINDS.iter().map(|(kind, value)| {
            (
                *value,
                words::event_kind(kind),
                self.query.kind == Some(*kind),
            )
        })
    }

    /// Lists the severities that can be asked for: value, word, and whether it is.
    fn severities(&self) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
        [
            (Severity::Warning, "warning", "Warning or worse"),
            (Severity::Critical, "critical", "Critical"),
        ]
        .into_iter()
        .map(|(severity, value, word)| (value, word, self.query.severity == Some(severity)))
    }
}

/// A page of the audit log.
#[derive(Template)]
#[template(config = "src/admin/dashboard/askama.toml", path = "audit.html", blocks = ["live"])]
pub(in crate::admin::dashboard) struct Audit {
    pub(in crate::admin::dashboard) shell: Shell,
    pub(in crate::admin::dashboard) page: Page<AuditDto>,
    pub(in crate::admin::dashboard) next: Option<String>,
}

page!(Audit);

impl Audit {
    /// Writes a record with its fields one a line.
    fn record(value: &serde_json::Value) -> String {
        serde_json::to_string_pretty(value).unwrap_or_default()
    }
}

/// Shows a page of events.
pub(in crate::admin::dashboard) async fn list(
    asked: Asked,
    State(dashboard): State<Dashboard>,
) -> Response {
    let make = async {
        let query: EventQuery = fields(&asked)?;
        let page = dashboard.view.events(&query)?;
        Ok::<_, ViewError>(Events {
            shell: dashboard.shell(&asked, "Events"),
            next: next("/events", asked.query(), page.next.as_deref()),
            query,
            page,
        })
    };
    Box::pin(dashboard.serve(&asked, make)).await
}

/// Shows a page of the audit log, to operators.
pub(in crate::admin::dashboard) async fn audit(
    asked: Asked,
    State(dashboard): State<Dashboard>,
) -> Response {
    if !asked.is_operator() {
        return dashboard.deny(&asked);
    }
    let make = async {
        let paging: Paging = fields(&asked)?;
        let page = dashboard.view.audit(&paging)?;
        Ok::<_, ViewError>(Audit {
            shell: dashboard.shell(&asked, "Audit"),
            next: next("/audit", asked.query(), page.next.as_deref()),
            page,
        })
    };
    Box::pin(dashboard.serve(&asked, make)).await
}
