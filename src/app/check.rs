//! `meridian check`.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;

use super::args::{CheckArgs, OutputArg};
use super::load::{Former, LoadError, Prepared, Remembered, parse, prepare};
use super::output::{Style, in_one, line};
use crate::config::Fault;
use crate::controller::Load;
use crate::inventory::{Change, ClusterRegistry, Dirty, Inventory};
use crate::model::{Rejection, counted};
use crate::snapshot::{Built, Inputs, Snapshot, build};

/// One finding, as `--output json` shows it.
#[derive(Debug, Serialize)]
struct FindingDto {
    level: &'static str,
    source: String,
    line: Option<usize>,
    column: Option<usize>,
    path: String,
    message: String,
}

/// How many findings there are of each level.
#[derive(Debug, Serialize)]
struct SummaryDto {
    errors: usize,
    warnings: usize,
}

/// The whole result, as `--output json` shows it.
#[derive(Debug, Serialize)]
struct ResultDto {
    ok: bool,
    summary: SummaryDto,
    findings: Vec<FindingDto>,
}

/// Checks a configuration with its zone files, its databases and the claims of its services.
pub(super) fn check(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let source = args.config.display().to_string();
    let mut findings = Vec::new();
    let mut summary = String::new();
    match parse(&args.config, &mut ClusterRegistry::default()) {
        Err(LoadError::Faults { faults, .. }) => {
            findings.extend(faults.iter().map(|fault| of_fault("error", &source, fault)))
        }
        Err(error) => findings.push(of_error(&source, &error)),
        Ok(parsed) => {
            findings.extend(
                parsed
                    .warnings
                    .iter()
                    .map(|warning| of_fault("warning", &source, warning)),
            );
            match prepare(parsed, &Former::default(), &Remembered::default()) {
                Err(LoadError::Refused(rejections)) => {
                    findings.extend(rejections.iter().map(of_rejection))
                }
                Err(error) => findings.push(of_error(&source, &error)),
                Ok(Prepared {
                    load, rejections, ..
                }) => {
                    findings.extend(rejections.iter().map(of_rejection));
                    let counts = (
                        load.zones.iter().count(),
                        load.clusters.len(),
                        load.services.len(),
                    );
                    let (_, built) = build_once(load);
                    findings.extend(built.rejections.iter().map(of_rejection));
                    summary = [
                        counted(counts.0, "zone"),
                        counted(counts.1, "cluster"),
                        counted(counts.2, "service"),
                    ]
                    .join(", ");
                }
            }
        }
    }
    let errors = findings
        .iter()
        .filter(|finding| finding.level == "error")
        .count();
    match args.output {
        OutputArg::Json => line(serde_json::to_string_pretty(&ResultDto {
            ok: errors == 0,
            summary: SummaryDto {
                errors,
                warnings: findings.len() - errors,
            },
            findings,
        })?)?,
        OutputArg::Table => print_findings(&source, &findings, errors, &summary)?,
    }
    Ok(if errors == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Builds a snapshot out of a load, without a controller. The inventory is handed back for those who look things up.
pub(super) fn build_once(load: Load) -> (Inventory, Built) {
    let mut inventory = Inventory::default();
    let mut dirty = inventory.apply(Change::Clusters(load.clusters));
    dirty.merge(inventory.apply(Change::Replace(load.services)));
    let dirty: Dirty = dirty;
    let inputs = Inputs {
        inventory: &inventory,
        zones: &load.zones,
        geo: &load.geo,
        groups: &load.groups,
        settings: &load.settings,
        states: &[],
    };
    let built = build(&inputs, &dirty, &Arc::new(Snapshot::default()));
    (inventory, built)
}

/// Turns a fault or warning of the configuration into a finding.
fn of_fault(level: &'static str, source: &str, fault: &Fault) -> FindingDto {
    FindingDto {
        level,
        source: source.to_owned(),
        line: (fault.line > 0).then_some(fault.line),
        column: (fault.column > 0).then_some(fault.column),
        path: fault.path.clone(),
        message: fault.message.clone(),
    }
}

/// Turns what was in the way of reading at all into a finding.
fn of_error(source: &str, error: &LoadError) -> FindingDto {
    let whole = in_one(error);
    let message = whole.strip_prefix(source).unwrap_or(&whole);
    FindingDto {
        level: "error",
        source: source.to_owned(),
        line: None,
        column: None,
        path: String::new(),
        message: message.trim_start_matches([':', ' ']).to_owned(),
    }
}

/// Turns a rejection into a finding. A place that is a line of a file is the finding's line.
fn of_rejection(rejection: &Rejection) -> FindingDto {
    let line = rejection.line();
    FindingDto {
        level: "error",
        source: rejection.source.clone(),
        line,
        column: None,
        path: line.map_or_else(|| rejection.place.clone(), |_| String::new()),
        message: rejection.reason.clone(),
    }
}

/// Prints the findings for people: `file:line:column: path: message`, as compilers do.
fn print_findings(
    source: &str,
    findings: &[FindingDto],
    errors: usize,
    summary: &str,
) -> io::Result<()> {
    let style = Style::of(&io::stdout());
    for finding in findings {
        let level = if finding.level == "error" {
            style.red("error")
        } else {
            style.yellow("warning")
        };
        let mut place = finding.source.clone();
        for number in [finding.line, finding.column].into_iter().flatten() {
            place.push_str(&format!(":{number}"));
        }
        let path = if finding.path.is_empty() {
            String::new()
        } else {
            format!("{}: ", style.bold(&finding.path))
        };
        line(format_args!("{place}: {level}: {path}{}", finding.message))?;
    }
    let warnings = findings.len() - errors;
    if errors == 0 {
        let tail = if warnings == 0 {
            String::new()
        } else {
            format!(", {}", counted(warnings, "warning"))
        };
        line(format_args!(
            "{} {source}: {summary}{tail}",
            style.green("ok:")
        ))
    } else {
        line(format_args!(
            "{} {source}: {}, {}",
            style.red("not usable:"),
            counted(errors, "error"),
            counted(warnings, "warning")
        ))
    }
}
