//! The text of `/metrics`, made at each scrape. `docs/metrics.md` lists every family; a test compares the two.
//!
//! Labels come from closed sets and from the configuration: never a client, never a query name. Families by zone, cluster,
//! country and file are bounded, so that a node has at most 2,000 series whatever it serves.

mod answering;
mod hand;
mod members;
mod outside;
mod rows;
mod text;
mod world;
mod write_back;

pub(super) use text::{Kind, Text};

use super::view::View;

/// What stands for all that are not shown one by one. No zone and no cluster can have this name.
const OTHERS: &str = "(other)";

/// Makes the whole text.
pub(super) fn render(view: &View) -> String {
    let sources = view.sources_of_node();
    let mut text = Text::new();
    let version = env!("CARGO_PKG_VERSION");
    text.family("build_info", Kind::Gauge, "The version that runs.")
        .value(&[("version", version)], 1);
    answering::write(&mut text, sources);
    world::write(&mut text, sources);
    outside::write(&mut text, sources);
    hand::write(&mut text, view);
    members::write(&mut text, view);
    write_back::write(&mut text, view);
    text.finish()
}
