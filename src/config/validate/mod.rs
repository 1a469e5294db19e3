//! From what was written to what was checked: one section, one file. All faults are collected; nothing stops at the first.

mod acme;
mod admin;
mod atlas;
mod checks;
mod clusters;
mod clusters_from;
mod dns;
mod doubts;
mod endpoints;
mod federation;
mod geoip;
mod grants;
mod groups;
mod interned;
mod kubernetes;
mod labels;
mod members;
mod monitor;
mod node;
mod observability;
mod peers;
mod policy;
mod probes;
mod read;
mod resolver;
mod selectors;
mod services;
#[cfg(test)]
mod tests;
mod world;
mod zones;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use atlas::Atlas;
use clusters::Clusters;
use monitor::{Hostless, MonitorKeys};
use policy::PolicyKeys;
pub(crate) use read::parse_duration;
use selectors::Scope;
use services::Read;
use world::World;

use crate::config::checked::Config;
use crate::config::faults::{Fault, Report, Warning};
use crate::config::spec::{self, Fields, Lane, Node, Root, Source, Tape, fields, v1};
use crate::inventory::ClusterRegistry;

/// Largest configuration file in octets: 1 GiB, twice a million services.
pub const MAX_BYTES: usize = 1 << 30;

/// What holds where the file says nothing, and only the machine knows.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// The host name, for `node.name`.
    pub node_name: String,
}

/// Reads and checks a configuration.
///
/// `file` is where the text came from: relative paths in it are relative to its folder. Clusters get the index that their
/// name ever had in `registry`, which changes only when the whole is accepted.
///
/// # Errors
/// All faults at once, by line, at most 1,000 and one that counts the rest.
pub fn parse(
    text: &str,
    file: &Path,
    registry: &mut ClusterRegistry,
    defaults: &Defaults,
) -> Result<(Config, Vec<Warning>), Faulty> {
    let surroundings = Surroundings {
        node_name: &defaults.node_name,
        atlas: &Atlas::built_in(),
        lane: Lane::Auto,
    };
    parse_with(text, file, registry, surroundings)
}

/// A configuration that is refused.
#[derive(Debug)]
pub struct Faulty {
    /// All faults, and the warnings behind them.
    pub faults: Vec<Fault>,
    /// What is sound of it, for finding what else is wrong: parts with a fault are left out or have their default. `None`: the
    /// text itself cannot be read.
    pub sound: Option<Box<Config>>,
}

impl Faulty {
    /// Refuses a text that cannot be read.
    fn unreadable(faults: Vec<Fault>) -> Self {
        Self {
            faults,
            sound: None,
        }
    }
}

/// What [`parse`] takes from the machine and the world.
#[derive(Clone, Copy)]
struct Surroundings<'s> {
    node_name: &'s str,
    atlas: &'s Atlas,
    lane: Lane,
}

/// Turns paths as written into absolute ones.
pub(super) struct Files {
    /// The folder of the configuration file.
    folder: PathBuf,
}

impl Files {
    /// Takes the path of the configuration file.
    fn new(file: &Path) -> Self {
        let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        Self {
            folder: whole.parent().unwrap_or_else(|| Path::new("/")).to_owned(),
        }
    }

    /// Reads a path; relative ones begin at the configuration file's folder.
    fn path(&self, node: Node<'_, '_>, report: &mut Report) -> Option<PathBuf> {
        let text = read::text(node, report)?;
        if text.is_empty() || text.chars().any(char::is_control) {
            report.fault(node, "the path of a file is wanted");
            return None;
        }
        Some(self.folder.join(text))
    }
}

