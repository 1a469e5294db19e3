//! What configuration adds to the records of the file.

use std::net::IpAddr;

use crate::model::{LowerName, RecordType, Ttl};
use crate::zone::compile::{Precedence, ZoneSpec, is_address};
use crate::zone::master_file::{Place, Record, Report};
use crate::zone::rrset::Rdata;

/// The label at which a cluster set says the version of its specification of names (KEP-1645).
const VERSION_LABEL: &[u8] = b"dns-version";
/// That version, as the data of TXT.
const VERSION: &[u8] = b"\x051.0.0";
/// TTL of the version, that of the specification's example: seconds.
const VERSION_TTL: u32 = 28_800;

/// Adds SOA, NS and addresses of name servers as configured, and the version of a cluster set, where the file has none. Gives
/// what it has.
pub(super) fn add(spec: &ZoneSpec, records: &mut Vec<Record>, report: &mut Report) -> Precedence {
    let has = |records: &[Record], name: &LowerName, test: &dyn Fn(RecordType) -> bool| {
        records
            .iter()
            .any(|record| test(record.rtype) && record.owner == *name)
    };
    let mut made = Vec::new();
    let record = |owner: &LowerName, rtype, ttl, rdata: &[u8]| Record {
        owner: owner.clone(),
        rtype,
        ttl,
        rdata: rdata.into(),
        place: Place::CONFIGURED,
    };
    let has_ns = has(records, &spec.apex, &|rtype| rtype == RecordType::NS);
    if !has_ns {
        for server in &spec.nameservers {
            let wire = server.name.as_wire();
            made.push(record(&spec.apex, RecordType::NS, spec.ns_ttl, wire));
        }
    }
    for server in &spec.nameservers {
        let is_inside = server.name.as_ref().is_at_or_below(spec.apex.as_ref());
        if !is_inside || has(records, &server.name, &is_address) {
            continue;
        }
        for address in &server.addresses {
            let (rtype, octets) = match address.to_canonical() {
                IpAddr::V4(address) => (RecordType::A, address.octets().to_vec()),
                IpAddr::V6(address) => (RecordType::AAAA, address.octets().to_vec()),
            };
            made.push(record(&server.name, rtype, spec.ns_ttl, &octets));
        }
    }
    let ns_ttl = made.is_empty();
    if spec.forms.cluster_set
        && let Some((owner, ttl)) = spec
            .apex
            .prepend(VERSION_LABEL)
            .ok()
            .zip(Ttl::new(VERSION_TTL))
        && !has(records, &owner, &|_| true)
    {
        made.push(record(&owner, RecordType::TXT, ttl, VERSION));
    }
    let has_soa = has(records, &spec.apex, &|rtype| rtype == RecordType::SOA);
    records.append(&mut made);
    if !has_soa {
        match soa(spec, records) {
            Ok(Some(rdata)) => {
                made.push(record(&spec.apex, RecordType::SOA, spec.soa.ttl, &rdata));
            }
            // Without NS there is no MNAME: told below.
            Ok(None) => {}
            Err(reason) => report.add(Place::CONFIGURED, reason),
        }
    }
    records.append(&mut made);
    Precedence {
        soa: has_soa,
        ns: has_ns,
        ns_ttl,
    }
}

/// Makes the data of a SOA: MNAME is the first name server (RFC 1035 section 3.3.13). `None` without a name server.
fn soa(spec: &ZoneSpec, records: &[Record]) -> Result<Option<Rdata>, String> {
    let first = records
        .iter()
        .find(|record| record.rtype == RecordType::NS && record.owner == spec.apex);
    let Some(first) = first else { return Ok(None) };
    let contact = match &spec.contact {
        Some(contact) => contact.clone(),
        None => spec.apex.prepend(b"hostmaster").map_err(|error| {
            format!("no contact is given, and hostmaster.{}: {error}", spec.apex)
        })?,
    };
    let mut wire = first.rdata.to_vec();
    wire.extend_from_slice(contact.as_wire());
    wire.extend_from_slice(&spec.serial.to_be_bytes());
    for (what, time) in [
        ("refresh", spec.soa.refresh),
        ("retry", spec.soa.retry),
        ("expire", spec.soa.expire),
    ] {
        let seconds = u32::try_from(time.as_secs()).ok().and_then(Ttl::new);
        let seconds = seconds.ok_or_else(|| {
            format!(
                "soa.{what} of {} s is more than 2147483647 s",
                time.as_secs()
            )
        })?;
        wire.extend_from_slice(&seconds.seconds().to_be_bytes());
    }
    wire.extend_from_slice(&spec.negative_ttl.seconds().to_be_bytes());
    Ok(Some(wire.into()))
}
