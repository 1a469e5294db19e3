//! SOA serials of zones whose file has none: the time of the newest change, kept on disk, never lower (DESIGN section 7).
//!
//! A serial stands for the content of a zone: the text of its file with what that includes, and the configuration. The same
//! content has the serial it had; any other content gets a greater one, in the arithmetic of RFC 1982. Health, drain and
//! forced verdicts are no part of it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::controller::{Kept, ZoneSerial, content_hash};
use crate::zone::ZoneSpec;

/// Half of all serials: what lies less than this ahead is greater (RFC 1982 section 3.2).
const HALF: u32 = 1 << 31;

/// Gives serials during one load.
#[derive(Debug)]
pub(super) struct Serials<'a> {
    /// Hash of the configuration's text.
    configuration: &'a str,
    /// What was given before.
    kept: &'a Kept,
    /// Unix time.
    now: u32,
    given: RefCell<BTreeMap<String, ZoneSerial>>,
}

impl<'a> Serials<'a> {
    /// Begins a load at Unix time `now`.
    pub(super) fn new(configuration: &'a str, kept: &'a Kept, now: u64) -> Self {
        Self {
            configuration,
            kept,
            // Serials are 32 bits wide and wrap in 2106.
            now: u32::try_from(now & u64::from(u32::MAX)).unwrap_or(u32::MAX),
            given: RefCell::default(),
        }
    }

    /// Gives the serial of a zone whose text is filled in.
    pub(super) fn of(&self, spec: &ZoneSpec) -> u32 {
        let apex = spec.apex.to_string();
        let content = self.content(spec);
        let serial = match self.kept.serials.get(&apex) {
            Some(known) if known.content == content => known.serial,
            Some(known) => after(known.serial, self.now),
            None if self.kept.serial == 0 => self.now.max(1),
            // It may have been served before under a serial that is forgotten: none was greater than this.
            None => after(self.kept.serial, self.now),
        };
        let zone = ZoneSerial { serial, content };
        self.given.borrow_mut().insert(apex, zone);
        serial
    }

    /// Gives what is to be kept: the serials of the zones of this load, and the greatest ever.
    pub(super) fn finish(self) -> (u32, BTreeMap<String, ZoneSerial>) {
        let serials = self.given.into_inner();
        let greatest =
            serials
                .values()
                .map(|zone| zone.serial)
                .fold(self.kept.serial, |greatest, serial| {
                    if greatest == 0 || is_greater(serial, greatest) {
                        serial
                    } else {
                        greatest
                    }
                });
        (greatest, serials)
    }

    /// Hashes what a zone consists of.
    fn content(&self, spec: &ZoneSpec) -> String {
        let mut parts = format!("{}\n", self.configuration);
        if let Some(file) = &spec.file {
            let own = (file.path.as_path(), &file.text);
            let includes = file.includes.iter();
            let includes = includes.map(|(path, text)| (path.as_path(), text));
            for (path, text) in std::iter::once(own).chain(includes) {
                parts.push_str(&format!("{}\n{}\n", path.display(), content_hash(text)));
            }
        }
        content_hash(parts.as_bytes())
    }
}

/// Gives the serial after another one: the time, where that is greater.
fn after(former: u32, now: u32) -> u32 {
    let next = if is_greater(now, former) {
        now
    } else {
        former.wrapping_add(1)
    };
    // 0 means none yet.
    next.max(1)
}

/// Compares two serials (RFC 1982 section 3.2).
fn is_greater(one: u32, other: u32) -> bool {
    (1..HALF).contains(&one.wrapping_sub(other))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::Ttl;
    use crate::zone::{NameForms, SoaTimers, ZoneFile};

    /// A zone with a file of this text, and one included.
    fn zone(apex: &str, text: &str, included: &str) -> ZoneSpec {
        let octets = |text: &str| Arc::from(text.as_bytes());
        let time = std::time::Duration::from_secs(1);
        ZoneSpec {
            apex: apex.parse().unwrap(),
            nameservers: Vec::new(),
            contact: None,
            soa: SoaTimers {
                ttl: Ttl::BRIEF,
                refresh: time,
                retry: time,
                expire: time,
            },
            ns_ttl: Ttl::BRIEF,
            ttl: Ttl::BRIEF,
            negative_ttl: Ttl::BRIEF,
            file: Some(ZoneFile {
                path: "z.zone".into(),
                text: octets(text),
                includes: vec![("i.zone".into(), octets(included))],
            }),
            serial: 0,
            acme: None,
            forms: NameForms::default(),
        }
    }

    /// Loads one zone and gives its serial and what is kept after it.
    fn load(configuration: &str, spec: &ZoneSpec, kept: &Kept, now: u64) -> (u32, Kept) {
        let serials = Serials::new(configuration, kept, now);
        let serial = serials.of(spec);
        let (greatest, serials) = serials.finish();
        let kept = Kept {
            serial: greatest,
            serials,
            ..Kept::default()
        };
        (serial, kept)
    }

    #[test]
    fn rfc1982_the_serial_moves_with_every_change_and_with_nothing_else() {
        let (first, kept) = load("c", &zone("z", "a", "i"), &Kept::default(), 100);
        assert_eq!(first, 100);
        for (what, configuration, spec, serial) in [
            ("nothing", "c", zone("z", "a", "i"), 100),
            ("the text", "c", zone("z", "b", "i"), 200),
            ("what is included", "c", zone("z", "a", "j"), 200),
            ("the configuration", "d", zone("z", "a", "i"), 200),
            ("another zone", "c", zone("y", "a", "i"), 200),
        ] {
            assert_eq!(load(configuration, &spec, &kept, 200).0, serial, "{what}");
            // A clock that was put back does not lower it.
            let expected = if serial == 100 { 100 } else { 101 };
            assert_eq!(load(configuration, &spec, &kept, 50).0, expected, "{what}");
        }
    }

    #[test]
    fn rfc1982_the_serial_wraps_and_a_zone_that_comes_again_is_not_older() {
        for (former, now, next) in [
            (u32::MAX, 5, 5),
            (u32::MAX, u32::MAX, 1),
            (u32::MAX - 1, u32::MAX - 1, u32::MAX),
            (5, u32::MAX, 6),
            (0x8000_0000, 1, 0x8000_0001),
            (0x8000_0002, 1, 1),
            (7, 7, 8),
        ] {
            assert_eq!(after(former, now), next, "{former} at {now}");
            assert!(is_greater(next, former), "{former} at {now}");
        }
        let (_, kept) = load("c", &zone("z", "a", "i"), &Kept::default(), 300);
        let (_, without) = load("d", &zone("y", "a", "i"), &kept, 200);
        assert_eq!(without.serial, 301);
        let (again, _) = load("e", &zone("z", "new", "i"), &without, 200);
        assert_eq!(again, 302);
    }
}
