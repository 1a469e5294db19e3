//! A decision in words: the same code path as the packet's.

use crate::model::{ClientSubnet, LowerName, RecordType};
use crate::snapshot::Snapshot;

/// Every step of one answer, in words and in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// One line a step, in the order taken: what was looked at and what it gave.
    pub steps: Vec<String>,
    /// The records of the answer section in presentation form; empty for negative replies.
    pub answer: Vec<String>,
    /// The RCODE's mnemonic.
    pub rcode: String,
    /// The ECS scope that the reply would carry.
    pub scope: u8,
    /// The TTL of the answer, seconds.
    pub ttl: Option<u32>,
    /// The cluster answered with, if one.
    pub cluster: Option<String>,
}

/// Explains what a client network would be told. The reply itself is made by the answering path and read back.
#[must_use]
pub fn explain(
    snapshot: &Snapshot,
    name: &LowerName,
    qtype: RecordType,
    client: ClientSubnet,
) -> Explanation {
    let _ = (snapshot, name, qtype, client);
    todo!()
}
