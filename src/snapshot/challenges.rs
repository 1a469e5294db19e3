//! Challenges of certificate authorities (RFC 8555 section 8.4), served by this node itself: a few at a time, beside the table of names.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foldhash::fast::RandomState;

use crate::model::{NameRef, RecordType, Ttl};
use crate::zone::{Rrset, challenge_owner};

/// TTL of challenges: an authority asks a few times within a minute, and none is worth keeping.
pub const CHALLENGE_TTL: Ttl = Ttl::BRIEF;

/// Most challenges at one owner name: twice what a node takes, for two nodes may take some at the same moment.
pub const CHALLENGES: usize = 16;

/// What stands at one owner name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    /// Each as the rdata of TXT, in the order given.
    rdata: Vec<Box<[u8]>>,
    /// All of them.
    rrset: Rrset,
}

/// The challenges, by owner name. Made anew when one comes or goes; nothing else is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenges {
    by_owner: HashMap<Box<[u8]>, Kept, RandomState>,
}

impl Challenges {
    /// Takes challenges: the name to be proved, and the token. Of more than [`CHALLENGES`] for one owner the first are served. A token is
    /// 1 to 255 octets; others are left out.
    #[must_use]
    pub fn of<'a>(challenges: impl IntoIterator<Item = (NameRef<'a>, &'a str)>) -> Self {
        let mut all = Self::default();
        for (name, token) in challenges {
            let Some((owner, rdata)) = challenge_owner(name).zip(txt(token)) else {
                continue;
            };
            all.add(owner.as_wire().into(), rdata);
        }
        all
    }

    /// Adds one.
    fn add(&mut self, owner: Box<[u8]>, rdata: Box<[u8]>) {
        let rrset = |all: &[Box<[u8]>]| Rrset::new(RecordType::TXT, CHALLENGE_TTL, all);
        match self.by_owner.entry(owner) {
            Entry::Vacant(place) => {
                let rdata = vec![rdata];
                if let Some(rrset) = rrset(&rdata) {
                    place.insert(Kept { rdata, rrset });
                }
            }
            Entry::Occupied(mut held) => {
                let held = held.get_mut();
                if held.rdata.len() < CHALLENGES && !held.rdata.contains(&rdata) {
                    held.rdata.push(rdata);
                    if let Some(rrset) = rrset(&held.rdata) {
                        held.rrset = rrset;
                    }
                }
            }
        }
    }

    /// Gives what stands at an owner name, in lower case.
    #[must_use]
    pub fn get(&self, owner: NameRef<'_>) -> Option<&Rrset> {
        let held = self.by_owner.get(owner.as_wire())?;
        Some(&held.rrset)
    }

    /// Tells whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_owner.is_empty()
    }
}

/// Writes a token as the rdata of TXT: one string (RFC 1035 section 3.3.14).
fn txt(token: &str) -> Option<Box<[u8]>> {
    let length = u8::try_from(token.len())
        .ok()
        .filter(|&length| length > 0)?;
    let mut rdata = Vec::with_capacity(token.len() + 1);
    rdata.push(length);
    rdata.extend_from_slice(token.as_bytes());
    Some(rdata.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LowerName;

    #[test]
    fn challenges_of_one_owner_stand_together_once_each_and_bounded() {
        let name = |text: &str| text.parse::<LowerName>().unwrap();
        let (web, wild, other) = (name("web.x"), name("*.web.x"), name("y"));
        let long = "a".repeat(256);
        let mut challenges = vec![
            (web.as_ref(), "one"),
            (wild.as_ref(), "two"),
            (web.as_ref(), "one"),
            (other.as_ref(), ""),
            (other.as_ref(), &*long),
            (other.as_ref(), &long[1..]),
        ];
        let made = Challenges::of(challenges.iter().copied());
        let at = |made: &Challenges, owner: &str| -> Vec<Vec<u8>> {
            let rrset = made.get(name(owner).as_ref()).unwrap();
            rrset.iter().map(|rdata| rdata.wire().to_vec()).collect()
        };
        assert_eq!(
            at(&made, "_acme-challenge.web.x"),
            [b"\x03one".to_vec(), b"\x03two".to_vec()]
        );
        assert_eq!(at(&made, "_acme-challenge.y")[0].len(), 256);
        assert!(made.get(web.as_ref()).is_none() && !made.is_empty());
        let many: Vec<String> = (0..CHALLENGES + 5).map(|at| at.to_string()).collect();
        challenges.extend(many.iter().map(|token| (web.as_ref(), token.as_str())));
        let made = Challenges::of(challenges);
        assert_eq!(at(&made, "_acme-challenge.web.x").len(), CHALLENGES);
    }
}
