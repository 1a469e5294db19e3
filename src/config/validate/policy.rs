//! Policies: the keys of `defaults.policy` and of each service.

use std::collections::HashSet;
use std::net::IpAddr;

use super::read;
use super::selectors::{NoMatch, Scope};
use crate::config::faults::Report;
use crate::config::spec::{Fields, Kind, Node, fields, v1};
use crate::model::{
    ClientSelector, ClusterSelector, FallbackSpec, FenceRule, MapEntry, PolicySpec, Steer, Weight,
};

/// Most addresses of `fallback` and `fenceAnswer`.
const MAX_ADDRESSES: usize = 255;

/// A policy key by key; `None`: not written.
#[derive(Clone, Debug, Default)]
pub(super) struct PolicyKeys {
    steer: Option<Steer>,
    /// Set by `steer: failover`.
    needs_tiers: bool,
    tiers: Option<Vec<Vec<ClusterSelector>>>,
    weights: Option<Vec<(ClusterSelector, Weight)>>,
    /// Of services from Kubernetes alone.
    weighs_endpoints: Option<bool>,
    bias: Option<Vec<(ClusterSelector, i8)>>,
    maps: Option<Vec<MapEntry>>,
    /// All must allow.
    fences: Vec<Vec<FenceRule>>,
    fence_answer: Option<FallbackSpec>,
    /// `Some(None)`: said to be none.
    fallback: Option<Option<FallbackSpec>>,
    panic: Option<f64>,
    answers: Option<u8>,
}

impl PolicyKeys {
    /// Fills what is not written from `below`. Fences add up: a service can tighten, never loosen.
    pub(super) fn over(self, below: &Self) -> Self {
        let fences = below.fences.iter().chain(&self.fences).cloned().collect();
        Self {
            needs_tiers: if self.steer.is_some() {
                self.needs_tiers
            } else {
                below.needs_tiers
            },
            steer: self.steer.or(below.steer),
            tiers: self.tiers.or_else(|| below.tiers.clone()),
            weights: self.weights.or_else(|| below.weights.clone()),
            weighs_endpoints: self.weighs_endpoints.or(below.weighs_endpoints),
            bias: self.bias.or_else(|| below.bias.clone()),
            maps: self.maps.or_else(|| below.maps.clone()),
            fences,
            fence_answer: self.fence_answer.or_else(|| below.fence_answer.clone()),
            fallback: self.fallback.or_else(|| below.fallback.clone()),
            panic: self.panic.or(below.panic),
            answers: self.answers.or(below.answers),
        }
    }

    /// Makes the policy; a rule that needs another key is a fault at `node`.
    pub(super) fn finish(self, node: Node<'_, '_>, report: &mut Report) -> Option<PolicySpec> {
        if self.lacks_tiers() {
            report.fault(
                node,
                "`steer: failover` needs `tiers`, such as [[first], [second]]",
            );
            return None;
        }
        Some(self.into_spec())
    }

    /// Gives the policy of who adds nothing to it, tiers neither.
    pub(super) fn base(&self) -> PolicySpec {
        self.clone().into_spec()
    }

    /// Fills what is not written with what holds then.
    fn into_spec(self) -> PolicySpec {
        PolicySpec {
            steer: self.steer.unwrap_or_default(),
            tiers: self.tiers.unwrap_or_default(),
            weights: self.weights.unwrap_or_default(),
            bias: self.bias.unwrap_or_default(),
            maps: self.maps.unwrap_or_default(),
            fences: self.fences,
            fence_answer: self.fence_answer,
            fallback: self.fallback.flatten(),
            panic: self.panic.unwrap_or(0.0),
            answers: self.answers.unwrap_or(0),
        }
    }

    /// Tells whether `steer: failover` stands without `tiers`.
    pub(super) fn lacks_tiers(&self) -> bool {
        self.needs_tiers && self.tiers.as_ref().is_none_or(Vec::is_empty)
    }

    /// Tells whether `steer` was written.
    pub(super) fn says_steer(&self) -> bool {
        self.steer.is_some()
    }

    /// Tells whether `tiers` was written.
    pub(super) fn says_tiers(&self) -> bool {
        self.tiers.is_some()
    }

