//! A walk through what an object says.
//!
//! Every step may meet anything: nothing, `null`, a value of a wrong type, a list without end. What is wrong is noted with its
//! path, and the walk goes on as if it were not there. A place knows where it stands, and tells that only when it has to.

use std::cell::Cell;
use std::fmt::Display;

use super::object::{Object, Tree};
use super::words::shown;
use crate::inventory::Refused;

/// Faults of one object that are kept; the others are counted.
const MAX_FAULTS: usize = 64;
/// What the faults are about that no field has.
const OBJECT: &str = "object";
/// Parts without which nothing can be read of an object: itself, what is wanted, and what is.
const PARTS: [&[&str]; 3] = [&[], &["spec"], &["status"]];

/// What was wrong with one object, in the order in which it was met.
#[derive(Default)]
pub(super) struct Faults {
    noted: Cell<Vec<Refused>>,
    others: Cell<usize>,
}

impl Faults {
    /// Notes a fault. Of one place, the first is kept.
    pub(super) fn note(&self, what: &str, reason: &str) {
        let mut noted = self.noted.take();
        if noted.iter().any(|fault| *fault.what == *what) {
            // Met twice on the way to two fields.
        } else if noted.len() < MAX_FAULTS {
            noted.push(refused(what, reason));
        } else {
            self.others.set(self.others.get().saturating_add(1));
        }
        self.noted.set(noted);
    }

    /// Gives all of them. If there were too many, the last one says how many more.
    pub(super) fn into_list(self) -> Vec<Refused> {
        let mut noted = self.noted.into_inner();
        let others = self.others.into_inner();
        if others > 0 {
            noted.push(refused(OBJECT, &format!("{others} more faults were met")));
        }
        noted
    }

    /// Gives the first one; `Ok` where there is none.
    pub(super) fn into_result(self) -> Result<(), Refused> {
        self.noted
            .into_inner()
            .into_iter()
            .next()
            .map_or(Ok(()), Err)
    }
}

/// Makes a refusal that may be shown.
pub(super) fn refused(what: &str, reason: &str) -> Refused {
    Refused {
        what: shown(what).into(),
        reason: shown(reason).into(),
    }
}

/// How a place is reached from the one before.
#[derive(Clone, Copy)]
enum Step {
    /// By keys, one below the other.
    Keys(&'static [&'static str]),
    /// By its number in a list.
    At(usize),
}

/// A place in an object, and what stands there.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    /// `None` where nothing stands, or `null`.
    value: Option<&'a Tree<'a>>,
    within: Option<&'a Self>,
    step: Step,
    faults: &'a Faults,
}

impl<'a> Field<'a> {
    /// Opens an object at its root.
    ///
    /// # Errors
    /// When the object, its `spec` or its `status` is no object: nothing can be read of it then.
    pub(super) fn open(object: &'a Object<'a>, faults: &'a Faults) -> Result<Self, Refused> {
        let root = Self {
            value: Some(&object.body),
            within: None,
            step: Step::Keys(&[]),
            faults,
        };
        for part in PARTS {
            let field = root.at(part);
            match field.value {
                None | Some(Tree::Map(_)) => {}
                Some(other) => return Err(refused(&field.path(), &wanted("an object", other))),
            }
        }
        Ok(root)
    }

