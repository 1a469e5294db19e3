//! The servers to compare: where each is found, and the configuration that makes it do the same with one thread.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use meridian::model::Continent;

use crate::world::{CLUSTERS, Cluster, TTL, ZONE, label, order, static_zone, v4, v6};

/// What a server does, and so what of its replies is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Sends every query back: the floor.
    Echo,
    /// Answers by the client's continent.
    Geo,
    /// Gives everyone the same answer.
    Static,
}

/// What a configuration is written from.
pub(crate) struct Setting<'a> {
    pub(crate) names: usize,
    /// The server's own folder.
    pub(crate) folder: &'a Path,
    /// Where it must answer.
    pub(crate) address: SocketAddr,
    /// The MMDB file for servers that need one.
    pub(crate) database: &'a Path,
}

/// A server to compare.
#[derive(Clone, Copy)]
pub(crate) struct Contestant {
    /// As it is chosen on the command line.
    pub(crate) name: &'static str,
    /// As it stands in the tables.
    pub(crate) title: &'static str,
    pub(crate) kind: Kind,
    /// The program to look for; none: it comes with us.
    pub(crate) program: Option<Program>,
    /// Whether it reads the MMDB file.
    pub(crate) needs_database: bool,
    /// Writes its configuration and gives its arguments.
    pub(crate) configure: fn(&Setting<'_>) -> anyhow::Result<Vec<String>>,
}

/// A program that may be on this machine.
#[derive(Clone, Copy)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// The argument that makes it say its version.
    asked: &'static str,
    /// What it calls itself there.
    says: &'static str,
}

/// All of them, in the order of the tables.
pub(crate) const CONTESTANTS: [Contestant; 6] = [
    Contestant {
        name: "floor",
        title: "bare recvmmsg/sendmmsg echo",
        kind: Kind::Echo,
        program: None,
        needs_database: false,
        configure: floor,
    },
    Contestant {
        name: "meridian",
        title: "Meridian",
        kind: Kind::Geo,
        program: None,
        needs_database: false,
        configure: |setting| meridian(setting, "", ""),
    },
    Contestant {
        name: "gdnsd",
        title: "gdnsd",
        kind: Kind::Geo,
        program: Some(Program {
            name: "gdnsd",
            asked: "-V",
            says: "gdnsd",
        }),
        needs_database: true,
        configure: gdnsd,
    },
    Contestant {
        name: "knot",
        title: "Knot DNS, mod-geoip",
        kind: Kind::Geo,
        program: Some(Program {
            name: "knotd",
            asked: "--version",
            says: "knotd",
        }),
        needs_database: true,
        configure: knot,
    },
    Contestant {
        name: "nsd",
        title: "NSD (static zone, no geo)",
        kind: Kind::Static,
        program: Some(Program {
            name: "nsd",
            asked: "-v",
            says: "NSD",
        }),
        needs_database: false,
        configure: nsd,
    },
    Contestant {
        name: "pdns",
        title: "PowerDNS, geoip backend",
        kind: Kind::Geo,
        program: Some(Program {
            name: "pdns_server",
            asked: "--version",
            says: "PowerDNS",
        }),
        needs_database: true,
        configure: pdns,
    },
];

impl Program {
    /// Finds it on the search path, and where servers lie that an ordinary user's search path does not have.
    pub(crate) fn find(self) -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let more = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
        let folders = std::env::split_paths(&path).chain(more);
        folders
            .map(|folder| folder.join(self.name))
            .find(|file| file.is_file())
    }

    /// Asks it for its version: from its name to the end of that line, its copyright aside.
    pub(crate) fn version(self, path: &Path) -> String {
        let output = Command::new(path).arg(self.asked).output();
        let text = output.map_or_else(
            |_| Vec::new(),
            |output| [output.stdout, output.stderr].concat(),
        );
        let text = String::from_utf8_lossy(&text);
        let version = text.lines().find_map(|line| {
            let line = &line[line.find(self.says)?..];
            let line = line.split(" (C)").next()?;
            line.contains(|c: char| c.is_ascii_digit())
                .then(|| line.trim().to_owned())
        });
        version.unwrap_or_else(|| format!("{} of unknown version", self.name))
    }
}

