//! `meridian delegation`.

use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde::Serialize;

use super::args::{DelegationArgs, OutputArg};
use super::load::{Former, Remembered, parse, prepare};
use super::output::{Style, json, line, yaml};
use crate::inventory::ClusterRegistry;
use crate::resolving::{check_delegation, system_resolver};
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
    let mut dto = DelegationDto {
        zone: args.zone.to_string(),
        records: zone.delegation_records(),
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
        runtime.block_on(check_live(zone, resolver, &mut dto));
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

/// Compares the live delegation with what is wanted, and asks every node for its serial.
async fn check_live(zone: &Zone, resolver: SocketAddr, dto: &mut DelegationDto) {
    let checked = check_delegation(zone.apex(), &zone.delegation(), resolver).await;
    dto.parent = checked.parent.map(|live| ParentDto {
        zone: live.parent.to_string(),
        server: live.server,
        nameservers: live.nameservers.iter().map(ToString::to_string).collect(),
        glue: live
            .glue
            .iter()
            .map(|(name, address)| format!("{name} {address}"))
            .collect(),
    });
    let nodes = checked.servers.into_iter().map(|server| NodeDto {
        nameserver: server.name.to_string(),
        address: server.address,
        serial: server.serial,
        problem: server.problem,
    });
    dto.nodes = nodes.collect();
    dto.problems = checked.problems;
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
