//! Everything a query may read, frozen.
//!
//! A [`Snapshot`] is built whole by [`build`], published through one [`SnapshotCell`], and never changed. Parts that a change
//! did not touch are shared with the snapshot before. This room knows how things are laid out for reading; it decides
//! nothing. Called by the controller (build, publish) and by `transport` and `answer` (read).

mod build;
mod cell;
mod frozen;
mod names;
mod services;
mod settings;
mod usable;

pub use build::{Built, Inputs, build};
pub use cell::{SnapshotCell, SnapshotReader};
pub use frozen::{Snapshot, Steering};
pub use names::{Candidate, NameHash, NameTable};
pub use services::ServiceSlot;
pub use settings::{EcsTrust, Settings};
pub use usable::UsableTable;
