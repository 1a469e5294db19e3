//! What operators change: drains and forces, and the log of who did.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::{StatusCode, header};
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

use super::examples;
use super::input::{Asked, Nothing, Place, Sent, unfit};
use super::output::{Held, changed, of_change};
use crate::admin::access::{Operator, Viewer};
use crate::admin::dto::{
    AuditDto, DrainDto, ForceDto, NewDrain, NewForce, Page, TargetDto, TargetKind,
};
use crate::admin::problem::Problem;
use crate::admin::view::{Actor, Paging, View};

/// Which record.
#[derive(Clone, Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct RecordPath {
    /// Its id.
    #[param(min_length = 1, max_length = 64)]
    id: String,
}

impl RecordPath {
    /// Gives the id.
    pub(super) fn id(&self) -> &str {
        &self.id
    }
}

/// Why something ends, as a parameter.
#[derive(Clone, Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct EndQuery {
    /// Why: 1 to 500 characters, none of them a control character, not only spaces.
    #[param(
        required = true,
        min_length = 1,
        max_length = 500,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$",
        example = "repaired"
    )]
    reason: Option<String>,
}

/// Why something ends, as a body.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct EndBody {
    /// Why.
    #[schema(
        min_length = 1,
        max_length = 500,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$"
    )]
    reason: String,
}

/// Why something ends: the parameter `reason`, or a body with it.
#[derive(Clone, Debug)]
pub(super) struct Reason(pub(super) String);

impl<S: Send + Sync> FromRequest<S> for Reason {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let Asked(query) = Asked::<EndQuery>::from_request_parts(&mut parts, state)
            .await
            .map_err(of_reason)?;
        let kind = parts.headers.get(header::CONTENT_TYPE).cloned();
        let request = Request::from_parts(parts, body);
        let body = Bytes::from_request(request, state).await.map_err(|error| {
            let detail = format!("the body could not be taken: {}", error.body_text());
            Problem::new(error.status(), detail)
        })?;
        match (query.reason, body.is_empty()) {
            (Some(reason), true) => Ok(Self(reason)),
            (Some(_), false) => Err(Problem::bad_request(
                "`reason` is a parameter, or a member of a body, not both",
            )
            .in_field("reason")),
            (None, true) => Err(unfit(
                "reason",
                "is missing: say why, as a parameter or as a member of a body of JSON",
            )),
            (None, false) => {
                let mut again = Request::new(body.into());
                if let Some(kind) = kind {
                    again.headers_mut().insert(header::CONTENT_TYPE, kind);
                }
                let Sent(body) = Sent::<EndBody>::from_request(again, state).await?;
                Ok(Self(body.reason))
            }
        }
    }
}

/// Says of a reason in the query string what would be said of one in a body.
fn of_reason(problem: Problem) -> Problem {
    match problem.field.as_deref() {
        Some("reason") if !problem.detail.contains("twice") => Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            problem.detail.into_owned(),
        )
        .in_field("reason"),
        _ => problem,
    }
}

/// Refuses a target that lacks what its kind needs, or has what its kind does not.
fn check(target: &TargetDto) -> Result<(), Problem> {
    let (kind, cluster, service, address) = match target.kind {
        TargetKind::Cluster => ("cluster", Some(true), Some(false), Some(false)),
        TargetKind::Service => ("service", None, Some(true), Some(false)),
        TargetKind::Endpoint => ("endpoint", Some(true), None, Some(true)),
    };
    let members = [
        ("cluster", cluster, &target.cluster),
        ("service", service, &target.service),
        ("address", address, &target.address),
    ];
    for (name, wanted, given) in members {
        let why = match (wanted, given) {
            (Some(true), None) => format!("is missing: a target of kind `{kind}` needs it"),
            (Some(false), Some(_)) => {
                format!("must not be there: a target of kind `{kind}` has none")
            }
            _ => continue,
        };
        return Err(unfit(&format!("target.{name}"), &why));
    }
    Ok(())
}

// === Drains ===

