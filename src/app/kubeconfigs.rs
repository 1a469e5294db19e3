//! Kubeconfig files that clusters are reached by, as `check` looks at them.
//!
//! What is missing is a warning: a file may be mounted later, and while serving it is read anew. Nothing but names of contexts
//! is shown of a file, for the rest is secret.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::findings::{Finding, places};
use super::output::in_one;
use crate::config::nearest;
use crate::source::kubernetes::{Access, Config, Trust};
use crate::source::read_bounded;

/// Largest kubeconfig file in octets.
const MAX_OCTETS: u64 = 1 << 20;
/// Most contexts that a message names.
const SHOWN: usize = 5;
/// Most characters of a name in a message.
const MAX_NAME: usize = 100;

/// What is looked at of one document of a kubeconfig file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct DocumentDto {
    current_context: Option<String>,
    contexts: Option<Vec<ContextDto>>,
}

/// A context.
#[derive(Debug, Deserialize)]
struct ContextDto {
    name: String,
    context: Option<ContextPartsDto>,
}

/// What a context puts together.
#[derive(Debug, Deserialize)]
struct ContextPartsDto {
    cluster: Option<String>,
}

/// Warns of files that cannot be read and of contexts that they do not have. `source` is the configuration, `hash` that of
/// its text.
pub(super) fn warnings(config: &Config, source: &Path, hash: &str) -> Vec<Finding> {
    // One file may have the contexts of many clusters.
    let mut files: BTreeMap<&Path, Result<Contexts, String>> = BTreeMap::new();
    let mut doubts: Vec<(&str, Doubt)> = Vec::new();
    for member in &config.members {
        let Access::Kubeconfig {
            file,
            context,
            trust,
        } = &member.access
        else {
            continue;
        };
        let contexts = files.entry(file).or_insert_with(|| read(file));
        let doubt = match contexts {
            Err(why) => Some(Doubt::File(why.clone())),
            // Of a file that was found the only context will do.
            Ok(contexts) if *trust != Trust::Whole && contexts.has_one_alone() => None,
            Ok(contexts) => contexts
                .fault(context.as_deref())
                .map(|why| Doubt::Context(format!("{}: {why}", file.display()))),
        };
        doubts.extend(doubt.map(|doubt| (member.id.as_str(), doubt)));
    }
    if doubts.is_empty() {
        return Vec::new();
    }
    let places = places(source, hash, &[]);
    let finding = |(id, doubt): (&str, Doubt)| {
        let written = places.kubeconfigs.get(id);
        let (place, why) = match doubt {
            Doubt::File(why) => (written.map(|(file, _)| file), why),
            Doubt::Context(why) => (
                written.map(|(file, context)| context.as_ref().unwrap_or(file)),
                why,
            ),
        };
        let message = format!("{why}; as long as that is so, `{id}` is not watched");
        Finding::warning(source, place, message)
    };
    doubts.into_iter().map(finding).collect()
}

/// What is wrong.
#[derive(Debug)]
enum Doubt {
    /// With the file.
    File(String),
    /// With the context asked for; where none is named, with the file's own choice.
    Context(String),
}

/// A context that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Context {
    /// Its name.
    pub(super) name: String,
    /// What it calls the cluster.
    pub(super) cluster: Option<String>,
}

/// Gives the context that is meant: the one asked for, else the file's own choice.
///
/// # Errors
/// In words with the file, when it cannot be read or has no such context.
pub(super) fn context(file: &Path, asked: Option<&str>) -> Result<Context, String> {
    let contexts = read(file)?;
    if let Some(why) = contexts.fault(asked) {
        return Err(format!("{}: {why}", file.display()));
    }
    let name = asked.map_or_else(|| contexts.current.unwrap_or_default(), str::to_owned);
    // Of several with one name the first counts.
    let mut named = contexts.names.iter().zip(contexts.clusters);
    let cluster = named.find(|(other, _)| **other == name);
    Ok(Context {
        cluster: cluster.and_then(|(_, cluster)| cluster),
        name,
    })
}

/// The contexts of one file.
#[derive(Debug, Default)]
struct Contexts {
    current: Option<String>,
    names: Vec<String>,
    /// What each calls its cluster.
    clusters: Vec<Option<String>>,
}

/// Reads the contexts of a file.
fn read(file: &Path) -> Result<Contexts, String> {
    let octets = read_bounded(file, MAX_OCTETS).map_err(|error| in_one(&error))?;
    let file = file.display();
    let text = String::from_utf8(octets).map_err(|_| format!("{file}: is no UTF-8 text"))?;
    let documents: Vec<DocumentDto> = serde_saphyr::from_multiple(&text).map_err(|error| {
        // The error itself may quote what stands there.
        let place = error.location().map_or_else(String::new, |place| {
            format!(": line {}, column {}", place.line(), place.column())
        });
        format!("{file}: is no kubeconfig{place}")
    })?;
    let mut contexts = Contexts::default();
    for document in documents {
        // Of several documents the first choice counts.
        let current = document.current_context.filter(|name| !name.is_empty());
        contexts.current = contexts.current.or(current);
        for context in document.contexts.into_iter().flatten() {
            contexts.names.push(context.name);
            let cluster = context.context.and_then(|parts| parts.cluster);
            contexts.clusters.push(cluster);
        }
    }
    Ok(contexts)
}

impl Contexts {
    /// Tells whether there is one context and nothing that chooses it.
    fn has_one_alone(&self) -> bool {
        self.current.is_none() && self.names.len() == 1
    }

