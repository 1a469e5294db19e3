//! Why a request fails.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request fails (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ProblemDetails)]
pub struct ProblemDetailsDto {
    /// The kind of problem: `about:blank` where the status says it all.
    pub r#type: String,
    /// The status in words.
    pub title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// What went wrong this time, and what to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What it happened to, such as the path of an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The part of the request that is wrong: the name of a parameter, or the path of a member of the body such as
    /// `target.cluster`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}
