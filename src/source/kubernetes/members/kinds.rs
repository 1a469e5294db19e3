//! Which kinds are watched, and at which of the versions that a server serves.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;

use crate::model::Moment;
use crate::source::kubernetes::records::{GATEWAYS, Watched};

/// A kind that is no longer listed is gone when it is not listed so much later either: a server that starts lists its
/// own kinds before those of its definitions.
const CONFIRMED: Duration = Duration::from_secs(5);

/// What is followed in a cluster: the kinds that are read, and the definitions that bring kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A kind that is read.
    Kind(Watched),
    /// CustomResourceDefinitions, by name.
    Definitions,
    /// Secrets of clusters: of no member, but of one that clusters are found in.
    Secrets,
}

/// A kind with the group that has it and the versions that are read, preferred first.
pub(super) struct Wanted {
    /// What it is.
    pub(super) subject: Subject,
    /// The group; empty: the core.
    pub(super) group: &'static str,
    /// Its name in paths.
    pub(super) plural: &'static str,
    /// Versions that are read, preferred first.
    pub(super) versions: &'static [&'static str],
}

const fn wanted(
    subject: Subject,
    group: &'static str,
    plural: &'static str,
    versions: &'static [&'static str],
) -> Wanted {
    Wanted {
        subject,
        group,
        plural,
        versions,
    }
}

/// Everything that is followed: the kinds in the order of [`Watched`], then the definitions.
#[rustfmt::skip]
pub(super) const WANTED: [Wanted; 11] = [
    wanted(Subject::Kind(Watched::Services), "", "services", &["v1"]),
    wanted(Subject::Kind(Watched::EndpointSlices), "discovery.k8s.io", "endpointslices", &["v1"]),
    wanted(Subject::Kind(Watched::Ingresses), "networking.k8s.io", "ingresses", &["v1"]),
    wanted(Subject::Kind(Watched::Gateways), GATEWAYS, "gateways", &["v1", "v1beta1"]),
    wanted(Subject::Kind(Watched::HttpRoutes), GATEWAYS, "httproutes", &["v1", "v1beta1"]),
    wanted(Subject::Kind(Watched::GrpcRoutes), GATEWAYS, "grpcroutes", &["v1", "v1beta1"]),
    wanted(Subject::Kind(Watched::TlsRoutes), GATEWAYS, "tlsroutes", &["v1", "v1alpha3", "v1alpha2"]),
    wanted(Subject::Kind(Watched::TcpRoutes), GATEWAYS, "tcproutes", &["v1alpha2", "v1"]),
    wanted(Subject::Kind(Watched::UdpRoutes), GATEWAYS, "udproutes", &["v1alpha2", "v1"]),
    wanted(Subject::Kind(Watched::Nodes), "", "nodes", &["v1"]),
    wanted(Subject::Definitions, "apiextensions.k8s.io", "customresourcedefinitions", &["v1"]),
];

/// A kind at a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resource {
    /// The group; empty: the core.
    pub(super) group: &'static str,
    /// The version.
    pub(super) version: &'static str,
    /// Its name in paths.
    pub(super) plural: &'static str,
}

impl Resource {
    /// Gives the path of all its objects, in all namespaces.
    pub(super) fn path(self) -> String {
        format!("{}/{}", version_path(self.group, self.version), self.plural)
    }
}

/// Gives the path of a group's version.
pub(super) fn version_path(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    }
}

/// What is known of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Serving {
    /// The server did not say.
    Unknown,
    /// It has none of the versions that are read.
    Unserved,
    /// It has it.
    Served(Resource),
}

/// What a server said: its groups with their versions, and what each version has.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Versions by group.
    groups: BTreeMap<String, BTreeSet<String>>,
    /// Plurals that can be listed and watched, by group and version; those that could not be asked for are missing.
    plurals: BTreeMap<(String, String), BTreeSet<String>>,
}

/// APIGroupList, as far as it is read.
#[derive(Deserialize)]
struct Groups {
    kind: String,
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
    versions: Vec<GroupVersion>,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
}

/// APIResourceList, as far as it is read.
#[derive(Deserialize)]
struct Resources {
    kind: String,
    resources: Vec<ResourceEntry>,
}

#[derive(Deserialize)]
struct ResourceEntry {
    name: String,
    #[serde(default)]
    verbs: Vec<String>,
}

impl Said {
    /// Reads the list of groups; `None` when it is none.
    pub(super) fn of_groups(octets: &[u8]) -> Option<Self> {
        let read: Groups = serde_json::from_slice(octets).ok()?;
        if read.kind != "APIGroupList" {
            return None;
        }
        let of_group = |group: Group| {
            let versions = group.versions.into_iter().map(|version| version.version);
            (group.name, versions.collect())
        };
        let mut groups: BTreeMap<_, _> = read.groups.into_iter().map(of_group).collect();
        // The core has no group of a name, and is not listed.
        groups.insert(String::new(), BTreeSet::from(["v1".to_owned()]));
        Some(Self {
            groups,
            plurals: BTreeMap::new(),
        })
    }

