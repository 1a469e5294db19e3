//! Everything a query may read, frozen.
//!
//! A [`Snapshot`] is built whole by [`build()`], published through one [`SnapshotCell`], and never changed. Parts that a change
//! did not touch are shared with the snapshot before. This room knows how things are laid out for reading, and who has a
//! name (DESIGN section 7); it decides nothing about clients. Called by the controller (build, publish) and by `transport`
//! and `answer` (read).

mod build;
mod cell;
mod challenges;
mod claims;
mod frozen;
mod grouped;
mod hosts;
mod inputs;
mod inside;
mod levels;
mod names;
mod policies;
mod ports;
mod services;
mod settings;
#[cfg(test)]
mod tests;
mod usable;
mod zone_diff;
mod zone_slots;

pub use crate::inventory::{Flattened, HostNames, HostsOf};
pub use build::{Built, build, refused_claims};
pub use cell::{SnapshotCell, SnapshotReader};
pub use challenges::{CHALLENGE_TTL, CHALLENGES, Challenges};
pub use claims::Refused;
pub use frozen::{Memory, Snapshot};
pub use hosts::AtHost;
pub use inputs::Inputs;
pub use inside::Inside;
pub use levels::{Area, AtLevel, Step};
pub use names::{Candidate, NameHash, NameTable, Steered};
pub use policies::Steering;
pub use ports::AtPort;
pub use services::{Extras, ServiceSlot};
pub use settings::{EcsTrust, Settings};
pub use usable::UsableTable;
