//! Drains, forces and challenges: what operators said, and how far it is.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;

use super::{fields, next};
use crate::admin::dashboard::shell::Dashboard;
use crate::admin::dashboard::shell::{Asked, Shell, page};
use crate::admin::dashboard::words;
use crate::admin::dto::{ChallengeDto, DrainDto, DrainState, ForceDto, NodeDrainDto, Page};
use crate::admin::view::{Paging, ViewError};

/// Drains, forces and challenges.
#[derive(Template)]
#[template(config = "src/admin/dashboard/askama.toml", path = "drains.html", blocks = ["live"])]
pub(in crate::admin::dashboard) struct Drains {
    pub(in crate::admin::dashboard) shell: Shell,
    pub(in crate::admin::dashboard) drains: Page<DrainDto>,
    pub(in crate::admin::dashboard) forces: Page<ForceDto>,
    pub(in crate::admin::dashboard) challenges: Page<ChallengeDto>,
    pub(in crate::admin::dashboard) next: Option<String>,
}

page!(Drains);

/// One drain.
#[derive(Template)]
#[template(config = "src/admin/dashboard/askama.toml", path = "drain.html", blocks = ["live"])]
pub(in crate::admin::dashboard) struct Drain {
    pub(in crate::admin::dashboard) shell: Shell,
    pub(in crate::admin::dashboard) drain: DrainDto,
}

page!(Drain);

/// A step on the way to `safe to stop`.
#[derive(Clone, Debug, PartialEq)]
struct Milestone {
    /// `done`, `now` or `open`.
    class: &'static str,
    title: &'static str,
    text: String,
}

impl Drain {
    /// Tells whether it can still be ended.
    fn is_open(&self) -> bool {
        self.drain.state != DrainState::Ended
    }

    /// Says in one sentence how far it is: read aloud when it changes, so it has no ages in it.
    fn verdict(&self) -> String {
        let drain = &self.drain;
        match drain.state {
            DrainState::Ended => "This drain is over.".to_owned(),
            DrainState::Announced => {
                "Announced: it begins later, and TTLs are short until then.".to_owned()
            }
            _ if drain.safe_to_stop => {
                format!(
                    "Safe to stop: every node says that nobody is sent to {} any more.",
                    words::target(&drain.target)
                )
            }
            DrainState::Held => {
                "Not safe to stop: it is the last that some service has, so it is still served."
                    .to_owned()
            }
            DrainState::Partial => {
                let missing = self.missing();
                if missing.is_empty() {
                    "Not safe to stop: not every node has it yet.".to_owned()
                } else {
                    format!("Not safe to stop: {} not have it yet.", does(&missing))
                }
            }
            DrainState::Draining | DrainState::Safe => {
                "Not safe to stop yet: old answers may still be in caches.".to_owned()
            }
        }
    }

    /// Names the nodes that do not have it.
    fn missing(&self) -> Vec<&str> {
        let missing = self.drain.nodes.iter().filter(|node| !node.in_force);
        missing.map(|node| node.node.as_str()).collect()
    }

    /// Gives the longest that any node still waits for, seconds; `None` while one cannot say.
    fn remaining(&self) -> Option<f64> {
        let words = self.drain.nodes.iter().map(|node| node.remaining_seconds);
        words
            .collect::<Option<Vec<f64>>>()?
            .into_iter()
            .reduce(f64::max)
    }

    /// Lists the steps to `safe to stop`.
    fn milestones(&self) -> Vec<Milestone> {
        let drain = &self.drain;
        let step = |is_done: bool, is_now: bool, title, text| Milestone {
            class: match (is_done, is_now) {
                (true, _) => "done",
                (_, true) => "now",
                _ => "open",
            },
            title,
            text,
        };
        let begun = drain.state != DrainState::Announced;
        let everywhere = begun && drain.acknowledged >= drain.expected && self.missing().is_empty();
        let free = everywhere && drain.state != DrainState::Held && drain.held_services.is_empty();
        let safe = drain.safe_to_stop;
        let left = self.remaining().map_or_else(
            || "not every node can say how long".to_owned(),
            |left| format!("{} left, margin included", words::left(&left)),
        );
        let held = words::count(&(drain.held_services.len() as u64), "service");
        vec![
            step(
                begun,
                true,
                "Begun",
                "New answers no longer name it.".to_owned(),
            ),
            step(
                everywhere,
                begun,
                "Every node has it",
                format!("{} of {} nodes", drain.acknowledged, drain.expected),
            ),
            step(
                free,
                everywhere,
                "Nobody depends on it",
                if free {
                    "Every service has something else.".to_owned()
                } else {
                    format!("Last resort of {held}.")
                },
            ),
            step(
                safe,
                free,
                "Caches have let go",
                if safe {
                    "No resolver holds an answer that names it.".to_owned()
                } else {
                    left
                },
            ),
            step(safe, false, "Safe to stop", "You may stop it.".to_owned()),
        ]
    }

    /// Gives how much of the waiting is over at a node, 0 to 1; `None` where nothing is known.
    fn progress(node: &NodeDrainDto) -> Option<String> {
        let left = node.remaining_seconds?;
        // As the margin is counted: a tenth of the TTL, at least 5 s.
        let whole = f64::from(node.ttl) + (f64::from(node.ttl) / 10.0).max(5.0);
        Some(format!("{:.2}", (1.0 - left / whole).clamp(0.0, 1.0)))
    }
}

/// Says which nodes do not.
fn does(nodes: &[&str]) -> String {
    let verb = if nodes.len() == 1 { "does" } else { "do" };
    format!("{} {verb}", nodes.join(", "))
}

/// Shows drains, forces and challenges.
pub(in crate::admin::dashboard) async fn list(
    asked: Asked,
    State(dashboard): State<Dashboard>,
) -> Response {
    let make = async {
        let paging: Paging = fields(&asked)?;
        let drains = dashboard.view.drains(&paging).await?;
        Ok::<_, ViewError>(Drains {
            shell: dashboard.shell(&asked, "Drains and forces"),
            next: next("/drains", asked.query(), drains.next.as_deref()),
            forces: dashboard.view.forces(&Paging::default()).await?,
            challenges: dashboard.view.challenges(&Paging::default()).await?,
            drains,
        })
    };
    Box::pin(dashboard.serve(&asked, make)).await
}

/// Shows one drain.
pub(in crate::admin::dashboard) async fn show(
    asked: Asked,
    Path(id): Path<String>,
    State(dashboard): State<Dashboard>,
) -> Response {
    let make = async {
        let drain = dashboard.view.drain(&id).await?;
        let title = format!("Drain of {}", words::target(&drain.target));
        Ok::<_, ViewError>(Drain {
            shell: dashboard.shell(&asked, title),
            drain,
        })
    };
    Box::pin(dashboard.serve(&asked, make)).await
}