/// Writes a file of a server, with the folder it lies in.
fn write(setting: &Setting<'_>, name: &str, text: &str) -> anyhow::Result<PathBuf> {
    let path = setting.folder.join(name);
    let folder = path.parent().context("a file lies in a folder")?;
    fs::create_dir_all(folder)?;
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Makes a folder of a server and gives its path as text.
fn folder(setting: &Setting<'_>, name: &str) -> anyhow::Result<String> {
    let path = setting.folder.join(name);
    fs::create_dir_all(&path)?;
    text(&path)
}

/// Gives a path as text; configurations are text.
fn text(path: &Path) -> anyhow::Result<String> {
    match path.to_str() {
        Some(path) if !path.contains(['"', ' ']) => Ok(path.to_owned()),
        _ => bail!(
            "the folder for scratch files must have a plain name: {}",
            path.display()
        ),
    }
}

/// Iterates over the continents with the index of their cluster.
fn map() -> impl Iterator<Item = (Continent, usize)> {
    let clusters = CLUSTERS.iter().enumerate();
    clusters.flat_map(|(index, cluster)| {
        cluster
            .continents
            .iter()
            .map(move |&continent| (continent, index))
    })
}

/// Gives the names of the clusters in the order for the clients of one.
fn ordered(cluster: usize) -> String {
    order(cluster).map(|index| CLUSTERS[index].name).join(", ")
}

/// The echo is this program itself.
fn floor(setting: &Setting<'_>) -> anyhow::Result<Vec<String>> {
    Ok(vec!["--echo".into(), setting.address.to_string()])
}

/// Meridian: one worker, the map of continents as a policy of all services; `keys` and `services` are added as they are.
pub(crate) fn meridian(
    setting: &Setting<'_>,
    keys: &str,
    services: &str,
) -> anyhow::Result<Vec<String>> {
    let listen = setting.address;
    let mut out = format!(
        "version: 1\nnode: {{name: bench, stateDirectory: \"\"}}\ndns: {{listen: [\"{listen}\"], workers: 1}}\n{keys}\
         zones:\n  - {{name: {ZONE}, ttl: {TTL}, nameservers: [{{name: ns1.{ZONE}, addresses: [127.0.0.1]}}], contact: hostmaster.{ZONE}}}\n\
         clusters:\n"
    );
    for Cluster { name, region, .. } in &CLUSTERS {
        let _ = writeln!(out, "  - {{name: {name}, provider: aws, region: {region}}}");
    }
    out.push_str("defaults:\n  policy:\n    maps:\n");
    for (index, cluster) in CLUSTERS.iter().enumerate() {
        let continents: Vec<_> = cluster
            .continents
            .iter()
            .map(|continent| continent.code())
            .collect();
        let (continents, clusters) = (continents.join(", "), ordered(index));
        let _ = writeln!(
            out,
            "      - {{continents: [{continents}], clusters: [{clusters}]}}"
        );
    }
    let _ = writeln!(out, "services:\n{services}");
    for number in 0..setting.names {
        let label = label(number);
        let _ = write!(
            out,
            "  - {{namespace: bench, name: {label}, hostnames: [{label}.{ZONE}], monitor: none, endpoints: ["
        );
        for (index, Cluster { name, .. }) in CLUSTERS.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            let (v4, v6) = (v4(index, number), v6(index, number));
            let _ = write!(
                out,
                "{comma}{{cluster: {name}, addresses: [{v4}, \"{v6}\"]}}"
            );
        }
        out.push_str("]}\n");
    }
    let file = write(setting, "meridian.yaml", &out)?;
    Ok(vec!["run".into(), "--config".into(), text(&file)?])
}

/// gdnsd: one UDP thread, a resource a name in one map.
fn gdnsd(setting: &Setting<'_>) -> anyhow::Result<Vec<String>> {
    let (run, state) = (folder(setting, "run")?, folder(setting, "state")?);
    let (listen, database) = (setting.address, text(setting.database)?);
    folder(setting, "geoip")?;
    let clusters = CLUSTERS.map(|cluster| cluster.name).join(", ");
    let mut out = format!(
        "options => {{ listen => {{ {listen} => {{ udp_threads = 1, tcp_threads = 1 }} }}, run_dir = {run}, state_dir = {state} }}\n\
         plugins => {{ geoip => {{\n  maps => {{ world => {{ geoip2_db => {database}, datacenters => [{clusters}], map => {{ default => [{}]",
        ordered(0)
    );
    for (continent, index) in map() {
        let _ = write!(out, ", {} => [{}]", continent.code(), ordered(index));
    }
    out.push_str(" } } }\n  resources => {\n");
    let mut zone = String::from(
        "@ 86400 SOA ns1 hostmaster 1 7200 900 3600 60\n@ 86400 NS ns1\nns1 86400 A 127.0.0.1\n",
    );
    for number in 0..setting.names {
        let label = label(number);
        let _ = write!(
            out,
            "    {label} => {{ map => world, service_types => up, dcmap => {{ "
        );
        for (index, Cluster { name, .. }) in CLUSTERS.iter().enumerate() {
            let (v4, v6) = (v4(index, number), v6(index, number));
            let _ = write!(
                out,
                "{name} => {{ addrs_v4 => {{ one => {v4} }}, addrs_v6 => {{ one => {v6} }} }}, "
            );
        }
        out.push_str("} }\n");
        let _ = writeln!(zone, "{label} {TTL} DYNA geoip!{label}");
    }
    out.push_str("  }\n} }\n");
    write(setting, "config", &out)?;
    write(setting, &format!("zones/{ZONE}"), &zone)?;
    Ok(vec!["-c".into(), text(setting.folder)?, "start".into()])
}

