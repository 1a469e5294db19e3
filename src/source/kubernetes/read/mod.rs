//! The door: an object in, and what is kept of it out.

#[cfg(test)]
mod tests;

use super::object::Object;
use super::records::{Event, Record, Watched};
use super::{endpoint_slice, gateway, ingress, names, node, route, service};
use crate::inventory::ObjectKind;

/// Reads an object that a watch saw: [`Event::Applied`], or [`Event::Unreadable`] with the first thing that is wrong.
///
/// `None`: it is nobody's here, an EndpointSlice of no Service or of one in another cluster. As labels change, it may have been
/// somebody's: what was known of it is gone. A key that is no name of Kubernetes comes with `Unreadable`, made fit to be shown.
#[must_use]
pub fn read(watched: Watched, object: &Object<'_>) -> Option<Event> {
    if watched == Watched::EndpointSlices && !endpoint_slice::is_local(object) {
        return None;
    }
    let key = match names::key(watched, object) {
        Ok(key) => key,
        Err((key, refused)) => return Some(Event::Unreadable(key, refused)),
    };
    let route = |kind| route::read(kind, object).map(Record::Route);
    let record = match watched {
        Watched::Services => service::read(object).map(Record::Service),
        Watched::EndpointSlices => endpoint_slice::read(object).map(Record::Slice),
        Watched::Ingresses => ingress::read(object).map(Record::Ingress),
        Watched::Gateways => gateway::read(object).map(Record::Gateway),
        Watched::HttpRoutes => route(ObjectKind::HttpRoute),
        Watched::GrpcRoutes => route(ObjectKind::GrpcRoute),
        Watched::TlsRoutes => route(ObjectKind::TlsRoute),
        Watched::TcpRoutes => route(ObjectKind::TcpRoute),
        Watched::UdpRoutes => route(ObjectKind::UdpRoute),
        Watched::Nodes => node::read(object).map(Record::Node),
    };
    Some(match record {
        Ok(record) => Event::Applied(key, Box::new(record)),
        Err(refused) => Event::Unreadable(key, refused),
    })
}