/// Does what [`parse`] does.
fn parse_with(
    text: &str,
    file: &Path,
    registry: &mut ClusterRegistry,
    surroundings: Surroundings<'_>,
) -> Result<(Config, Vec<Warning>), Faulty> {
    if text.len() > MAX_BYTES {
        return Err(Faulty::unreadable(vec![Fault::of_file(format_args!(
            "the file is larger than {} MiB",
            MAX_BYTES >> 20
        ))]));
    }
    let mut report = Report::default();
    let source = Source::new(text, surroundings.lane);
    let mut tape = Tape::default();
    let cut = match source.read(&mut tape) {
        Ok(cut) => cut,
        Err(flaws) => {
            for flaw in flaws {
                report.flaw("", flaw);
            }
            let faults = report.finish().err().unwrap_or_default();
            return Err(Faulty::unreadable(faults));
        }
    };
    // Indices are handed out for good only when the file is accepted.
    let mut new_registry = registry.clone();
    let config = match tape.root().filter(|root| !root.is_null()) {
        None => {
            report.flaw(
                "",
                spec::Flaw::of_file("the file is empty; the least is `version: 1`"),
            );
            None
        }
        Some(root) => fields(root, &v1::FILE, &mut report)
            .map(|fields| Sections {
                fields,
                cut,
                surroundings,
                files: Files::new(file),
            })
            .map(|sections| sections.check(&mut new_registry, &mut report)),
    };
    match (report.finish(), config) {
        (Ok(warnings), Some(config)) => {
            *registry = new_registry;
            Ok((config, warnings))
        }
        (faults, config) => Err(Faulty {
            faults: faults.err().unwrap_or_default(),
            sound: config.map(Box::new),
        }),
    }
}

/// The sections of a file, and what they need.
struct Sections<'s, 't, 'a, 'x> {
    fields: Fields<'t, 'a>,
    cut: Option<spec::Services<'x>>,
    surroundings: Surroundings<'s>,
    files: Files,
}

impl<'t, 'a> Sections<'_, 't, 'a, '_> {
    fn get(&self, name: &str) -> Option<Node<'t, 'a>> {
        self.fields.get(name)
    }

    /// Checks all sections: first what others refer to.
    fn check(&self, registry: &mut ClusterRegistry, report: &mut Report) -> Config {
        let Surroundings {
            node_name, atlas, ..
        } = self.surroundings;
        if let Some(node) = self.get("version") {
            let _ = read::integer(node, 1..=1_u8, report);
        }
        let groups = groups::read(self.get("groups"), atlas, report);
        let surroundings = (atlas, &self.files);
        let mut clusters = clusters::read(self.get("clusters"), surroundings, registry, report);
        let sources = self.get("clustersFrom");
        if sources.is_some() {
            clusters.expect_more();
        }
        let sources = clusters_from::read(sources, (&self.files, &clusters), report);
        let zones = zones::read(self.get("zones"), &self.files, report);
        let scope = Scope {
            atlas,
            groups: &groups,
            clusters: &clusters,
        };
        let (policy, monitor) = self.defaults(scope, report);
        let world = World {
            scope,
            zones: &zones.zones,
            policy: &policy,
            monitor: &monitor,
        };
        let federation = (&policy, self.default("policy"));
        let mut federation = federation::read(&zones, &clusters, federation, report);
        let kubernetes = ((&monitor, self.default("monitor")), &policy);
        let mut kubernetes = crate::source::kubernetes::Config {
            sources,
            ..kubernetes::read(self.get("kubernetes"), scope, kubernetes, report)
        };
        federation.min_ttl = Some(kubernetes.rules.min_ttl);
        if zones.sources.is_empty() {
            let node = self.get("zones").unwrap_or(self.fields.node);
            report.warn(node, "no zone, so every query is refused: write `zones: [{name: svc.example.com, nameservers: [...]}]`");
        }
        let read = self.services(world, report);
        self.doubts(&read, &clusters, &monitor, report);
        let geoip = geoip::read(self.get("geoip"), &self.files, atlas, &clusters, report);
        let (mut dns, settings) = dns::read(self.get("dns"), report);
        dns.query_log = observability::query_log(self.get("queryLog"), &self.files, report);
        let resolver = resolver::read(self.get("resolver"), &dns.listen, report);
        let sections = (self.get("admin"), self.get("metrics"));
        let dns_listen = self.get("dns").and_then(|node| {
            let (_, value) = node.entries().find(|(key, _)| key.text() == "listen")?;
            Some(value).filter(|value| !value.is_null())
        });
        let dns_listen = (dns_listen, &dns.listen[..]);
        let admin = admin::read(sections, dns_listen, &self.files, report);
        let node = node::read(self.get("node"), node_name, &self.files, report);
        let peers = peers::read(self.get("peers"), &node.name, &self.files, report);
        if let Some(write_back) = &mut kubernetes.write_back {
            write_back.node = node.name.as_str().into();
        }
        Config {
            node,
            dns,
            settings,
            zones: zones.sources,
            geoip,
            probes: probes::read(self.get("probes"), &clusters, report),
            clusters: clusters.into_list(),
            groups,
            services: read.services,
            kubernetes,
            federation: Arc::new(federation),
            resolver,
            otlp: observability::otlp(self.get("telemetry"), &self.files, report),
            admin,
            peers,
        }
    }

