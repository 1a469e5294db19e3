//! What was written, as a flat tree: nodes in the order of the text, each knowing where its subtree ends.
//!
//! One allocation holds a whole document, or one service after the other: a million services are read through one tape.

use std::borrow::Cow;
use std::fmt::Write;

/// A place in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// From 1; 0 for none.
    pub(crate) line: u32,
    /// In characters from 1; 0 for none.
    pub(crate) column: u32,
}

/// Something that cannot be read, or that is not allowed in any configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// Where.
    pub(crate) place: Place,
    /// What is wrong and what would be right.
    pub(crate) message: String,
}

impl Flaw {
    /// Makes a flaw of the whole file.
    pub(crate) fn of_file(message: impl Into<String>) -> Self {
        Self {
            place: Place::default(),
            message: message.into(),
        }
    }
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A scalar without quotes: text, number, word or nothing.
    Plain,
    /// A scalar in quotes, or a block of text.
    Quoted,
    /// A sequence.
    List,
    /// A mapping: its children are keys (scalars) and values in turn.
    Map,
}

/// One node as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Raw<'a> {
    text: Cow<'a, str>,
    place: Place,
    /// The position after the last node of the subtree.
    end: u32,
    kind: Kind,
}

/// Which part of the file the root of a tape is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Root {
    /// The whole file.
    #[default]
    File,
    /// One item of `services`.
    Service(usize),
}

/// A flat tree of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tape<'a> {
    raws: Vec<Raw<'a>>,
    root: Root,
}

impl<'a> Tape<'a> {
    /// Empties the tape; the memory is kept for the next tree.
    pub(crate) fn clear(&mut self, root: Root) {
        self.raws.clear();
        self.root = root;
    }

    /// Counts the nodes.
    pub(crate) fn len(&self) -> usize {
        self.raws.len()
    }

    /// Gives the root; `None` when nothing was written.
    pub(crate) fn root(&self) -> Option<Node<'_, 'a>> {
        self.node(0)
    }

    /// Appends a scalar.
    pub(super) fn scalar(&mut self, kind: Kind, text: Cow<'a, str>, place: Place) {
        let end = position(self.raws.len() + 1);
        self.raws.push(Raw {
            text,
            place,
            end,
            kind,
        });
    }

    /// Opens a list or map; the result is what [`Tape::close`] wants.
    pub(super) fn open(&mut self, kind: Kind, place: Place) -> usize {
        let at = self.raws.len();
        self.raws.push(Raw {
            text: Cow::Borrowed(""),
            place,
            end: 0,
            kind,
        });
        at
    }

    /// Closes a list or map.
    pub(super) fn close(&mut self, at: usize) {
        let end = position(self.raws.len());
        if let Some(raw) = self.raws.get_mut(at) {
            raw.end = end;
        }
    }

    /// Gives the node at a position.
    fn node(&self, at: usize) -> Option<Node<'_, 'a>> {
        let raw = self.raws.get(at)?;
        Some(Node {
            tape: self,
            raw,
            at: position(at),
        })
    }
}

/// Narrows a position; the readers stop far below the limit.
fn position(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// One node of a tape: a scalar, list or map with its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'t, 'a> {
    tape: &'t Tape<'a>,
    raw: &'t Raw<'a>,
    at: u32,
}

impl<'t, 'a> Node<'t, 'a> {
    /// Gives the position on the tape.
    pub(super) fn position(self) -> u32 {
        self.at
    }

    /// Gives the node at another position of the same tape.
    pub(super) fn at(self, position: u32) -> Option<Self> {
        self.tape.node(position as usize)
    }

    /// Tells where it begins.
    pub(crate) fn place(self) -> Place {
        self.raw.place
    }

    /// Tells what it is.
    pub(crate) fn kind(self) -> Kind {
        self.raw.kind
    }

