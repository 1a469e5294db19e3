//! Which names are ours: nobody else is asked for them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::LowerName;

/// Our zones, without what they delegate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnZones {
    /// The apexes.
    pub(super) apexes: Arc<[LowerName]>,
    /// Cuts below them: what lies there is somebody else's, but for zones of ours further down.
    pub(super) cuts: Arc<BTreeSet<LowerName>>,
}

impl OwnZones {
    /// Finds the zone of ours that a name lies in: the longest.
    pub(super) fn zone_of(&self, name: &LowerName) -> Option<&LowerName> {
        let name = name.as_ref();
        let holds = |zone: &&LowerName| name.is_at_or_below(zone.as_ref());
        let zone = self.apexes.iter().filter(holds);
        let zone = zone.max_by_key(|zone| zone.as_wire().len())?;
        let is_below = |cut: &LowerName| {
            cut != zone
                && cut.as_ref().is_at_or_below(zone.as_ref())
                && name.is_at_or_below(cut.as_ref())
        };
        (!self.cuts.iter().any(is_below)).then_some(zone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_delegated_is_not_ours_but_for_our_zones_below() {
        let name = |text: &str| text.parse::<LowerName>().unwrap();
        let own = OwnZones {
            apexes: [name("z"), name("t.s.z"), name("other")].into(),
            cuts: Arc::new([name("s.z"), name("u.t.s.z")].into()),
        };
        for (text, zone) in [
            ("z", Some("z")),
            ("www.z", Some("z")),
            ("xs.z", Some("z")),
            ("s.z", None),
            ("www.s.z", None),
            ("t.s.z", Some("t.s.z")),
            ("www.t.s.z", Some("t.s.z")),
            ("u.t.s.z", None),
            ("a.u.t.s.z", None),
            ("www.other", Some("other")),
            ("zz", None),
        ] {
            let found = own.zone_of(&name(text)).map(ToString::to_string);
            assert_eq!(found.as_deref(), zone, "{text}");
        }
    }
}