    /// Warns of what shows only once all services are read.
    fn doubts(
        &self,
        read: &Read,
        clusters: &Clusters<'_, '_>,
        monitor: &MonitorKeys,
        report: &mut Report,
    ) {
        // Kubernetes services are judged unless they say otherwise.
        let any_judged = read.any_monitored || read.services.is_empty() || clusters.has_members();
        doubts::of_defaults(self.default("policy"), monitor, any_judged, report);
        if read.by_distance {
            for (cluster, node) in clusters.without_coordinates() {
                report.warn(
                    node,
                    format_args!(
                        "`{}` has no place, so distance cannot rank it: {}",
                        cluster.id,
                        clusters::placeless(cluster)
                    ),
                );
            }
        }
    }

    /// Checks `defaults`.
    fn defaults(&self, scope: Scope<'_, '_, '_>, report: &mut Report) -> (PolicyKeys, MonitorKeys) {
        let fields = self
            .get("defaults")
            .and_then(|node| fields(node, &v1::DEFAULTS, report));
        let get = |name| fields.and_then(|fields| fields.get(name));
        let policy = get("policy").and_then(|node| policy::read(node, None, scope, report));
        let has_services = self.cut.is_some() || self.get("services").is_some();
        let hostless = if scope.clusters.has_members() && !has_services {
            Hostless::FirstName
        } else {
            Hostless::Address
        };
        let monitor = get("monitor").and_then(|node| monitor::read(node, hostless, report));
        if let (Some(monitor), Some(node)) = (&monitor, get("monitor"))
            && monitor.has_check()
        {
            let _ = monitor.clone().finish(node, report);
        }
        (policy.unwrap_or_default(), monitor.unwrap_or_default())
    }

    /// Finds a key of `defaults`, which was checked already.
    fn default(&self, name: &str) -> Option<Node<'t, 'a>> {
        let entries = self.get("defaults")?.entries();
        let found = entries.filter(|(key, _)| key.text() == name);
        found.map(|(_, value)| value).next()
    }

    /// Checks `services`, from the lines cut out or from the tape.
    fn services(&self, world: World<'_, '_, '_>, report: &mut Report) -> Read {
        let Some(mut cut) = self.cut else {
            let mut services = services::Services::new(world, 0);
            if let Some(node) = self.get("services") {
                let mut index = 0;
                let _: Vec<()> = read::list(node, report, |item, report| {
                    services.take(item, index, report);
                    index += 1;
                    None
                });
            }
            return services.finish();
        };
        let mut services = services::Services::new(world, cut.expected());
        let mut tape = Tape::default();
        while let Some(result) = cut.next(&mut tape) {
            let index = cut.last_index();
            match (result, tape.root()) {
                (Ok(()), Some(node)) => services.take(node, index, report),
                (Ok(()), None) => {}
                (Err(flaws), _) => {
                    for flaw in flaws {
                        report.flaw(&format!("services[{index}]"), flaw);
                    }
                }
            }
            tape.clear(Root::File);
        }
        services.finish()
    }
}
