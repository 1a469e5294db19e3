//! Sources: where everything comes from, how old it is, and what was refused.

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use crate::admin::dashboard::shell::Dashboard;
use crate::admin::dashboard::shell::{Asked, Shell, page};
use crate::admin::dashboard::words;
use crate::admin::dto::{PeerDto, SourceDto};
use crate::admin::view::ViewError;

/// All sources, and the other nodes.
#[derive(Template)]
#[template(config = "src/admin/dashboard/askama.toml", path = "sources.html", blocks = ["live"])]
pub(in crate::admin::dashboard) struct Sources {
    pub(in crate::admin::dashboard) shell: Shell,
    pub(in crate::admin::dashboard) sources: Vec<SourceDto>,
    pub(in crate::admin::dashboard) peers: Vec<PeerDto>,
}

page!(Sources);

/// Shows all sources.
pub(in crate::admin::dashboard) async fn list(
    asked: Asked,
    State(dashboard): State<Dashboard>,
) -> Response {
    let make = async {
        Ok::<_, ViewError>(Sources {
            shell: dashboard.shell(&asked, "Sources"),
            sources: dashboard.view.sources().await,
            peers: dashboard.view.peers().await,
        })
    };
    Box::pin(dashboard.serve(&asked, make)).await
}
