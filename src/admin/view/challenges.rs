//! Challenges of certificate authorities: what operators set, and what every node says of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Actor, Paging, View, ViewError, operate, words};
use crate::admin::dto::{
    ChallengeDto, ChallengeState, NewChallenge, NodeChallengeDto, Page, ProblemDto, Severity,
};
use crate::answer::synthesized_service;
use crate::model::{
    CHALLENGE_SECONDS, Intent, LowerName, OperatorRecord, OperatorTarget, Phase, RecordType,
    counted,
};
use crate::snapshot::Snapshot;
use crate::telemetry::wall_time;
use crate::vantage::{NewRecord, PeerWord};
use crate::zone::{Lookup, NameTree, challenge_owner, lookup};

/// A challenge that some node does not answer with so long after it was set is late: nodes take it in a fraction of that.
const LATE_MS: u64 = 10_000;

impl View {
    /// Lists challenges: those that are not over first, then the newest first.
    ///
    /// # Errors
    /// When the cursor is none.
    pub async fn challenges(&self, paging: &Paging) -> Result<Page<ChallengeDto>, ViewError> {
        let found = self.records(|intent| intent == Intent::Challenge);
        let peers = self.vantage().peers();
        operate::page_of(paging, &found, |record| self.challenge_dto(record, &peers))
    }

    /// Shows one challenge.
    ///
    /// # Errors
    /// When there is none of this id.
    pub async fn challenge(&self, id: &str) -> Result<ChallengeDto, ViewError> {
        let record = self.challenge_record(id)?;
        Ok(self.challenge_dto(&record, &self.vantage().peers()))
    }

    /// Sets a challenge, or gives the one that stands. Tells whether it is new. One that was set before stands for an hour from now.
    ///
    /// # Errors
    /// When the name is no steered name of ours, the token or the words make no sense, or there are too many.
    pub async fn set_challenge(
        &self,
        new: NewChallenge,
        actor: &Actor,
    ) -> Result<(ChallengeDto, bool), ViewError> {
        let name = read_name(&new.name)?;
        check(&self.snapshot(), &name)?;
        let token = new.token.parse();
        let token = token.map_err(|error| ViewError::Invalid(format!("token: {error}")))?;
        let record = NewRecord {
            target: OperatorTarget::Challenge { name, token },
            intent: Intent::Challenge,
            actor: actor.name.clone(),
            reason: operate::reason(&new.reason)?,
            in_seconds: 0,
            for_seconds: Some(CHALLENGE_SECONDS),
        };
        let (record, is_new) = self.add(record, "acme set", actor).await?;
        Ok((self.challenge_dto(&record, &self.vantage().peers()), is_new))
    }

    /// Ends a challenge.
    ///
    /// # Errors
    /// When there is none of this id, or no reason.
    pub async fn clear_challenge(
        &self,
        id: &str,
        why: &str,
        actor: &Actor,
    ) -> Result<ChallengeDto, ViewError> {
        self.challenge_record(id)?;
        let record = self.end(id, (why, "acme clear"), actor).await?;
        Ok(self.challenge_dto(&record, &self.vantage().peers()))
    }

    /// Lists how far the challenges are that are not over.
    pub(in crate::admin) fn challenge_states(&self) -> Vec<ChallengeState> {
        let peers = self.vantage().peers();
        let standing = self.standing_challenges().into_iter();
        standing
            .map(|record| self.challenge_dto(&record, &peers).state)
            .collect()
    }

    /// Lists the challenges that are not over.
    pub(super) fn standing_challenges(&self) -> Vec<Arc<OperatorRecord>> {
        let records = self.vantage().book().records();
        let standing = records.standing(wall_time());
        let challenges = standing.filter(|record| record.intent == Intent::Challenge);
        challenges.cloned().collect()
    }

    /// Says that some node does not answer with challenges, a while after they were set.
    pub(super) fn challenge_problems(&self, problems: &mut Vec<ProblemDto>) {
        let (now, peers) = (wall_time(), self.vantage().peers());
        let standing = self.standing_challenges().into_iter();
        let late = standing.filter(|record| now.since(record.created.time) >= LATE_MS);
        let late = late.map(|record| self.challenge_dto(&record, &peers));
        let partial = late.filter(|challenge| challenge.state == ChallengeState::Partial);
        problems.extend(problem(&partial.collect::<Vec<_>>()));
    }

    /// Finds the record of a challenge.
    fn challenge_record(&self, id: &str) -> Result<Arc<OperatorRecord>, ViewError> {
        self.record(id, "challenge", |intent| intent == Intent::Challenge)
    }

