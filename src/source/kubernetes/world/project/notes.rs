//! What was refused of an object, in words for people.

use std::fmt::Display;

use crate::inventory::Refused;
use crate::source::kubernetes::Common;
use crate::source::kubernetes::annotations::{PREFIX, Read};
use crate::source::kubernetes::fields;

/// Refusals of one object, at most. The last one says how many more there are.
const MAX_NOTES: usize = 64;

/// What was refused of an object, in the order in which it was found.
#[derive(Debug, Default)]
pub(super) struct Notes {
    notes: Vec<Refused>,
    more: usize,
}

impl Notes {
    /// Begins with what was refused at the door.
    pub(super) fn of(common: &Common) -> Self {
        let mut notes = Self::default();
        for refused in &common.refused {
            notes.push(refused.clone());
        }
        for refused in &common.said.refused {
            notes.push(Refused {
                what: refused.key.clone(),
                reason: refused.reason.clone(),
            });
        }
        notes
    }

    /// Adds one about a field.
    pub(super) fn field(&mut self, what: &str, reason: impl Display) {
        self.push(refused(what, reason));
    }

    /// Adds one about an annotation, named without its prefix.
    pub(super) fn key(&mut self, key: &str, reason: impl Display) {
        self.push(refused_key(key, reason));
    }

    fn push(&mut self, refused: Refused) {
        if self.notes.len() < MAX_NOTES - 1 {
            self.notes.push(refused);
        } else {
            self.more += 1;
        }
    }

    /// Gives them all.
    pub(super) fn into_refused(mut self) -> Vec<Refused> {
        if self.more > 0 {
            let reason = format!("{} more were refused", self.more);
            self.notes.push(refused("others", reason));
        }
        self.notes
    }
}

/// Makes a refusal.
pub(in crate::source::kubernetes::world) fn refused(what: &str, reason: impl Display) -> Refused {
    fields::refused(what, &reason.to_string())
}

/// Makes a refusal of an annotation, named without its prefix.
pub(in crate::source::kubernetes::world) fn refused_key(
    key: &str,
    reason: impl Display,
) -> Refused {
    refused(&format!("{PREFIX}{key}"), reason)
}

/// Tells whether an annotation is there and could not be read.
pub(super) fn is_refused(read: &Read, key: &str) -> bool {
    read.refused
        .iter()
        .any(|refused| refused.key.strip_prefix(PREFIX) == Some(key))
}
