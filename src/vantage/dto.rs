//! What goes over the wire between nodes and into the file of records. Version 1.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::exchange::DrainWord;
use crate::model::{
    Intent, OperatorRecord, OperatorRecords, OperatorTarget, Said, ServiceKey, WallTime,
    check_words,
};

/// The version spoken; another one is refused.
pub(super) const VERSION: u32 = 1;
/// Largest exchange in octets: all records there can be.
pub const EXCHANGE_LIMIT: usize = 32 << 20;
/// Where peers exchange, below a node's URL.
pub const EXCHANGE_PATH: &str = "/api/v1/vantage/exchange";

/// What is wanted, on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum IntentDto {
    Drain,
    ForceUp,
    ForceDown,
    Challenge,
}

/// Who said something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SaidDto {
    /// Unix milliseconds.
    time: u64,
    actor: String,
    reason: String,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RecordDto {
    id: String,
    intent: IntentDto,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<std::net::IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    created: SaidDto,
    starts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<SaidDto>,
}

/// How far a drain is on the node that says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DrainDto {
    id: String,
    in_force: bool,
    held: u64,
    #[serde(default)]
    held_services: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_given_ms: Option<u64>,
    ttl: u32,
}

/// What one node tells another, and what it is told back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExchangeDto {
    pub(super) version: u32,
    /// The node's name.
    pub(super) node: String,
    /// Differs between any two runs of any two nodes.
    pub(super) instance: String,
    /// Of all records: equal where two nodes have the same.
    pub(super) digest: String,
    /// Ids of records that are not over, as this node has them.
    pub(super) standing: Vec<String>,
    /// All records, where the other's digest is known to differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) records: Option<Vec<RecordDto>>,
    /// Those of them that are challenges of certificate authorities: apart, so that a node that knows none takes the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) challenges: Option<Vec<RecordDto>>,
    /// How far the drains are here.
    pub(super) drains: Vec<DrainDto>,
    /// Ids of the challenges that are answered here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) serving: Vec<String>,
}

/// Why a record from outside is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {id}: {reason}")]
pub(super) struct RecordError {
    /// Its id, cut and plain.
    pub id: String,
    /// What is wrong.
    pub reason: String,
}

impl From<&Said> for SaidDto {
    fn from(said: &Said) -> Self {
        Self {
            time: said.time.0,
            actor: said.actor.to_string(),
            reason: said.reason.to_string(),
        }
    }
}

impl TryFrom<SaidDto> for Said {
    type Error = String;

    fn try_from(dto: SaidDto) -> Result<Self, String> {
        for (text, what) in [(&dto.actor, "actor"), (&dto.reason, "reason")] {
            check_words(text).map_err(|error| format!("{what}: {error}"))?;
        }
        Ok(Self {
            time: WallTime(dto.time),
            actor: dto.actor.into(),
            reason: dto.reason.into(),
        })
    }
}

impl From<&OperatorRecord> for RecordDto {
    fn from(record: &OperatorRecord) -> Self {
        Self {
            id: record.id.to_string(),
            intent: match record.intent {
                Intent::Drain => IntentDto::Drain,
                Intent::ForceUp => IntentDto::ForceUp,
                Intent::ForceDown => IntentDto::ForceDown,
                Intent::Challenge => IntentDto::Challenge,
            },
            name: record.target.challenge().map(|(name, _)| name.to_string()),
            token: record
                .target
                .challenge()
                .map(|(_, token)| token.to_string()),
            cluster: record.target.cluster().map(ToString::to_string),
            service: record.target.service().map(ToString::to_string),
            address: record.target.address(),
            created: (&record.created).into(),
            starts: record.starts.0,
            expires: record.expires.map(|time| time.0),
            ended: record.ended.as_ref().map(Into::into),
        }
    }
}

impl TryFrom<RecordDto> for OperatorRecord {
    type Error = RecordError;