    /// Goes down by keys.
    pub(super) fn at(&self, keys: &'static [&'static str]) -> Field<'_> {
        let mut value = self.value;
        for (depth, key) in keys.iter().enumerate() {
            value = match value {
                None => None,
                Some(map @ Tree::Map(_)) => map.get(key).filter(|value| !value.is_null()),
                Some(other) => {
                    let above = keys.get(..depth).unwrap_or_default();
                    self.below(above).refuse(&wanted("an object", other));
                    None
                }
            };
        }
        Field {
            value,
            ..self.below(keys)
        }
    }

    /// Names a place below, whatever stands there.
    fn below(&self, keys: &'static [&'static str]) -> Field<'_> {
        Field {
            value: None,
            within: Some(self),
            step: Step::Keys(keys),
            faults: self.faults,
        }
    }

    /// Goes through a list, its first `most` items. What is `null` is left out.
    pub(super) fn items(&self, most: usize) -> impl Iterator<Item = Field<'_>> {
        let list = match self.value {
            None => &[],
            Some(Tree::List(list)) => list.as_slice(),
            Some(other) => {
                self.refuse(&wanted("a list", other));
                &[]
            }
        };
        if list.len() > most {
            let length = list.len();
            self.refuse(&format!(
                "it has {length} items, of which the first {most} count"
            ));
        }
        let items = list.iter().take(most).enumerate().map(|(at, value)| Field {
            value: Some(value),
            within: Some(self),
            step: Step::At(at),
            faults: self.faults,
        });
        items.filter(|item| {
            let is_null = item.value.is_some_and(Tree::is_null);
            if is_null {
                item.refuse("it is null");
            }
            !is_null
        })
    }

    /// Tells whether anything stands here but an empty list.
    pub(super) fn is_filled(&self) -> bool {
        match self.value {
            Some(Tree::List(list)) => !list.is_empty(),
            value => value.is_some(),
        }
    }

    /// Takes an empty text for nothing.
    pub(super) fn filled(self) -> Self {
        let is_empty = |value: &&Tree<'_>| matches!(value, Tree::Text(text) if text.is_empty());
        Self {
            value: self.value.filter(|value| !is_empty(value)),
            ..self
        }
    }

    /// Gives the place itself; what is missing is a fault.
    pub(super) fn wanted(self) -> Option<Self> {
        if self.value.is_some() {
            return Some(self);
        }
        let above = self.within.and_then(|above| above.value);
        // What is no object was refused as a whole.
        if above.is_none_or(|above| matches!(above, Tree::Map(_))) {
            self.refuse("it is missing");
        }
        None
    }

    /// Reads what may be missing, but not wrong: `None` only where something stands that cannot be read.
    pub(super) fn if_said<T>(&self, read: impl FnOnce(&Self) -> Option<T>) -> Option<Option<T>> {
        match self.value {
            None => Some(None),
            Some(_) => read(self).map(Some),
        }
    }

    /// Reads a text.
    pub(super) fn text(&self) -> Option<&'a str> {
        match self.value? {
            Tree::Text(text) => Some(text),
            other => {
                self.refuse(&wanted("a text", other));
                None
            }
        }
    }

    /// Reads a text; `None` only where something else stands.
    pub(super) fn text_or(&self, default: &'a str) -> Option<&'a str> {
        match self.value {
            None => Some(default),
            Some(_) => self.text(),
        }
    }

    /// Reads a text that must pass a check.
    pub(super) fn checked(&self, fault: impl Fn(&str) -> Option<String>) -> Option<&'a str> {
        let text = self.text()?;
        match fault(text) {
            None => Some(text),
            Some(why) => {
                self.refuse(&why);
                None
            }
        }
    }

    /// Reads a yes or no.
    pub(super) fn flag(&self) -> Option<bool> {
        match self.value? {
            Tree::Bool(flag) => Some(*flag),
            other => {
                self.refuse(&wanted("`true` or `false`", other));
                None
            }
        }
    }

    /// Reads a whole number in a range.
    pub(super) fn number<T>(&self, low: T, high: T) -> Option<T>
    where
        T: TryFrom<u64> + PartialOrd + Display,
    {
        let value = self.value?;
        let number = match value {
            Tree::Number(number) => number.as_u64(),
            _ => None,
        };
        let number = number.and_then(|number| T::try_from(number).ok());
        let number = number.filter(|number| (&low..=&high).contains(&number));
        if number.is_none() {
            let range = format!("a whole number from {low} to {high}");
            self.refuse(&wanted(&range, value));
        }
        number
    }

    /// Notes that what stands here is refused.
    pub(super) fn refuse(&self, reason: &str) {
        self.faults.note(&self.path(), reason);
    }

    /// Gives the path from the root, such as `status.loadBalancer.ingress[0].ip`.
    fn path(&self) -> String {
        let path = self.written();
        if path.is_empty() {
            OBJECT.to_owned()
        } else {
            path
        }
    }

    /// Writes the steps down to here.
    fn written(&self) -> String {
        let mut path = self.within.map(Self::written).unwrap_or_default();
        match self.step {
            Step::At(at) => path.push_str(&format!("[{at}]")),
            Step::Keys(keys) => {
                for key in keys {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(key);
                }
            }
        }
        path
    }
}

/// Says what is wanted, and what was found.
fn wanted(what: &str, found: &Tree<'_>) -> String {
    let found = match found {
        Tree::Null => "null",
        Tree::Bool(_) => "a yes or no",
        Tree::Number(number) => return format!("{what} is wanted, and not {number}"),
        Tree::Text(_) => "a text",
        Tree::List(_) => "a list",
        Tree::Map(_) => "an object",
    };
    format!("{what} is wanted, and not {found}")
}
