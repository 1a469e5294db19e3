//! Services, their names and monitors, and why a client gets its answer.

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;

use super::examples;
use super::input::{Asked, Nothing, Place};
use super::output::Held;
use crate::admin::access::Viewer;
use crate::admin::dto::{ExplanationDto, MonitorDto, Page, ServiceDto, ServiceRowDto};
use crate::admin::problem::Problem;
use crate::admin::view::{ExplainQuery, MonitorQuery, ServiceQuery, View};

/// Which service.
#[derive(Clone, Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct ServicePath {
    /// Its namespace.
    #[param(min_length = 1, max_length = 253, example = "shop")]
    namespace: String,
    /// Its name.
    #[param(min_length = 1, max_length = 253, example = "web")]
    name: String,
}

/// Which name in the DNS.
#[derive(Clone, Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct NamePath {
    /// A name in the DNS, in any case, with or without the dot at its end.
    #[param(min_length = 1, max_length = 1024, example = "www.svc.example.com")]
    hostname: String,
}

/// Writes a name in the DNS as it is written everywhere here: in lower case, without the dot at its end but for the root's.
pub(super) fn plain(name: &str) -> String {
    let bare = name.strip_suffix('.').filter(|bare| !bare.is_empty());
    bare.unwrap_or(name).to_ascii_lowercase()
}

/// Lists services by key.
#[utoipa::path(
    get,
    path = "/api/v1/services",
    tag = "services",
    params(ServiceQuery),
    responses((status = 200, description = "A page of services.", body = Page<ServiceRowDto>, example = json!(examples::page(examples::service_row()))))
)]
pub(super) async fn list_services(
    State(view): State<View>,
    _viewer: Viewer,
    Asked(query): Asked<ServiceQuery>,
    held: Held,
) -> Result<Response, Problem> {
    Ok(held.or_json(&view.services(&query).await?))
}

/// Shows a service.
///
/// Its policy in words, its endpoints with their verdicts, the share of each cluster, its TTL now and its failover budget.
#[utoipa::path(
    get,
    path = "/api/v1/services/{namespace}/{name}",
    tag = "services",
    params(ServicePath),
    responses((status = 200, description = "The service.", body = ServiceDto, example = json!(examples::service())))
)]
pub(super) async fn get_service(
    State(view): State<View>,
    _viewer: Viewer,
    Place(path): Place<ServicePath>,
    Asked(Nothing {}): Asked<Nothing>,
    held: Held,
) -> Result<Response, Problem> {
    let key = format!("{}/{}", path.namespace, path.name);
    Ok(held.or_json(&view.service(&key).await?))
}

/// Shows the service that has a name in the DNS.
#[utoipa::path(
    get,
    path = "/api/v1/names/{hostname}",
    tag = "services",
    params(NamePath),
    responses((status = 200, description = "The service that has the name.", body = ServiceDto, example = json!(examples::service())))
)]
pub(super) async fn get_name(
    State(view): State<View>,
    _viewer: Viewer,
    Place(path): Place<NamePath>,
    Asked(Nothing {}): Asked<Nothing>,
    held: Held,
) -> Result<Response, Problem> {
    Ok(held.or_json(&view.name(&plain(&path.hostname)).await?))
}

/// Lists monitors.
#[utoipa::path(
    get,
    path = "/api/v1/monitors",
    tag = "services",
    params(MonitorQuery),
    responses((status = 200, description = "A page of monitors.", body = Page<MonitorDto>, example = json!(examples::page(examples::monitor()))))
)]
pub(super) async fn list_monitors(
    State(view): State<View>,
    _viewer: Viewer,
    Asked(query): Asked<MonitorQuery>,
    held: Held,
) -> Result<Response, Problem> {
    Ok(held.or_json(&view.monitors(&query).await?))
}

/// Explains what a client is answered, and why.
///
/// The decision is taken as for a packet, by the same code. Give either `client` or `resolver`.
#[utoipa::path(
    get,
    path = "/api/v1/explain",
    tag = "services",
    params(ExplainQuery),
    responses((status = 200, description = "The answer, and the steps that led to it.", body = ExplanationDto, example = json!(examples::explanation())))
)]
pub(super) async fn explain(
    State(view): State<View>,
    _viewer: Viewer,
    Asked(query): Asked<ExplainQuery>,
    held: Held,
) -> Result<Response, Problem> {
    if query.name.is_empty() {
        let problem = Problem::bad_request("`name` is missing: the name asked for");
        return Err(problem.in_field("name"));
    }
    Ok(held.or_json(&view.explain(&query).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_in_any_case_with_or_without_their_dot() {
        assert_eq!(plain("WwW.Example.COM."), "www.example.com");
        assert_eq!(plain("www.example.com"), "www.example.com");
        assert_eq!(plain("."), ".");
    }
}
