//! Is a zone delegated as it should be, and does each of its servers serve it?

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use super::ask::{Question, ask};
use super::delegation::{Delegation, find_addresses, find_delegation};
use crate::model::{LowerName, RecordType, ZoneServers};

/// The port of servers.
const PORT: u16 = 53;

/// What one server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedServer {
    /// Its name.
    pub name: LowerName,
    /// The address asked.
    pub address: IpAddr,
    /// Its SOA serial.
    pub serial: Option<u32>,
    /// What is wrong with it.
    pub problem: Option<String>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The delegation as the parent shows it.
    pub parent: Option<Delegation>,
    /// Each server of the zone.
    pub servers: Vec<CheckedServer>,
    /// All that is wrong, one line each; empty when the delegation is right.
    pub problems: Vec<String>,
}

/// Compares the live delegation of `apex` with what is wanted, and asks every server for its serial. `resolver` finds the parent.
pub async fn check_delegation(
    apex: &LowerName,
    wanted: &ZoneServers,
    resolver: SocketAddr,
) -> Checked {
    let mut checked = Checked::default();
    match find_delegation(apex, resolver, PORT).await {
        Err(error) => checked
            .problems
            .push(format!("the parent cannot be asked: {}", in_one(&error))),
        Ok(None) => checked
            .problems
            .push("the parent shows no delegation".to_owned()),
        Ok(Some(live)) => {
            compare(apex, wanted, &live, &mut checked.problems);
            checked.parent = Some(live);
        }
    }
    for (name, address) in servers(wanted, resolver, &mut checked.problems).await {
        let server = ask_server(apex, name, address).await;
        checked.problems.extend(
            server
                .problem
                .as_ref()
                .map(|problem| format!("{} ({address}): {problem}", server.name)),
        );
        checked.servers.push(server);
    }
    checked
}

/// Says how a delegation differs from what is wanted.
fn compare(apex: &LowerName, wanted: &ZoneServers, live: &Delegation, problems: &mut Vec<String>) {
    for name in wanted.nameservers.difference(&live.nameservers) {
        problems.push(format!("the parent does not name {name}"));
    }
    for name in live.nameservers.difference(&wanted.nameservers) {
        problems.push(format!("the parent names {name}, which the zone does not"));
    }
    let inside = |(name, _): &&(LowerName, IpAddr)| name.as_ref().is_at_or_below(apex.as_ref());
    let lacks = |glue: &&(LowerName, IpAddr)| !live.glue.contains(*glue);
    for (name, address) in wanted.glue.iter().filter(inside).filter(lacks) {
        problems.push(format!("the parent has no glue {address} for {name}"));
    }
    let is_stale = |glue: &&(LowerName, IpAddr)| !wanted.glue.contains(*glue);
    for (name, address) in live.glue.iter().filter(inside).filter(is_stale) {
        problems.push(format!("the parent has stale glue {address} for {name}"));
    }
}

/// Asks one server for the serial.
async fn ask_server(apex: &LowerName, name: LowerName, address: IpAddr) -> CheckedServer {
    let question = Question {
        name: apex.clone(),
        record_type: RecordType::SOA,
        subnet: None,
        recursion: false,
    };
    let (serial, problem) = match ask((address, PORT).into(), &question).await {
        Ok(asked) if asked.is_authoritative() => (asked.serial(), None),
        Ok(asked) => (
            None,
            Some(format!("answers {} without authority", asked.rcode())),
        ),
        Err(error) => (None, Some(in_one(&error))),
    };
    CheckedServer {
        name,
        address,
        serial,
        problem,
    }
}

/// Gives every name server with its addresses: ours as the zone has them, others as the resolver knows them. One without an
/// address is a problem: it cannot be asked.
async fn servers(
    wanted: &ZoneServers,
    resolver: SocketAddr,
    problems: &mut Vec<String>,
) -> BTreeSet<(LowerName, IpAddr)> {
    let mut servers = wanted.glue.clone();
    for name in &wanted.nameservers {
        if wanted.glue.iter().any(|(known, _)| known == name) {
            continue;
        }
        match find_addresses(name, resolver).await {
            Ok(found) if found.is_empty() => problems.push(format!(
                "{name}: the resolver {resolver} knows no address of it, so it was not asked"
            )),
            Ok(found) => servers.extend(found.into_iter().map(|address| (name.clone(), address))),
            Err(error) => problems.push(format!(
                "{name}: its address cannot be found, so it was not asked: {}",
                in_one(&error)
            )),
        }
    }
    servers
}

/// Shows an error with its causes in one text.
fn in_one(error: &(dyn std::error::Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<String> = chain.map(ToString::to_string).collect();
    texts.join(": ")
}
