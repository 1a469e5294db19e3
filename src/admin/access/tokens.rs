//! Tokens: files hold their hashes, and nobody holds the tokens themselves but those who use them.
//!
//! A file has lines `sha256:<64 hex digits>`, at most [`PER_FILE`] of them, so that a token can be changed without a gap:
//! add the new hash, hand the new token out, remove the old hash. `#` begins a comment. Files are read anew every
//! two seconds: a hash that is gone from a file opens nothing a few seconds later.
//!
//! What cannot be understood gives access to nobody, and takes it from nobody else: a broken line is refused with its number,
//! the other lines hold. A file that is gone, forbidden to read, or too large opens nothing. Only where this node itself lacks
//! something for a while (file handles, memory, a disk that fails) its last content holds on.

use std::fmt;
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use crate::admin::config::TokenFile;
use crate::admin::identity::Role;
use crate::model::Rejection;
use crate::source::read_bounded;

/// Tokens a file: the one in use and the next are two.
const PER_FILE: usize = 8;
/// Largest file in octets: [`PER_FILE`] lines and plenty of comments.
const MAX_FILE: u64 = 16 << 10;
/// How a token begins, so that people and scanners for leaked secrets know one when they see it.
const PREFIX: &str = "mrd_";
/// How a line of a file begins.
const LINE: &str = "sha256:";

/// The SHA-256 of a token. Not shown: it would let others tell whether two files hold the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TokenHash([u8; 32]);

impl TokenHash {
    /// Hashes a token as presented.
    pub(super) fn of(token: &str) -> Self {
        let mut octets = [0; 32];
        octets.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        Self(octets)
    }

    /// Reads 64 hexadecimal digits.
    fn parse(text: &str) -> Option<Self> {
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let mut octets = [0; 32];
        if pairs.len() != octets.len() || !rest.is_empty() {
            return None;
        }
        for (octet, pair) in octets.iter_mut().zip(pairs) {
            let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
            *octet = u8::try_from(high? << 4 | low?).ok()?;
        }
        Some(Self(octets))
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash")
    }
}

/// Writes octets as hexadecimal digits.
pub(super) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// A fresh token.
#[derive(Clone)]
pub struct FreshToken {
    /// For the one who will use it; nobody else ever sees it.
    pub token: String,
    /// The line for the file.
    pub line: String,
}

impl fmt::Debug for FreshToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FreshToken")
    }
}

impl FreshToken {
    /// Makes one out of 256 random bits; `None` when the system gives none.
    #[must_use]
    pub fn make() -> Option<Self> {
        let token = format!("{PREFIX}{}", random()?);
        let line = format!("{LINE}{}", hex(&TokenHash::of(&token).0));
        Some(Self { token, line })
    }
}

/// Gives 256 random bits as hexadecimal digits.
pub(super) fn random() -> Option<String> {
    let mut octets = [0; 32];
    SystemRandom::new().fill(&mut octets).ok()?;
    Some(hex(&octets))
}

/// A token that opens something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    /// Its name in the configuration.
    pub(super) name: Arc<str>,
    /// What it may.
    pub(super) role: Role,
    pub(super) hash: TokenHash,
}

/// All tokens that open something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    held: Vec<Held>,
}

impl Tokens {
    /// Reads all files. `former` is what holds on where this node lacked something.
    pub(super) fn read(files: &[TokenFile], former: &Self) -> (Self, Vec<Rejection>) {
        let (mut tokens, mut rejections) = (Self::default(), Vec::new());
        for file in files {
            let hashes = match read_bounded(&file.path, MAX_FILE) {
                Ok(octets) => parse(&octets, &file.path.display().to_string(), &mut rejections),
                Err(error) => {
                    rejections.push(Rejection {
                        source: file.path.display().to_string(),
                        place: String::new(),
                        reason: format!("cannot be used as tokens: {}", error.reason()),
                    });
                    if error.may_pass() {
                        former.of(&file.name)
                    } else {
                        Vec::new()
                    }
                }
            };
            tokens.held.extend(hashes.into_iter().map(|hash| Held {
                name: file.name.as_str().into(),
                role: file.role,
                hash,
            }));
        }
        (tokens, rejections)
    }

    /// Counts them.
    pub(super) fn count(&self) -> usize {
        self.held.len()
    }

    /// Lists the hashes held under a name.
    fn of(&self, name: &str) -> Vec<TokenHash> {
        let own = self.held.iter().filter(|held| &*held.name == name);
        own.map(|held| held.hash).collect()
    }

    /// Finds the token with this hash. All are compared in full, whichever it is: time tells nothing.
    pub(super) fn find(&self, hash: &TokenHash) -> Option<&Held> {
        let mut found = u32::MAX;
        for (at, held) in (0_u32..).zip(&self.held) {
            let first = found.ct_eq(&u32::MAX);
            let same: Choice = held.hash.0.ct_eq(&hash.0);
            found.conditional_assign(&at, same & first);
        }
        self.held.get(usize::try_from(found).ok()?)
    }
}