    fn try_from(dto: RecordDto) -> Result<Self, RecordError> {
        let id = plain(&dto.id, 64);
        let error = |reason: String| RecordError {
            id: id.clone(),
            reason,
        };
        Ok(Self {
            id: dto.id.parse().map_err(|e| error(format!("{e}")))?,
            target: target(&dto).map_err(&error)?,
            intent: match dto.intent {
                IntentDto::Drain => Intent::Drain,
                IntentDto::ForceUp => Intent::ForceUp,
                IntentDto::ForceDown => Intent::ForceDown,
                IntentDto::Challenge => Intent::Challenge,
            },
            created: dto.created.try_into().map_err(&error)?,
            starts: WallTime(dto.starts),
            expires: dto.expires.map(WallTime),
            ended: dto
                .ended
                .map(TryInto::try_into)
                .transpose()
                .map_err(&error)?,
        })
    }
}

/// Cuts what came from outside after so many characters, and escapes control characters: for logs and pages.
pub(super) fn plain(text: &str, most: usize) -> String {
    let mut out = String::new();
    for c in text.chars().take(most) {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Reads what a record is about.
fn target(dto: &RecordDto) -> Result<OperatorTarget, String> {
    let is_challenge = dto.intent == IntentDto::Challenge;
    if is_challenge || dto.name.is_some() || dto.token.is_some() {
        return challenge(dto);
    }
    let cluster = dto.cluster.as_deref().map(str::parse);
    let cluster = cluster
        .transpose()
        .map_err(|error| format!("cluster: {error}"))?;
    let service = dto.service.as_deref().map(|key| {
        let (namespace, name) = key.split_once('/').unwrap_or((key, ""));
        ServiceKey::new(namespace, name).map_err(|error| format!("service: {error}"))
    });
    match (service.transpose()?, cluster, dto.address) {
        (service, Some(cluster), Some(address)) => Ok(OperatorTarget::Endpoint {
            cluster,
            address: address.to_canonical(),
            service,
        }),
        (Some(service), cluster, None) => Ok(OperatorTarget::Service { service, cluster }),
        (None, Some(cluster), None) => Ok(OperatorTarget::Cluster(cluster)),
        (_, None, Some(_)) => Err("an address needs its cluster".to_owned()),
        (None, None, None) => Err("neither cluster nor service".to_owned()),
    }
}

/// Reads what a challenge is about: a name and a token, and nothing else.
fn challenge(dto: &RecordDto) -> Result<OperatorTarget, String> {
    if dto.intent != IntentDto::Challenge {
        return Err("name and token are for challenges".to_owned());
    }
    if dto.cluster.is_some() || dto.service.is_some() || dto.address.is_some() {
        return Err("a challenge has a name and a token, and nothing else".to_owned());
    }
    let (Some(name), Some(token)) = (&dto.name, &dto.token) else {
        return Err("a challenge needs a name and a token".to_owned());
    };
    Ok(OperatorTarget::Challenge {
        name: name.parse().map_err(|error| format!("name: {error}"))?,
        token: token.parse().map_err(|error| format!("token: {error}"))?,
    })
}

/// Writes records as they are told and kept: challenges apart from the others.
pub(super) fn apart(records: &OperatorRecords) -> (Vec<RecordDto>, Vec<RecordDto>) {
    let (challenges, others): (Vec<_>, Vec<_>) = records
        .iter()
        .partition(|record| record.intent == Intent::Challenge);
    let write = |records: Vec<&std::sync::Arc<OperatorRecord>>| {
        records
            .into_iter()
            .map(|record| (&**record).into())
            .collect()
    };
    (write(others), write(challenges))
}

impl From<&DrainWord> for DrainDto {
    fn from(word: &DrainWord) -> Self {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            id: word.id.to_string(),
            in_force: word.in_force,
            held: word.held,
            held_services: word.held_services.clone(),
            last_given_ms: word.last_given.map(millis),
            ttl: word.ttl,
        }
    }
}

impl DrainDto {
    /// Reads a word; `None` for one about no record.
    pub(super) fn read(self) -> Option<DrainWord> {
        let mut held_services = self.held_services;
        held_services.truncate(20);
        for name in &mut held_services {
            *name = name.chars().filter(|c| !c.is_control()).take(520).collect();
        }
        Some(DrainWord {
            id: self.id.parse().ok()?,
            in_force: self.in_force,
            held: self.held,
            held_services,
            last_given: self.last_given_ms.map(Duration::from_millis),
            ttl: self.ttl,
        })
    }
}
