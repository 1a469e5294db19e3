//! Drains and forces: what operators said, what every node says of it, and saying more.

use std::sync::Arc;

use super::{Actor, Paging, View, ViewError, words};
use crate::admin::audit::Outcome;
use crate::admin::dto::{
    AuditDto, DrainDto, DrainState, ForceDto, ForcedVerdict, NewDrain, NewForce, NodeDrainDto,
    Page, PeerDto,
};
use crate::model::{
    Intent, MAX_AHEAD, MAX_STANDING, OperatorRecord, OperatorTarget, Phase, RecordId, WordsError,
    check_words,
};
use crate::telemetry::wall_time;
use crate::vantage::{Added, BookError, DrainWord, NewRecord, PeerWord};

impl View {
    /// Lists drains: those that are not over first, then the newest first.
    ///
    /// # Errors
    /// When the cursor is none.
    pub async fn drains(&self, paging: &Paging) -> Result<Page<DrainDto>, ViewError> {
        let found = self.records(|intent| intent == Intent::Drain);
        let peers = self.vantage().peers();
        page_of(paging, &found, |record| self.drain_dto(record, &peers))
    }

    /// Shows one drain.
    ///
    /// # Errors
    /// When there is none of this id.
    pub async fn drain(&self, id: &str) -> Result<DrainDto, ViewError> {
        let record = self.record(id, "drain", |intent| intent == Intent::Drain)?;
        Ok(self.drain_dto(&record, &self.vantage().peers()))
    }

    /// Starts a drain, or gives the one that stands. Tells whether it is new.
    ///
    /// # Errors
    /// When the target or the words make no sense, when one stands at other times, or there are too many.
    pub async fn start_drain(
        &self,
        new: NewDrain,
        actor: &Actor,
    ) -> Result<(DrainDto, bool), ViewError> {
        let record = NewRecord {
            target: self.known_target(&new.target).await?,
            intent: Intent::Drain,
            actor: actor.name.clone(),
            reason: reason(&new.reason)?,
            in_seconds: at_most(new.in_seconds, MAX_AHEAD, "inSeconds")?,
            for_seconds: for_seconds(new.for_seconds)?,
        };
        let (record, is_new) = self.add(record, "drain", actor).await?;
        let dto = self.drain_dto(&record, &self.vantage().peers());
        Ok((dto, is_new))
    }

    /// Ends a drain.
    ///
    /// # Errors
    /// When there is none of this id, or no reason.
    pub async fn end_drain(
        &self,
        id: &str,
        why: &str,
        actor: &Actor,
    ) -> Result<DrainDto, ViewError> {
        self.record(id, "drain", |intent| intent == Intent::Drain)?;
        let record = self.end(id, (why, "undrain"), actor).await?;
        Ok(self.drain_dto(&record, &self.vantage().peers()))
    }

    /// Lists forces: those that are not over first, then the newest first.
    ///
    /// # Errors
    /// When the cursor is none.
    pub async fn forces(&self, paging: &Paging) -> Result<Page<ForceDto>, ViewError> {
        let found = self.records(Intent::is_force);
        let peers = self.vantage().peers();
        page_of(paging, &found, |record| force_dto(record, &peers))
    }

    /// Shows one force.
    ///
    /// # Errors
    /// When there is none of this id.
    pub async fn force(&self, id: &str) -> Result<ForceDto, ViewError> {
        let record = self.record(id, "force", Intent::is_force)?;
        Ok(force_dto(&record, &self.vantage().peers()))
    }

    /// Pins a verdict, or gives the force that stands. Tells whether it is new. An opposite force of the same target ends.
    ///
    /// # Errors
    /// When the target or the words make no sense, or there are too many.
    pub async fn start_force(
        &self,
        new: NewForce,
        actor: &Actor,
    ) -> Result<(ForceDto, bool), ViewError> {
        let record = NewRecord {
            target: self.known_target(&new.target).await?,
            intent: match new.verdict {
                ForcedVerdict::Up => Intent::ForceUp,
                ForcedVerdict::Down => Intent::ForceDown,
            },
            actor: actor.name.clone(),
            reason: reason(&new.reason)?,
            in_seconds: 0,
            for_seconds: for_seconds(new.for_seconds)?,
        };
        let (record, is_new) = self.add(record, "force", actor).await?;
        Ok((force_dto(&record, &self.vantage().peers()), is_new))
    }

