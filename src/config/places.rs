//! Where files and hostnames stand in a configuration: for faults that only show once files are read and names claimed.
//!
//! The text is read once more, which costs nothing while all is well and keeps the checked configuration free of places.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::config::spec::{Lane, Node, Root, Source, Tape};
use crate::model::LowerName;

/// One place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The path of keys, such as `zones[3].file`.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// A zone as written, as far as it can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZonePlace {
    /// Its apex.
    pub apex: LowerName,
    /// Its master file, absolute.
    pub file: Option<PathBuf>,
    /// Where the file is named, else the zone.
    pub place: Place,
    /// Keys that are written beside a file, and may say nothing.
    pub beside: Vec<(&'static str, Place)>,
}

/// The places of one configuration.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Databases, absolute, in the order written.
    pub databases: Vec<(PathBuf, Place)>,
    /// Zones whose names can be read, in the order written.
    pub zones: Vec<ZonePlace>,
    /// Files of `admin`, absolute, in the order written: certificate, key, tokens.
    pub admin: Vec<(PathBuf, Place)>,
    /// Where clusters name their kubeconfig file, and its context if they do, by the cluster's name.
    pub kubeconfigs: BTreeMap<String, (Place, Option<Place>)>,
    /// Directories of kubeconfig files, absolute.
    pub directories: BTreeMap<PathBuf, Place>,
    /// The keys at the top of the file, and those below them: `dns`, `dns.listen`.
    pub keys: BTreeMap<String, Place>,
    /// Hostnames by service (`namespace/name`) and name: those that were asked for.
    pub hostnames: BTreeMap<(String, String), Place>,
}

impl Places {
    /// Finds the places in a text; `file` is where it came from. Of the hostnames only `wanted` ones, for there may be
    /// millions. A text that is no YAML has no places, and what is written wrongly is passed over.
    #[must_use]
    pub fn find(text: &str, file: &Path, wanted: &BTreeSet<(String, String)>) -> Self {
        let mut places = Self::default();
        let source = Source::new(text, Lane::Auto);
        let mut tape = Tape::default();
        let Ok(mut cut) = source.read(&mut tape) else {
            return places;
        };
        let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let folder = whole.parent().unwrap_or_else(|| Path::new("/"));
        if let Some(root) = tape.root() {
            places.take_keys(root);
            places.take_files(root, folder);
            let services = get(root, "services").into_iter().flat_map(Node::items);
            services.for_each(|service| places.take_service(service, wanted));
        }
        let mut tape = Tape::default();
        while let Some(services) = cut.as_mut().filter(|_| !wanted.is_empty()) {
            let Some(read) = services.next(&mut tape) else {
                break;
            };
            if let (Ok(()), Some(service)) = (read, tape.root()) {
                places.take_service(service, wanted);
            }
            tape.clear(Root::File);
        }
        places
    }

    /// Notes the keys at the top and those below them.
    fn take_keys(&mut self, root: Node<'_, '_>) {
        for (section, value) in root.entries() {
            for (key, value) in value.entries() {
                let path = format!("{}.{}", section.text(), key.text());
                self.keys.entry(path).or_insert_with(|| place(value));
            }
            let path = section.text().to_owned();
            self.keys.entry(path).or_insert_with(|| place(value));
        }
    }

    /// Notes the databases, the zones and the kubeconfig files.
    fn take_files(&mut self, root: Node<'_, '_>, folder: &Path) {
        let admin = get(root, "admin");
        let tls = admin.and_then(|admin| get(admin, "tls")).into_iter();
        let tls = tls.flat_map(|tls| [get(tls, "certificate"), get(tls, "key")]);
        let tokens = admin.and_then(|admin| get(admin, "tokens")).into_iter();
        let tokens = tokens.flat_map(Node::items).map(|token| get(token, "file"));
        self.admin.extend(
            tls.chain(tokens)
                .flatten()
                .filter(|node| node.is_scalar())
                .map(|node| (folder.join(node.text()), place(node))),
        );
        let databases = get(root, "geoip").and_then(|geoip| get(geoip, "databases"));
        let databases = databases.into_iter().flat_map(Node::items);
        self.databases.extend(
            databases
                .filter(|node| node.is_scalar())
                .map(|node| (folder.join(node.text()), place(node))),
        );
        for cluster in get(root, "clusters").into_iter().flat_map(Node::items) {
            let name = get(cluster, "name").filter(|node| node.is_scalar());
            let kubeconfig = get(cluster, "kubeconfig");
            let file = kubeconfig.and_then(|node| get(node, "file"));
            if let Some((name, file)) = name.zip(file) {
                let context = kubeconfig.and_then(|node| get(node, "context"));
                self.kubeconfigs
                    .entry(name.text().to_owned())
                    .or_insert_with(|| (place(file), context.map(place)));
            }
        }
        let sources = get(root, "clustersFrom").into_iter().flat_map(Node::items);
        let directories = sources.filter_map(|source| get(source, "directory"));
        self.directories.extend(
            directories
                .filter(|node| node.is_scalar())
                .map(|node| (folder.join(node.text()), place(node))),
        );
        for zone in get(root, "zones").into_iter().flat_map(Node::items) {
            let Some(Ok(apex)) = get(zone, "name").map(|name| name.text().parse()) else {
                continue;
            };
            let file = get(zone, "file").filter(|node| node.is_scalar());
            self.zones.push(ZonePlace {
                apex,
                file: file.map(|node| folder.join(node.text())),
                place: place(file.unwrap_or(zone)),
                beside: file.map_or_else(Vec::new, |_| beside(zone)),
            });
        }
    }

