//! Names that come from Kubernetes: what `zones` say of them, and the policy that they begin with.

use std::collections::HashSet;

use super::clusters::Clusters;
use super::grants;
use super::members::NO_MEMBER;
use super::policy::PolicyKeys;
use super::read;
use super::zones::{Read, Written, Zones};
use crate::config::faults::Report;
use crate::config::spec::{Node, v1};
use crate::inventory::{FederationRules, NameForm, PrivateAddresses, ZoneRules};
use crate::model::{FederationName, LowerName, Ttl};

/// Checks what zones say of names from Kubernetes. `defaults` is `defaults.policy`, and where it stands.
pub(super) fn read(
    read: &Read<'_, '_>,
    clusters: &Clusters<'_, '_>,
    defaults: (&PolicyKeys, Option<Node<'_, '_>>),
    report: &mut Report,
) -> FederationRules {
    let rules = read.written.iter().filter_map(|zone| {
        let rules = zone_rules(zone, &read.zones, clusters, report);
        let apex = zone.apex.clone()?;
        let mut sources = read.sources.iter();
        let source = sources.find(|source| source.spec.apex == apex)?;
        Some(rules(apex, source.spec.ttl))
    });
    let zones = rules.collect();
    if clusters.has_members() {
        without_tiers(defaults, report);
    }
    let (policy, _) = defaults;
    FederationRules {
        zones,
        base: policy.base().into(),
        min_ttl: None,
        weighs_endpoints: policy.weighs_endpoints(),
    }
}

/// Warns of a failover without tiers: objects without tiers of their own cannot be refused for the operator's word.
fn without_tiers((policy, node): (&PolicyKeys, Option<Node<'_, '_>>), report: &mut Report) {
    if let Some(node) = node.filter(|_| policy.lacks_tiers()) {
        report.warn(
            node,
            "`steer: failover` without `tiers`: Kubernetes services that say no tiers get the nearest cluster",
        );
    }
}

/// Checks one zone; its apex makes the rules whole.
fn zone_rules(
    zone: &Written<'_, '_>,
    zones: &Zones,
    clusters: &Clusters<'_, '_>,
    report: &mut Report,
) -> impl FnOnce(LowerName, Ttl) -> ZoneRules + use<> {
    let Written { apex, fields } = zone;
    let forms = match fields.get("names") {
        Some(node) => forms(node, report),
        None if clusters.has_members() => vec![NameForm::ServiceNamespace],
        None => Vec::new(),
    };
    // Levels are answered of configured names too, and a cluster set says its version.
    let is_used = |form: &NameForm| *form != NameForm::ServiceNamespace;
    let names = (!forms.iter().any(is_used)).then_some("names");
    for key in names
        .into_iter()
        .chain(["federationName", "grants", "privateAddresses"])
    {
        if let Some(node) = fields.get(key).filter(|_| !clusters.has_members()) {
            report.warn(node, format_args!("has no effect: {NO_MEMBER}"));
        }
    }
    let federation = fields
        .get("federationName")
        .and_then(|node| federation_name(node, &forms, report));
    let grants = fields.get("grants").map_or_else(Vec::new, |node| {
        let scope = grants::Scope {
            apex: apex.as_ref(),
            zones,
            clusters,
        };
        scope.read(node, report)
    });
    let private = fields
        .get("privateAddresses")
        .and_then(|node| read::word(node, v1::PRIVATE_ADDRESSES, report));
    let private = match private {
        Some("none") => PrivateAddresses::None,
        Some("all") => PrivateAddresses::All,
        _ => PrivateAddresses::Clients,
    };
    move |apex, ttl| ZoneRules {
        apex,
        forms,
        federation,
        grants,
        private,
        ttl,
    }
}

/// Checks `names`.
fn forms(node: Node<'_, '_>, report: &mut Report) -> Vec<NameForm> {
    let mut listed = HashSet::new();
    read::list(node, report, |item, report| {
        let text = read::text(item, report)?;
        let form = match text {
            v1::NAME_FORM => NameForm::ServiceNamespace,
            v1::KUBEFED => NameForm::KubeFed,
            v1::CLUSTER_SET => NameForm::ClusterSet,
            _ => {
                report.fault(
                    item,
                    format_args!(
                        "`{text}` is no form of names; \"{}\" is one, with quotes, and so are {} and {}",
                        v1::NAME_FORM,
                        v1::KUBEFED,
                        v1::CLUSTER_SET
                    ),
                );
                return None;
            }
        };
        if !listed.insert(text) {
            report.fault(item, format_args!("`{text}` is listed twice"));
            return None;
        }
        Some(form)
    })
}

/// Checks `federationName`, which only names of KubeFed have.
fn federation_name(
    node: Node<'_, '_>,
    forms: &[NameForm],
    report: &mut Report,
) -> Option<FederationName> {
    let name = match read::text(node, report)?.parse() {
        Ok(name) => name,
        Err(error) => {
            report.fault(node, error);
            return None;
        }
    };
    if !forms.contains(&NameForm::KubeFed) {
        report.warn(node, "has no effect: `names` does not list `kubefed`");
    }
    Some(name)
}