    /// Ends a force.
    ///
    /// # Errors
    /// When there is none of this id, or no reason.
    pub async fn end_force(
        &self,
        id: &str,
        why: &str,
        actor: &Actor,
    ) -> Result<ForceDto, ViewError> {
        self.record(id, "force", Intent::is_force)?;
        let record = self.end(id, (why, "unforce"), actor).await?;
        Ok(force_dto(&record, &self.vantage().peers()))
    }

    /// Lists the other nodes.
    pub async fn peers(&self) -> Vec<PeerDto> {
        let peers = self.vantage().peers();
        peers
            .iter()
            .map(|peer| PeerDto {
                url: peer.url.clone(),
                name: peer.name.clone(),
                reachable: peer.error.is_none() && peer.is_fresh(),
                heard_ms_ago: peer.heard.map(words::millis),
                error: peer.error.clone(),
                in_step: peer.in_step,
            })
            .collect()
    }

    /// Lists the audit log, newest first.
    ///
    /// # Errors
    /// When the cursor is none.
    pub fn audit(&self, paging: &Paging) -> Result<Page<AuditDto>, ViewError> {
        super::audit::page(self.audit_log(), paging)
    }

    /// Lists the drains that are not over.
    pub(super) fn standing_drains(&self) -> Vec<DrainDto> {
        let now = wall_time();
        let peers = self.vantage().peers();
        let records = self.vantage().book().records();
        records
            .standing(now)
            .filter(|record| record.intent == Intent::Drain)
            .map(|record| self.drain_dto(record, &peers))
            .collect()
    }

    /// Lists the forces that are not over.
    pub(super) fn standing_forces(&self) -> Vec<ForceDto> {
        let now = wall_time();
        let peers = self.vantage().peers();
        let records = self.vantage().book().records();
        records
            .standing(now)
            .filter(|record| record.intent.is_force())
            .map(|record| force_dto(record, &peers))
            .collect()
    }

    /// Lists how far the drains are that are not over.
    pub(in crate::admin) fn drain_states(&self) -> Vec<DrainState> {
        let drains = self.standing_drains();
        drains.iter().map(|drain| drain.state).collect()
    }

    /// Counts the forces that are not over.
    pub(in crate::admin) fn force_count(&self) -> usize {
        self.standing_forces().len()
    }

    /// Lists records: those that are not over first, then by age.
    pub(super) fn records(&self, is: impl Fn(Intent) -> bool) -> Vec<Arc<OperatorRecord>> {
        let now = wall_time();
        let records = self.vantage().book().records();
        let mut found: Vec<Arc<OperatorRecord>> = records
            .iter()
            .filter(|record| is(record.intent))
            .cloned()
            .collect();
        found.sort_by_key(|record| {
            let over = record.phase(now) == Phase::Over;
            (
                over,
                std::cmp::Reverse((record.created.time, record.id.clone())),
            )
        });
        found
    }

    /// Finds a record.
    pub(super) fn record(
        &self,
        id: &str,
        what: &str,
        is: impl Fn(Intent) -> bool,
    ) -> Result<Arc<OperatorRecord>, ViewError> {
        let missing = || ViewError::NotFound(format!("{what} {}", words::shorten(id)));
        let id: RecordId = id.parse().map_err(|_| missing())?;
        let records = self.vantage().book().records();
        let found = records.get(&id).filter(|record| is(record.intent));
        found.cloned().ok_or_else(missing)
    }