    /// Notes the hostnames of one service that are wanted.
    fn take_service(&mut self, service: Node<'_, '_>, wanted: &BTreeSet<(String, String)>) {
        let text = |key| get(service, key).map_or("", Node::text);
        let key = format!("{}/{}", text("namespace"), text("name"));
        for node in get(service, "hostnames").into_iter().flat_map(Node::items) {
            let Ok(name) = node.text().parse::<LowerName>() else {
                continue;
            };
            let key = (key.clone(), name.to_string());
            if wanted.contains(&key) {
                self.hostnames.entry(key).or_insert_with(|| place(node));
            }
        }
    }
}

/// Gives the value of a key.
fn get<'t, 'a>(node: Node<'t, 'a>, name: &str) -> Option<Node<'t, 'a>> {
    let mut entries = node.entries();
    entries.find_map(|(key, value)| (key.text() == name).then_some(value))
}

/// Gives the keys of a zone that its file may say itself.
fn beside(zone: Node<'_, '_>) -> Vec<(&'static str, Place)> {
    let keys = ["nameservers", "contact", "soa", "nsTtl", "negativeTtl"];
    let written = |key| get(zone, key).filter(|node| !node.is_null());
    let keys = keys.into_iter();
    keys.filter_map(|key| Some((key, place(written(key)?))))
        .collect()
}

/// Gives the place of a node.
fn place(node: Node<'_, '_>) -> Place {
    let place = node.place();
    Place {
        path: node.path(),
        line: place.line as usize,
        column: place.column as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_hostnames_are_found_where_they_stand() {
        let block = "
version: 1
geoip: {databases: [a.mmdb, /b.mmdb]}
zones:
  - {name: Z.example, file: z.zone}
  - {name: y.example}
services:
  - {namespace: shop, name: web, hostnames: [a.z.example, WWW.z.example]}
";
        let flow = block.replace(
            "\n  - {namespace: shop, name: web, hostnames: [a.z.example, WWW.z.example]}",
            " [{namespace: shop, name: web, hostnames: [a.z.example, WWW.z.example]}]",
        );
        let wanted = ("shop/web".to_owned(), "www.z.example".to_owned());
        for (text, line) in [(block, 8), (&flow, 7)] {
            let file = Path::new("/etc/m/meridian.yaml");
            let places = Places::find(text, file, &[wanted.clone()].into());
            let shown = |place: &Place| (place.path.clone(), place.line);
            let databases: Vec<_> = places
                .databases
                .iter()
                .map(|(p, at)| (p, shown(at)))
                .collect();
            assert_eq!(
                databases,
                [
                    (
                        &"/etc/m/a.mmdb".into(),
                        ("geoip.databases[0]".to_owned(), 3)
                    ),
                    (&"/b.mmdb".into(), ("geoip.databases[1]".to_owned(), 3)),
                ]
            );
            let zones: Vec<_> = places
                .zones
                .iter()
                .map(|zone| (zone.apex.to_string(), zone.file.clone(), shown(&zone.place)))
                .collect();
            let file = Some("/etc/m/z.zone".into());
            assert_eq!(
                zones[0],
                ("z.example".into(), file, ("zones[0].file".into(), 5))
            );
            assert_eq!(zones[1], ("y.example".into(), None, ("zones[1]".into(), 6)));
            let hostnames: Vec<_> = places
                .hostnames
                .iter()
                .map(|(k, at)| (k, shown(at)))
                .collect();
            assert_eq!(
                hostnames,
                [(&wanted, ("services[0].hostnames[1]".to_owned(), line))]
            );
        }
        assert!(
            Places::find("{[", Path::new("/x"), &BTreeSet::new())
                .zones
                .is_empty()
        );
    }

    #[test]
    fn keys_are_found_where_their_values_stand() {
        let text = "version: 1\ndns:\n  listen: [a]\npeers: []\n";
        let places = Places::find(text, Path::new("m.yaml"), &BTreeSet::new());
        let keys = places.keys.iter();
        let shown: Vec<_> = keys
            .map(|(key, place)| (key.as_str(), place.path.as_str(), place.line, place.column))
            .collect();
        assert_eq!(
            shown,
            [
                ("dns", "dns", 3, 3),
                ("dns.listen", "dns.listen", 3, 11),
                ("peers", "peers", 4, 8),
                ("version", "version", 1, 10),
            ]
        );
    }

    #[test]
    fn kubeconfigs_are_found_by_cluster() {
        let text = "
version: 1
clusters:
  - {name: a, kubeconfig: {file: a.yaml, context: admin}}
  - {name: b, kubeconfig: {file: b.yaml}}
  - {name: c, inCluster: true}
  - {kubeconfig: {file: d.yaml}}
";
        let places = Places::find(text, Path::new("m.yaml"), &BTreeSet::new());
        let at = |path: &str, line, column| Place {
            path: path.to_owned(),
            line,
            column,
        };
        let a = (
            at("clusters[0].kubeconfig.file", 4, 34),
            Some(at("clusters[0].kubeconfig.context", 4, 51)),
        );
        let b = (at("clusters[1].kubeconfig.file", 5, 34), None);
        let expected = [("a".to_owned(), a), ("b".to_owned(), b)];
        assert_eq!(places.kubeconfigs, expected.into());
    }
}
