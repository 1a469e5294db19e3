//! Proofs for certificates: what operators set, and what every node says of it.

use std::sync::Arc;

use super::{Actor, Paging, View, ViewError, operate, words};
use crate::admin::dto::{NewProof, NodeProofDto, Page, ProofDto, ProofState};
use crate::model::{
    Intent, LowerName, OperatorRecord, OperatorTarget, PROOF_SECONDS, Phase, RecordType,
};
use crate::snapshot::Snapshot;
use crate::telemetry::wall_time;
use crate::vantage::{NewRecord, PeerWord};
use crate::zone::{Lookup, NameTree, challenge_owner, lookup};

impl View {
    /// Lists proofs: those that are not over first, then the newest first.
    ///
    /// # Errors
    /// When the cursor is none.
    pub async fn proofs(&self, paging: &Paging) -> Result<Page<ProofDto>, ViewError> {
        let found = self.records(|intent| intent == Intent::Prove);
        let peers = self.vantage().peers();
        operate::page_of(paging, &found, |record| self.proof_dto(record, &peers))
    }

    /// Shows one proof.
    ///
    /// # Errors
    /// When there is none of this id.
    pub async fn proof(&self, id: &str) -> Result<ProofDto, ViewError> {
        let record = self.proof_record(id)?;
        Ok(self.proof_dto(&record, &self.vantage().peers()))
    }

    /// Sets a proof, or gives the one that stands. Tells whether it is new. One that was set before stands for an hour from now.
    ///
    /// # Errors
    /// When the name is no steered name of ours, the token or the words make no sense, or there are too many.
    pub async fn set_proof(
        &self,
        new: NewProof,
        actor: &Actor,
    ) -> Result<(ProofDto, bool), ViewError> {
        let name = read_name(&new.name)?;
        check(&self.snapshot(), &name)?;
        let token = new.token.parse();
        let token = token.map_err(|error| ViewError::Invalid(format!("token: {error}")))?;
        let record = NewRecord {
            target: OperatorTarget::Proof { name, token },
            intent: Intent::Prove,
            actor: actor.name.clone(),
            reason: operate::reason(&new.reason)?,
            in_seconds: 0,
            for_seconds: Some(PROOF_SECONDS),
        };
        let (record, is_new) = self.add(record, "acme set", actor).await?;
        Ok((self.proof_dto(&record, &self.vantage().peers()), is_new))
    }

    /// Ends a proof.
    ///
    /// # Errors
    /// When there is none of this id, or no reason.
    pub async fn clear_proof(
        &self,
        id: &str,
        why: &str,
        actor: &Actor,
    ) -> Result<ProofDto, ViewError> {
        self.proof_record(id)?;
        let record = self.end(id, (why, "acme clear"), actor).await?;
        Ok(self.proof_dto(&record, &self.vantage().peers()))
    }

    /// Finds the record of a proof.
    fn proof_record(&self, id: &str) -> Result<Arc<OperatorRecord>, ViewError> {
        self.record(id, "proof", |intent| intent == Intent::Prove)
    }

