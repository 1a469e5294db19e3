//! What other nodes bring: checked, taken into the book, and told apart from what was known.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::warn;

use super::book::Book;
use super::dto::{RecordDto, RecordError};
use crate::model::{OperatorRecord, RecordId, WallTime};
use crate::telemetry::wall_time;

/// A record that another node brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// As it was known here.
    pub before: Option<Arc<OperatorRecord>>,
    /// As it is now.
    pub after: Arc<OperatorRecord>,
}

/// Takes a URL that was asked, and what came.
type Ear = dyn Fn(&str, &[News]) + Send + Sync;

/// Hears what this node fetched.
#[derive(Clone)]
pub struct OnNews(pub Arc<Ear>);

impl std::fmt::Debug for OnNews {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnNews")
    }
}

/// What came of some records.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// What was new, by id.
    pub news: Vec<News>,
    /// Records that are as they should be, new or not.
    pub sound: usize,
    /// Why the first of the others was refused.
    pub refused: Option<RecordError>,
}

/// The way of others' records into the book. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Intake {
    book: Book,
    /// Held while records are compared and taken, so that what two nodes bring is new once.
    taking: Arc<Mutex<()>>,
}

impl Intake {
    /// Makes the way into a book.
    pub(super) fn of(book: Book) -> Self {
        Self {
            book,
            taking: Arc::default(),
        }
    }

    /// Takes records in; those that are not sound are left out. Blocks on the disk where there is news.
    pub(super) fn take(&self, records: Vec<RecordDto>) -> Taken {
        // It guards no data: the book is whole at any moment.
        let _held = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        let now = wall_time();
        let (mut sound, mut refused, mut first) = (Vec::new(), 0_usize, None);
        for dto in records {
            match read(dto, now) {
                Ok(record) => sound.push(record),
                Err(error) => {
                    refused += 1;
                    first.get_or_insert(error);
                }
            }
        }
        if let Some(error) = &first {
            warn!(refused, %error, "Records of a peer are refused; the others are taken");
        }
        Taken {
            sound: sound.len(),
            news: self.merge(sound, now),
            refused: first,
        }
    }

    /// Merges records into the book; gives what that changes.
    fn merge(&self, mut records: Vec<OperatorRecord>, now: WallTime) -> Vec<News> {
        // What everybody forgets must not come back from one who has not yet.
        records.retain(|record| !record.is_forgotten(now));
        let before = self.book.records();
        let (mut after, mut changed) = (before.clone(), BTreeSet::<RecordId>::new());
        for record in &records {
            if after.merge(record.clone(), now) {
                changed.insert(record.id.clone());
            }
        }
        if changed.is_empty() {
            return Vec::new();
        }
        self.book.merge(records);
        let news = |id: &RecordId| {
            Some(News {
                before: before.get(id).cloned(),
                after: after.get(id).cloned()?,
            })
        };
        changed.iter().filter_map(news).collect()
    }
}