    /// Gives a scalar's text; empty for lists and maps.
    pub(crate) fn text(self) -> &'t str {
        &self.raw.text
    }

    /// Tells whether nothing was written: an empty scalar without quotes, or one of YAML's words for it.
    pub(crate) fn is_null(self) -> bool {
        self.raw.kind == Kind::Plain
            && matches!(&*self.raw.text, "" | "~" | "null" | "Null" | "NULL")
    }

    /// Tells whether it is a scalar that says something.
    pub(crate) fn is_scalar(self) -> bool {
        matches!(self.raw.kind, Kind::Plain | Kind::Quoted) && !self.is_null()
    }

    /// Iterates over the direct children: items of a list; keys and values of a map in turn.
    fn children(self) -> impl Iterator<Item = Self> {
        let mut next = self.at as usize + 1;
        let end = self.raw.end as usize;
        std::iter::from_fn(move || {
            let child = (next < end).then(|| self.tape.node(next))??;
            next = child.raw.end as usize;
            Some(child)
        })
    }

    /// Iterates over the items of a list; nothing for anything else.
    pub(crate) fn items(self) -> impl Iterator<Item = Self> {
        let is_list = self.raw.kind == Kind::List;
        self.children().take_while(move |_| is_list)
    }

    /// Iterates over the keys and values of a map, in the order written; nothing for anything else.
    pub(crate) fn entries(self) -> impl Iterator<Item = (Self, Self)> {
        let is_map = self.raw.kind == Kind::Map;
        let mut children = self.children();
        std::iter::from_fn(move || {
            let key = is_map.then(|| children.next())??;
            Some((key, children.next()?))
        })
    }

    /// Appends a form that is equal for two subtrees exactly if they were written alike but for spaces, quotes' kind and
    /// place.
    pub(crate) fn write_form(self, form: &mut Vec<u8>) {
        let subtree = self.tape.raws.get(self.at as usize..self.raw.end as usize);
        for (at, raw) in (self.at..).zip(subtree.unwrap_or_default()) {
            let (mark, size) = match raw.kind {
                Kind::Plain => (0, raw.text.len()),
                Kind::Quoted => (1, raw.text.len()),
                Kind::List => (2, (raw.end - at) as usize),
                Kind::Map => (3, (raw.end - at) as usize),
            };
            form.push(mark);
            form.extend_from_slice(&size.to_le_bytes());
            form.extend_from_slice(raw.text.as_bytes());
        }
    }

    /// Writes the path of keys that leads here. Walks down from the root: for faults only.
    pub(crate) fn path(self) -> String {
        let mut path = match self.tape.root {
            Root::File => String::new(),
            Root::Service(index) => format!("services[{index}]"),
        };
        let holds = |node: Self| (node.at..node.raw.end.max(node.at + 1)).contains(&self.at);
        let mut above = self.tape.root();
        while let Some(node) = above.filter(|node| node.at != self.at) {
            above = if node.raw.kind == Kind::List {
                let found = node.items().enumerate().find(|(_, item)| holds(*item));
                if let Some((index, _)) = found {
                    let _ = write!(path, "[{index}]");
                }
                found.map(|(_, item)| item)
            } else {
                let found = node
                    .entries()
                    .find(|(key, value)| key.at == self.at || holds(*value));
                if let Some((key, _)) = found {
                    let dot = if path.is_empty() { "" } else { "." };
                    let _ = write!(path, "{dot}{}", key.text());
                }
                found.map(|(_, value)| value).filter(|value| holds(*value))
            };
        }
        path
    }
}

/// Shown by tests: places, kinds and texts of the whole subtree.
#[cfg(test)]
impl Tape<'_> {
    /// Lists all nodes as plain data, for comparing lanes.
    pub(crate) fn dump(&self) -> Vec<(Kind, String, Place, u32)> {
        let one = |raw: &Raw<'_>| (raw.kind, raw.text.to_string(), raw.place, raw.end);
        self.raws.iter().map(one).collect()
    }
}