    /// Reads a target, and checks that there is such a thing here.
    async fn known_target(
        &self,
        dto: &crate::admin::dto::TargetDto,
    ) -> Result<OperatorTarget, ViewError> {
        let target = words::read_target(dto)?;
        let asked = target.clone();
        let found = self.controller().read(move |inventory| {
            let has_cluster = |name: &crate::model::ClusterId| {
                inventory.clusters().any(|(_, cluster)| cluster.id == *name)
            };
            if let Some(cluster) = asked.cluster().filter(|name| !has_cluster(name)) {
                return Err(format!("cluster {cluster}"));
            }
            let Some(key) = asked.service() else {
                return Ok(());
            };
            let found = inventory.find_meant(key).into_iter();
            let found = found.filter_map(|index| inventory.service(index));
            let found: Vec<_> = found.collect();
            if found.is_empty() {
                return Err(format!("service {key}"));
            }
            let mut pools = found.iter().flat_map(|service| service.pools.iter());
            let has_it = pools.any(|pool| {
                let name = inventory.cluster(pool.cluster()).map(|cluster| &cluster.id);
                let is_there = asked.cluster().is_none_or(|own| Some(own) == name);
                is_there
                    && asked.address().is_none_or(|own| {
                        pool.v4()
                            .chain(pool.v6())
                            .any(|endpoint| endpoint.address == own)
                    })
            });
            has_it.then_some(()).ok_or_else(|| asked.to_string())
        });
        found
            .await
            .ok_or(ViewError::Gone)?
            .map_err(ViewError::NotFound)?;
        Ok(target)
    }

    /// Adds a record, and writes down who did it.
    pub(super) async fn add(
        &self,
        new: NewRecord,
        action: &'static str,
        actor: &Actor,
    ) -> Result<(Arc<OperatorRecord>, bool), ViewError> {
        let book = self.vantage().book().clone();
        let asked = new.clone();
        let adding = tokio::task::spawn_blocking(move || book.add(&asked));
        let result = adding.await.map_err(|_| ViewError::Gone)?;
        let Added {
            record,
            is_new,
            ended,
        } = result.map_err(|error| match error {
            BookError::Full | BookError::Challenges(_) => ViewError::Conflict(error.to_string()),
            BookError::Standing(held) => ViewError::Conflict(words::standing(&held)),
            BookError::Unknown => ViewError::Gone,
        })?;
        if let Some([before, after]) = ended {
            let words = ("unforce", after.target.to_string(), new.reason.clone());
            let bodies = (Outcome::Done, Some(body(&before)), Some(body(&after)));
            self.note(actor, words, bodies);
        }
        let outcome = if is_new {
            Outcome::Done
        } else {
            Outcome::Unchanged
        };
        let before = (!is_new).then(|| body(&record));
        let after = Some(body(&record));
        let words = (action, new.target.to_string(), new.reason);
        self.note(actor, words, (outcome, before, after));
        Ok((record, is_new))
    }