    /// Gives what is to be asked for next: each version, of those that are read, that the server has.
    pub(super) fn versions(&self) -> BTreeSet<(&'static str, &'static str)> {
        let pairs = WANTED.iter().flat_map(|wanted| {
            let versions = wanted.versions.iter();
            versions.map(|version| (wanted.group, *version))
        });
        pairs
            .filter(|(group, version)| self.has(group, version))
            .collect()
    }

    fn has(&self, group: &str, version: &str) -> bool {
        let versions = self.groups.get(group);
        versions.is_some_and(|versions| versions.contains(version))
    }

    /// Reads what a version has. Tells whether it is a list of that.
    pub(super) fn take_resources(&mut self, group: &str, version: &str, octets: &[u8]) -> bool {
        let Ok(read) = serde_json::from_slice::<Resources>(octets) else {
            return false;
        };
        if read.kind != "APIResourceList" {
            return false;
        }
        let can = |entry: &ResourceEntry, verb: &str| entry.verbs.iter().any(|has| has == verb);
        let plurals = read
            .resources
            .into_iter()
            .filter(|entry| can(entry, "list") && can(entry, "watch"))
            .map(|entry| entry.name);
        let key = (group.to_owned(), version.to_owned());
        self.plurals.insert(key, plurals.collect());
        true
    }

    /// Judges a kind.
    pub(super) fn judge(&self, wanted: &Wanted) -> Serving {
        for version in wanted.versions {
            if !self.has(wanted.group, version) {
                continue;
            }
            let key = (wanted.group.to_owned(), (*version).to_owned());
            match self.plurals.get(&key) {
                // A version before it might be there: not to be told.
                None => return Serving::Unknown,
                Some(plurals) if plurals.contains(wanted.plural) => {
                    return Serving::Served(Resource {
                        group: wanted.group,
                        version,
                        plural: wanted.plural,
                    });
                }
                Some(_) => {}
            }
        }
        Serving::Unserved
    }
}

/// What stands where nobody may ask what there is: every server has these.
pub(super) fn presumed(wanted: &Wanted) -> Serving {
    match (wanted.group, wanted.versions.first()) {
        ("" | "discovery.k8s.io" | "networking.k8s.io", Some(version)) => {
            Serving::Served(Resource {
                group: wanted.group,
                version,
                plural: wanted.plural,
            })
        }
        _ => Serving::Unknown,
    }
}

/// What stands of one kind: what was said last, an absence only when it was said twice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// What counts.
    pub(super) serving: Serving,
    missing_since: Option<Moment>,
}

impl Default for Standing {
    fn default() -> Self {
        Self {
            serving: Serving::Unknown,
            missing_since: None,
        }
    }
}

impl Standing {
    /// Takes what was said at a moment. Tells whether it has to be asked again soon.
    pub(super) fn take(&mut self, said: Serving, now: Moment) -> bool {
        match said {
            Serving::Unknown => false,
            Serving::Served(_) => {
                *self = Self {
                    serving: said,
                    missing_since: None,
                };
                false
            }
            Serving::Unserved if self.serving == Serving::Unserved => false,
            Serving::Unserved => {
                let since = *self.missing_since.get_or_insert(now);
                let is_confirmed = now.since(since) >= CONFIRMED;
                if is_confirmed {
                    self.serving = Serving::Unserved;
                }
                !is_confirmed
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(groups: &[(&str, &[&str])]) -> Said {
        let groups: Vec<_> = groups
            .iter()
            .map(|(name, versions)| {
                let versions: Vec<_> = versions.iter().map(|v| json!({"version": v})).collect();
                json!({"name": name, "versions": versions})
            })
            .collect();
        let list = json!({"kind": "APIGroupList", "groups": groups});
        Said::of_groups(list.to_string().as_bytes()).unwrap()
    }

    fn resources(plurals: &[&str]) -> Vec<u8> {
        let entry = |name: &&str| json!({"name": name, "verbs": ["get", "list", "watch"]});
        let mut entries: Vec<_> = plurals.iter().map(entry).collect();
        entries.push(json!({"name": "gateways/status", "verbs": ["get"]}));
        json!({"kind": "APIResourceList", "resources": entries})
            .to_string()
            .into_bytes()
    }

    fn judge(said: &Said, kind: Watched) -> Serving {
        said.judge(&WANTED[kind as usize])
    }

    fn version(serving: Serving) -> &'static str {
        match serving {
            Serving::Served(resource) => resource.version,
            Serving::Unserved => "unserved",
            Serving::Unknown => "unknown",
        }
    }

    #[test]
    fn the_tables_are_in_the_order_of_kinds() {
        for (at, kind) in Watched::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, at);
            assert_eq!(WANTED[at].subject, Subject::Kind(kind));
        }
    }

