//! The Gateways of a Route: which of them accept it, and by which its traffic enters.

use jiff::Timestamp;

use super::View;
use super::drain::{Drained, drained};
use crate::inventory::ObjectKind;
use crate::source::kubernetes::world::index::parents;
use crate::source::kubernetes::world::kind::Phase;
use crate::source::kubernetes::world::objects::object_of;
use crate::source::kubernetes::{GatewayRecord, Listener, Parent, Protocol, Record, RouteRecord};

/// A Gateway that a Route asks for.
#[derive(Clone, Debug)]
pub(super) struct Attached<'a> {
    /// How it asks.
    pub(super) parent: &'a Parent,
    /// The Gateway, if there is one.
    pub(super) gateway: Option<&'a GatewayRecord>,
}

impl<'a> Attached<'a> {
    /// Finds the Gateways that an object asks for, in its order; none for what is no Route.
    ///
    /// # Errors
    /// When that cannot be told: Gateways are not read yet, or one of them could never be read. With the reason.
    pub(super) fn all(view: &View<'a>, record: &'a Record) -> Result<Vec<Self>, String> {
        let is_awaited = view.objects.phase(ObjectKind::Gateway) == Phase::Awaited;
        let attached = parents(record).iter().map(|parent| {
            let attached = Self {
                parent,
                gateway: view.objects.gateway(&parent.gateway),
            };
            let object = object_of(ObjectKind::Gateway, &parent.gateway);
            if is_awaited {
                Err("Gateways are not read yet".to_owned())
            } else if attached.gateway.is_none() && view.objects.has(&object) {
                Err(format!("{} cannot be read", attached.words()))
            } else {
                Ok(attached)
            }
        });
        attached.collect()
    }

    /// Gives the Gateway if it is there and accepts the Route.
    pub(super) fn accepting(&self) -> Option<&'a GatewayRecord> {
        self.gateway.filter(|_| self.parent.unaccepted.is_none())
    }

    /// Lists the listeners that the Route is attached to, in their order; none where it is not accepted.
    pub(super) fn listeners(&self, kind: ObjectKind) -> impl Iterator<Item = &'a Listener> {
        let parent = self.parent;
        let listeners = self.accepting().map(|gateway| &gateway.listeners);
        listeners.into_iter().flatten().filter(move |listener| {
            let is_section = parent
                .section
                .as_ref()
                .is_none_or(|section| *section == listener.name);
            let is_port = parent.port.is_none_or(|port| port == listener.port.number);
            is_section && is_port && carries(listener.port.protocol, kind)
        })
    }

    /// Names the Gateway for people.
    pub(super) fn words(&self) -> String {
        let gateway = &self.parent.gateway;
        format!("Gateway {}/{}", gateway.namespace, gateway.name)
    }
}

/// Tells whether a listener takes Routes of a kind (Gateway API, `Listener.protocol`). TLS that ends at the listener carries
/// TCPRoutes too; who speaks something of their own is taken at their word.
fn carries(protocol: Protocol, kind: ObjectKind) -> bool {
    match protocol {
        Protocol::Http => matches!(kind, ObjectKind::HttpRoute | ObjectKind::GrpcRoute),
        Protocol::Tls => !matches!(kind, ObjectKind::UdpRoute),
        Protocol::Tcp => kind == ObjectKind::TcpRoute,
        Protocol::Udp => kind == ObjectKind::UdpRoute,
        Protocol::Sctp | Protocol::Other => true,
    }
}

/// Where the traffic of a Route enters.
#[derive(Clone, Debug, Default)]
pub(super) struct Entrance<'a> {
    /// The best of the Gateways that accept it: those that are programmed and not drained; else programmed; else not drained;
    /// else all. So one of two Gateways can be drained, and the other carries on.
    pub(super) gateways: Vec<&'a Attached<'a>>,
    /// Why none of them takes traffic.
    pub(super) unready: Option<Box<str>>,
    /// They are drained, or being deleted.
    pub(super) is_drained: bool,
    /// When the drain of any of them turns.
    pub(super) edge: Option<Timestamp>,
}

impl<'a> Entrance<'a> {
    /// Finds the best Gateways.
    pub(super) fn of(route: &RouteRecord, attached: &'a [Attached<'a>], now: Timestamp) -> Self {
        let mut entrance = Self::default();
        let mut best = (true, true);
        for parent in attached {
            let Some(gateway) = parent.accepting() else {
                continue;
            };
            let Drained { is_drained, edge } = drained(&gateway.common, now);
            entrance.edge = [entrance.edge, edge].into_iter().flatten().min();
            let rank = (gateway.unready.is_some(), is_drained);
            if entrance.gateways.is_empty() || rank < best {
                best = rank;
                entrance.gateways.clear();
            }
            if rank == best {
                entrance.gateways.push(parent);
            }
        }
        entrance.is_drained = !entrance.gateways.is_empty() && best.1;
        entrance.unready = match entrance.gateways.first() {
            None => Some(unattached(route, attached)),
            Some(parent) => parent.gateway.and_then(|gateway| {
                let why = gateway.unready.as_ref()?;
                Some(format!("{}: {why}", parent.words()).into())
            }),
        };
        entrance
    }
}

/// Says why no Gateway accepts a Route.
fn unattached(route: &RouteRecord, attached: &[Attached<'_>]) -> Box<str> {
    let accepted = attached
        .iter()
        .find(|attached| attached.parent.unaccepted.is_none());
    let refusing = route
        .parents
        .iter()
        .find_map(|parent| parent.unaccepted.as_deref());
    match (accepted, refusing) {
        (Some(missing), _) => format!("{} is not there", missing.words()).into(),
        (None, Some(why)) => format!("no Gateway accepts it: {why}").into(),
        (None, None) => "it asks for no Gateway".into(),
    }
}
