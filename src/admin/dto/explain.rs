//! Explanations.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One step of a decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Step)]
pub struct StepDto {
    /// Counted from 1.
    pub number: u32,
    /// What was looked at and what it gave.
    pub text: String,
}

/// Why a client gets this answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Explanation)]
pub struct ExplanationDto {
    /// The name asked for.
    pub name: String,
    /// The record type asked for.
    pub r#type: String,
    /// The client's network, or the resolver's address.
    pub client: String,
    /// The RCODE's mnemonic.
    pub rcode: String,
    /// The cluster answered with.
    pub cluster: Option<String>,
    /// How long the reply may be kept, seconds.
    pub ttl: Option<u32>,
    /// The ECS scope prefix length.
    pub scope: u8,
    /// The answer section in presentation form.
    pub answer: Vec<String>,
    /// The decision, in the order taken.
    pub steps: Vec<StepDto>,
}
