//! Selectors of clients and clusters, checked against what the configuration knows.

use super::atlas::Atlas;
use super::clusters::Clusters;
use super::{geoip, groups, read};
use crate::config::faults::Report;
use crate::config::spec::{Node, hint};
use crate::model::{ClientSelector, ClusterSelector, CountryCode, Groups, parse_prefix};

/// What selectors may refer to.
#[derive(Clone, Copy)]
pub(super) struct Scope<'s, 't, 'a> {
    pub(super) atlas: &'s Atlas,
    pub(super) groups: &'s Groups,
    pub(super) clusters: &'s Clusters<'t, 'a>,
}

/// What a selector that matches no cluster means where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoMatch {
    /// Nothing could ever come of it.
    Fault,
    /// Perhaps meant for a cluster to come.
    Warning,
}

impl Scope<'_, '_, '_> {
    /// Reads a selector of clusters. A cluster, country or group that does not exist is a fault everywhere.
    pub(super) fn cluster(
        &self,
        node: Node<'_, '_>,
        no_match: NoMatch,
        report: &mut Report,
    ) -> Option<ClusterSelector> {
        let text = read::text(node, report)?;
        let selector = match text.parse::<ClusterSelector>() {
            Ok(ClusterSelector::Word(word)) => self.word(word),
            Ok(selector) => selector,
            Err(error) => {
                report.fault(node, error);
                return None;
            }
        };
        let fits = match &selector {
            ClusterSelector::Cluster(id) => {
                let before = report.count();
                let found = self.clusters.find(node, id.as_str(), report).is_some();
                found || report.count() == before
            }
            ClusterSelector::Group(group) => self.group(node, group, report),
            ClusterSelector::Country(country) => self.country(node, *country, report),
            ClusterSelector::Subdivision(subdivision) => {
                self.country(node, subdivision.country(), report)
            }
            _ => true,
        };
        if fits && !self.clusters.any_match(&selector, self.groups) {
            match no_match {
                NoMatch::Fault => report.fault(node, format_args!("`{text}` matches no cluster")),
                NoMatch::Warning => report.warn(node, format_args!("`{text}` matches no cluster")),
            }
        }
        fits.then_some(selector)
    }

    /// Says what a bare word is, as far as this file tells: a cluster that is written here, a tag, a region; else the name of a
    /// cluster, which may be unknown.
    fn word(&self, word: Box<str>) -> ClusterSelector {
        let id = word.parse().map(ClusterSelector::Cluster);
        let is_here = self.clusters.names().any(|name| name == &*word);
        let selector = ClusterSelector::Word(word);
        match id {
            Ok(id) if is_here || !self.clusters.is_word(&selector, self.groups) => id,
            _ => selector,
        }
    }

    /// Reads a list of selectors of clusters.
    pub(super) fn clusters(
        &self,
        node: Node<'_, '_>,
        no_match: NoMatch,
        report: &mut Report,
    ) -> Vec<ClusterSelector> {
        read::list(node, report, |item, report| {
            self.cluster(item, no_match, report)
        })
    }

    /// Reads a selector of clients.
    pub(super) fn client(&self, node: Node<'_, '_>, report: &mut Report) -> Option<ClientSelector> {
        let text = read::text(node, report)?;
        let selector = match text.parse::<ClientSelector>() {
            Ok(selector) => selector,
            Err(error) => {
                report.fault(node, error);
                return None;
            }
        };
        let fits = match &selector {
            ClientSelector::Group(group) => self.group(node, group, report),
            ClientSelector::Country(country) => self.country(node, *country, report),
            ClientSelector::Subdivision(subdivision) => {
                self.country(node, subdivision.country(), report)
            }
            ClientSelector::Cluster(id) => {
                let before = report.count();
                let found = self.clusters.find(node, id.as_str(), report).is_some();
                found || report.count() == before
            }
            // The selector has lost the bits beyond its length.
            ClientSelector::Prefix(_) => {
                let written = text.strip_prefix("prefix:").unwrap_or(text);
                parse_prefix(written)
                    .map_err(|why| report.fault(node, why))
                    .is_ok()
            }
            ClientSelector::Any
            | ClientSelector::Unknown
            | ClientSelector::Continent(_)
            | ClientSelector::Asn(_) => true,
        };
        fits.then_some(selector)
    }

    /// Reads a country.
    pub(super) fn client_country(
        &self,
        node: Node<'_, '_>,
        report: &mut Report,
    ) -> Option<ClientSelector> {
        groups::country(node, self.atlas, report).map(ClientSelector::Country)
    }

    /// Reads a subdivision.
    pub(super) fn client_subdivision(
        &self,
        node: Node<'_, '_>,
        report: &mut Report,
    ) -> Option<ClientSelector> {
        geoip::subdivision(node, self.atlas, report).map(ClientSelector::Subdivision)
    }

    /// Reads a group's bare name.
    pub(super) fn client_group(
        &self,
        node: Node<'_, '_>,
        report: &mut Report,
    ) -> Option<ClientSelector> {
        let name = read::text(node, report)?;
        self.group(node, name, report)
            .then(|| ClientSelector::Group(name.into()))
    }

    /// Checks that a group exists.
    fn group(&self, node: Node<'_, '_>, name: &str, report: &mut Report) -> bool {
        let is_known = self.groups.0.contains_key(name);
        if !is_known && report.is_full() {
            report.fault(node, "no such group");
        } else if !is_known {
            let all: Vec<&str> = self.groups.0.keys().map(|name| &**name).collect();
            let hint = hint(name, all.iter().copied());
            let all = all.join(", ");
            report.fault(
                node,
                format_args!("no group is called `{name}`{hint} (there are {all})"),
            );
        }
        is_known
    }

    /// Checks that a country exists.
    fn country(&self, node: Node<'_, '_>, country: CountryCode, report: &mut Report) -> bool {
        let why = groups::unknown_country(country, self.atlas);
        let is_known = why.is_none();
        if let Some(why) = why {
            report.fault(node, why);
        }
        is_known
    }
}
