//! Why a client gets an answer.

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use super::fields;
use crate::admin::dashboard::shell::Dashboard;
use crate::admin::dashboard::shell::{Asked, Shell, page};
use crate::admin::dashboard::words;
use crate::admin::dto::ExplanationDto;
use crate::admin::view::{ExplainQuery, ViewError};

/// Types that are offered.
const TYPES: [&str; 8] = ["A", "AAAA", "HTTPS", "SRV", "TXT", "NS", "SOA", "CNAME"];

/// The form, and what came of it.
#[derive(Template)]
#[template(config = "src/admin/dashboard/askama.toml", path = "explain.html", blocks = ["live"])]
pub(in crate::admin::dashboard) struct Explain {
    pub(in crate::admin::dashboard) shell: Shell,
    pub(in crate::admin::dashboard) query: ExplainQuery,
    /// `None` while nothing was asked.
    pub(in crate::admin::dashboard) explanation: Option<ExplanationDto>,
    /// Why there is none.
    pub(in crate::admin::dashboard) fault: Option<String>,
}

page!(Explain);

impl Explain {
    /// Lists the types that are offered, and whether each is asked for.
    fn types(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let asked = self.query.r#type.as_deref().unwrap_or("A");
        TYPES
            .into_iter()
            .map(move |word| (word, word.eq_ignore_ascii_case(asked)))
    }
}

/// Shows the form, and the explanation if one is asked for. The link is all that is needed to show it to somebody else.
pub(in crate::admin::dashboard) async fn show(
    asked: Asked,
    State(dashboard): State<Dashboard>,
) -> Response {
    let make = async {
        let query: ExplainQuery = fields(&asked)?;
        let (explanation, fault) = if query.name.is_empty() {
            (None, None)
        } else {
            // What cannot be explained is said beside the form, so that it can be asked better.
            match dashboard.view.explain(&query).await {
                Ok(explanation) => (Some(explanation), None),
                Err(error) => (None, Some(words::capital(&error.to_string()))),
            }
        };
        Ok::<_, ViewError>(Explain {
            shell: dashboard.shell(&asked, "Explain"),
            query,
            explanation,
            fault,
        })
    };
    Box::pin(dashboard.serve(&asked, make)).await
}