    /// Shows a challenge: this node's word and those of the others.
    fn challenge_dto(&self, record: &OperatorRecord, peers: &[PeerWord]) -> ChallengeDto {
        let mut nodes = vec![NodeChallengeDto {
            node: self.vantage().node().to_owned(),
            own: true,
            serves: self.vantage().serves(&record.target),
            heard_ms_ago: Some(0),
            error: None,
        }];
        let is_over = record.phase(wall_time()) == Phase::Over;
        let mut missing = Vec::new();
        if nodes.iter().any(|own| own.serves == is_over) && !self.is_set_again(record) {
            missing.push(self.vantage().node().to_owned());
        }
        for peer in peers.iter().filter(|peer| !peer.own) {
            let serves = peer.serving.contains(&record.id);
            // What was said before it ended says nothing of after.
            let heard_since = record
                .ended
                .as_ref()
                .is_none_or(|_| !peer.standing.contains(&record.id));
            if !peer.is_fresh() || serves == is_over || !heard_since {
                missing.push(peer.shown().to_owned());
            }
            nodes.push(NodeChallengeDto {
                node: peer.shown().to_owned(),
                own: false,
                serves,
                heard_ms_ago: peer.heard.map(words::millis),
                error: peer.error.clone(),
            });
        }
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let (name, token) = match record.target.challenge() {
            Some((name, token)) => (Some(name), token.to_string()),
            None => (None, String::new()),
        };
        let owner = name.and_then(|name| challenge_owner(name.as_ref()));
        ChallengeDto {
            id: record.id.to_string(),
            name: name.map(ToString::to_string).unwrap_or_default(),
            owner: owner.map(|owner| owner.to_string()).unwrap_or_default(),
            token,
            state: match (is_over, missing.is_empty()) {
                (true, _) => ChallengeState::Ended,
                (false, true) => ChallengeState::Served,
                (false, false) => ChallengeState::Partial,
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

    /// Tells whether a challenge that is over was set anew: then it is served all the same.
    fn is_set_again(&self, record: &OperatorRecord) -> bool {
        let (now, records) = (wall_time(), self.vantage().book().records());
        record.phase(now) == Phase::Over
            && records
                .same(&record.target, Intent::Challenge, now)
                .is_some()
    }
}

/// Says of all at once that they are not served everywhere: a node that is out of reach has none of them.
fn problem(partial: &[ChallengeDto]) -> Option<ProblemDto> {
    let mut nodes: Vec<&str> = Vec::new();
    for node in partial.iter().flat_map(|challenge| &challenge.missing) {
        if !nodes.contains(&node.as_str()) {
            nodes.push(node);
        }
    }
    let names: BTreeSet<String> = partial
        .iter()
        .map(|challenge| challenge.name.clone())
        .collect();
    let since = partial.iter().map(|challenge| &challenge.created.time);
    let since = since.min()?.clone();
    Some(ProblemDto {
        severity: Severity::Warning,
        title: format!(
            "{} not served everywhere",
            counted(partial.len(), "challenge")
        ),
        text: format!(
            "{}: an authority that asks {} does not find it, and gives out no certificate.",
            super::status::few(&names.into_iter().collect::<Vec<_>>()),
            nodes.join(", ")
        ),
        link: "/drains".to_owned(),
        since: Some(since),
    })
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

/// Refuses a name that is not steered here, and one whose challenge stands in a zone file.
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
        _ if synthesized_service(snapshot, name.as_ref(), RecordType::A).is_some() => {}
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
                    "is no steered name: what stands in a zone file has its challenge there"
                        .to_owned(),
                );
            }
        }
    }
    let Some(owner) = challenge_owner(name.as_ref()) else {
        return refuse("is so long that no challenge of it can be asked for".to_owned());
    };
    match names.find(owner.as_ref()) {
        Some(found) if found.node.is_some() || found.service.is_some() => Err(ViewError::Conflict(
            format!("{owner} has records of its own, which go first: set the challenge there"),
        )),
        _ => match look(&owner, RecordType::TXT) {
            Lookup::Referral { .. } | Lookup::Dname { .. } | Lookup::NotOurs => {
                refuse("is delegated below: set the challenge there".to_owned())
            }
            _ => Ok(()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::dto::ChangeDto;

    fn partial(name: &str, minute: u32, missing: &[&str]) -> ChallengeDto {
        ChallengeDto {
            id: String::new(),
            name: name.to_owned(),
            owner: format!("_acme-challenge.{name}"),
            token: "t".to_owned(),
            state: ChallengeState::Partial,
            created: ChangeDto {
                time: format!("2026-11-21T03:{minute:02}:00.000Z"),
                actor: "ann".to_owned(),
                reason: "x".to_owned(),
            },
            expires: None,
            ended: None,
            acknowledged: 1,
            expected: 2,
            missing: missing.iter().map(ToString::to_string).collect(),
            nodes: Vec::new(),
        }
    }

    #[test]
    fn many_challenges_that_are_late_are_one_problem() {
        assert_eq!(problem(&[]), None);
        let all = [
            partial("b.example", 7, &["n2"]),
            partial("a.example", 5, &["n2", "n3"]),
            partial("b.example", 9, &["n2"]),
        ];
        let told = problem(&all).unwrap();
        assert_eq!(told.title, "3 challenges not served everywhere");
        assert!(told.text.starts_with("a.example, b.example: "), "{told:?}");
        assert!(told.text.contains("asks n2, n3 does"), "{told:?}");
        assert_eq!(told.since.as_deref(), Some("2026-11-21T03:05:00.000Z"));
    }
}
