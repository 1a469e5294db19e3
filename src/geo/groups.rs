//! Groups of countries that laws speak of.

use crate::model::Groups;

/// Gives the built-in groups: `EU-27`, `EEA`, `EFTA`, `GDPR`.
#[must_use]
pub fn built_in_groups() -> Groups {
    todo!()
}
