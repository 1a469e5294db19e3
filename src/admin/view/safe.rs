//! Says once of each drain that it is safe to stop, as soon as it is.

use std::collections::BTreeSet;
use std::time::Duration;

use super::View;
use crate::controller::{Event, Kind, Weightiness};
use crate::model::{OperatorTarget, RecordId};
use crate::telemetry::wall_time;
use crate::vantage::DrainWord;

/// Drains looked at in one turn: each asks what all nodes say.
const EACH: usize = 16;

/// The drains that were told of.
#[derive(Debug, Default)]
pub(super) struct Told {
    ids: BTreeSet<RecordId>,
    turn: usize,
}

impl Told {
    /// Picks drains that this node has let go of and that were not told of: a few, others the next time. Forgets those that
    /// are over.
    fn pick(&mut self, own: &[DrainWord]) -> Vec<RecordId> {
        let began: BTreeSet<&RecordId> = own.iter().map(|word| &word.id).collect();
        self.ids.retain(|id| began.contains(id));
        let is_due = |word: &&DrainWord| {
            word.remaining() == Some(Duration::ZERO) && !self.ids.contains(&word.id)
        };
        let due = own.iter().filter(is_due).map(|word| word.id.clone());
        let mut due: Vec<RecordId> = due.collect();
        if !due.is_empty() {
            let turn = self.turn % due.len();
            due.rotate_left(turn);
        }
        due.truncate(EACH);
        self.turn = self.turn.wrapping_add(EACH);
        due
    }
}

impl View {
    /// Records each drain that became safe to stop.
    pub(super) async fn tell_safe(&self, told: &mut Told) {
        let records = self.vantage().book().records();
        let mut own = self.vantage().own_words();
        // What objects drain by their own word is told of where they are.
        own.retain(|word| records.get(&word.id).is_some());
        for id in told.pick(&own) {
            let Ok(drain) = self.drain(&id.to_string()).await else {
                continue;
            };
            let records = self.vantage().book().records();
            if let Some(record) = records.get(&id).filter(|_| drain.safe_to_stop) {
                self.journal().record(event(&record.target), wall_time());
                told.ids.insert(id);
            }
        }
    }
}

/// Makes the event.
fn event(target: &OperatorTarget) -> Event {
    let text = format!("Drain of {target}: safe to stop");
    Event {
        clusters: target
            .cluster()
            .map(ToString::to_string)
            .into_iter()
            .collect(),
        services: target
            .service()
            .map(ToString::to_string)
            .into_iter()
            .collect(),
        ..Event::new(Kind::Drain, Weightiness::Info, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(id: &str, since: u64) -> DrainWord {
        DrainWord {
            id: id.parse().unwrap(),
            in_force: true,
            held: 0,
            held_services: Vec::new(),
            last_given: Some(Duration::from_secs(since)),
            ttl: 30,
        }
    }

    fn ids(picked: &[RecordId]) -> Vec<String> {
        picked.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn drains_are_picked_when_this_node_has_let_go_and_until_they_were_told_of() {
        let mut told = Told::default();
        assert!(told.pick(&[]).is_empty());
        let held = DrainWord {
            held: 1,
            ..word("c", 60)
        };
        let own = [word("a", 60), word("b", 20), held];
        assert_eq!(ids(&told.pick(&own)), ["a"]);
        // It waits for another node: it is picked again.
        assert_eq!(ids(&told.pick(&own)), ["a"]);
        told.ids.insert("a".parse().unwrap());
        assert!(told.pick(&own).is_empty());
        // What is over is forgotten.
        assert!(told.pick(&own[1..]).is_empty() && told.ids.is_empty());
    }

    #[test]
    fn with_many_drains_each_has_its_turn() {
        let own: Vec<DrainWord> = (0..40).map(|at| word(&format!("d{at:02}"), 60)).collect();
        let mut told = Told::default();
        let mut seen = BTreeSet::new();
        for _ in 0..3 {
            let picked = told.pick(&own);
            assert_eq!(picked.len(), EACH);
            seen.extend(picked);
        }
        assert_eq!(seen.len(), own.len());
    }

    #[test]
    fn the_event_names_what_is_drained() {
        let told = event(&OperatorTarget::Cluster("brazil".parse().unwrap()));
        assert_eq!(told.text, "Drain of cluster brazil: safe to stop");
        assert_eq!(
            (told.kind, told.clusters),
            (Kind::Drain, vec!["brazil".to_owned()])
        );
    }
}