    /// Shows a proof: this node's word and those of the others.
    fn proof_dto(&self, record: &OperatorRecord, peers: &[PeerWord]) -> ProofDto {
        let mut nodes = vec![NodeProofDto {
            node: self.vantage().node().to_owned(),
            own: true,
            serves: self.vantage().proves(&record.target),
            heard_ms_ago: Some(0),
            error: None,
        }];
        let is_over = record.phase(wall_time()) == Phase::Over;
        let mut missing = Vec::new();
        if nodes.iter().any(|own| own.serves == is_over) && !self.is_proved_again(record) {
            missing.push(self.vantage().node().to_owned());
        }
        for peer in peers.iter().filter(|peer| !peer.own) {
            let serves = peer.proving.contains(&record.id);
            // What was said before it ended says nothing of after.
            let heard_since = record
                .ended
                .as_ref()
                .is_none_or(|_| !peer.standing.contains(&record.id));
            if !peer.is_fresh() || serves == is_over || !heard_since {
                missing.push(peer.shown().to_owned());
            }
            nodes.push(NodeProofDto {
                node: peer.shown().to_owned(),
                own: false,
                serves,
                heard_ms_ago: peer.heard.map(words::millis),
                error: peer.error.clone(),
            });
        }
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let (name, token) = match record.target.proof() {
            Some((name, token)) => (Some(name), token.to_string()),
            None => (None, String::new()),
        };
        let owner = name.and_then(|name| challenge_owner(name.as_ref()));
        ProofDto {
            id: record.id.to_string(),
            name: name.map(ToString::to_string).unwrap_or_default(),
            owner: owner.map(|owner| owner.to_string()).unwrap_or_default(),
            token,
            state: match (is_over, missing.is_empty()) {
                (true, _) => ProofState::Ended,
                (false, true) => ProofState::Served,
                (false, false) => ProofState::Partial,
            },
            created: words::change(&record.created),
            expires: record.expires.map(words::time),
            ended: record.ended.as_ref().map(words::change),
            acknowledged: count(nodes.len() - missing.len()),
            expected: count(nodes.len()),
            missing,
            nodes,
        }
    }

    /// Tells whether a proof that is over was set anew: then it is served all the same.
    fn is_proved_again(&self, record: &OperatorRecord) -> bool {
        let (now, records) = (wall_time(), self.vantage().book().records());
        record.phase(now) == Phase::Over
            && records.same(&record.target, Intent::Prove, now).is_some()
    }
}

/// Reads a name.
fn read_name(text: &str) -> Result<LowerName, ViewError> {
    let invalid = |why: &dyn std::fmt::Display| {
        ViewError::Invalid(format!("name: `{}`: {why}", words::shorten(text)))
    };
    let name: LowerName = text.parse().map_err(|error| invalid(&error))?;
    let host = name.as_ref();
    let host = host.parent().filter(|_| host.is_wildcard()).unwrap_or(host);
    match host.host_fault() {
        Some(why) => Err(invalid(&why)),
        None => Ok(name),
    }
}

/// Refuses a name that is not steered here, and one whose proof stands in a zone file.
fn check(snapshot: &Snapshot, name: &LowerName) -> Result<(), ViewError> {
    let (names, zones) = (snapshot.names(), snapshot.zones());
    let look = |name: &LowerName, rtype| {
        lookup(
            names,
            zones,
            name.as_ref(),
            rtype,
            names.find(name.as_ref()),
        )
    };
    let refuse = |why: String| Err(ViewError::Invalid(format!("name: {name} {why}")));
    match look(name, RecordType::A) {
        Lookup::Steered { .. } => {}
        Lookup::NotOurs => return refuse("lies in none of our zones".to_owned()),
        Lookup::Referral { .. } => return refuse("is delegated to other name servers".to_owned()),
        _ => {
            let star = name.prepend(b"*");
            if !star.is_ok_and(|star| {
                matches!(
                    look(&star, RecordType::A),
                    Lookup::Steered {
                        wildcard: false,
                        ..
                    }
                )
            }) {
                return refuse(
                    "is no steered name: what stands in a zone file has its proof there".to_owned(),
                );
            }
        }
    }
    let Some(owner) = challenge_owner(name.as_ref()) else {
        return refuse("is so long that no proof of it can be asked for".to_owned());
    };
    match names.find(owner.as_ref()) {
        Some(found) if found.node.is_some() || found.service.is_some() => Err(ViewError::Conflict(
            format!("{owner} has records of its own, which go first: set the proof there"),
        )),
        _ => match look(&owner, RecordType::TXT) {
            Lookup::Referral { .. } | Lookup::Dname { .. } | Lookup::NotOurs => {
                refuse("is delegated below: set the proof there".to_owned())
            }
            _ => Ok(()),
        },
    }
}