    /// Tells what is wrong with the context asked for; `None`: the current one is.
    fn fault(&self, asked: Option<&str>) -> Option<String> {
        let has = |wanted: &str| self.names.iter().any(|name| name == wanted);
        match (asked, &self.current) {
            (Some(asked), _) if has(asked) => None,
            (Some(asked), _) => Some(format!("has no context `{asked}`; {}", self.choice(asked))),
            (None, Some(current)) if has(current) => None,
            (None, Some(current)) => Some(format!(
                "its `current-context` `{}` is none of its contexts; {}",
                shown(current),
                self.choice(current)
            )),
            (None, None) => Some(format!(
                "has no `current-context`, so `context` is needed; {}",
                self.choice("")
            )),
        }
    }

    /// Says what there is: the name that is near, else the first few.
    fn choice(&self, wanted: &str) -> String {
        if let Some(near) = nearest(wanted, self.names.iter().map(String::as_str)) {
            return format!("did you mean `{}`?", shown(near));
        }
        let names = self.names.iter().take(SHOWN).map(|name| shown(name));
        let names: Vec<String> = names.collect();
        match (names.is_empty(), self.names.len().saturating_sub(SHOWN)) {
            (true, _) => "it has none".to_owned(),
            (false, 0) => format!("it has {}", names.join(", ")),
            (false, more) => format!("it has {} and {more} more", names.join(", ")),
        }
    }
}

/// Makes a name of a file fit for a message: bounded, and without control characters.
fn shown(name: &str) -> String {
    name.chars()
        .take(MAX_NAME)
        .flat_map(char::escape_debug)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::app::load::parse;
    use crate::inventory::ClusterRegistry;

    /// The file, what `kubeconfig` has beside `file`, the key and a part of the one warning; `-`: none.
    const ROWS: &str = r#"
contexts: [{name: a}, {name: b}] => context: b => -
contexts: [{name: a}]⏎current-context: a => => -
contexts: [{name: a}]⏎---⏎contexts: [{name: b}]⏎current-context: b => => -
contexts: [{name: admin}] => context: admni => context: has no context `admni`; did you mean `admin`?
contexts: [{name: a}] => context: other => context: has no context `other`; it has a; as long
contexts: [{name: a1}, {name: a2}, {name: a3}, {name: a4}, {name: a5}, {name: a6}] => => file: it has a1, a2, a3, a4, a5 and 1 more
contexts: [{name: a}]⏎current-context: "" => => file: has no `current-context`
contexts: [{name: a}]⏎current-context: "b\u001b" => => file: `current-context` `b\u{1b}` is none
contexts: => => file: it has none
{} => context: a => context: it has none
contexts: [{name: a}⏎ => => file: is no kubeconfig: line
contexts: s3cret => => file: is no kubeconfig: line 1, column 11
contexts: [{user: s3cret}] => => file: is no kubeconfig
"#;

    /// Checks a configuration with such a member, and gives the warnings as they are shown.
    fn check(kubeconfig: Option<&[u8]>, keys: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        if let Some(octets) = kubeconfig {
            fs::write(folder.path().join("k.yaml"), octets).unwrap();
        }
        let path = folder.path().join("meridian.yaml");
        let text = format!(
            "version: 1\nclusters:\n  - {{name: c, kubeconfig: {{file: k.yaml{keys}}}}}\n  - {{name: d, inCluster: true}}\n"
        );
        fs::write(&path, text).unwrap();
        let parsed = parse(&path, &mut ClusterRegistry::default()).unwrap();
        let findings = warnings(&parsed.config.kubernetes, &path, &parsed.hash);
        let shown = findings.iter().map(|finding| {
            assert_eq!((finding.level, finding.line), ("warning", Some(3)));
            assert!(!finding.message.contains("s3cret"), "{finding}");
            finding.to_string()
        });
        shown.collect()
    }

    #[test]
    fn contexts_that_are_not_there_are_told_at_their_place() {
        for row in ROWS.lines().filter(|row| !row.is_empty()) {
            let [text, keys, expected] = row.split("=>").map(str::trim).collect::<Vec<_>>()[..]
            else {
                panic!("{row}")
            };
            let keys = match keys {
                "" => String::new(),
                keys => format!(", {keys}"),
            };
            let found = check(Some(text.replace('⏎', "\n").as_bytes()), &keys);
            let Some((key, part)) = expected.split_once(": ") else {
                assert!(found.is_empty(), "{row}: {found:?}");
                continue;
            };
            assert_eq!(found.len(), 1, "{row}: {found:?}");
            let place = format!(" clusters[0].kubeconfig.{key}: ");
            assert!(found[0].contains(&place), "{row}: {found:?}");
            assert!(found[0].contains(part), "{row}: {found:?}");
            assert!(found[0].ends_with("`c` is not watched"), "{found:?}");
        }
    }

    #[test]
    fn files_that_cannot_be_read_are_told() {
        let large = vec![b' '; 1 + (1 << 20)];
        for (octets, part) in [
            (None, "k.yaml: cannot read: No such file"),
            (Some(&large[..]), "larger than 1048576 octets"),
            (Some(b"\xff\xfe"), "is no UTF-8 text"),
        ] {
            let found = check(octets, "");
            assert_eq!(found.len(), 1, "{part}");
            assert!(found[0].contains(part), "{found:?}");
            assert!(
                found[0].contains(" clusters[0].kubeconfig.file: "),
                "{found:?}"
            );
        }
    }
}
