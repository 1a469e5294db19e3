//! `meridian check`: every fault of every stage at once.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::args::{CheckArgs, OutputArg};
use super::clusters_from::Directories;
use super::findings::{Finding, of_rejections, places};
use super::joining::Joining;
use super::kubeconfigs;
use super::load::{Former, LoadError, Parsed, Remembered, Survey, parse, survey};
use super::output::{Style, json, line, yaml};
use super::precedence;
use crate::config::{Config, Fault, Severity, ZoneSource};
use crate::controller::{Load, Offers};
use crate::inventory::{Change, ClusterRegistry, Dirty, Inventory};
use crate::model::{LowerName, Refusals, Rejection, Ttl, counted};
use crate::snapshot::{Built, Challenges, Inputs, Snapshot, build, refused_claims};
use crate::source::{Fingerprint, ZoneContext, ZoneFiles, load_zones, read_databases};
use crate::zone::{NameForms, Nameserver, SoaTimers, Zone, ZoneSet, ZoneSpec};

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
    findings: Vec<Finding>,
}

/// Checks a configuration with its zone files, its databases, its kubeconfig files and the claims of its services.
pub(super) fn check(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let path = &args.config;
    let mut registry = ClusterRegistry::default();
    let (findings, summary) = match parse(path, &mut registry) {
        Err(LoadError::Faults {
            faults,
            hash,
            sound,
            ..
        }) => {
            let of_fault = |fault| Finding::of_fault(path, fault);
            let mut findings: Vec<Finding> = faults.iter().map(of_fault).collect();
            findings.extend(match sound.filter(|_| are_zones_sound(&faults)) {
                Some(config) => check_sound(path, *config, hash),
                None => of_rejections(path, &hash, &files_alone(path, &hash)),
            });
            (findings, String::new())
        }
        Err(error) => (vec![Finding::of_error(path, &error)], String::new()),
        Ok(parsed) => check_parsed(parsed, &mut registry),
    };
    let errors = findings
        .iter()
        .filter(|finding| finding.level == "error")
        .count();
    if args.output == OutputArg::Table {
        print_findings(&path.display().to_string(), &findings, errors, &summary)?;
    } else {
        let result = ResultDto {
            ok: errors == 0,
            summary: SummaryDto {
                errors,
                warnings: findings.len() - errors,
            },
            findings,
        };
        match args.output {
            OutputArg::Yaml => yaml(&result)?,
            _ => json(&result)?,
        }
    }
    Ok(if errors == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Tells whether no fault is about a zone: names of services would seem to lie outside of all zones.
fn are_zones_sound(faults: &[Fault]) -> bool {
    let mut grave = faults
        .iter()
        .filter(|fault| fault.severity == Severity::Fault);
    !grave.any(|fault| fault.path.is_empty() || fault.path.starts_with("zones"))
}

/// Checks what the sound part of a configuration leads to.
fn check_sound(path: &Path, config: Config, hash: String) -> Vec<Finding> {
    let parsed = Parsed {
        path: path.to_owned(),
        config,
        warnings: Vec::new(),
        hash,
        fingerprint: Fingerprint::of(path),
    };
    check_parsed(parsed, &mut ClusterRegistry::default()).0
}

/// Checks what a configuration without faults of its own leads to.
fn check_parsed(mut parsed: Parsed, registry: &mut ClusterRegistry) -> (Vec<Finding>, String) {
    let (path, hash) = (parsed.path.clone(), parsed.hash.clone());
    let warnings = parsed.warnings.iter();
    let mut findings: Vec<Finding> = warnings
        .map(|warning| Finding::of_fault(&path, warning))
        .collect();
    let joining = Joining::begin(&mut parsed.config, registry, (&Offers::default(), None));
    let found = &joining.directories;
    findings.extend(directory_warnings(found, &path, &hash));
    let kubernetes = &parsed.config.kubernetes;
    findings.extend(kubeconfigs::warnings(kubernetes, &path, &hash));
    let zones = parsed.config.zones.clone();
    let refused = crate::admin::refused_files(&parsed.config.admin);
    let Survey {
        mut prepared,
        mut faults,
        missing,
    } = survey(parsed, &Former::default(), &Remembered::default());
    faults.append(&mut prepared.rejections);
    let load = &prepared.load;
    findings.extend(precedence::warnings((&zones, &load.zones), &path, &hash));
    let summary = [
        counted(load.zones.iter().count(), "zone"),
        counted(load.clusters.len(), "cluster"),
        counted(load.services.len(), "service"),
    ]
    .join(", ");
    if !missing.is_empty() {
        prepared.load.zones = Arc::new(with_stand_ins(&prepared.load.zones, &zones, &missing));
    }
    faults.extend(claims_of(prepared.load));
    faults.extend(refused);
    findings.extend(of_rejections(&path, &hash, &faults));
    (findings, summary)
}

/// Warns of directories that cannot be read and of files in them that are no clusters: they may be mounted later.
fn directory_warnings(directories: &Directories, path: &Path, hash: &str) -> Vec<Finding> {
    let refused = directories.refused(&<_>::default());
    if refused.is_empty() {
        return Vec::new();
    }
    let places = places(path, hash, &[]);
    let warn = |(directory, refused): (&String, &Refusals)| {
        let place = places.directories.get(Path::new(directory)).cloned();
        let kept = refused.kept().to_vec();
        kept.into_iter()
            .map(move |one| Finding::warning(path, place.as_ref(), one.to_string()))
    };
    refused.iter().flat_map(warn).collect()
}

/// Puts zones without records in the place of those whose files are broken: claims of services are checked all the same.
fn with_stand_ins(set: &ZoneSet, sources: &[ZoneSource], missing: &[LowerName]) -> ZoneSet {
    let broken = sources
        .iter()
        .filter(|source| missing.contains(&source.spec.apex));
    let stand_ins = broken.filter_map(|source| Zone::compile(&stand_in(&source.spec.apex)).ok());
    let good = set.iter().map(|(_, zone)| Arc::clone(zone));
    ZoneSet::new(good.chain(stand_ins.map(Arc::new)).collect())
}

/// Makes a zone of which nothing is known but its apex. Its name server lies outside of every zone.
fn stand_in(apex: &LowerName) -> ZoneSpec {
    let name = if apex.as_ref().is_root() {
        apex.prepend(b"ns").ok()
    } else {
        "ns.invalid".parse().ok()
    };
    let hour = Duration::from_secs(3600);
    ZoneSpec {
        apex: apex.clone(),
        nameservers: name
            .into_iter()
            .map(|name| Nameserver {
                name,
                addresses: vec![std::net::Ipv4Addr::LOCALHOST.into()],
            })
            .collect(),
        contact: None,
        soa: SoaTimers {
            ttl: Ttl::BRIEF,
            refresh: hour,
            retry: hour,
            expire: hour,
        },
        ns_ttl: Ttl::BRIEF,
        ttl: Ttl::BRIEF,
        negative_ttl: Ttl::BRIEF,
        file: None,
        serial: 1,
        acme: None,
        forms: NameForms::default(),
    }
}

/// Checks databases and zone files by themselves, where the configuration has faults that leave everything else open.
fn files_alone(path: &Path, hash: &str) -> Vec<Rejection> {
    let places = places(path, hash, &[]);
    let databases: Vec<PathBuf> = places.databases.into_iter().map(|(path, _)| path).collect();
    let mut rejections = read_databases(&databases, &[], &|_| None).rejections;
    let with_file = places.zones.into_iter().filter(|zone| zone.file.is_some());
    let wishes: Vec<(ZoneSpec, Option<PathBuf>)> = with_file
        .map(|zone| (stand_in(&zone.apex), zone.file))
        .collect();
    let context = ZoneContext {
        former: &ZoneFiles::default(),
        remembered: &|_| None,
        serial: &|_| 1,
    };
    rejections.extend(load_zones(&wishes, context).rejections);
    rejections
}

/// Lists the claims of a load that would be refused.
pub(super) fn claims_of(mut load: Load) -> Vec<Rejection> {
    // What was made dirty is everything.
    let (inventory, _) = take_stock(&mut load);
    refused_claims(&inputs(&inventory, &load, &Arc::default()))
}

/// Builds a snapshot out of a load, without a controller. The inventory is handed back for those who look things up.
pub(super) fn build_once(mut load: Load) -> (Inventory, Built) {
    let (inventory, dirty) = take_stock(&mut load);
    let challenges = Arc::default();
    let inputs = inputs(&inventory, &load, &challenges);
    let built = build(&inputs, &dirty, &Arc::new(Snapshot::default()));
    (inventory, built)
}

/// Moves a load's clusters and services into an inventory.
fn take_stock(load: &mut Load) -> (Inventory, Dirty) {
    let mut inventory = Inventory::default();
    let mut dirty = inventory.apply(Change::Clusters(std::mem::take(&mut load.clusters)));
    dirty.merge(inventory.apply(Change::Replace(std::mem::take(&mut load.services))));
    (inventory, dirty)
}

/// Names what a snapshot is built of, where nobody has judged an endpoint.
fn inputs<'a>(
    inventory: &'a Inventory,
    load: &'a Load,
    challenges: &'a Arc<Challenges>,
) -> Inputs<'a> {
    Inputs {
        inventory,
        zones: &load.zones,
        geo: &load.geo,
        groups: &load.groups,
        settings: &load.settings,
        challenges,
        states: &[],
    }
}

/// Prints the findings for people: `file:line:column: path: message`, as compilers do.
fn print_findings(
    source: &str,
    findings: &[Finding],
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
        let place = finding.place();
        let path = if finding.path.is_empty() {
            String::new()
        } else {
            format!("{}: ", style.bold(&finding.path))
        };
        line(format_args!("{place}: {level}: {path}{}", finding.words()))?;
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
