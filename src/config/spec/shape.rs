//! How the shape of a configuration is described: keys, what each takes, and which are not built yet.
//!
//! One table serves the reader, which refuses every other key, and the schema, which prints only what works.

use super::suggest;
use super::tape::{Kind, Node};
use crate::config::faults::Report;

/// What a key takes. The readers of `validate` check more than is said here; the schema says what it can.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// Any text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// `true` or `false`.
    Boolean,
    /// A whole number within bounds.
    Integer(i64, i64),
    /// A number within bounds.
    Number(f64, f64),
    /// A time: seconds, or units.
    Duration,
    /// A domain name.
    Name,
    /// An IP address.
    Address,
    /// An IP address with a port.
    Socket,
    /// A prefix.
    Prefix,
    /// A list.
    List(&'static Self),
    /// A list that must be empty until it is built.
    Nothing,
    /// A map with these keys.
    Map(&'static Shape),
    /// A map whose keys the operator chooses.
    ByName(&'static Self),
    /// Any of these.
    Any(&'static [Self]),
}

/// Whether a key is built.
#[derive(Clone, Copy, Debug)]
pub(crate) enum State {
    /// Must be there.
    Required(Form),
    /// May be there.
    Optional(Form),
    /// A key of the contract that is refused until it is built.
    Later,
}

/// A key of a map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// As written.
    pub(crate) name: &'static str,
    /// One line for the schema: meaning, unit, default.
    pub(crate) about: &'static str,
    /// Whether it is built.
    pub(crate) state: State,
}

/// Makes a key that must be there.
pub(super) const fn required(name: &'static str, form: Form, about: &'static str) -> Key {
    Key {
        name,
        about,
        state: State::Required(form),
    }
}

/// Makes a key that may be there.
pub(super) const fn optional(name: &'static str, form: Form, about: &'static str) -> Key {
    Key {
        name,
        about,
        state: State::Optional(form),
    }
}

/// Makes a key that is not built yet.
pub(super) const fn later(name: &'static str) -> Key {
    Key {
        name,
        about: "",
        state: State::Later,
    }
}

impl Key {
    /// Gives what it takes; `None` when it is not built yet.
    pub(crate) fn form(&self) -> Option<Form> {
        match self.state {
            State::Required(form) | State::Optional(form) => Some(form),
            State::Later => None,
        }
    }
}

/// A map of the configuration.
#[derive(Debug)]
pub(crate) struct Shape {
    /// What it is, for messages: `a service`.
    pub(crate) what: &'static str,
    /// All keys of the contract.
    pub(crate) keys: &'static [Key],
    /// Whether an optional key without a value counts as not written: a section whose lines are all comments.
    pub(crate) may_be_blank: bool,
}

impl Shape {
    /// Gives an example: the keys that must be there, filled up to two with others that may.
    fn example(&self) -> String {
        let required = |key: &&Key| matches!(key.state, State::Required(_));
        let optional = |key: &&Key| matches!(key.state, State::Optional(_));
        let count = self.keys.iter().filter(required).count();
        let required = self.keys.iter().filter(required);
        let others = self.keys.iter().filter(optional);
        let shown = required.chain(others).take(count.max(EXAMPLE_KEYS));
        let shown =
            shown.filter_map(|key| Some(format!("{}: {}", key.name, key.form()?.example())));
        format!("{{{}}}", shown.collect::<Vec<_>>().join(", "))
    }
}

impl Form {
    /// Gives an example.
    fn example(&self) -> String {
        match self {
            Self::Text => "…".to_owned(),
            Self::Word(words) => words.first().copied().unwrap_or_default().to_owned(),
            Self::Boolean => "true".to_owned(),
            Self::Integer(least, most) => 1.clamp(*least, *most).to_string(),
            Self::Number(least, most) => 1.0_f64.clamp(*least, *most).to_string(),
            Self::Duration => "30s".to_owned(),
            Self::Name => "www.example.com".to_owned(),
            Self::Address => "192.0.2.10".to_owned(),
            Self::Socket => "\"127.0.0.1:53\"".to_owned(),
            Self::Prefix => "192.0.2.0/24".to_owned(),
            Self::List(item) => format!("[{}]", item.example()),
            Self::Nothing => "[]".to_owned(),
            Self::Map(_) | Self::ByName(_) => "{…}".to_owned(),
            Self::Any(forms) => forms.first().map_or_else(String::new, Self::example),
        }
    }
}

/// Keys that an example has at least, where there are as many.
const EXAMPLE_KEYS: usize = 2;
/// Most keys of one shape.
const MAX_KEYS: usize = 24;

/// The values of one map, by key of its shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'t, 'a> {
    /// The map itself.
    pub(crate) node: Node<'t, 'a>,
    shape: &'static Shape,
    /// Position of each key's value on the tape; 0, which is never a value, for none.
    found: [u32; MAX_KEYS],
}

impl<'t, 'a> Fields<'t, 'a> {
    /// Gives the value of a key that the shape has as built; `None` when it was not written.
    pub(crate) fn get(&self, name: &str) -> Option<Node<'t, 'a>> {
        let at = self.shape.keys.iter().position(|key| key.name == name);
        debug_assert!(at.is_some(), "{name} is no key of {}", self.shape.what);
        let position = *self.found.get(at?)?;
        if position == 0 {
            None
        } else {
            self.node.at(position)
        }
    }
}

/// Sorts the entries of a map by key. Unknown, repeated and missing keys, those not built yet, and keys without a value are
/// faults; `None` when it is no map at all. A key with a fault of its own counts as not written.
pub(crate) fn fields<'t, 'a>(
    node: Node<'t, 'a>,
    shape: &'static Shape,
    report: &mut Report,
) -> Option<Fields<'t, 'a>> {
    if node.kind() != Kind::Map {
        report.fault(
            node,
            format_args!(
                "{} is a map of keys and values, such as {}",
                shape.what,
                shape.example()
            ),
        );
        return None;
    }
    let mut fields = Fields {
        node,
        shape,
        found: [0; MAX_KEYS],
    };
    let mut written = [false; MAX_KEYS];
    for (key, value) in node.entries() {
        let at = shape.keys.iter().position(|known| known.name == key.text());
        let slots = at.and_then(|at| {
            Some((
                shape.keys.get(at)?,
                fields.found.get_mut(at)?,
                written.get_mut(at)?,
            ))
        });
        let Some((known, slot, is_written)) = slots else {
            unknown(key, shape, report);
            continue;
        };
        let is_twice = std::mem::replace(is_written, true);
        if matches!(known.state, State::Later) {
            report.fault(key, format_args!("`{}` is not supported yet", known.name));
        } else if is_twice {
            report.fault(key, format_args!("`{}` is written twice", known.name));
        } else if value.is_null() && shape.may_be_blank && matches!(known.state, State::Optional(_))
        {
            // Nothing was said.
        } else if value.is_null() {
            report.fault(
                key,
                format_args!("`{}` has no value; give it one or leave it out", known.name),
            );
        } else {
            *slot = value.position();
        }
    }
    for (key, is_written) in shape.keys.iter().zip(written) {
        if !is_written && matches!(key.state, State::Required(_)) {
            report.fault(
                node,
                format_args!("{} needs `{}`: {}", shape.what, key.name, key.about),
            );
        }
    }
    Some(fields)
}

/// Reports a key that nobody knows.
fn unknown(key: Node<'_, '_>, shape: &Shape, report: &mut Report) {
    let written = key.text();
    if report.is_full() {
        return report.fault(key, "unknown key");
    }
    let built = || {
        shape
            .keys
            .iter()
            .filter(|key| key.form().is_some())
            .map(|key| key.name)
    };
    let near = suggest::nearest(written, built());
    match near.or_else(|| suggest::abbreviated(written, built())) {
        Some(near) => report.fault(
            key,
            format_args!("unknown key `{written}`; did you mean `{near}`?"),
        ),
        None => {
            let all: Vec<&str> = built().collect();
            report.fault(
                key,
                format_args!(
                    "unknown key `{written}`; {} has {}",
                    shape.what,
                    all.join(", ")
                ),
            );
        }
    }
}