/// Lists drains.
///
/// Those in force or announced come first, then those that ended, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/drains",
    tag = "operate",
    params(Paging),
    responses((status = 200, description = "A page of drains.", body = Page<DrainDto>, example = json!(examples::page(examples::drain()))))
)]
pub(super) async fn list_drains(
    State(view): State<View>,
    _viewer: Viewer,
    Asked(paging): Asked<Paging>,
    held: Held,
) -> Result<Response, Problem> {
    Ok(held.or_json(&view.drains(&paging).await?))
}

/// Announces a drain.
///
/// A drained endpoint gets no new answers. Where a drain of the same target is in force or announced, that one is the answer,
/// and nothing changes.
#[utoipa::path(
    post,
    path = "/api/v1/drains",
    tag = "operate",
    request_body(content = NewDrain, description = "What to drain, and why. At most 16 KiB.", example = json!(examples::new_drain())),
    responses(
        (status = 200, description = "There was one already; nothing changed.", body = DrainDto, example = json!(examples::drain())),
        (status = 201, description = "It was announced.", body = DrainDto,
            headers(("Location" = String, description = "Its path.")), example = json!(examples::drain())),
    )
)]
pub(super) async fn start_drain(
    State(view): State<View>,
    Operator(identity): Operator,
    Asked(Nothing {}): Asked<Nothing>,
    Sent(new): Sent<NewDrain>,
) -> Result<Response, Problem> {
    check(&new.target)?;
    let started = view.start_drain(new, &Actor::from(&identity)).await;
    let (drain, is_new) = started.map_err(of_change)?;
    let place = is_new.then(|| format!("/api/v1/drains/{}", drain.id));
    Ok(changed(&drain, place))
}

/// Shows a drain.
///
/// `safeToStop` is true once no answer that names the target can be in any cache, by the word of every node; `waitingFor`
/// says what is missing.
#[utoipa::path(
    get,
    path = "/api/v1/drains/{id}",
    tag = "operate",
    params(RecordPath),
    responses((status = 200, description = "The drain.", body = DrainDto, example = json!(examples::drain())))
)]
pub(super) async fn get_drain(
    State(view): State<View>,
    _viewer: Viewer,
    Place(path): Place<RecordPath>,
    Asked(Nothing {}): Asked<Nothing>,
    held: Held,
) -> Result<Response, Problem> {
    Ok(held.or_json(&view.drain(&path.id).await?))
}

/// Ends a drain.
///
/// One that ended already stays as it is. The reason may also be sent as a body of JSON, `{"reason": "…"}`, in place of the
/// parameter.
#[utoipa::path(
    delete,
    path = "/api/v1/drains/{id}",
    tag = "operate",
    params(RecordPath, EndQuery),
    responses((status = 200, description = "The drain, ended.", body = DrainDto, example = json!(examples::ended_drain())))
)]
pub(super) async fn end_drain(
    State(view): State<View>,
    Operator(identity): Operator,
    Place(path): Place<RecordPath>,
    Reason(reason): Reason,
) -> Result<Response, Problem> {
    let ended = view
        .end_drain(&path.id, &reason, &Actor::from(&identity))
        .await?;
    Ok(changed(&ended, None))
}

// === Forces ===

/// Lists forces.
///
/// Those in force come first, then those that ended, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/forces",
    tag = "operate",
    params(Paging),
    responses((status = 200, description = "A page of forces.", body = Page<ForceDto>, example = json!(examples::page(examples::force()))))
)]
pub(super) async fn list_forces(
    State(view): State<View>,
    _viewer: Viewer,
    Asked(paging): Asked<Paging>,
    held: Held,
) -> Result<Response, Problem> {
    Ok(held.or_json(&view.forces(&paging).await?))
}

