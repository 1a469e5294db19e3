//! Which endpoints a client should get.
//!
//! This room knows policies, the fixed order of their steps (DESIGN section 4), and how a place ranks clusters. It does not
//! know names, packets or probes: places come in as classes, states as [`States`]. `select` decides and explains at once.
//! Called by `snapshot` (compile, classes) and `answer` (select).
//!
//! Where the design leaves room: clusters that a matching map entry does not name come after those it names, nearest first,
//! and clusters that no tier names form one last tier, so that a name with an address always answers; whoever wants them
//! never used writes a fence. `weighted`, `roundRobin` and `all` do not look at maps.

mod answers;
mod classes;
mod decision;
mod fence;
mod policy;
mod proximity;
mod select;
mod selectors;
mod usable;
mod weight;

#[cfg(test)]
mod tests;

pub use classes::{Class, ClassId, Classes, Ranked};
pub use decision::{Basis, Chosen, Decision, Level, Reason};
pub use policy::{Ask, ClientView, Family, Policy, ServiceView, States};
