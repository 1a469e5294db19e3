//! What other nodes bring, in the audit log: every node can tell who changed what.

use super::View;
use super::operate::body;
use crate::admin::audit::{Act, Actor, Audit, Outcome};
use crate::admin::identity::{Identity, Role};
use crate::model::{Intent, counted};
use crate::vantage::{ExchangeDto, News};

/// Entries of one exchange: further records are counted in one more, so that no node fills the log of another.
const EACH: usize = 200;

impl View {
    /// Answers another node, and writes down what it brought. Both are done once begun, whether the other waits or not. Blocks
    /// on the disk where there is news.
    ///
    /// # Errors
    /// When what it says cannot be taken.
    pub(in crate::admin) fn answer_peer(
        &self,
        theirs: ExchangeDto,
        peer: &Identity,
    ) -> Result<ExchangeDto, String> {
        let (ours, news) = self.vantage().answer(theirs)?;
        note(self.audit_log(), peer.into(), &news);
        Ok(ours)
    }
}

/// Writes down what this node fetched from another one, which is named by its URL.
pub fn note_fetched(audit: &Audit, url: &str, news: &[News]) {
    let by = Actor {
        name: url,
        role: Role::Peer.word(),
        from: None,
        request: "",
    };
    note(audit, by, news);
}

/// Writes down what another node brought.
fn note(audit: &Audit, by: Actor<'_>, news: &[News]) {
    for one in news.iter().take(EACH) {
        let record = &*one.after;
        let known = one.before.as_ref().and_then(|record| record.ended.as_ref());
        let ended = record.ended.as_ref().filter(|said| Some(*said) != known);
        let action = match (record.intent, ended) {
            (Intent::Drain, None) => "relay drain",
            (Intent::Drain, Some(_)) => "relay undrain",
            (Intent::ForceUp | Intent::ForceDown, None) => "relay force",
            (Intent::ForceUp | Intent::ForceDown, Some(_)) => "relay unforce",
            (Intent::Challenge, None) => "relay acme set",
            (Intent::Challenge, Some(_)) => "relay acme clear",
        };
        let act = Act {
            action,
            target: &record.target.to_string(),
            reason: &ended.unwrap_or(&record.created).reason,
            before: one.before.as_deref().map(body),
            after: Some(body(record)),
            outcome: Outcome::Done,
        };
        audit.record(by, act);
    }
    let more = news.len().saturating_sub(EACH);
    if more > 0 {
        let act = Act {
            action: "relay",
            target: &counted(more, "further record"),
            reason: "many came at once; the node that made them has an entry for each",
            before: None,
            after: None,
            outcome: Outcome::Done,
        };
        audit.record(by, act);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{OperatorRecord, OperatorTarget, Said, WallTime};

    fn record(at: usize) -> OperatorRecord {
        OperatorRecord {
            id: format!("r-{at}").parse().unwrap(),
            target: OperatorTarget::Cluster("a".parse().unwrap()),
            intent: Intent::Drain,
            created: Said {
                time: WallTime(1),
                actor: "ann".into(),
                reason: "upgrade".into(),
            },
            starts: WallTime(1),
            expires: None,
            ended: None,
        }
    }

    fn ended(record: &OperatorRecord) -> OperatorRecord {
        OperatorRecord {
            ended: Some(Said {
                time: WallTime(2),
                actor: "bob".into(),
                reason: "done".into(),
            }),
            ..record.clone()
        }
    }

    #[test]
    fn each_record_has_an_entry_that_says_what_became_of_it() {
        let audit = Audit::open(None);
        let (drain, mut force) = (record(0), record(1));
        force.intent = Intent::ForceUp;
        let news = |before: Option<&OperatorRecord>, after: OperatorRecord| News {
            before: before.map(|record| Arc::new(record.clone())),
            after: Arc::new(after),
        };
        let all = [
            news(None, drain.clone()),
            news(Some(&drain), ended(&drain)),
            news(None, force.clone()),
            news(None, ended(&force)),
        ];
        note_fetched(&audit, "https://ns2.example", &all);
        let mut entries = audit.recent(10, None);
        entries.reverse();
        let told: Vec<_> = entries
            .iter()
            .map(|entry| (entry.action.as_str(), entry.reason.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                ("relay drain", "upgrade"),
                ("relay undrain", "done"),
                ("relay force", "upgrade"),
                ("relay unforce", "done"),
            ]
        );
        let entry = &entries[1];
        assert_eq!(
            (
                entry.actor.as_str(),
                entry.role.as_str(),
                entry.target.as_str()
            ),
            ("https://ns2.example", "peer", "cluster a")
        );
        let (before, after) = (entry.before.as_ref(), entry.after.as_ref());
        assert_eq!(before.unwrap()["created"]["actor"], "ann");
        assert_eq!(after.unwrap()["ended"]["actor"], "bob");
    }

    #[test]
    fn many_at_once_do_not_fill_the_log() {
        let audit = Audit::open(None);
        let all: Vec<News> = (0..EACH + 3)
            .map(|at| News {
                before: None,
                after: Arc::new(record(at)),
            })
            .collect();
        note_fetched(&audit, "https://ns2.example", &all);
        let entries = audit.recent(usize::MAX, None);
        assert_eq!(entries.len(), EACH + 1);
        assert_eq!(
            (entries[0].action.as_str(), entries[0].target.as_str()),
            ("relay", "3 further records")
        );
    }
}
