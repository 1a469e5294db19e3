//! The dashboard: what a person sees and steers, as pages that need no JavaScript and are live with it.
//!
//! Every page is one template over what [`View`] says; nothing is kept here but parts rendered a moment ago, for all who look
//! at the same. A page's live part is fetched again when an event arrives. What may be changed is asked for by plain forms.
//! Who may see and change is said by the extractors of `access`. Called by the routes.

mod actions;
mod assets;
#[cfg(test)]
mod challenge_samples;
mod charts;
mod escape;
#[cfg(test)]
mod hostile;
mod live;
mod map;
#[cfg(test)]
mod member_samples;
mod pages;
mod parts;
#[cfg(test)]
mod samples;
mod shell;
#[cfg(test)]
mod tests;
mod timeline;
mod words;

use axum::Router;
use axum::routing::get;

use super::view::View;

use shell::Dashboard;
pub(super) use shell::{as_pages, login_page};

/// Makes the routes of the dashboard: pages, live stream, charts' data, forms. Each but the assets wants a viewer or an operator.
pub(super) fn routes(view: View) -> Router {
    let dashboard = Dashboard::new(view);
    Router::new()
        .route("/", get(pages::overview::show))
        .route("/clusters", get(pages::clusters::list))
        .route("/clusters/{name}", get(pages::clusters::show))
        .route("/services", get(pages::services::list))
        .route("/services/{namespace}/{name}", get(pages::services::show))
        .route("/monitors", get(pages::monitors::list))
        .route("/events", get(pages::events::list))
        .route("/audit", get(pages::events::audit))
        .route("/explain", get(pages::explain::show))
        .route("/zones", get(pages::zones::list))
        .route("/zones/{name}", get(pages::zones::show))
        .route("/sources", get(pages::sources::list))
        .route("/drains", get(pages::drains::list))
        .route("/drains/{id}", get(pages::drains::show))
        .merge(changes())
        .route("/live", get(live::stream))
        .route("/traffic.json", get(charts::data))
        .with_state(dashboard)
}

/// Makes the routes of the forms: a GET shows what would be touched and asks for a reason, a POST does it.
fn changes() -> Router<Dashboard> {
    Router::new()
        .route(
            "/clusters/{name}/drain",
            get(actions::confirm_cluster_drain).post(actions::drain_cluster),
        )
        .route(
            "/clusters/{name}/force",
            get(actions::confirm_cluster_force).post(actions::force_cluster),
        )
        .route(
            "/services/{namespace}/{name}/drain",
            get(actions::confirm_service_drain).post(actions::drain_service),
        )
        .route(
            "/services/{namespace}/{name}/force",
            get(actions::confirm_service_force).post(actions::force_service),
        )
        .route(
            "/drains/{id}/end",
            get(actions::confirm_undrain).post(actions::undrain),
        )
        .route(
            "/forces/{id}/end",
            get(actions::confirm_unforce).post(actions::unforce),
        )
}

/// Makes the route of stylesheets and scripts, which the login page needs too: anybody may get them.
pub(super) fn assets() -> Router {
    // Browsers ask for the second beside what is no page of ours, such as the API's.
    Router::new()
        .route("/assets/{name}", get(assets::serve))
        .route("/favicon.ico", get(assets::icon))
}
