//! `meridian delegation`.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde::Serialize;

use super::args::{DelegationArgs, OutputArg};
use super::load::{Former, Remembered, parse, prepare};
use super::output::{Style, in_one, json, line, yaml};
use crate::inventory::ClusterRegistry;
use crate::model::{LowerName, NameRef, RecordType};
use crate::resolving::{Question, ask, find_addresses, find_delegation, system_resolver};
use crate::zone::Zone;

/// What one node says of itself.
#[derive(Debug, Serialize)]
struct NodeDto {
    nameserver: String,
    address: IpAddr,
    serial: Option<u32>,
    problem: Option<String>,
}

/// What the parent shows.
#[derive(Debug, Serialize)]
struct ParentDto {
    zone: String,
    server: SocketAddr,
    nameservers: Vec<String>,
    glue: Vec<String>,
}

/// The whole result, as `--output json` shows it.
#[derive(Debug, Serialize)]
struct DelegationDto {
    zone: String,
    records: Vec<String>,
    parent: Option<ParentDto>,
    nodes: Vec<NodeDto>,
    problems: Vec<String>,
}

/// Prints the records that the parent needs and, unless offline, checks what it shows and what each node serves.
pub(super) fn delegation(args: &DelegationArgs) -> anyhow::Result<ExitCode> {
    let parsed = parse(&args.config, &mut ClusterRegistry::default())?;
    let prepared = prepare(parsed, &Former::default(), &Remembered::default())?;
    let zones = prepared.load.zones;
    let Some((_, zone)) = zones.iter().find(|(_, zone)| *zone.apex() == args.zone) else {
        let known: Vec<String> = zones
            .iter()
            .map(|(_, zone)| zone.apex().to_string())
            .collect();
        bail!(
            "{} is no zone of this configuration; it has {}",
            args.zone,
            known.join(", ")
        );
    };
    let wanted = Wanted::of(zone);
    let mut dto = DelegationDto {
        zone: args.zone.to_string(),
        records: wanted.records(zone),
        parent: None,
        nodes: Vec::new(),
        problems: Vec::new(),
    };
    if !args.offline {
        let resolver = match args.resolver {
            Some(resolver) => resolver.0,
            None => system_resolver()
                .context("no resolver in /etc/resolv.conf; give --resolver ADDRESS")?,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(check_live(zone, &wanted, resolver, &mut dto));
    }
    match args.output {
        OutputArg::Json => json(&dto)?,
        OutputArg::Yaml => yaml(&dto)?,
        OutputArg::Table => print(&dto, args.offline)?,
    }
    Ok(if dto.problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// What the parent should show.
struct Wanted {
    nameservers: BTreeSet<LowerName>,
    glue: BTreeSet<(LowerName, IpAddr)>,
    ttl: u32,
}

impl Wanted {
    /// Reads it out of the zone as served.
    fn of(zone: &Zone) -> Self {
        let mut wanted = Self {
            nameservers: BTreeSet::new(),
            glue: BTreeSet::new(),
            ttl: 0,
        };
        let Some(rrset) = zone.apex_ns() else {
            return wanted;
        };
        wanted.ttl = rrset.ttl().seconds();
        for rdata in rrset.iter() {
            let Ok(name) = NameRef::from_wire(rdata.wire()) else {
                continue;
            };
            let name = name.to_lower();
            for address in zone.addresses(name.as_ref()).flat_map(|rrset| rrset.iter()) {
                let octets = address.wire();
                let v4 = <[u8; 4]>::try_from(octets).map(IpAddr::from);
                let v6 = <[u8; 16]>::try_from(octets).map(IpAddr::from);
                wanted
                    .glue
                    .extend(v4.or(v6).ok().map(|address| (name.clone(), address)));
            }
            wanted.nameservers.insert(name);
        }
        wanted
    }

    /// Writes it as lines of a master file.
    fn records(&self, zone: &Zone) -> Vec<String> {
        let apex = zone.apex();
        let ttl = self.ttl;
        let ns = self
            .nameservers
            .iter()
            .map(|name| format!("{apex}. {ttl} IN NS {name}."));
        let glue = self
            .glue
            .iter()
            .filter(|(name, _)| name.as_ref().is_at_or_below(apex.as_ref()));
        let glue = glue.map(|(name, address)| {
            let kind = if address.is_ipv4() { "A" } else { "AAAA" };
            format!("{name}. {ttl} IN {kind} {address}")
        });
        ns.chain(glue).collect()
    }
}

/// Compares the live delegation with what is wanted, and asks every node for its serial.
async fn check_live(zone: &Zone, wanted: &Wanted, resolver: SocketAddr, dto: &mut DelegationDto) {
    match find_delegation(zone.apex(), resolver, 53).await {
        Err(error) => dto
            .problems
            .push(format!("the parent cannot be asked: {}", in_one(&error))),
        Ok(None) => dto
            .problems
            .push("the parent shows no delegation".to_owned()),
        Ok(Some(live)) => {
            for name in wanted.nameservers.difference(&live.nameservers) {
                dto.problems
                    .push(format!("the parent does not name {name}"));
            }
            for name in live.nameservers.difference(&wanted.nameservers) {
                dto.problems
                    .push(format!("the parent names {name}, which the zone does not"));
            }
            let inside = |(name, _): &&(LowerName, IpAddr)| {
                name.as_ref().is_at_or_below(zone.apex().as_ref())
            };
            for (name, address) in wanted
                .glue
                .iter()
                .filter(inside)
                .filter(|glue| !live.glue.contains(glue))
            {
                dto.problems
                    .push(format!("the parent has no glue {address} for {name}"));
            }
            for (name, address) in live
                .glue
                .iter()
                .filter(inside)
                .filter(|glue| !wanted.glue.contains(glue))
            {
                dto.problems
                    .push(format!("the parent has stale glue {address} for {name}"));
            }
            dto.parent = Some(ParentDto {
                zone: live.parent.to_string(),
                server: live.server,
                nameservers: live.nameservers.iter().map(ToString::to_string).collect(),
                glue: live
                    .glue
                    .iter()
                    .map(|(name, address)| format!("{name} {address}"))
                    .collect(),
            });
        }
    }
    for (name, address) in &nodes(wanted, resolver, &mut dto.problems).await {
        let question = Question {
            name: zone.apex().clone(),
            record_type: RecordType::SOA,
            subnet: None,
            recursion: false,
        };
        let mut node = NodeDto {
            nameserver: name.to_string(),
            address: *address,
            serial: None,
            problem: None,
        };
        match ask((*address, 53).into(), &question).await {
            Ok(asked) if asked.is_authoritative() => node.serial = asked.serial(),
            Ok(asked) => {
                node.problem = Some(format!("answers {} without authority", asked.rcode()))
            }
            Err(error) => node.problem = Some(in_one(&error)),
        }
        dto.problems.extend(
            node.problem
                .as_ref()
                .map(|problem| format!("{name} ({address}): {problem}")),
        );
        dto.nodes.push(node);
    }
}

/// Gives every name server with its addresses: ours as the zone has them, others as the resolver knows them. One without an
/// address is a problem: it cannot be asked.
async fn nodes(
    wanted: &Wanted,
    resolver: SocketAddr,
    problems: &mut Vec<String>,
) -> BTreeSet<(LowerName, IpAddr)> {
    let mut nodes = wanted.glue.clone();
    for name in &wanted.nameservers {
        if wanted.glue.iter().any(|(known, _)| known == name) {
            continue;
        }
        match find_addresses(name, resolver).await {
            Ok(found) if found.is_empty() => problems.push(format!(
                "{name}: the resolver {resolver} knows no address of it, so it was not asked"
            )),
            Ok(found) => nodes.extend(found.into_iter().map(|address| (name.clone(), address))),
            Err(error) => problems.push(format!(
                "{name}: its address cannot be found, so it was not asked: {}",
                in_one(&error)
            )),
        }
    }
    nodes
}

/// Prints the result for people.
fn print(dto: &DelegationDto, offline: bool) -> std::io::Result<()> {
    let style = Style::of(&std::io::stdout());
    line(style.bold(&format!("; what the parent of {} needs", dto.zone)))?;
    for record in &dto.records {
        line(record)?;
    }
    if offline {
        return Ok(());
    }
    line("")?;
    if let Some(parent) = &dto.parent {
        let names = parent.nameservers.join(", ");
        line(format_args!(
            "; {} ({}) delegates to {names}",
            parent.zone, parent.server
        ))?;
    }
    for node in &dto.nodes {
        let state = match (&node.problem, node.serial) {
            (Some(problem), _) => style.red(problem),
            (None, Some(serial)) => style.green(&format!("serial {serial}")),
            (None, None) => style.yellow("no SOA"),
        };
        line(format_args!(
            "; {} {}: {state}",
            node.nameserver, node.address
        ))?;
    }
    for problem in &dto.problems {
        line(format_args!("; {} {problem}", style.red("problem:")))?;
    }
    if dto.problems.is_empty() {
        line(style.green("; the delegation is right"))
    } else {
        Ok(())
    }
}
