//! Which endpoints a client should get.
//!
//! This room knows policies, the fixed order of their steps (DESIGN section 4), and how a place ranks clusters. It does not
//! know names, packets or probes: places come in as classes, states as [`States`]. `select` decides and explains at once.
//! Called by `snapshot` (compile, classes) and `answer` (select).
//!
//! Where the design leaves room: clusters that a matching map entry does not name come after those it names, nearest first, and
//! clusters that no tier names form one last tier, so that a name with an address always answers; whoever wants them never used
//! writes a fence. Under `weighted`, `roundRobin` and `all` a matching map entry says which clusters of a tier are drawn from
//! first; its order says nothing. Weight 0 means no answers while another endpoint of the tier can be used, however one steers.

mod answers;
mod classes;
mod decision;
mod fence;
mod maps;
mod named;
mod near;
mod policy;
mod proximity;
mod ranking;
mod select;
mod selector;
#[cfg(test)]
mod tests;
mod tiers;
mod usable;
mod walk;
mod weight;
mod words;

pub use classes::{Class, ClassId, Classes};
pub use decision::{Basis, Chosen, Decision, Level, Reason};
pub use policy::{Ask, ClientView, Family, Policy, ServiceView, States};
pub use ranking::{Ranked, Ranking};
pub use words::{Words, resolved};