/// Reads a record, and checks its times.
fn read(dto: RecordDto, now: WallTime) -> Result<OperatorRecord, RecordError> {
    let record = OperatorRecord::try_from(dto)?;
    match record.absurdity(now) {
        None => Ok(record),
        Some(why) => Err(RecordError {
            id: record.id.to_string(),
            reason: why.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dto(id: &str, reason: &str, more: &str) -> RecordDto {
        let created = wall_time().0;
        let reason = serde_json::to_string(reason).unwrap();
        let text = format!(
            "{{\"id\": \"{id}\", \"intent\": \"drain\", \"cluster\": \"a\", \"created\": {{\"time\": {created}, \"actor\": \"ann\", \"reason\": {reason}}}, \"starts\": {created}{more}}}"
        );
        serde_json::from_str(&text).unwrap()
    }

    fn intake() -> Intake {
        Intake::of(Book::open(None))
    }

    #[test]
    fn what_is_new_is_told_once_with_what_was_before() {
        let intake = intake();
        let first = dto("a", "upgrade", "");
        let taken = intake.take(vec![first.clone()]);
        let news = &taken.news[0];
        assert!(taken.news.len() == 1 && news.before.is_none() && news.after.ended.is_none());
        let again = intake.take(vec![first.clone()]);
        assert!(again.news.is_empty() && again.sound == 1 && again.refused.is_none());
        let mut text = serde_json::to_value(&first).unwrap();
        text["ended"] =
            serde_json::json!({"time": wall_time().0, "actor": "bob", "reason": "done"});
        let ended: RecordDto = serde_json::from_value(text).unwrap();
        let taken = intake.take(vec![first, ended]);
        let [news] = &taken.news[..] else {
            panic!("{taken:?}")
        };
        assert!(news.before.as_ref().unwrap().ended.is_none());
        assert_eq!(&*news.after.ended.as_ref().unwrap().actor, "bob");
        assert_eq!(intake.book.records().get(&news.after.id), Some(&news.after));
    }

    #[test]
    fn hostile_records_are_left_out_and_the_others_taken() {
        let intake = intake();
        let taken = intake.take(vec![
            dto("lines", "a\nlevel=error", ""),
            dto("colors", "\u{1b}[2J", ""),
            dto("mute", "", ""),
            dto("blank", "  ", ""),
            dto("long", &"x".repeat(501), ""),
            dto("absurd", "upgrade", ", \"expires\": 18446744073709551615"),
            dto("GOOD\\nbad", "upgrade", ""),
            dto("good", "upgrade", ""),
        ]);
        assert_eq!((taken.sound, taken.news.len()), (1, 1));
        assert_eq!(intake.book.records().len(), 1);
        let refused = taken.refused.unwrap().to_string();
        assert!(refused.starts_with("record lines: reason: "), "{refused}");
        let taken = intake.take(vec![dto("A\\nB", "upgrade", "")]);
        let refused = taken.refused.unwrap().to_string();
        assert!(!refused.contains('\n'), "{refused:?}");
    }

    #[test]
    fn what_everybody_forgets_does_not_come_back() {
        let intake = intake();
        let mut text = serde_json::to_value(dto("old", "upgrade", "")).unwrap();
        for place in ["/created/time", "/starts"] {
            *text.pointer_mut(place).unwrap() = 1.into();
        }
        text["ended"] = serde_json::json!({"time": 2, "actor": "bob", "reason": "done"});
        let taken = intake.take(vec![serde_json::from_value(text).unwrap()]);
        assert_eq!((taken.sound, taken.news.len()), (1, 0));
        assert!(taken.refused.is_none() && intake.book.records().is_empty());
    }

    #[test]
    fn challenges_are_read_as_they_are_told_and_hostile_ones_refused() {
        let intake = intake();
        let now = wall_time().0;
        let hour = 3_600_000;
        let challenge = |id: &str, more: &str| -> RecordDto {
            let text = format!(
                "{{\"id\": \"{id}\", \"created\": {{\"time\": {now}, \"actor\": \"ann\", \"reason\": \"certificate\"}}, \"starts\": {now}, {more}}}"
            );
            serde_json::from_str(&text).unwrap()
        };
        let end = format!("\"expires\": {}", now + hour);
        let whole = |name: &str, token: &str| {
            format!("\"intent\": \"challenge\", \"name\": {name}, \"token\": {token}, {end}")
        };
        let good = |token: &str| whole("\"web.x\"", &format!("\"{token}\""));
        let long = "a".repeat(256);
        let taken = intake.take(vec![
            challenge("good", &good("one")),
            challenge("empty", &good("")),
            challenge("long", &good(&long)),
            challenge("strange", &good("a b")),
            challenge("quote", &whole("\"web.x\"", "\"a\\\"b\"")),
            challenge("name", &whole("\"a..b\"", "\"one\"")),
            challenge("labels", &whole(&format!("\"{long}\""), "\"one\"")),
            challenge("none", &format!("\"intent\": \"challenge\", {end}")),
            challenge(
                "half",
                &format!("\"intent\": \"challenge\", \"name\": \"web.x\", {end}"),
            ),
            challenge("mixed", &format!("{}, \"cluster\": \"a\"", good("one"))),
            challenge("drain", &good("one").replace("challenge", "drain")),
            challenge("forever", &good("one").replace(&end, "\"ended\": null")),
            challenge(
                "days",
                &good("one").replace(&end, &format!("\"expires\": {}", now + hour + 1)),
            ),
        ]);
        assert_eq!(
            (taken.sound, taken.news.len()),
            (1, 1),
            "{:?}",
            taken.refused
        );
        let records = intake.book.records();
        let (name, token) = records.iter().next().unwrap().target.challenge().unwrap();
        assert_eq!(
            (name.to_string().as_str(), token.as_str()),
            ("web.x", "one")
        );
    }
}
