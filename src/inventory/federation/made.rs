//! Names that zones make of services, and which names a namespace has without grants.
//!
//! Where a zone makes names of a federation or of a cluster set, their trees are shared by all namespaces: there a namespace has what
//! is made of its own services, and nothing may stand where a level of another's service is answered.

use super::rules::{NameForm, ZoneRules};
use super::shard::{NameKeys, ObjectRef};
use super::{FederationRules, is_below};
use crate::model::{LowerName, NameRef, SERVICE_LABEL};

/// Makes the names of one zone.
pub(super) fn of_zone<'a>(
    zone: &'a ZoneRules,
    object: &'a ObjectRef,
    keys: &'a NameKeys,
) -> impl Iterator<Item = LowerName> + use<'a> {
    let own = [object.name.as_bytes(), object.namespace.as_bytes()];
    let name = move |form: &NameForm| match form {
        NameForm::ServiceNamespace => joined(&zone.apex, &own),
        NameForm::KubeFed => {
            let federation = keys.federation.as_ref().or(zone.federation.as_ref())?;
            let above = joined(&zone.apex, &[federation.as_str().as_bytes(), SERVICE_LABEL])?;
            joined(&above, &own)
        }
        NameForm::ClusterSet => {
            in_cluster_set(&zone.apex, object).filter(|_| keys.in_cluster_set == Some(true))
        }
    };
    zone.forms.iter().filter_map(name)
}

/// Makes the name of a service in the cluster set of an apex.
fn in_cluster_set(apex: &LowerName, object: &ObjectRef) -> Option<LowerName> {
    let own = [object.name.as_bytes(), object.namespace.as_bytes()];
    joined(&joined(apex, &[SERVICE_LABEL])?, &own)
}

/// Tells whether a name is one that a service has in a cluster set.
pub(super) fn is_in_cluster_set(
    rules: &FederationRules,
    name: NameRef<'_>,
    object: &ObjectRef,
) -> bool {
    let makes = |zone: &&ZoneRules| zone.forms.contains(&NameForm::ClusterSet);
    let mut zones = rules.zones.iter().filter(makes);
    zones.any(|zone| in_cluster_set(&zone.apex, object).is_some_and(|made| made.as_ref() == name))
}

/// Tells of a name that a service asks for, though no zone makes it: without its zone, and why it is not there.
pub(super) fn without_zone(
    rules: &FederationRules,
    object: &ObjectRef,
    keys: &NameKeys,
) -> Option<(LowerName, &'static str)> {
    let has = |form| rules.zones.iter().any(|zone| zone.forms.contains(&form));
    let own = [object.name.as_bytes(), object.namespace.as_bytes()];
    let below = |above: &[&[u8]]| joined(&joined(&".".parse().ok()?, above)?, &own);
    match &keys.federation {
        Some(federation) if !has(NameForm::KubeFed) => {
            let name = below(&[federation.as_str().as_bytes(), SERVICE_LABEL])?;
            Some((
                name,
                "no zone makes names of KubeFed: none lists `kubefed` in `names`",
            ))
        }
        _ if keys.in_cluster_set == Some(true) && !has(NameForm::ClusterSet) => Some((
            below(&[SERVICE_LABEL])?,
            "no zone is that of a cluster set: none lists `clusterset` in `names`",
        )),
        _ => None,
    }
}

/// Puts labels before a name; `None` where it gets too long, or a label is none.
fn joined(above: &LowerName, labels: &[&[u8]]) -> Option<LowerName> {
    let mut labels = labels.iter().rev();
    labels.try_fold(above.clone(), |name, label| name.prepend(label).ok())
}

/// Tells whether a namespace may have a name of a zone that has no grants: what lies below its own label, or in the trees that all
/// namespaces share what is made of its own services.
pub(super) fn may_without_grants(
    zone: &ZoneRules,
    namespace: &str,
    name: NameRef<'_>,
) -> Result<(), &'static str> {
    const OWN: &str = "without `grants` a namespace has the names below {namespace}.<zone> alone";
    const SHARED: &str =
        "without `grants` a namespace has the names of its own services alone below svc.<zone>";
    let has = |form| zone.forms.contains(&form);
    let (kubefed, cluster_set) = (has(NameForm::KubeFed), has(NameForm::ClusterSet));
    // From the apex downwards.
    let depth = name
        .label_count()
        .saturating_sub(zone.apex.as_ref().label_count());
    let labels: Vec<&[u8]> = name.labels().take(depth).collect();
    let at = |position: usize| labels.iter().rev().nth(position).copied();
    let own = Some(namespace.as_bytes());
    if (kubefed || cluster_set) && at(0) == Some(SERVICE_LABEL) {
        // In a zone of both kinds it may lie below the name of another's service in the cluster set, where its ports are.
        let is_port = cluster_set && labels.iter().any(|label| label.starts_with(b"_"));
        // And where its endpoints are, but below the federation of the zone itself, which is the operator's word.
        let federation = zone.federation.as_ref();
        let federation = federation.map(|federation| federation.as_str().as_bytes());
        let is_zones = federation.is_some() && at(1) == federation;
        let is_host = cluster_set && !is_zones && (depth > 4 || name.is_wildcard());
        let in_federation = kubefed && depth >= 4 && at(2) == own && !is_port && !is_host;
        let in_cluster_set = cluster_set && depth == 3 && at(1) == own;
        let is_service = has(NameForm::ServiceNamespace) && depth == 2 && at(0) == own;
        let is_own = in_federation || (!name.is_wildcard() && (in_cluster_set || is_service));
        return if is_own { Ok(()) } else { Err(SHARED) };
    }
    if kubefed && is_of_levels(name, depth, at) {
        return Err(
            "it is, or would cover, a name of a level of others’ services: that needs a grant",
        );
    }
    let tree = zone.apex.prepend(namespace.as_bytes());
    if tree.is_ok_and(|tree| is_below(name, tree.as_ref())) {
        Ok(())
    } else {
        Err(OWN)
    }
}

/// Tells whether a name could be that of a level whatever regions and zones there are, lie below one, or be a wildcard that covers one.
fn is_of_levels<'n>(
    name: NameRef<'_>,
    depth: usize,
    at: impl Fn(usize) -> Option<&'n [u8]>,
) -> bool {
    // One or two labels say a level; then `svc` with three labels before it.
    let is_svc = |position| at(position) == Some(SERVICE_LABEL);
    if name.is_wildcard() {
        // The star stands for what is missing.
        let rest = depth.saturating_sub(1);
        return rest <= 2 || (1..=2).any(|area| is_svc(area) && rest > area);
    }
    (1..=2).any(|area| is_svc(area) && depth >= area + 4)
}
