//! Groups of countries that laws speak of.

use crate::model::{CountryCode, Groups};

/// The member states of the European Union since 2020-02-01.
const EU: &str = "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK";
/// The states of EFTA that are in the European Economic Area.
const EEA_BESIDE_EU: &str = "IS LI NO";
/// The state of EFTA that is not.
const EFTA_BESIDE_EEA: &str = "CH";
/// Parts of member states that have a country code of their own and in which the law of the Union applies (TFEU article 355
/// and annex II): Åland; Guadeloupe, French Guiana, Martinique, Mayotte, Réunion and Saint Martin.
const EU_TERRITORIES: &str = "AX GF GP MF MQ RE YT";

/// Gives the built-in groups: `EU-27`, `EEA`, `EFTA`, `GDPR`.
///
/// `GDPR` is where Regulation (EU) 2016/679 itself applies: the EEA and the territories of member states that GeoIP data
/// gives codes of their own. The United Kingdom and Switzerland have laws of their own and are not in it; an operator who
/// wants them in defines a group.
#[must_use]
pub fn built_in_groups() -> Groups {
    let groups = [
        ("EU-27", vec![EU]),
        ("EEA", vec![EU, EEA_BESIDE_EU]),
        ("EFTA", vec![EEA_BESIDE_EU, EFTA_BESIDE_EEA]),
        ("GDPR", vec![EU, EEA_BESIDE_EU, EU_TERRITORIES]),
    ];
    Groups(
        groups
            .into_iter()
            .map(|(name, lists)| (name.into(), codes(&lists)))
            .collect(),
    )
}

/// Parses and sorts lists of codes.
fn codes(lists: &[&str]) -> Vec<CountryCode> {
    let mut codes: Vec<CountryCode> = lists
        .iter()
        .flat_map(|list| list.split(' '))
        .map(|code| code.parse().expect("the lists above are country codes"))
        .collect();
    codes.sort_unstable();
    codes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geo::country;
    use crate::geo::testing::code;

    #[test]
    fn groups_have_their_members_once_each() {
        let groups = built_in_groups();
        for (name, count) in [("EU-27", 27), ("EEA", 30), ("EFTA", 4), ("GDPR", 37)] {
            let members = &groups.0[name];
            assert_eq!(members.len(), count, "{name}");
            assert!(members.is_sorted_by(|a, b| a < b), "{name}");
            assert!(
                members.iter().all(|&member| country(member).is_some()),
                "{name}"
            );
        }
        assert_eq!(groups.0.len(), 4);
    }

    #[test]
    fn membership_of_disputed_cases() {
        let groups = built_in_groups();
        for (group, member, inside) in [
            ("EU-27", "DE", true),
            ("EU-27", "GB", false),
            ("EU-27", "GP", false),
            ("EEA", "NO", true),
            ("EEA", "CH", false),
            ("EFTA", "CH", true),
            ("EFTA", "SE", false),
            ("GDPR", "IS", true),
            ("GDPR", "RE", true),
            ("GDPR", "GB", false),
            ("GDPR", "GL", false),
        ] {
            assert_eq!(
                groups.contains(group, code(member)),
                inside,
                "{group} {member}"
            );
        }
    }
}
