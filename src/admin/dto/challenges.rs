//! Challenges of certificate authorities: what is served at `_acme-challenge` of a name.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ChangeDto;

/// Asks for a challenge to be served, for an hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewChallenge {
    /// The steered name that the certificate is for, of a wildcard with its `*`.
    #[schema(min_length = 1, max_length = 255)]
    pub name: String,
    /// What the authority looks for: 1 to 255 characters of base64url.
    #[schema(min_length = 1, max_length = 255)]
    pub token: String,
    /// Why: 1 to 500 characters, none of them a control character, not only spaces.
    #[schema(
        min_length = 1,
        max_length = 500,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$"
    )]
    pub reason: String,
}

/// How far a challenge is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum ChallengeState {
    /// Not every node answers with it yet.
    Partial,
    /// Every node answers with it.
    Served,
    /// Over; some node may not have said so yet.
    Ended,
}

/// What one node says of a challenge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NodeChallenge)]
pub struct NodeChallengeDto {
    /// The node's name, or its address while its name is not known.
    pub node: String,
    /// It is this node itself.
    pub own: bool,
    /// It answers with it, by its last word.
    pub serves: bool,
    /// When it was heard of last; absent: never since the start.
    pub heard_ms_ago: Option<u64>,
    /// Why it could not be reached.
    pub error: Option<String>,
}

/// A challenge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Challenge)]
pub struct ChallengeDto {
    /// Its id.
    pub id: String,
    /// The name that is proved.
    pub name: String,
    /// Where it is looked for.
    pub owner: String,
    /// What is found there.
    pub token: String,
    /// How far it is.
    pub state: ChallengeState,
    /// Who set it.
    pub created: ChangeDto,
    /// When it ends by itself.
    pub expires: Option<String>,
    /// Who ended it.
    pub ended: Option<ChangeDto>,
    /// Nodes that are as they should be, this one included: they answer with it, or no longer where it is over.
    pub acknowledged: u32,
    /// Nodes that must be: this one and those in `peers`.
    pub expected: u32,
    /// The others, by name.
    pub missing: Vec<String>,
    /// Each node's word.
    pub nodes: Vec<NodeChallengeDto>,
}
