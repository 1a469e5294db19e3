//! The single writer: changes, verdicts and commands in, one published snapshot out.
//!
//! This room owns the inventory and decides when to build and publish. It knows no socket and no file but those of the last
//! good state, and it does not probe: what should be watched goes out over a channel, flips come in over another. Called by
//! `app` (wiring) and `admin` (status).

mod ages;
mod coalesce;
mod command;
mod drains;
mod driver;
mod flips;
mod folder;
mod hand;
mod journal;
mod keeper;
mod last_good;
mod lock;
mod offers;
mod operators;
mod proofs;
mod recalled;
mod report;
mod status;
mod target_key;
#[cfg(test)]
mod tests;
mod told;
mod withdrawn;

pub use ages::{Ages, Sight};
pub use command::{Command, ControllerHandle, Held, Load, MonitorChange};
pub use drains::{LISTED_HELD, OwnDrain, OwnDrains, Workers};
pub use driver::{Channels, Controller};
pub use folder::{LastGood, LastGoodError, content_hash};
pub use hand::ANNOTATED_ID;
pub use journal::{Event, Journal, KEPT_EVENTS, Kind, Weightiness};
pub use keeper::{Keeper, Kept, Unwritten};
pub use last_good::{Memory, ZoneSerial};
pub use offers::{Offers, OffersKeeper};
pub use status::{Status, World};
pub use target_key::target_key;
pub use withdrawn::{MAX_WITHDRAWN, Withdrawn};
