//! What goes wrong with an API server, in words that may be shown.
//!
//! Whatever a server, a library or a file says passes through [`Masks`]: one line, 256 octets at most, and none of the secrets
//! that the request was made with, which a server may well send back.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::source::kubernetes::words::is_strange;

/// Octets of a text that is shown.
const SHOWN: usize = 256;
/// Octets of a text that are looked at for what looks like a secret: what is shown lies within.
const SOUGHT: usize = 4096;
/// What stands for a secret.
const MASK: &str = "***";

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source::kubernetes) enum FaultKind {
    /// No connection, no answer in time, or a connection that broke.
    Unreachable,
    /// What the configuration or a file of it says cannot be used.
    Unusable,
    /// The credentials are not accepted (401).
    Unauthorized,
    /// They do not suffice (403).
    Forbidden,
    /// There is no such thing (404).
    Missing,
    /// What was asked from is too old (410, as a status of HTTP or in an event).
    Gone,
    /// Any other status.
    Answered(u16),
    /// More octets than a body may have.
    TooLarge,
    /// More octets than an event may have.
    TooLong,
    /// Not what was asked for: no JSON, or no list.
    Malformed,
    /// A list that did not come to its end in time.
    Unfinished,
}

/// What went wrong, and the words for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::source::kubernetes) struct Fault {
    /// What.
    pub(in crate::source::kubernetes) kind: FaultKind,
    /// Lower-case, no period, one line, no secret.
    pub(in crate::source::kubernetes) text: Box<str>,
}

impl Fault {
    /// Makes one in words of our own.
    pub(in crate::source::kubernetes) fn new(kind: FaultKind, text: &str) -> Self {
        let text = Masks::default().said(text);
        Self { kind, text }
    }

    /// Makes one of a status of HTTP, or of an event, and what came with it.
    pub(super) fn of_status(status: u16, text: &str, masks: &Masks) -> Self {
        let kind = match status {
            401 => FaultKind::Unauthorized,
            403 => FaultKind::Forbidden,
            404 => FaultKind::Missing,
            410 => FaultKind::Gone,
            other => FaultKind::Answered(other),
        };
        let text = if text.is_empty() {
            format!("status {status}")
        } else {
            format!("status {status}: {text}")
        };
        let text = masks.said(&text);
        Self { kind, text }
    }

    /// Makes one of an error of the connection, with all that lies below it.
    pub(super) fn of_connection(error: &(dyn Error + 'static), masks: &Masks) -> Self {
        // The outermost error only says that there is one below.
        let text = chain(error.source().unwrap_or(error));
        let text = masks.said(&text);
        Self {
            kind: FaultKind::Unreachable,
            text,
        }
    }
}

/// Puts the words of an error and of those below it in a row, none twice.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(below) = next {
        let said = below.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        next = below.source();
    }
    text
}

/// The secrets that a request was made with. They are never shown, not even by `Debug`.
#[derive(Clone, Default)]
pub(super) struct Masks(Arc<[Box<str>]>);

impl fmt::Debug for Masks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Masks({})", self.0.len())
    }
}

impl Masks {
    /// Takes the secrets; empty ones do not count.
    pub(super) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<Box<str>> = secrets
            .into_iter()
            .filter(|secret| !secret.is_empty())
            .map(Into::into)
            .collect();
        // A secret may be a part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets.into())
    }

    /// Adds one.
    pub(super) fn with(&self, secret: &str) -> Self {
        let all = self.0.iter().map(|known| known.to_string());
        Self::new(all.chain([secret.to_owned()]))
    }

    /// Makes a text that may be shown: without these secrets and whatever looks like one, in one line, cut to 256 octets.
    pub(super) fn said(&self, text: &str) -> Box<str> {
        let mut text = text.to_owned();
        for secret in self.0.iter() {
            if text.contains(&**secret) {
                text = text.replace(&**secret, MASK);
            }
        }
        // A server may say mebibytes, and whatever looks like a secret is sought in every word.
        text.truncate(text.floor_char_boundary(SOUGHT));
        let mut line = String::new();
        let mut is_credential = false;
        for word in text.split(is_space).filter(|word| !word.is_empty()) {
            if !line.is_empty() {
                line.push(' ');
            }
            if is_credential {
                line.push_str(MASK);
            } else {
                line.push_str(&without_look_alikes(word));
            }
            is_credential = ["bearer", "basic"]
                .iter()
                .any(|scheme| word.trim_start_matches('"').eq_ignore_ascii_case(scheme));
            if line.len() > SHOWN {
                break;
            }
        }
        if line.len() > SHOWN {
            line.truncate(line.floor_char_boundary(SHOWN - '…'.len_utf8()));
            line.truncate(line.trim_end().len());
            line.push('…');
        }
        line.into()
    }
}

