//! `meridian explain`.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use serde::Serialize;

use super::args::{ExplainArgs, OutputArg, ServerArg, World, misuse};
use super::check::build_once;
use super::client::{Ask, Client, Nodes, first, runtime};
use super::load::{Former, Remembered, parse, prepare};
use super::output::{Style, json, line, note, yaml};
use super::words::clean;
use crate::admin::dto;
use crate::answer::{self, Asker, Explanation};
use crate::inventory::ClusterRegistry;
use crate::model::{ClientSubnet, PrefixLen};

/// An explanation, as `--output json` shows it.
#[derive(Debug, Serialize)]
struct ExplanationDto {
    name: String,
    r#type: String,
    client: String,
    rcode: String,
    cluster: Option<String>,
    ttl: Option<u32>,
    scope: u8,
    answer: Vec<String>,
    steps: Vec<String>,
}

/// Explains what a client is told: by a configuration with every endpoint up, for no probe is sent, or by a node as it answers now.
pub(super) fn explain(args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let asker = match (args.client, args.resolver) {
        (Some(prefix), _) => {
            let prefix = prefix.0;
            Asker::Client(ClientSubnet {
                address: prefix.network(),
                source: PrefixLen(prefix.prefix_len()),
            })
        }
        (None, Some(address)) => Asker::Resolver(address),
        (None, None) => bail!("give --client PREFIX or --resolver ADDRESS"),
    };
    let dto = match args.world() {
        Ok(World::File(config)) => offline(args, &config, asker)?,
        Ok(World::Nodes(servers)) => online(args, &servers)?,
        Err(fault) => return misuse("explain", fault),
    };
    match args.output {
        OutputArg::Json => json(&dto)?,
        OutputArg::Yaml => yaml(&dto)?,
        OutputArg::Table => print(&dto)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Explains by a configuration.
fn offline(args: &ExplainArgs, config: &Path, asker: Asker) -> anyhow::Result<ExplanationDto> {
    let parsed = parse(config, &mut ClusterRegistry::default())?;
    let prepared = prepare(parsed, &Former::default(), &Remembered::default())?;
    let (_, built) = build_once(prepared.load);
    let explanation = answer::explain_offline(&built.snapshot, &args.name, args.record_type, asker);
    Ok(dto(args, asker, explanation))
}

/// Lets the first node that answers explain.
fn online(args: &ExplainArgs, servers: &[ServerArg]) -> anyhow::Result<ExplanationDto> {
    let nodes = Nodes::new(servers, &args.access)?;
    let ask = Ask::of(["explain"])
        .with("name", &args.name)
        .with("type", args.record_type)
        .maybe("client", args.client.map(|client| client.0))
        .maybe("resolver", args.resolver);
    let read = async |client: &Client| client.get::<dto::ExplanationDto>(&ask).await;
    let found = runtime()?.block_on(first(&nodes, read))?;
    if let Some(words) = found.note() {
        note(&words);
    }
    let said = found.value;
    Ok(ExplanationDto {
        name: clean(&said.name),
        r#type: clean(&said.r#type),
        client: clean(&said.client),
        rcode: clean(&said.rcode),
        cluster: said.cluster.as_deref().map(clean),
        ttl: said.ttl,
        scope: said.scope,
        answer: said.answer.iter().map(|record| clean(record)).collect(),
        steps: said.steps.iter().map(|step| clean(&step.text)).collect(),
    })
}

/// Turns an explanation into what crosses the boundary.
fn dto(args: &ExplainArgs, asker: Asker, explanation: Explanation) -> ExplanationDto {
    let client = match asker {
        Asker::Client(client) => client,
        Asker::Resolver(address) => ClientSubnet::host(address),
    };
    ExplanationDto {
        name: args.name.to_string(),
        r#type: args.record_type.to_string(),
        client: client.to_string(),
        rcode: explanation.rcode,
        cluster: explanation.cluster,
        ttl: explanation.ttl,
        scope: explanation.scope,
        answer: explanation.answer,
        steps: explanation.steps,
    }
}

/// Prints an explanation for people.
fn print(dto: &ExplanationDto) -> io::Result<()> {
    let style = Style::of(&io::stdout());
    line(style.bold(&format!("{} {} for {}", dto.name, dto.r#type, dto.client)))?;
    for (number, step) in dto.steps.iter().enumerate() {
        line(format_args!("{:>3}. {step}", number + 1))?;
    }
    let rcode = if dto.answer.is_empty() {
        style.yellow(&dto.rcode)
    } else {
        style.green(&dto.rcode)
    };
    line(format_args!("{rcode}, ECS scope /{}", dto.scope))?;
    for record in &dto.answer {
        line(format_args!("     {record}"))?;
    }
    Ok(())
}
