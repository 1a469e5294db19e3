//! The authoritative name tree: what stands in zones, and what RFC 1034 section 4.3.2 says of a name.
//!
//! This room knows static records, zone cuts, wildcards and the algorithm. It does not know who asks: a steered name is
//! handed back as [`Lookup::Steered`], and `steering` decides. It reads no file: texts are handed in. Called by `snapshot`
//! (build), `answer` (lookup) and configuration (check).

mod acme;
mod assemble;
mod compile;
mod lookup;
mod master_file;
mod names;
mod owners;
mod rrset;
mod set;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use acme::{AcmeError, AcmeTarget, CHALLENGE_LABEL, NAME_MARK, challenge_owner};
pub use compile::{Nameserver, Precedence, SoaTimers, Zone, ZoneFile, ZoneSpec};
pub use lookup::{Found, Lookup, NameTree, lookup};
pub use master_file::{Include, includes};
pub use names::{LevelName, NameForms, level_names};
pub use rrset::{Rdata, RdataRef, Rrset};
pub use set::{Cut, Node, ZoneSet};