    /// Tells whether ready endpoints scale the shares of clusters.
    pub(super) fn weighs_endpoints(&self) -> bool {
        self.weighs_endpoints.unwrap_or(false)
    }

    /// Tells whether some client may be refused without an answer of its own.
    fn refuses_without_answer(&self) -> bool {
        !self.fences.is_empty() && self.fence_answer.is_none()
    }
}

/// Checks the keys of one policy. `below` is what it stands on, for the warning about fences without an answer.
pub(super) fn read(
    node: Node<'_, '_>,
    below: Option<&PolicyKeys>,
    scope: Scope<'_, '_, '_>,
    report: &mut Report,
) -> Option<PolicyKeys> {
    let before = report.count();
    let fields = fields(node, &v1::POLICY, report)?;
    let get = |name| fields.get(name);
    let steer = get("steer").and_then(|node| read::word(node, v1::STEER, report));
    let weights = get("weights").map(|node| {
        by_selector(node, scope, report, |value, report| {
            read::integer(value, 0..=u16::MAX, report).map(Weight)
        })
    });
    let keys = PolicyKeys {
        steer: steer.map(steer_of),
        needs_tiers: steer == Some("failover"),
        tiers: get("tiers").map(|node| tiers(node, scope, report)),
        weights,
        weighs_endpoints: get("weightsFrom").and_then(|node| weights_from(node, below, report)),
        bias: get("bias").map(|node| {
            by_selector(node, scope, report, |value, report| {
                read::integer(value, -99..=99_i8, report)
            })
        }),
        maps: get("maps").map(|node| maps(node, scope, report)),
        fences: get("fence")
            .map(|node| fence(node, scope, report))
            .into_iter()
            .filter(|rules| !rules.is_empty())
            .collect(),
        fence_answer: get("fenceAnswer").and_then(|node| fence_answer(node, report)),
        fallback: get("fallback").and_then(|node| fallback(node, report)),
        panic: get("panic").and_then(|node| read::number(node, 0.0..=1.0, report)),
        answers: get("answers").and_then(|node| read::integer(node, 1..=32_u8, report)),
    };
    neutral(fields, report);
    let has_answer = below.is_some_and(|below| below.fence_answer.is_some());
    if let Some(node) = get("fence").filter(|_| keys.refuses_without_answer() && !has_answer) {
        report.warn(
            node,
            "no `fenceAnswer`: a client whom this fence allows nothing gets no address (NODATA)",
        );
    }
    (report.count() == before).then_some(keys)
}

/// Checks `weightsFrom`: services that are written here have no ready endpoints that could be counted.
fn weights_from(
    node: Node<'_, '_>,
    below: Option<&PolicyKeys>,
    report: &mut Report,
) -> Option<bool> {
    let by_endpoints = read::word(node, v1::WEIGHTS_FROM, report)? == "endpoints";
    if by_endpoints && below.is_some() {
        report.fault(
            node,
            "nothing counts the ready endpoints of a service that is written here: `endpoints` goes into `defaults.policy`, for services of Kubernetes",
        );
        return None;
    }
    Some(by_endpoints)
}

/// Gives the word's meaning.
fn steer_of(word: &str) -> Steer {
    // `failover` is proximity with tiers required.
    Steer::from_word(word).unwrap_or_default()
}

/// Accepts the neutral values of keys that are not built yet; anything else is refused.
fn neutral(fields: Fields<'_, '_>, report: &mut Report) {
    for (key, value) in [
        ("failback", "auto"),
        ("affinity", "none"),
        ("alternates", "0"),
    ] {
        if let Some(node) = fields
            .get(key)
            .filter(|node| node.text() != value || !node.is_scalar())
        {
            report.fault(
                node,
                format_args!("`{key}` other than `{value}` is not supported yet"),
            );
        }
    }
}

/// Checks `tiers`.
fn tiers(
    node: Node<'_, '_>,
    scope: Scope<'_, '_, '_>,
    report: &mut Report,
) -> Vec<Vec<ClusterSelector>> {
    read::list(node, report, |tier, report| {
        let selectors = scope.clusters(tier, NoMatch::Fault, report);
        if tier.kind() == Kind::List && tier.items().next().is_none() {
            report.fault(tier, "a tier needs at least one cluster");
        }
        Some(selectors)
    })
}

