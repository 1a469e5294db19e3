//! `zones[].acme`.

use super::read;
use crate::config::faults::Report;
use crate::config::spec::{Node, fields, v1};
use crate::model::{LowerName, NameRef};
use crate::zone::{AcmeTarget, NAME_MARK, challenge_owner};

/// Checks `acme` of a zone, also of one whose name could not be read.
pub(super) fn read(
    node: Option<Node<'_, '_>>,
    apex: Option<&LowerName>,
    report: &mut Report,
) -> Option<AcmeTarget> {
    let fields = fields(node?, &v1::ACME, report)?;
    let node = fields.get("cname")?;
    let text = read::text(node, report)?;
    let Some(below) = text.strip_prefix(NAME_MARK) else {
        report.fault(
            node,
            format_args!(
                "`{text}` does not begin with `{NAME_MARK}`: write it as in \"{{name}}.acme.example.net.\""
            ),
        );
        return None;
    };
    let below = match below.parse::<LowerName>() {
        Ok(below) => below,
        Err(error) => {
            report.fault(node, format_args!("`{below}` is no name: {error}"));
            return None;
        }
    };
    if let Some(why) = below
        .as_ref()
        .host_fault()
        .filter(|_| !below.as_ref().is_root())
    {
        report.fault(node, format_args!("`{below}`: {why}"));
        return None;
    }
    match AcmeTarget::new(below, apex.map_or(NameRef::ROOT, LowerName::as_ref)) {
        Ok(target) => Some(target),
        Err(error) => {
            report.fault(node, format_args!("`{text}` {error}"));
            None
        }
    }
}

/// Warns of a hostname of a service whose challenge gets no CNAME: too long.
pub(super) fn warn_of_long(
    (node, name): (Node<'_, '_>, NameRef<'_>),
    (target, apex): (&AcmeTarget, NameRef<'_>),
    report: &mut Report,
) {
    let covered = name.parent().filter(|_| name.is_wildcard()).unwrap_or(name);
    if challenge_owner(name).is_none() || target.labels(covered, apex).is_none() {
        report.warn(
            node,
            format_args!(
                "`_acme-challenge` of `{name}` gets no CNAME: its target would have more than 255 octets"
            ),
        );
    }
}
