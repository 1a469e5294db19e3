//! Challenges of certificate authorities: set, shown, cleared.

use axum::extract::State;
use axum::response::Response;

use super::examples;
use super::input::{Asked, Nothing, Place, Sent};
use super::operate::{EndQuery, Reason, RecordPath};
use super::output::{Held, changed, of_change};
use crate::admin::access::{Operator, Viewer};
use crate::admin::dto::{ChallengeDto, NewChallenge, Page};
use crate::admin::problem::Problem;
use crate::admin::view::{Actor, Paging, View};

/// Lists challenges of certificate authorities.
///
/// Those that stand come first, then those that ended within two hours, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/acme",
    tag = "operate",
    params(Paging),
    responses((status = 200, description = "A page of challenges.", body = Page<ChallengeDto>, example = json!(examples::page(examples::challenge()))))
)]
pub(super) async fn list_challenges(
    State(view): State<View>,
    _viewer: Viewer,
    Asked(paging): Asked<Paging>,
    held: Held,
) -> Result<Response, Problem> {
    Ok(held.or_json(&view.challenges(&paging).await?))
}

/// Sets a challenge of a certificate authority.
///
/// It is served as TXT at `_acme-challenge` of a steered name for an hour, by every node, before the CNAME that the zone may have
/// there. Several stand beside each other, eight at most for a name. Where the same one was set within a minute, that one is the
/// answer, and nothing changes; later the hour begins anew.
#[utoipa::path(
    post,
    path = "/api/v1/acme",
    tag = "operate",
    request_body(content = NewChallenge, description = "What is to be found, where, and why. At most 16 KiB.", example = json!(examples::new_challenge())),
    responses(
        (status = 200, description = "There was one already; nothing changed.", body = ChallengeDto, example = json!(examples::challenge())),
        (status = 201, description = "It was set.", body = ChallengeDto,
            headers(("Location" = String, description = "Its path.")), example = json!(examples::challenge())),
    )
)]
pub(super) async fn set_challenge(
    State(view): State<View>,
    Operator(identity): Operator,
    Asked(Nothing {}): Asked<Nothing>,
    Sent(new): Sent<NewChallenge>,
) -> Result<Response, Problem> {
    let set = view.set_challenge(new, &Actor::from(&identity)).await;
    let (challenge, is_new) = set.map_err(of_change)?;
    let place = is_new.then(|| format!("/api/v1/acme/{}", challenge.id));
    Ok(changed(&challenge, place))
}

/// Shows a challenge of a certificate authority.
///
/// It is `served` once every node said that it answers with it; `missing` names the others.
#[utoipa::path(
    get,
    path = "/api/v1/acme/{id}",
    tag = "operate",
    params(RecordPath),
    responses((status = 200, description = "The challenge.", body = ChallengeDto, example = json!(examples::challenge())))
)]
pub(super) async fn get_challenge(
    State(view): State<View>,
    _viewer: Viewer,
    Place(path): Place<RecordPath>,
    Asked(Nothing {}): Asked<Nothing>,
    held: Held,
) -> Result<Response, Problem> {
    Ok(held.or_json(&view.challenge(path.id()).await?))
}

/// Clears a challenge of a certificate authority.
///
/// One that ended already stays as it is. The reason may also be sent as a body of JSON, `{"reason": "…"}`, in place of the
/// parameter.
#[utoipa::path(
    delete,
    path = "/api/v1/acme/{id}",
    tag = "operate",
    params(RecordPath, EndQuery),
    responses((status = 200, description = "The challenge, ended.", body = ChallengeDto, example = json!(examples::ended_challenge())))
)]
pub(super) async fn clear_challenge(
    State(view): State<View>,
    Operator(identity): Operator,
    Place(path): Place<RecordPath>,
    Reason(reason): Reason,
) -> Result<Response, Problem> {
    let actor = Actor::from(&identity);
    let ended = view.clear_challenge(path.id(), &reason, &actor).await?;
    Ok(changed(&ended, None))
}