/// Checks a map from selectors of clusters to numbers, in the order written.
fn by_selector<T>(
    node: Node<'_, '_>,
    scope: Scope<'_, '_, '_>,
    report: &mut Report,
    mut read: impl FnMut(Node<'_, '_>, &mut Report) -> Option<T>,
) -> Vec<(ClusterSelector, T)> {
    if node.kind() != Kind::Map {
        report.fault(
            node,
            "a map from clusters to numbers is wanted, such as {a: 80, b: 20}",
        );
        return Vec::new();
    }
    let mut out: Vec<(ClusterSelector, T)> = Vec::new();
    let mut seen = HashSet::new();
    for (key, value) in node.entries() {
        let selector = scope.cluster(key, NoMatch::Warning, report);
        let value = read(value, report);
        let Some(entry) = selector.zip(value) else {
            continue;
        };
        if !seen.insert(entry.0.clone()) {
            report.fault(key, format_args!("`{}` is written twice", entry.0));
        }
        out.push(entry);
    }
    out
}

/// Checks `maps`.
fn maps(node: Node<'_, '_>, scope: Scope<'_, '_, '_>, report: &mut Report) -> Vec<MapEntry> {
    let mut catch_all = None;
    read::list(node, report, |item, report| {
        let fields = fields(item, &v1::MAP_ENTRY, report)?;
        if let Some(line) = catch_all {
            report.warn(item, format_args!("never reached: the entry on line {line} has no selector, so it takes every client"));
        }
        let entry = map_entry(fields, scope, report)?;
        let has_selector = item.entries().count() > 1;
        if !has_selector && catch_all.is_none() {
            catch_all = Some(item.place().line);
        }
        Some(entry)
    })
}

/// Checks one entry of a map.
fn map_entry(
    fields: Fields<'_, '_>,
    scope: Scope<'_, '_, '_>,
    report: &mut Report,
) -> Option<MapEntry> {
    let mut clients = Vec::new();
    let mut add =
        |key: &str,
         report: &mut Report,
         read: &dyn Fn(Node<'_, '_>, &mut Report) -> Option<ClientSelector>| {
            let Some(node) = fields.get(key) else { return };
            let before = clients.len();
            clients.extend(read::list(node, report, read));
            if node.kind() == Kind::List && node.items().next().is_none() && clients.len() == before
            {
                report.fault(
                    node,
                    format_args!("`{key}` is empty: leave it out, or name some"),
                );
            }
        };
    add("continents", report, &|item, report| {
        super::clusters::continent(item, report).map(ClientSelector::Continent)
    });
    add("countries", report, &|item, report| {
        scope.client_country(item, report)
    });
    add("subdivisions", report, &|item, report| {
        scope.client_subdivision(item, report)
    });
    add("asns", report, &|item, report| {
        read::integer(item, 0..=u32::MAX, report).map(ClientSelector::Asn)
    });
    add("prefixes", report, &|item, report| {
        read::prefix(item, report).map(ClientSelector::Prefix)
    });
    add("groups", report, &|item, report| {
        scope.client_group(item, report)
    });
    let node = fields.get("clusters")?;
    let clusters = scope.clusters(node, NoMatch::Warning, report);
    if node.kind() == Kind::List && node.items().next().is_none() {
        report.fault(node, "a map entry needs at least one cluster");
    }
    Some(MapEntry { clients, clusters })
}

/// Tells whether a selector matches only clients of whom some place is known: `*` takes all of these.
fn is_of_known_place(selector: &ClientSelector) -> bool {
    match selector {
        ClientSelector::Any
        | ClientSelector::Continent(_)
        | ClientSelector::Country(_)
        | ClientSelector::Subdivision(_)
        | ClientSelector::Group(_)
        | ClientSelector::Cluster(_) => true,
        ClientSelector::Unknown | ClientSelector::Asn(_) | ClientSelector::Prefix(_) => false,
    }
}

