//! `groups`.

use super::atlas::Atlas;
use super::read;
use crate::config::faults::Report;
use crate::config::spec::{Kind, Node};
use crate::geo::no_country;
use crate::model::{CountryCode, Groups};

/// Checks `groups` and adds them to the built-in ones.
pub(super) fn read(node: Option<Node<'_, '_>>, atlas: &Atlas, report: &mut Report) -> Groups {
    let mut groups = atlas.groups.clone();
    let Some(node) = node else { return groups };
    if node.kind() != Kind::Map {
        report.fault(
            node,
            "`groups` is a map, such as {nordics: [DK, FI, IS, NO, SE]}",
        );
        return groups;
    }
    for (key, value) in node.entries() {
        let name = key.text();
        let fits = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_' | b'.');
        if name.is_empty() || name.len() > 63 || !name.bytes().all(fits) {
            report.fault(
                key,
                format_args!(
                    "`{name}`: a group's name has 1 to 63 letters, digits, `-`, `_` and `.`"
                ),
            );
            continue;
        }
        let countries = read::list(value, report, |item, report| country(item, atlas, report));
        if atlas.groups.0.contains_key(name) {
            report.fault(
                key,
                format_args!(
                    "the group `{name}` is built in and cannot be changed; choose another name"
                ),
            );
        } else if groups.0.insert(name.into(), countries).is_some() {
            report.fault(key, format_args!("the group `{name}` is written twice"));
        }
        if value.kind() == Kind::List && value.items().next().is_none() {
            report.fault(value, format_args!("the group `{name}` has no country"));
        }
    }
    groups
}

/// Reads the code of a country that exists.
pub(super) fn country(
    node: Node<'_, '_>,
    atlas: &Atlas,
    report: &mut Report,
) -> Option<CountryCode> {
    let text = read::text(node, report)?;
    match text.parse::<CountryCode>() {
        Ok(code) => match unknown_country(code, atlas) {
            Some(why) => {
                report.fault(node, why);
                None
            }
            None => Some(code),
        },
        Err(error) => {
            report.fault(node, error);
            None
        }
    }
}

/// Tells why a well-formed code is no country: a rule for it would silently match nobody.
pub(super) fn unknown_country(code: CountryCode, atlas: &Atlas) -> Option<String> {
    (atlas.country)(code).is_none().then(|| no_country(code))
}
