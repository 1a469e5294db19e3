//! Names of ports of services in cluster sets: `_<port>._<carrier>` below a service's own name, answered with SRV (RFC 2782).
//!
//! They stand in no table: a name that begins with `_` and is not found, or is an empty non-terminal, is taken apart here. Static
//! records, zone cuts and wildcards go first.

use std::num::NonZeroU16;

use super::apart;
use super::encode::{Full, Owner, Writer};
use super::hosts::AskedPort;
use super::reply::Section;
use super::sections::{Link, Solver};
use super::witness::Witness;
use crate::model::{Carrier, NameRef, RecordType, ServiceIndex, Ttl, ZoneIndex};
use crate::snapshot::{AtPort, Snapshot};
use crate::zone::Lookup;

/// Octets of SRV before its target: priority, weight and port.
const HEAD: usize = 6;
/// Octets of the longest name.
const MAX_NAME: usize = 255;

/// Gives what stands at the name of a port; `None`: it is none.
pub(super) fn at<'a>(
    snapshot: &Snapshot,
    zone: ZoneIndex,
    (name, qtype): (NameRef<'_>, RecordType),
) -> Option<Lookup<'a>> {
    if name.as_wire().get(1) != Some(&b'_') {
        return None;
    }
    Some(match snapshot.at_port(zone, name)? {
        AtPort::Port { service, number } if qtype == RecordType::SRV => Lookup::Port {
            zone,
            service,
            number,
        },
        _ => apart::without(zone, qtype),
    })
}

impl<W: Witness> Solver<'_, '_, W> {
    /// Writes the SRV of a port: priority and weight 0, and the service's own name as its target. It is the same for every client
    /// (RFC 7871 section 7.4: scope 0); who gets which address is decided when the target is asked for. Of a service that is its
    /// endpoints these are the targets.
    #[cold]
    pub(super) fn port(
        &mut self,
        link: Link<'_>,
        (zone, service): (ZoneIndex, ServiceIndex),
        number: NonZeroU16,
    ) {
        let target = link.name.parent().and_then(NameRef::parent);
        let slot = self.snapshot.service(service);
        let ttl = slot.and_then(|slot| slot.ttl);
        let ttl = ttl.or_else(|| Some(self.zone(zone)?.ttl()));
        let Some((target, ttl)) = target.zip(ttl) else {
            return self.broken();
        };
        let hosts = slot.and_then(|slot| slot.extras.as_deref()?.hosts.as_ref());
        if let Some(hosts) = hosts.filter(|hosts| hosts.are_below(target))
            && let Some(port) = asked_port(link.name, number)
        {
            return self.port_of_hosts((link, zone), (service, hosts), port);
        }
        self.reply.must_add(Section::Answer, |writer| {
            write_srv(writer, (link.owner, ttl), number.get(), target)?;
            Ok((1, ()))
        });
    }
}

/// Reads the name of a port.
fn asked_port(name: NameRef<'_>, number: NonZeroU16) -> Option<AskedPort<'_>> {
    let above = name.parent()?;
    Some(AskedPort {
        label: name.first_label()?.strip_prefix(b"_")?,
        carrier: Carrier::from_label(above.first_label()?)?,
        number: number.get(),
        owner: above.parent()?,
    })
}

/// Writes one SRV of priority and weight 0. Its target is not compressed (RFC 2782).
pub(super) fn write_srv(
    writer: &mut Writer<'_>,
    (owner, ttl): (Owner<'_>, Ttl),
    number: u16,
    target: NameRef<'_>,
) -> Result<(), Full> {
    let mut buffer = [0; HEAD + MAX_NAME];
    let [a, b] = number.to_be_bytes();
    let head = [0, 0, 0, 0, a, b];
    let written = head.iter().chain(target.as_wire());
    for (place, octet) in buffer.iter_mut().zip(written) {
        *place = *octet;
    }
    let rdata = buffer.get(..HEAD + target.as_wire().len());
    writer.plain_record(owner, RecordType::SRV, ttl, rdata.ok_or(Full)?)
}