/// Checks `fence`.
fn fence(node: Node<'_, '_>, scope: Scope<'_, '_, '_>, report: &mut Report) -> Vec<FenceRule> {
    // The lines of the rules that take every client of a known place, and every other one.
    let (mut known, mut unknown) = (None, None);
    read::list(node, report, |item, report| {
        let rule = fence_rule(item, scope, report)?;
        let is_of_known = rule.clients.iter().all(is_of_known_place);
        match (known, unknown) {
            (Some(line), Some(other)) => report.warn(
                item,
                format_args!(
                    "never reached: the rules on lines {line} and {other} take every client"
                ),
            ),
            (Some(line), None) if is_of_known => report.warn(
                item,
                format_args!(
                    "never reached: the rule on line {line} takes every client whose place is known"
                ),
            ),
            _ => {}
        }
        let line = item.place().line;
        let names = |selector| rule.clients.contains(&selector);
        known = known.or_else(|| names(ClientSelector::Any).then_some(line));
        unknown = unknown.or_else(|| names(ClientSelector::Unknown).then_some(line));
        Some(rule)
    })
}

/// Checks one rule of a fence.
fn fence_rule(
    item: Node<'_, '_>,
    scope: Scope<'_, '_, '_>,
    report: &mut Report,
) -> Option<FenceRule> {
    let fields = fields(item, &v1::FENCE_RULE, report)?;
    let clients = fields.get("clients").map(|node| {
        if node.kind() == Kind::List && node.items().next().is_none() {
            report.fault(node, "a rule needs at least one selector of clients");
        }
        read::list(node, report, |item, report| scope.client(item, report))
    });
    let clusters = fields
        .get("clusters")
        .map(|node| scope.clusters(node, NoMatch::Warning, report));
    Some(FenceRule {
        clients: clients?,
        clusters: clusters?,
    })
}

/// Checks `fenceAnswer`: an address, a host name, a list of addresses, or a map of either.
fn fence_answer(node: Node<'_, '_>, report: &mut Report) -> Option<FallbackSpec> {
    match node.kind() {
        Kind::Map => answer(node, "fenceAnswer", report),
        Kind::List => addresses(node, report),
        Kind::Plain | Kind::Quoted if node.text().parse::<IpAddr>().is_ok() => {
            read::address(node, report).map(|address| FallbackSpec::Addresses(vec![address]))
        }
        Kind::Plain | Kind::Quoted => read::hostname(node, report).map(FallbackSpec::Hostname),
    }
}

/// Checks `fallback`; both keys empty say that there is none.
fn fallback(node: Node<'_, '_>, report: &mut Report) -> Option<Option<FallbackSpec>> {
    let is_empty = |(_, value): (Node<'_, '_>, Node<'_, '_>)| match value.kind() {
        Kind::List => value.items().next().is_none(),
        Kind::Quoted => value.text().is_empty(),
        Kind::Plain | Kind::Map => false,
    };
    let is_known =
        |(key, _): (Node<'_, '_>, Node<'_, '_>)| matches!(key.text(), "addresses" | "hostname");
    if node.entries().count() == 2
        && node
            .entries()
            .all(|entry| is_empty(entry) && is_known(entry))
    {
        return Some(None);
    }
    answer(node, "fallback", report).map(Some)
}

/// Checks a map with exactly one of addresses and host name.
fn answer(node: Node<'_, '_>, what: &str, report: &mut Report) -> Option<FallbackSpec> {
    let fields = fields(node, &v1::ANSWER, report)?;
    match (fields.get("addresses"), fields.get("hostname")) {
        (Some(node), None) => addresses(node, report),
        (None, Some(node)) => read::hostname_or_addresses(node, report).map(FallbackSpec::Hostname),
        _ => {
            report.fault(
                node,
                format_args!("`{what}` has either `addresses` or `hostname`"),
            );
            None
        }
    }
}

/// Checks a list of at least one address.
fn addresses(node: Node<'_, '_>, report: &mut Report) -> Option<FallbackSpec> {
    let before = report.count();
    let mut seen = HashSet::new();
    let out = read::list(node, report, |item, report| {
        let address = read::address(item, report)?;
        if !seen.insert(address) {
            report.fault(item, format_args!("`{address}` is listed twice"));
        }
        Some(address)
    });
    if report.count() == before && !(1..=MAX_ADDRESSES).contains(&out.len()) {
        report.fault(
            node,
            format_args!("1 to {MAX_ADDRESSES} addresses are wanted"),
        );
    }
    (!out.is_empty()).then_some(FallbackSpec::Addresses(out))
}