/// Knot DNS: one UDP worker, the geo module over a static zone, looked up by continent.
fn knot(setting: &Setting<'_>) -> anyhow::Result<Vec<String>> {
    let (run, store) = (folder(setting, "run")?, folder(setting, "db")?);
    let database = text(setting.database)?;
    let mut geo = String::new();
    for number in 0..setting.names {
        let _ = writeln!(geo, "{}.{ZONE}:", label(number));
        for (continent, index) in map() {
            let (code, v4, v6) = (continent.code(), v4(index, number), v6(index, number));
            let _ = writeln!(geo, "  - geo: \"{code}\"\n    A: {v4}\n    AAAA: {v6}");
        }
    }
    let geo = text(&write(setting, "geo.conf", &geo)?)?;
    let zone = text(&write(setting, "zone", &static_zone(setting.names))?)?;
    let out = format!(
        "server:\n  rundir: \"{run}\"\n  listen: {address}@{port}\n  udp-workers: 1\n  tcp-workers: 1\n  background-workers: 1\n  edns-client-subnet: on\n\
         log:\n  - target: stderr\n    any: warning\n\
         database:\n  storage: \"{store}\"\n\
         mod-geoip:\n  - id: world\n    config-file: \"{geo}\"\n    ttl: {TTL}\n    mode: geodb\n    geodb-file: \"{database}\"\n    geodb-key: [continent/code]\n\
         zone:\n  - domain: {ZONE}\n    file: \"{zone}\"\n    zonefile-sync: -1\n    journal-content: none\n    module: mod-geoip/world\n",
        address = setting.address.ip(),
        port = setting.address.port(),
    );
    let file = write(setting, "knot.conf", &out)?;
    Ok(vec!["--config".into(), text(&file)?])
}

/// NSD: one server process and a static zone; no user of its own, everything in its folder.
fn nsd(setting: &Setting<'_>) -> anyhow::Result<Vec<String>> {
    let run = folder(setting, "run")?;
    let zone = text(&write(setting, "zone", &static_zone(setting.names))?)?;
    let out = format!(
        "server:\n  ip-address: {address}@{port}\n  server-count: 1\n  username: \"\"\n  chroot: \"\"\n  zonesdir: \"{run}\"\n  database: \"\"\n\
         \x20 pidfile: \"{run}/pid\"\n  xfrdfile: \"{run}/xfrd.state\"\n  zonelistfile: \"{run}/zone.list\"\n  xfrdir: \"{run}\"\n\
         \x20 rrl-ratelimit: 0\n  minimal-responses: yes\n  round-robin: no\n  statistics: 0\n\
         remote-control:\n  control-enable: no\nzone:\n  name: {ZONE}\n  zonefile: \"{zone}\"\n",
        address = setting.address.ip(),
        port = setting.address.port(),
    );
    let file = write(setting, "nsd.conf", &out)?;
    Ok(vec!["-d".into(), "-c".into(), text(&file)?])
}

/// PowerDNS: one receiver and one distributor, the geoip backend with a name a continent behind each name.
fn pdns(setting: &Setting<'_>) -> anyhow::Result<Vec<String>> {
    let (run, database) = (folder(setting, "run")?, text(setting.database)?);
    let mut zones = format!(
        "domains:\n- domain: {ZONE}\n  ttl: {TTL}\n  records:\n    {ZONE}:\n      - soa: ns1.{ZONE}. hostmaster.{ZONE}. 1 7200 900 1209600 60\n\
         \x20     - ns: ns1.{ZONE}\n    ns1.{ZONE}:\n      - a: 127.0.0.1\n"
    );
    let mut services = String::from("  services:\n");
    for number in 0..setting.names {
        let label = label(number);
        for (index, Cluster { name, .. }) in CLUSTERS.iter().enumerate() {
            let (v4, v6) = (v4(index, number), v6(index, number));
            let _ = writeln!(
                zones,
                "    {name}.{label}.{ZONE}:\n      - a: {v4}\n      - aaaa: {v6}"
            );
        }
        let _ = writeln!(services, "    {label}.{ZONE}: \"%mp.{label}.{ZONE}\"");
    }
    zones.push_str(&services);
    zones.push_str("mapping_lookup_formats: [\"%cn\"]\ncustom_mapping:\n");
    for (continent, index) in map() {
        let code = continent.code().to_lowercase();
        let _ = writeln!(zones, "  {code}: {}", CLUSTERS[index].name);
    }
    let first = CLUSTERS[0].name;
    let _ = writeln!(zones, "  --: {first}\n  unknown: {first}");
    let zones = text(&write(setting, "zones.yaml", &zones)?)?;
    let out = format!(
        "launch=geoip\ngeoip-zones-file={zones}\ngeoip-database-files=mmdb:{database}\nsocket-dir={run}\nlocal-address={address}\nlocal-port={port}\n\
         edns-subnet-processing=yes\nreceiver-threads=1\ndistributor-threads=1\nreuseport=no\ndaemon=no\nguardian=no\nsecurity-poll-suffix=\nloglevel=3\n",
        address = setting.address.ip(),
        port = setting.address.port(),
    );
    write(setting, "pdns.conf", &out)?;
    Ok(vec![format!("--config-dir={}", text(setting.folder)?)])
}