    #[test]
    fn the_preferred_version_of_those_served_is_taken() {
        let mut said = said(&[
            (GATEWAYS, &["v1alpha2", "v1beta1", "v1"]),
            ("other", &["v9"]),
        ]);
        let asked: Vec<_> = said.versions().into_iter().collect();
        let expected = [
            ("", "v1"),
            (GATEWAYS, "v1"),
            (GATEWAYS, "v1alpha2"),
            (GATEWAYS, "v1beta1"),
        ];
        assert_eq!(asked, expected);
        assert_eq!(version(judge(&said, Watched::Gateways)), "unknown");
        assert!(said.take_resources("", "v1", &resources(&["services", "nodes"])));
        assert!(said.take_resources(GATEWAYS, "v1", &resources(&["gateways", "tlsroutes"])));
        assert!(said.take_resources(GATEWAYS, "v1beta1", &resources(&["gateways", "httproutes"])));
        for (kind, expected) in [
            (Watched::Services, "v1"),
            (Watched::EndpointSlices, "unserved"),
            (Watched::Gateways, "v1"),
            (Watched::HttpRoutes, "v1beta1"),
            (Watched::TlsRoutes, "v1"),
            // v1alpha2 could not be asked for, and comes first.
            (Watched::TcpRoutes, "unknown"),
        ] {
            assert_eq!(version(judge(&said, kind)), expected, "{kind:?}");
        }
        assert!(said.take_resources(GATEWAYS, "v1alpha2", &resources(&["tcproutes"])));
        assert_eq!(version(judge(&said, Watched::TcpRoutes)), "v1alpha2");
        assert_eq!(version(judge(&said, Watched::UdpRoutes)), "unserved");
        let Serving::Served(resource) = judge(&said, Watched::TcpRoutes) else {
            panic!("it is served");
        };
        assert_eq!(
            resource.path(),
            "/apis/gateway.networking.k8s.io/v1alpha2/tcproutes"
        );
        let Serving::Served(resource) = judge(&said, Watched::Services) else {
            panic!("it is served");
        };
        assert_eq!(resource.path(), "/api/v1/services");
    }

    #[test]
    fn what_is_no_answer_says_nothing() {
        for text in [
            "",
            "{}",
            "<html>",
            r#"{"kind": "Status", "groups": []}"#,
            r#"{"kind": "APIGroupList"}"#,
        ] {
            assert!(Said::of_groups(text.as_bytes()).is_none(), "{text}");
        }
        let mut said = said(&[]);
        for text in ["", "{}", r#"{"kind": "Status", "resources": []}"#] {
            assert!(!said.take_resources("", "v1", text.as_bytes()), "{text}");
        }
        assert_eq!(judge(&said, Watched::Services), Serving::Unknown);
        // What cannot be watched is not served.
        let list = json!({"kind": "APIResourceList", "resources": [{"name": "services", "verbs": ["list"]}]});
        assert!(said.take_resources("", "v1", list.to_string().as_bytes()));
        assert_eq!(judge(&said, Watched::Services), Serving::Unserved);
    }

    #[test]
    fn where_nobody_may_ask_the_built_in_kinds_are_presumed() {
        let presumed: Vec<_> = WANTED
            .iter()
            .map(|wanted| version(presumed(wanted)))
            .collect();
        let expected = [["v1"; 3].as_slice(), &["unknown"; 6], &["v1"], &["unknown"]].concat();
        assert_eq!(presumed, expected);
    }

    #[test]
    fn an_absence_counts_when_it_is_said_twice() {
        let at = |seconds| Moment(Duration::from_secs(seconds));
        let served = judge(
            &{
                let mut said = said(&[]);
                said.take_resources("", "v1", &resources(&["services"]));
                said
            },
            Watched::Services,
        );
        let mut standing = Standing::default();
        for (said, now, again, stands) in [
            (Serving::Unserved, 0, true, Serving::Unknown),
            (Serving::Unserved, 5, false, Serving::Unserved),
            (served, 6, false, served),
            (Serving::Unserved, 7, true, served),
            (Serving::Unknown, 13, false, served),
            (served, 14, false, served),
            (Serving::Unserved, 20, true, served),
            (Serving::Unserved, 24, true, served),
            (Serving::Unserved, 25, false, Serving::Unserved),
            (Serving::Unserved, 99, false, Serving::Unserved),
        ] {
            assert_eq!(standing.take(said, at(now)), again, "at {now}");
            assert_eq!(standing.serving, stands, "at {now}");
        }
    }
}
