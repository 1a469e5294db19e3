//! What services refer to.

use super::monitor::MonitorKeys;
use super::policy::PolicyKeys;
use super::selectors::Scope;
use super::zones::Zones;

/// What services refer to.
#[derive(Clone, Copy)]
pub(super) struct World<'s, 't, 'a> {
    pub(super) scope: Scope<'s, 't, 'a>,
    pub(super) zones: &'s Zones,
    /// `defaults.policy`.
    pub(super) policy: &'s PolicyKeys,
    /// `defaults.monitor`.
    pub(super) monitor: &'s MonitorKeys,
}
