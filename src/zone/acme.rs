//! Where certificate authorities look for challenge of a name (RFC 8555 section 8.4), and where a zone sends them.

use crate::model::{LowerName, NameRef};

/// The label before a name whose challenge is looked for.
pub const CHALLENGE_LABEL: &[u8] = b"_acme-challenge";

/// What `zones[].acme.cname` begins with: the labels of the steered name between the challenge's label and the zone's apex.
pub const NAME_MARK: &str = "{name}.";

/// Longest name, octets.
const MAX_NAME: usize = 255;
/// Octets of the longest label, its length included: what a target must leave room for.
const LABEL: usize = 64;

/// Why a target was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcmeError {
    /// No label of 63 octets fits before it.
    #[error("is so long that no label of 63 octets fits before it: a name has at most 255 octets")]
    Long,
    /// It is the zone's apex, and so every target the steered name itself.
    #[error(
        "would be the steered name itself: name a zone that can be written to, such as `{{name}}.acme.example.net.`"
    )]
    Itself,
    /// It is the root.
    #[error("needs a name behind `{{name}}.`")]
    Root,
}

/// Where a zone sends those who look for the challenge of its steered names: below one name, each with the labels that stand before
/// the zone's apex, as they are. At most one label of them all is empty: that of the apex itself, which is sent to the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeTarget {
    below: LowerName,
}

impl AcmeTarget {
    /// Sends the names of a zone below this one.
    ///
    /// # Errors
    /// When no name of the zone could be sent there.
    pub fn new(below: LowerName, apex: NameRef<'_>) -> Result<Self, AcmeError> {
        if below.as_ref().is_root() {
            Err(AcmeError::Root)
        } else if below.as_wire().len() + LABEL > MAX_NAME {
            Err(AcmeError::Long)
        } else if below.as_ref() == apex {
            Err(AcmeError::Itself)
        } else {
            Ok(Self { below })
        }
    }

    /// Gives what all targets lie below.
    #[must_use]
    pub fn below(&self) -> NameRef<'_> {
        self.below.as_ref()
    }

    /// Gives the labels, in wire form without the root, that stand before [`Self::below`] for a name of the zone with this apex;
    /// `None` where the name lies elsewhere, or the target had more than 255 octets.
    #[must_use]
    pub fn labels<'n>(&self, name: NameRef<'n>, apex: NameRef<'_>) -> Option<&'n [u8]> {
        let length = name.as_wire().len().checked_sub(apex.as_wire().len())?;
        let fits = length + self.below.as_wire().len() <= MAX_NAME;
        let labels = name.as_wire().get(..length)?;
        (fits && name.is_at_or_below(apex)).then_some(labels)
    }
}

/// Gives the owner name where the challenge of a name is looked for: that of `*.x` at the one of `x`. `None` above 255 octets.
#[must_use]
pub fn challenge_owner(name: NameRef<'_>) -> Option<LowerName> {
    let name = match name.parent() {
        Some(parent) if name.is_wildcard() => parent,
        _ => name,
    };
    name.to_lower().prepend(CHALLENGE_LABEL).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> LowerName {
        text.parse().unwrap()
    }

    #[test]
    fn targets_keep_the_labels_before_the_apex() {
        let apex = name("svc.example.com");
        let target = AcmeTarget::new(name("acme.example.net."), apex.as_ref()).unwrap();
        for (of, labels) in [
            ("web.shop.svc.example.com", Some(&b"\x03web\x04shop"[..])),
            ("a\\.b.svc.example.com", Some(b"\x03a.b")),
            ("svc.example.com", Some(b"")),
            ("example.com", None),
            ("other.example.com", None),
            ("xsvc.example.com", None),
        ] {
            let of = name(of);
            assert_eq!(target.labels(of.as_ref(), apex.as_ref()), labels, "{of}");
        }
    }

    #[test]
    fn names_whose_target_is_too_long_have_none() {
        let apex = name("x");
        let below = format!("{}.{}", "b".repeat(63), "c".repeat(62));
        let target = AcmeTarget::new(name(&below), apex.as_ref()).unwrap();
        // 64 + 63 + 1 octets below; 127 are left.
        for (length, fits) in [(62, true), (63, false)] {
            let of = name(&format!("{}.{}.x", "d".repeat(63), "e".repeat(length)));
            assert_eq!(
                target.labels(of.as_ref(), apex.as_ref()).is_some(),
                fits,
                "{length}"
            );
        }
    }

    #[test]
    fn targets_that_no_name_could_have_are_refused() {
        let apex = name("svc.example.com");
        let long = |last: usize| {
            let label = "a".repeat(63);
            name(&format!("{label}.{label}.{}", "b".repeat(last)))
        };
        for (below, wanted) in [
            (name("."), Some(AcmeError::Root)),
            (name("svc.example.com."), Some(AcmeError::Itself)),
            (name("acme.svc.example.com."), None),
            (long(61), None),
            (long(62), Some(AcmeError::Long)),
        ] {
            let found = AcmeTarget::new(below.clone(), apex.as_ref()).err();
            assert_eq!(found, wanted, "{below}");
        }
    }

    #[test]
    fn the_challenge_of_a_wildcard_is_that_of_what_it_covers() {
        for (of, owner) in [
            ("web.x", "_acme-challenge.web.x"),
            ("*.x", "_acme-challenge.x"),
            ("*", "_acme-challenge"),
            ("WWW.X", "_acme-challenge.www.x"),
        ] {
            assert_eq!(challenge_owner(name(of).as_ref()), Some(name(owner)));
        }
        let long = name(&["a".repeat(60).as_str(); 4].join("."));
        assert_eq!(challenge_owner(long.as_ref()), None);
    }
}