/// Tells whether a character is none that is seen in a line.
fn is_space(character: char) -> bool {
    character.is_whitespace() || is_strange(character)
}

/// Masks user and password of a URL, and JSON web tokens (RFC 7519: base64url of `{"`, dots between).
fn without_look_alikes(word: &str) -> String {
    let mut word = word.to_owned();
    if let Some((scheme, rest)) = word.split_once("://") {
        let authority = rest.split('/').next().unwrap_or_default();
        if let Some((user, _)) = authority.rsplit_once('@') {
            let rest = rest.get(user.len()..).unwrap_or_default();
            word = format!("{scheme}://{MASK}{rest}");
        }
    }
    let mut masked = String::new();
    let mut rest = word.as_str();
    while let Some((before, token)) = rest.split_once("eyJ") {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '=');
        masked.push_str(before);
        masked.push_str(MASK);
        rest = token.trim_start_matches(is_part);
    }
    masked.push_str(rest);
    masked
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;

    #[test]
    fn no_secret_is_shown() {
        let masks = Masks::new([
            "s3cret".to_owned(),
            "s3cret-and-more".to_owned(),
            String::new(),
        ]);
        let masks = masks.with("pa ss");
        for (text, said) in [
            ("plain words stay", "plain words stay"),
            ("token s3cret-and-more is bad", "token *** is bad"),
            ("xs3cretx", "x***x"),
            ("password pa ss!", "password ***!"),
            ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
            ("\"basic dXNlcjpwYXNz\"", "\"basic ***"),
            (
                "proxy http://user:word@host:1/path",
                "proxy http://***@host:1/path",
            ),
            ("https://host/a@b", "https://host/a@b"),
            ("got eyJhbGciOi.eyJpc3Mi.c2ln, no", "got ***, no"),
            ("two\nlines\r\n\tand\u{202e}more", "two lines and more"),
        ] {
            assert_eq!(&*masks.said(text), said);
        }
        assert_eq!(format!("{masks:?}"), "Masks(3)");
    }

    #[test]
    fn texts_are_cut_between_characters() {
        let masks = Masks::default();
        let long = masks.said(&"ä".repeat(10_000));
        assert!(long.len() <= 256 && long.ends_with("ä…"), "{long}");
        let words = masks.said(&"word ".repeat(10_000));
        assert!(words.len() <= 256 && words.ends_with('…'), "{words}");
        let whole = "x".repeat(256);
        assert_eq!(*masks.said(&whole), whole);
    }

    #[test]
    fn a_text_full_of_look_alikes_costs_little_more_than_its_reading() {
        let text = "eyJ!".repeat(1 << 20);
        let begun = Instant::now();
        let said = Masks::new(["s3cret".to_owned()]).said(&text);
        assert!(begun.elapsed() < Duration::from_secs(2));
        assert_eq!(&*said, format!("{}*…", "***!".repeat(63)));
    }

    #[test]
    fn a_secret_at_the_cut_does_not_show_its_head() {
        let secret = "0123456789".repeat(40);
        let text = format!("{} {secret}", "x".repeat(200));
        let said = Masks::new([secret]).said(&text);
        assert!(said.ends_with(MASK), "{said}");
    }

    #[test]
    fn statuses_and_errors_become_kinds() {
        let masks = Masks::new(["s3cret".to_owned()]);
        for (status, kind) in [
            (401, FaultKind::Unauthorized),
            (403, FaultKind::Forbidden),
            (404, FaultKind::Missing),
            (410, FaultKind::Gone),
            (500, FaultKind::Answered(500)),
        ] {
            let fault = Fault::of_status(status, "you sent s3cret", &masks);
            assert_eq!(fault.kind, kind);
            assert_eq!(&*fault.text, format!("status {status}: you sent ***"));
        }
        assert_eq!(&*Fault::of_status(502, "", &masks).text, "status 502");
        let error = io::Error::other(io::Error::other("s3cret is refused"));
        let fault = Fault::of_connection(&error, &masks);
        assert_eq!(fault.kind, FaultKind::Unreachable);
        assert_eq!(&*fault.text, "*** is refused");
    }
}
