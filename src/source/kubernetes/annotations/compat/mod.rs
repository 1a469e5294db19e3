//! Annotations of other programs, read as if they were ours: `kubernetes.compat` names the programs, none by default.
//!
//! They count where neither the object's own annotations of ours nor the defaults of the configuration say anything. One file a
//! program; what one of its keys asks for that is not built is refused as such, so that nothing is taken for granted.

mod cilium;
mod external_dns;
mod k8gb;
#[cfg(test)]
mod tests;

use super::grammar::Said;
use super::{MAX_REFUSED, MAX_VALUE, Read, Refused, Service, keys, refused};

/// A program whose annotations can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reader {
    /// ExternalDNS, by its new prefix and by its old one.
    ExternalDns,
    /// k8gb.
    K8gb,
    /// Cilium's global services.
    Cilium,
}

impl Reader {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::ExternalDns, Self::K8gb, Self::Cilium];

    /// Gives its name in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ExternalDns => "external-dns",
            Self::K8gb => "k8gb",
            Self::Cilium => "cilium",
        }
    }

    /// Lists its keys, as the reference does.
    #[must_use]
    pub fn keys(self) -> &'static [TheirKey] {
        match self {
            Self::ExternalDns => external_dns::KEYS,
            Self::K8gb => k8gb::KEYS,
            Self::Cilium => cilium::KEYS,
        }
    }
}

/// One key of another program.
#[derive(Clone, Copy, Debug)]
pub struct TheirKey {
    /// Its names, whole: of several on one object the first counts.
    pub names: &'static [&'static str],
    /// The key of ours that it is read as; `None`: what it asks for is not supported yet.
    pub ours: Option<&'static str>,
    /// How it is written.
    pub grammar: &'static str,
    /// Reads a value.
    read: fn(&str, &mut Service) -> Said<()>,
}

/// Whose annotations count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compat {
    /// The programs, the first before the others.
    pub readers: Vec<Reader>,
    /// The defaults of the configuration say how clusters are used: those go first.
    pub keeps_steer: bool,
    /// And in which tiers.
    pub keeps_tiers: bool,
}

/// What the annotations of one program say of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Theirs {
    reader: Reader,
    said: Service,
    refused: Vec<Refused>,
}

/// What an object says itself, kept beside what it says with others' annotations.
#[derive(Clone, Debug, PartialEq)]
pub struct Own {
    said: Service,
    refused: Vec<Refused>,
}

/// Tells whether a key may be one of other programs.
fn is_theirs(key: &str) -> bool {
    [
        "external-dns.",
        "k8gb.io/",
        "service.cilium.io/",
        "io.cilium/",
    ]
    .iter()
    .any(|prefix| key.starts_with(prefix))
}

/// Reads the annotations of other programs; those that say nothing here are left out.
pub(super) fn read<'a>(annotations: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Theirs> {
    let theirs: Vec<(&str, &str)> = annotations.filter(|(key, _)| is_theirs(key)).collect();
    if theirs.is_empty() {
        return Vec::new();
    }
    let all = Reader::ALL.into_iter();
    let all = all.map(|reader| read_one(reader, &theirs));
    all.filter(|one| one.said != Service::default() || !one.refused.is_empty())
        .collect()
}

/// Reads those of one program.
fn read_one(reader: Reader, annotations: &[(&str, &str)]) -> Theirs {
    let mut out = Theirs {
        reader,
        said: Service::default(),
        refused: Vec::new(),
    };
    for key in reader.keys() {
        let mut names = key.names.iter();
        let found = names.find_map(|name| annotations.iter().find(|(key, _)| key == name));
        let Some((written, value)) = found else {
            continue;
        };
        let result = if value.len() > MAX_VALUE {
            Err(format!("it has more than {MAX_VALUE} octets"))
        } else {
            (key.read)(value.trim(), &mut out.said)
        };
        if let Err(reason) = result {
            out.refused.push(refused(written, value, &reason));
        }
    }
    out
}

/// Reads a value as that of a key of ours.
fn as_ours(name: &str, text: &str, said: &mut Service) -> Said<()> {
    let key = keys::find(name)?;
    (key.read)(text, said)
}

/// Says that something is not built.
fn later() -> Said<()> {
    Err("not supported yet".to_owned())
}

impl Read {
    /// Lays the annotations of other programs under the object's own, in place of those that were there.
    pub fn lay(&mut self, compat: &Compat) {
        if self.theirs.is_empty() {
            return;
        }
        let own = self.own.take().unwrap_or_else(|| {
            Box::new(Own {
                said: self.said.clone(),
                refused: self.refused.clone(),
            })
        });
        self.said.clone_from(&own.said);
        self.refused.clone_from(&own.refused);
        for reader in &compat.readers {
            let theirs = self.theirs.iter().find(|theirs| theirs.reader == *reader);
            if let Some(theirs) = theirs {
                fill(&mut self.said, &own.said, &theirs.said, compat);
                let room = MAX_REFUSED.saturating_sub(self.refused.len());
                self.refused
                    .extend(theirs.refused.iter().take(room).cloned());
            }
        }
        self.own = Some(own);
    }
}

/// Fills what is not said.
fn fill(said: &mut Service, own: &Service, theirs: &Service, compat: &Compat) {
    // A `hostname` or a `class` of ours says that it is meant for us.
    if said.enabled.is_none() && own.hostnames.is_none() && own.class.is_none() {
        said.enabled = theirs.enabled;
    }
    if said.name.steer.is_none() && !compat.keeps_steer {
        said.name.steer = theirs.name.steer;
        said.needs_tiers = theirs.needs_tiers;
    }
    if said.name.tiers.is_none() && !compat.keeps_tiers {
        said.name.tiers.clone_from(&theirs.name.tiers);
    }
    if said.hostnames.is_none() {
        said.hostnames.clone_from(&theirs.hostnames);
    }
    if said.targets.is_none() {
        said.targets.clone_from(&theirs.targets);
    }
    said.name.ttl = said.name.ttl.or(theirs.name.ttl);
    said.weight = said.weight.or(theirs.weight);
}
