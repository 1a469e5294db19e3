//! `node`.

use std::path::PathBuf;

use super::{Files, read};
use crate::config::checked::Node as Config;
use crate::config::faults::Report;
use crate::config::spec::{Kind, Node, fields, v1};
use crate::model::Coordinates;

/// Where state is kept when nothing is said.
const STATE_DIRECTORY: &str = "/var/lib/meridian";

/// Checks `node`; `name` is what it is called when the file does not say.
pub(super) fn read(
    node: Option<Node<'_, '_>>,
    name: &str,
    files: &Files,
    report: &mut Report,
) -> Config {
    let mut config = Config {
        name: name.to_owned(),
        location: None,
        state_directory: Some(PathBuf::from(STATE_DIRECTORY)),
    };
    let Some(fields) = node.and_then(|node| fields(node, &v1::NODE, report)) else {
        return config;
    };
    if let Some(name) = fields
        .get("name")
        .and_then(|node| read::label(node, report))
    {
        name.clone_into(&mut config.name);
    }
    if let Some(node) = fields.get("location") {
        config.location = point(node, report);
        report.warn(
            node,
            "has no effect yet: nothing is decided by where the node is",
        );
    }
    if let Some(node) = fields.get("stateDirectory") {
        let keeps_nothing = node.kind() == Kind::Quoted && node.text().is_empty();
        config.state_directory = if keeps_nothing {
            None
        } else {
            files.path(node, report)
        };
    }
    config
}

/// Checks a point, both of whose numbers are needed.
fn point(node: Node<'_, '_>, report: &mut Report) -> Option<Coordinates> {
    let fields = fields(node, &v1::POINT, report)?;
    let latitude = fields
        .get("latitude")
        .and_then(|node| read::number(node, -90.0..=90.0, report));
    let longitude = fields
        .get("longitude")
        .and_then(|node| read::number(node, -180.0..=180.0, report));
    Coordinates::new(latitude?, longitude?).ok()
}