/// Forces a verdict.
///
/// What is forced up is answered whatever monitors say; what is forced down is answered after everything else. Where the same
/// verdict is in force for the same target, that one is the answer, and nothing changes.
#[utoipa::path(
    post,
    path = "/api/v1/forces",
    tag = "operate",
    request_body(content = NewForce, description = "What to force to which verdict, and why. At most 16 KiB.", example = json!(examples::new_force())),
    responses(
        (status = 200, description = "There was one already; nothing changed.", body = ForceDto, example = json!(examples::force())),
        (status = 201, description = "It is in force.", body = ForceDto,
            headers(("Location" = String, description = "Its path.")), example = json!(examples::force())),
    )
)]
pub(super) async fn start_force(
    State(view): State<View>,
    Operator(identity): Operator,
    Asked(Nothing {}): Asked<Nothing>,
    Sent(new): Sent<NewForce>,
) -> Result<Response, Problem> {
    check(&new.target)?;
    let started = view.start_force(new, &Actor::from(&identity)).await;
    let (force, is_new) = started.map_err(of_change)?;
    let place = is_new.then(|| format!("/api/v1/forces/{}", force.id));
    Ok(changed(&force, place))
}

/// Shows a force.
#[utoipa::path(
    get,
    path = "/api/v1/forces/{id}",
    tag = "operate",
    params(RecordPath),
    responses((status = 200, description = "The force.", body = ForceDto, example = json!(examples::force())))
)]
pub(super) async fn get_force(
    State(view): State<View>,
    _viewer: Viewer,
    Place(path): Place<RecordPath>,
    Asked(Nothing {}): Asked<Nothing>,
    held: Held,
) -> Result<Response, Problem> {
    Ok(held.or_json(&view.force(&path.id).await?))
}

/// Ends a force.
///
/// One that ended already stays as it is. The reason may also be sent as a body of JSON, `{"reason": "…"}`, in place of the
/// parameter.
#[utoipa::path(
    delete,
    path = "/api/v1/forces/{id}",
    tag = "operate",
    params(RecordPath, EndQuery),
    responses((status = 200, description = "The force, ended.", body = ForceDto, example = json!(examples::ended_force())))
)]
pub(super) async fn end_force(
    State(view): State<View>,
    Operator(identity): Operator,
    Place(path): Place<RecordPath>,
    Reason(reason): Reason,
) -> Result<Response, Problem> {
    let ended = view
        .end_force(&path.id, &reason, &Actor::from(&identity))
        .await?;
    Ok(changed(&ended, None))
}

// === Audit ===

/// Lists who changed what, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/audit",
    tag = "operate",
    params(Paging),
    responses((status = 200, description = "A page of the audit log.", body = Page<AuditDto>, example = json!(examples::page(examples::audit()))))
)]
pub(super) async fn list_audit(
    State(view): State<View>,
    _operator: Operator,
    Asked(paging): Asked<Paging>,
    held: Held,
) -> Result<Response, Problem> {
    Ok(held.or_json(&view.audit(&paging)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(kind: TargetKind, members: [Option<&str>; 3]) -> TargetDto {
        let [cluster, service, address] = members.map(|member| member.map(str::to_owned));
        TargetDto {
            kind,
            cluster,
            service,
            address,
        }
    }

    #[test]
    fn targets_have_what_their_kind_needs_and_nothing_else() {
        let (c, s, a) = (Some("c"), Some("n/s"), Some("192.0.2.1"));
        for (kind, members, field) in [
            (TargetKind::Cluster, [c, None, None], None),
            (TargetKind::Cluster, [None; 3], Some("target.cluster")),
            (TargetKind::Cluster, [c, s, None], Some("target.service")),
            (TargetKind::Cluster, [c, None, a], Some("target.address")),
            (TargetKind::Service, [None, s, None], None),
            (TargetKind::Service, [c, s, None], None),
            (TargetKind::Service, [c, None, None], Some("target.service")),
            (TargetKind::Service, [c, s, a], Some("target.address")),
            (TargetKind::Endpoint, [c, None, a], None),
            (TargetKind::Endpoint, [c, s, a], None),
            (TargetKind::Endpoint, [None, s, a], Some("target.cluster")),
            (TargetKind::Endpoint, [c, s, None], Some("target.address")),
        ] {
            let found = check(&target(kind, members)).err();
            let place = found.as_ref().and_then(|problem| problem.field.as_deref());
            assert_eq!(place, field, "{kind:?} {members:?}");
            assert!(found.is_none_or(|problem| problem.status == 422));
        }
    }
}
