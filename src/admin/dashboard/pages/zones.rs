//! Zones, and one of them with its delegation.

use std::time::Duration;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;

use crate::admin::dashboard::shell::Dashboard;
use crate::admin::dashboard::shell::{Asked, Shell, page};
use crate::admin::dashboard::words;
use crate::admin::dto::ZoneDto;
use crate::admin::view::ViewError;

/// Longest time that a page waits for what the parent says; it is fetched again anyway.
const PATIENCE: Duration = Duration::from_millis(150);

/// All zones.
#[derive(Template)]
#[template(config = "src/admin/dashboard/askama.toml", path = "zones.html", blocks = ["live"])]
pub(in crate::admin::dashboard) struct Zones {
    pub(in crate::admin::dashboard) shell: Shell,
    pub(in crate::admin::dashboard) zones: Vec<ZoneDto>,
}

page!(Zones);

/// One zone.
#[derive(Template)]
#[template(config = "src/admin/dashboard/askama.toml", path = "zone.html", blocks = ["live"])]
pub(in crate::admin::dashboard) struct Zone {
    pub(in crate::admin::dashboard) shell: Shell,
    pub(in crate::admin::dashboard) zone: ZoneDto,
}

page!(Zone);

/// Shows all zones.
pub(in crate::admin::dashboard) async fn list(
    asked: Asked,
    State(dashboard): State<Dashboard>,
) -> Response {
    let make = async {
        Ok::<_, ViewError>(Zones {
            shell: dashboard.shell(&asked, "Zones"),
            zones: dashboard.view.zones().await,
        })
    };
    Box::pin(dashboard.serve(&asked, make)).await
}

/// Shows one zone.
pub(in crate::admin::dashboard) async fn show(
    asked: Asked,
    Path(name): Path<String>,
    State(dashboard): State<Dashboard>,
) -> Response {
    let make = async {
        Ok::<_, ViewError>(Zone {
            zone: dashboard.view.zone(&name, PATIENCE).await?,
            shell: dashboard.shell(&asked, format!("Zone {name}")),
        })
    };
    Box::pin(dashboard.serve(&asked, make)).await
}