/// Reads the lines of a file; those that are wrong are reported and left out.
fn parse(octets: &[u8], source: &str, rejections: &mut Vec<Rejection>) -> Vec<TokenHash> {
    let mut hashes = Vec::new();
    // What is no text has no good line either.
    let text = String::from_utf8_lossy(octets);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let hash = line.strip_prefix(LINE).and_then(TokenHash::parse);
        let reason = match hash {
            Some(hash) if hashes.len() < PER_FILE => {
                hashes.push(hash);
                continue;
            }
            Some(_) => format!("more than {PER_FILE} tokens; this one opens nothing"),
            // The line itself is never shown: it may be a secret.
            None => format!(
                "is no `{LINE}` and 64 hexadecimal digits. A token itself must not stand here: `meridian token` makes one and prints the line for this file, and `printf %s TOKEN | sha256sum` gives the digits of another"
            ),
        };
        rejections.push(Rejection {
            source: source.to_owned(),
            place: format!("line {number}"),
            reason,
        });
    }
    hashes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SHA-256 of `abc`, FIPS 180-2.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn read(text: &str) -> (Tokens, Vec<Rejection>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.token");
        std::fs::write(&path, text).unwrap();
        Tokens::read(&[file("a", &path, Role::Operator)], &Tokens::default())
    }

    fn file(name: &str, path: &std::path::Path, role: Role) -> TokenFile {
        TokenFile {
            name: name.to_owned(),
            path: path.to_owned(),
            role,
        }
    }

    #[test]
    fn a_token_is_found_by_its_hash() {
        let other = "0".repeat(64);
        let text = format!(
            "# who\n\n sha256:{other} # old\nsha256:{}\n",
            ABC.to_uppercase()
        );
        let (tokens, rejections) = read(&text);
        assert_eq!(rejections, []);
        let held = tokens.find(&TokenHash::of("abc")).unwrap();
        assert_eq!((&*held.name, held.role), ("a", Role::Operator));
        for wrong in ["", "abd", "abc ", ABC] {
            assert_eq!(tokens.find(&TokenHash::of(wrong)), None, "{wrong}");
        }
        assert_eq!(Tokens::default().find(&TokenHash::of("abc")), None);
    }

    #[test]
    fn wrong_lines_are_refused_one_by_one_and_never_shown() {
        let text =
            format!("mrd_secret\nsha256:{ABC}\nsha256:12\nsha512:{ABC}\n\u{fffd}\nsha256:{ABC}0\n");
        let (tokens, rejections) = read(&text);
        assert!(tokens.find(&TokenHash::of("abc")).is_some());
        let places: Vec<&str> = rejections.iter().map(|one| one.place.as_str()).collect();
        assert_eq!(places, ["line 1", "line 3", "line 4", "line 5", "line 6"]);
        let all = format!("{rejections:?}{tokens:?}");
        assert!(all.contains("meridian token"), "{all}");
        assert!(
            !all.contains("mrd_secret") && !all.contains("ba7816"),
            "{all}"
        );
    }

    #[test]
    fn at_most_eight_a_file() {
        let lines: Vec<String> = (0..9).map(|one| format!("sha256:{one:064x}")).collect();
        let (tokens, rejections) = read(&lines.join("\n"));
        assert_eq!((tokens.held.len(), rejections.len()), (8, 1));
        assert_eq!(rejections[0].place, "line 9");
        let (tokens, rejections) = read(&"#".repeat(20_000));
        assert_eq!((tokens.held.len(), rejections.len()), (0, 1));
        assert!(rejections[0].reason.contains("larger"), "{rejections:?}");
    }

    #[test]
    fn a_file_that_is_gone_opens_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.token");
        std::fs::write(&path, format!("sha256:{ABC}")).unwrap();
        let files = [file("a", &path, Role::Viewer)];
        let (tokens, _) = Tokens::read(&files, &Tokens::default());
        assert!(tokens.find(&TokenHash::of("abc")).is_some());
        std::fs::remove_file(&path).unwrap();
        let (after, rejections) = Tokens::read(&files, &tokens);
        assert_eq!((after, rejections.len()), (Tokens::default(), 1));
    }

    #[test]
    fn fresh_tokens_differ_and_fit_their_lines() {
        let (one, other) = (FreshToken::make().unwrap(), FreshToken::make().unwrap());
        assert_ne!(one.token, other.token);
        assert_eq!(one.token.len(), 4 + 64);
        let (tokens, rejections) = read(&one.line);
        assert_eq!(rejections, []);
        assert!(tokens.find(&TokenHash::of(&one.token)).is_some());
        assert!(tokens.find(&TokenHash::of(&other.token)).is_none());
        assert!(!format!("{one:?}").contains(&one.token));
    }
}
