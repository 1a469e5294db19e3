//! Which endpoints a client should get.
//!
//! This room knows policies, the fixed order of their steps (DESIGN section 4), and how a place ranks clusters. It does not
//! know names, packets or probes: places come in as classes, states as [`States`]. `select` decides and explains at once.
//! Called by `snapshot` (compile, classes) and `answer` (select).

mod answers;
mod classes;
mod decision;
mod fence;
mod maps;
mod policy;
#[cfg(test)]
mod properties;
mod proximity;
mod ranking;
#[cfg(test)]
mod reference;
mod selector;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tiers;
mod usable;
mod walk;
mod weight;

pub use classes::{Class, ClassId, Classes};
pub use decision::{Basis, Chosen, Decision, Level, Reason};
pub use policy::{Ask, ClientView, Family, Policy, ServiceView, States};
pub use ranking::{Ranked, Ranking};
