//! Who watches an answer being made: nobody, or `explain`. So one code path decides and explains.

use super::reply::Facts;
use super::stages::Client;
use crate::model::{NameRef, Ttl, ZoneIndex};
use crate::snapshot::{Area, Extras, Steered, Steering};
use crate::steering::{Ask, Decision};
use crate::telemetry::ReplyCode;
use crate::zone::Lookup;

/// A decision and all it was made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decided<'a> {
    /// The service.
    pub(super) steered: &'a Steered,
    /// What few services have.
    pub(super) extras: Option<&'a Extras>,
    /// Its policy.
    pub(super) steering: &'a Steering,
    /// What was asked of it.
    pub(super) ask: &'a Ask<'a>,
    /// What it said.
    pub(super) decision: &'a Decision<'a>,
    /// The TTL of an answer by it.
    pub(super) ttl: Ttl,
    /// The level that was asked for, and the position of the one that decided.
    pub(super) level: Option<(&'a Area, Option<usize>)>,
    /// The name that it was asked at.
    pub(super) name: NameRef<'a>,
    /// And its zone.
    pub(super) zone: ZoneIndex,
}

/// Watches the steps of an answer.
pub(super) trait Witness {
    /// Gives the client to answer for in place of the packet's.
    fn client(&self) -> Option<Client> {
        None
    }
    /// A name of the chain was looked up.
    fn looked_up(&mut self, name: NameRef<'_>, lookup: &Lookup<'_>);
    /// A policy decided.
    fn decided(&mut self, decided: &Decided<'_>);
    /// The reply is whole.
    #[inline]
    fn replied(&mut self, _: ReplyCode, _: &Facts) {}
}

/// Nobody watches: the packet's case.
impl Witness for () {
    #[inline]
    fn looked_up(&mut self, _: NameRef<'_>, _: &Lookup<'_>) {}
    #[inline]
    fn decided(&mut self, _: &Decided<'_>) {}
}
