//! What a parent zone shows of a child.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use hickory_proto::rr::{RData, Record};

use super::ask::{AskError, Asked, Question, ask};
use crate::model::{LowerName, NameRef, RecordType};

/// The delegation as one of the parent's servers hands it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegation {
    /// The parent zone.
    pub parent: LowerName,
    /// The server that was asked.
    pub server: SocketAddr,
    /// The names of the child's servers.
    pub nameservers: BTreeSet<LowerName>,
    /// Their addresses, as far as the parent gives them.
    pub glue: BTreeSet<(LowerName, IpAddr)>,
}

/// Finds the zone above `zone` and asks one of its servers for the delegation. `port` is that of the parent's servers: 53.
///
/// # Errors
/// When nobody answers, or only to say that they will not. `Ok(None)`: the parent answers and shows no delegation.
pub async fn find_delegation(
    zone: &LowerName,
    resolver: SocketAddr,
    port: u16,
) -> Result<Option<Delegation>, AskError> {
    let Some((parent, servers)) = find_parent(zone, resolver).await? else {
        return Ok(None);
    };
    let mut last = None;
    for address in servers {
        let server = SocketAddr::new(address, port);
        let question = Question {
            name: zone.clone(),
            record_type: RecordType::NS,
            subnet: None,
            recursion: false,
        };
        let asked = ask(server, &question).await;
        match asked.and_then(|asked| asked.willing(server, &question)) {
            Ok(asked) => return Ok(read_referral(zone, parent, server, &asked)),
            Err(error) => last = Some(error),
        }
    }
    last.map_or(Ok(None), Err)
}

/// Walks up until a name has NS records, and gives the addresses of those servers.
async fn find_parent(
    zone: &LowerName,
    resolver: SocketAddr,
) -> Result<Option<(LowerName, Vec<IpAddr>)>, AskError> {
    let mut above = zone.as_ref().parent().map(NameRef::to_lower);
    while let Some(name) = above {
        let question = Question {
            name: name.clone(),
            record_type: RecordType::NS,
            subnet: None,
            recursion: true,
        };
        // NXDOMAIN is no fault: the name above may not exist, and a zone further up delegates all the same.
        let asked = ask(resolver, &question)
            .await?
            .willing(resolver, &question)?;
        let of_name = |record: &&Record| lower(&record.name).is_some_and(|owner| owner == name);
        let servers: Vec<LowerName> = asked
            .message
            .answers
            .iter()
            .filter(of_name)
            .filter_map(nameserver)
            .collect();
        if !servers.is_empty() {
            return addresses_of(&servers, resolver)
                .await
                .map(|found| Some((name, found)));
        }
        above = name.as_ref().parent().map(NameRef::to_lower);
    }
    Ok(None)
}

/// Finds the addresses of some servers. One that cannot be found is left out, unless it is the last hope.
async fn addresses_of(
    servers: &[LowerName],
    resolver: SocketAddr,
) -> Result<Vec<IpAddr>, AskError> {
    let (mut addresses, mut last) = (Vec::new(), None);
    for server in servers {
        match find_addresses(server, resolver).await {
            Ok(found) => addresses.extend(found),
            Err(error) => last = Some(error),
        }
    }
    match last {
        Some(error) if addresses.is_empty() => Err(error),
        _ => Ok(addresses),
    }
}

/// Asks a resolver for the addresses of a host, of both families. Empty: it says that there are none.
///
/// # Errors
/// When it does not answer, or will not, for both families.
pub async fn find_addresses(
    host: &LowerName,
    resolver: SocketAddr,
) -> Result<Vec<IpAddr>, AskError> {
    let (mut addresses, mut last) = (Vec::new(), None);
    for record_type in [RecordType::A, RecordType::AAAA] {
        let question = Question {
            name: host.clone(),
            record_type,
            subnet: None,
            recursion: true,
        };
        let asked = ask(resolver, &question).await;
        match asked.and_then(|asked| asked.willing(resolver, &question)) {
            Ok(asked) => addresses.extend(asked.addresses()),
            Err(error) => last = Some(error),
        }
    }
    match last {
        Some(error) if addresses.is_empty() => Err(error),
        _ => Ok(addresses),
    }
}

/// Reads NS and glue out of a referral, or out of the answer when the server has parent and child.
fn read_referral(
    zone: &LowerName,
    parent: LowerName,
    server: SocketAddr,
    asked: &Asked,
) -> Option<Delegation> {
    let message = &asked.message;
    let of_zone = |record: &&Record| lower(&record.name).is_some_and(|name| name == *zone);
    let nameservers: BTreeSet<LowerName> = message
        .authorities
        .iter()
        .chain(&message.answers)
        .filter(of_zone)
        .filter_map(nameserver)
        .collect();
    let glue = message
        .additionals
        .iter()
        .filter_map(|record| Some((lower(&record.name)?, record.data.ip_addr()?)));
    let glue = glue.collect();
    (!nameservers.is_empty()).then_some(Delegation {
        parent,
        server,
        nameservers,
        glue,
    })
}

/// Gives the target of an NS record.
fn nameserver(record: &Record) -> Option<LowerName> {
    match &record.data {
        RData::NS(target) => lower(&target.0),
        _ => None,
    }
}

/// Turns a name of hickory's into ours.
pub(super) fn lower(name: &hickory_proto::rr::Name) -> Option<LowerName> {
    name.to_ascii().parse().ok()
}