    /// Ends a record, and writes down who did it.
    pub(super) async fn end(
        &self,
        id: &str,
        (why, action): (&str, &'static str),
        actor: &Actor,
    ) -> Result<Arc<OperatorRecord>, ViewError> {
        let why = reason(why)?;
        let missing = || ViewError::NotFound(words::shorten(id));
        let id: RecordId = id.parse().map_err(|_| missing())?;
        let book = self.vantage().book().clone();
        let before = book.records().get(&id).cloned().ok_or_else(missing)?;
        let (name, said) = (actor.name.clone(), why.clone());
        let ending = tokio::task::spawn_blocking(move || book.end(&id, (&name, &said)));
        let result = ending.await.map_err(|_| ViewError::Gone)?;
        let (record, changed) = result.map_err(|_| missing())?;
        let outcome = if changed {
            Outcome::Done
        } else {
            Outcome::Unchanged
        };
        let words = (action, record.target.to_string(), why);
        self.note(
            actor,
            words,
            (outcome, Some(body(&before)), Some(body(&record))),
        );
        Ok(record)
    }

    /// Shows a drain: this node's word and those of the others.
    fn drain_dto(&self, record: &OperatorRecord, peers: &[PeerWord]) -> DrainDto {
        let now = wall_time();
        let phase = record.phase(now);
        let own_words = self.vantage().own_words();
        let own = own_words.iter().find(|word| word.id == record.id);
        let mut nodes = vec![node_dto(self.vantage().node().to_owned(), own)];
        if let Some(node) = nodes.first_mut() {
            node.own = true;
            node.heard_ms_ago = Some(0);
        }
        let others = peers.iter().filter(|peer| !peer.own);
        let mut acknowledged = 1;
        for peer in others.clone() {
            let has_it = peer.is_fresh() && peer.standing.contains(&record.id);
            acknowledged += u32::from(has_it);
            let word = peer.drains.get(&record.id).filter(|_| peer.is_fresh());
            let mut node = node_dto(peer.shown().to_owned(), word);
            node.heard_ms_ago = peer.heard.map(words::millis);
            node.error.clone_from(&peer.error);
            nodes.push(node);
        }
        let expected = 1 + u32::try_from(others.count()).unwrap_or(u32::MAX);
        let mut held_services: Vec<String> = own
            .into_iter()
            .chain(peers.iter().filter_map(|peer| peer.drains.get(&record.id)))
            .flat_map(|word| word.held_services.iter().cloned())
            .collect();
        held_services.sort_unstable();
        held_services.dedup();
        held_services.truncate(20);
        let waiting_for = match phase {
            Phase::Active => waiting(&nodes),
            Phase::Announced => vec![format!("it begins at {}", words::time(record.starts))],
            Phase::Over => vec!["it is over".to_owned()],
        };
        let safe_to_stop = phase == Phase::Active && waiting_for.is_empty();
        let state = match phase {
            Phase::Over => DrainState::Ended,
            Phase::Announced => DrainState::Announced,
            Phase::Active if nodes.iter().any(|node| node.held > 0) => DrainState::Held,
            Phase::Active if safe_to_stop => DrainState::Safe,
            Phase::Active if nodes.iter().all(|node| node.in_force) => DrainState::Draining,
            Phase::Active => DrainState::Partial,
        };
        DrainDto {
            id: record.id.to_string(),
            target: words::target(&record.target),
            state,
            safe_to_stop,
            waiting_for,
            created: words::change(&record.created),
            starts: words::time(record.starts),
            expires: record.expires.map(words::time),
            ended: record.ended.as_ref().map(words::change),
            acknowledged,
            expected,
            held_services,
            nodes,
        }
    }
}

/// Shows what one node says of a drain, as it said it when it was heard: nobody says for another that it has let go meanwhile.
fn node_dto(node: String, word: Option<&DrainWord>) -> NodeDrainDto {
    let remaining = word.and_then(DrainWord::remaining);
    NodeDrainDto {
        node,
        own: false,
        in_force: word.is_some_and(|word| word.in_force),
        heard_ms_ago: None,
        error: None,
        held: word.map_or(0, |word| word.held),
        last_given_seconds_ago: word
            .and_then(|word| word.last_given)
            .map(|since| words::precise_millis(since) / 1000.0),
        ttl: word.map_or(0, |word| word.ttl),
        remaining_seconds: remaining.map(|left| words::precise_millis(left) / 1000.0),
    }
}

/// Says what a drain in force waits for: one line a node.
fn waiting(nodes: &[NodeDrainDto]) -> Vec<String> {
    let line = |node: &NodeDrainDto| {
        let name = &node.node;
        if let (Some(error), true) = (&node.error, node.in_force) {
            Some(format!("{name} drains, and cannot be reached: {error}"))
        } else if !node.in_force {
            Some(match (&node.error, node.heard_ms_ago) {
                (Some(error), _) => format!("{name} has not said that it drains: {error}"),
                (None, Some(_)) if node.own => format!("{name} still answers by the state before"),
                (None, Some(_)) => format!("{name} has not said that it drains"),
                (None, None) => format!("{name} was not heard of yet"),
            })
        } else if node.held > 0 {
            let names =
                crate::model::counted(usize::try_from(node.held).unwrap_or(usize::MAX), "service");
            Some(format!(
                "{name}: it is the last resort of {names}, and is answered"
            ))
        } else {
            match node.remaining_seconds {
                Some(left) if left <= 0.0 => None,
                Some(left) => Some(format!("{name}: caches may hold it for {left:.0} s more")),
                None => Some(format!("{name} has not said when it was given last")),
            }
        }
    };
    nodes.iter().filter_map(line).collect()
}

/// Shows a force.
fn force_dto(record: &OperatorRecord, peers: &[PeerWord]) -> ForceDto {
    let phase = record.phase(wall_time());
    let others: Vec<&PeerWord> = peers.iter().filter(|peer| !peer.own).collect();
    let lacks = |peer: &&&PeerWord| !(peer.is_fresh() && peer.standing.contains(&record.id));
    let missing: Vec<String> = if phase == Phase::Over {
        Vec::new()
    } else {
        others
            .iter()
            .filter(lacks)
            .map(|peer| peer.shown().to_owned())
            .collect()
    };
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    ForceDto {
        id: record.id.to_string(),
        target: words::target(&record.target),
        verdict: match record.intent {
            Intent::ForceUp => ForcedVerdict::Up,
            Intent::ForceDown | Intent::Drain | Intent::Challenge => ForcedVerdict::Down,
        },
        active: phase == Phase::Active,
        created: words::change(&record.created),
        expires: record.expires.map(words::time),
        ended: record.ended.as_ref().map(words::change),
        acknowledged: 1 + count(others.len() - missing.len()),
        expected: 1 + count(others.len()),
        missing,
    }
}

/// Puts a record into the audit log's form.
pub(super) fn body(record: &OperatorRecord) -> serde_json::Value {
    serde_json::json!({
        "id": record.id.to_string(),
        "target": about(&record.target),
        "intent": match record.intent {
            Intent::Drain => "drain",
            Intent::ForceUp => "forceUp",
            Intent::ForceDown => "forceDown",
            Intent::Challenge => "challenge",
        },
        "created": words::change(&record.created),
        "starts": words::time(record.starts),
        "expires": record.expires.map(words::time),
        "ended": record.ended.as_ref().map(words::change),
    })
}

/// Puts what a record is about into the audit log's form.
fn about(target: &OperatorTarget) -> serde_json::Value {
    match target.challenge() {
        Some((name, token)) => serde_json::json!({
            "kind": "challenge", "name": name.to_string(), "token": token.as_str(),
        }),
        None => serde_json::json!(words::target(target)),
    }
}

/// Checks a reason.
pub(super) fn reason(text: &str) -> Result<String, ViewError> {
    let text = text.trim();
    let why = match check_words(text) {
        Ok(()) => return Ok(text.to_owned()),
        Err(WordsError::Blank) => {
            "say why, in 1 to 500 characters: it is kept in the audit log".to_owned()
        }
        Err(error) => error.to_string(),
    };
    Err(ViewError::Invalid(format!("reason: {why}")))
}

/// Checks how long something stands.
fn for_seconds(seconds: Option<u32>) -> Result<Option<u32>, ViewError> {
    match seconds {
        Some(0) => Err(ViewError::Invalid(
            "forSeconds: at least 1; leave it out for no end".to_owned(),
        )),
        Some(seconds) => at_most(seconds, MAX_STANDING, "forSeconds").map(Some),
        None => Ok(None),
    }
}

/// Checks a bound.
fn at_most(number: u32, most: u32, what: &str) -> Result<u32, ViewError> {
    if number <= most {
        Ok(number)
    } else {
        Err(ViewError::Invalid(format!("{what}: at most {most}")))
    }
}

/// Makes a page of records.
pub(super) fn page_of<T>(
    paging: &Paging,
    found: &[Arc<OperatorRecord>],
    show: impl Fn(&OperatorRecord) -> T,
) -> Result<Page<T>, ViewError> {
    let from = super::offset(paging)?;
    let page = found.iter().skip(from).take(paging.limit());
    Ok(Page {
        items: page.map(|record| show(record)).collect(),
        total: super::number(found.len()),
        next: super::next(from, paging, found.len()),
    })
}
