//! Where a service comes from: who has its names, which objects it is made of, and which of them gave which address.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::number;
use crate::admin::dto::{
    BackingDto, ObjectDto, OwnerDto, PolicyConflictDto, RefusalDto, RefusedPartDto, ServiceOrigin,
};
use crate::inventory::{Inventory, Origin, Readiness, Refused, ResolvedTarget, Service, Shard};
use crate::model::{ClusterId, ClusterIndex, LowerName};

/// Objects listed of one service.
const OBJECTS: usize = 200;
/// Addresses, and host names, listed of one object.
const ADDRESSES: usize = 64;
/// Refusals listed of one object.
const REFUSED: usize = 20;
/// Objects of a service without any address that it is said of why.
const LACKING: usize = 2;
/// Names listed that the objects of one service do not have.
const NAMES: usize = 100;
/// Objects named of one address.
const NAMED: usize = 3;

/// What is known of where a service comes from.
#[derive(Debug, Default)]
pub(super) struct Provenance {
    /// Where from.
    pub(super) origin: ServiceOrigin,
    /// Who has its names.
    pub(super) owners: Vec<OwnerDto>,
    /// The objects, by cluster; the first.
    pub(super) objects: Vec<ObjectDto>,
    /// How many there are.
    pub(super) object_count: u64,
    /// On what they do not agree.
    pub(super) conflicts: Vec<PolicyConflictDto>,
    /// Names that they ask for and do not have, the first.
    pub(super) refused: Vec<RefusalDto>,
    sites: BTreeMap<(ClusterIndex, IpAddr), Site>,
}

/// Who gave one address of one cluster.
#[derive(Debug, Default)]
struct Site {
    /// The first objects.
    from: Vec<String>,
    /// How many there are besides.
    more: usize,
    /// Why it takes no traffic, by the first object that says so.
    unready: Option<String>,
    /// Who drains it.
    withdrawn: Option<String>,
}

impl Site {
    /// Notes who gives it.
    fn note(&mut self, from: String) {
        if self.from.len() < NAMED {
            self.from.push(from);
        } else {
            self.more += 1;
        }
    }
}

impl Provenance {
    /// Reads it out of the inventory.
    pub(super) fn of(inventory: &Inventory, service: &Service) -> Self {
        if service.origin == Origin::Configuration {
            let mut provenance = Self::default();
            provenance.note_configured(inventory, service);
            return provenance;
        }
        let (federation, key) = inventory.federation_of(service);
        let owners = service.names.iter().filter_map(|name| {
            let owner = federation.owner(&name.to_lower())?;
            Some(OwnerDto {
                name: name.to_string(),
                namespace: owner.namespace.to_string(),
            })
        });
        let conflicts = federation.conflicts(&key).into_iter();
        let conflicts = conflicts.map(|conflict| PolicyConflictDto {
            key: conflict.key.to_owned(),
            overruled: conflict.overruled.iter().map(ToString::to_string).collect(),
        });
        let mut provenance = Self {
            origin: ServiceOrigin::Kubernetes,
            owners: owners.collect(),
            conflicts: conflicts.collect(),
            ..Self::default()
        };
        for (index, shard) in federation.shards(&key) {
            let Some(cluster) = inventory.cluster(index) else {
                continue;
            };
            provenance.object_count += 1;
            if provenance.objects.len() < OBJECTS {
                let unanswered = federation.unanswered(index, shard);
                let object = object((inventory, &cluster.id), shard, &unanswered);
                provenance.objects.push(object);
            }
            let room = NAMES.saturating_sub(provenance.refused.len());
            let refused = federation.refused_names(&shard.object, index).into_iter();
            let refused = refused.take(room).map(|(name, reason)| RefusalDto {
                source: format!("{} in {}", shard.object, cluster.id),
                place: name.to_string(),
                reason,
            });
            provenance.refused.extend(refused);
            provenance.note(inventory, (index, &cluster.id), shard);
        }
        provenance
    }

    /// Notes which addresses the host names of the configuration give.
    fn note_configured(&mut self, inventory: &Inventory, service: &Service) {
        let extras = service.extras.as_deref();
        for target in extras.into_iter().flat_map(|extras| &extras.targets) {
            let (name, cluster) = (&target.name, target.cluster);
            let Some(resolved) = inventory.resolved(name) else {
                continue;
            };
            for (address, is_old) in resolved.all() {
                // One that is written is not looked at here: nothing is particular to it.
                let site = self.sites.entry((cluster, address)).or_default();
                let from = self.origin.as_str();
                site.note(format!("{from}, {}", resolved.words(name)));
                if is_old && site.unready.is_none() {
                    site.unready = Some(old_in_words(resolved, name));
                }
            }
        }
    }

    /// Notes which addresses an object gives.
    fn note(&mut self, inventory: &Inventory, cluster: (ClusterIndex, &ClusterId), shard: &Shard) {
        if shard.unserved.is_some() {
            return;
        }
        let (index, id) = cluster;
        let object = format!("{} in {id}", shard.object);
        let unready = match &shard.readiness {
            Readiness::Ready => None,
            Readiness::NotReady(why) => Some(why.to_string()),
        };
        let mut add = |address: IpAddr, from: String, unready: Option<String>| {
            let site = self.sites.entry((index, address)).or_default();
            site.note(from);
            site.unready = site.unready.take().or(unready);
            if shard.is_drained && site.withdrawn.is_none() {
                site.withdrawn = Some(format!("{object} drains itself, or is being deleted"));
            }
        };
        for address in &shard.addresses {
            add(*address, object.clone(), unready.clone());
        }
        for target in &shard.targets {
            let Some(resolved) = inventory.resolved(target) else {
                continue;
            };
            let from = format!("{object}, {}", resolved.words(target));
            for (address, is_old) in resolved.all() {
                let old = is_old.then(|| old_in_words(resolved, target));
                add(address, from.clone(), unready.clone().or(old));
            }
        }
    }

    /// Says where an address comes from.
    pub(super) fn from(&self, cluster: ClusterIndex, address: Option<IpAddr>) -> String {
        let Some(site) = address.and_then(|address| self.sites.get(&(cluster, address))) else {
            return self.origin.as_str().to_owned();
        };
        let from = site.from.join("; ");
        match site.more {
            0 => from,
            more => format!("{from}; and {more} more"),
        }
    }

    /// Says why there is no address at all, by the first objects that say so.
    pub(super) fn lacking(&self) -> String {
        let whys = self.objects.iter().filter_map(|object| {
            let why = match &object.reason {
                Some(why) => why,
                None if object.addresses.is_empty() => return None,
                None => "its addresses are none that may be answered",
            };
            let ObjectDto {
                kind,
                namespace,
                name,
                cluster,
                ..
            } = object;
            Some(format!("{kind} {namespace}/{name} in {cluster}: {why}"))
        });
        let whys: Vec<String> = whys.take(LACKING).collect();
        match (whys.is_empty(), self.origin) {
            (false, _) => format!("{}.", whys.join("; ")),
            (true, ServiceOrigin::Kubernetes) => "No object gives it one.".to_owned(),
            (true, ServiceOrigin::Configuration) => {
                "It has no endpoint, or host names without an address.".to_owned()
            }
        }
    }

    /// Tells whether objects gave an address.
    pub(super) fn knows(&self, cluster: ClusterIndex, address: IpAddr) -> bool {
        self.sites.contains_key(&(cluster, address))
    }

    /// Says why an address takes no traffic, as its cluster says.
    pub(super) fn unready(&self, cluster: ClusterIndex, address: Option<IpAddr>) -> String {
        let site = address.and_then(|address| self.sites.get(&(cluster, address)));
        let why = site.and_then(|site| site.unready.clone());
        why.unwrap_or_else(|| "its cluster says that it takes no traffic".to_owned())
    }

    /// Says who drains an address.
    pub(super) fn withdrawn(&self, cluster: ClusterIndex, address: Option<IpAddr>) -> String {
        let site = address.and_then(|address| self.sites.get(&(cluster, address)));
        let who = site.and_then(|site| site.withdrawn.clone());
        who.unwrap_or_else(|| "its object drains it, or is being deleted".to_owned())
    }
}

/// Says why an old address of a host name comes after all others.
fn old_in_words(resolved: &ResolvedTarget, target: &LowerName) -> String {
    match resolved.inside {
        Some(_) => format!("at {target} it is down, drained or not seen for long"),
        None => format!("{target} was not seen to have it for long"),
    }
}

/// Says why the host names that are all that an object has give no address; `None`: one does, or it has addresses.
fn unresolved(inventory: &Inventory, shard: &Shard) -> Option<String> {
    let first = shard.targets.first()?;
    let has_any = |name| {
        let resolved = inventory.resolved(name);
        resolved.is_some_and(ResolvedTarget::has_any)
    };
    if !shard.addresses.is_empty() || shard.targets.iter().any(has_any) {
        return None;
    }
    let resolved = inventory.resolved(first);
    let why = match resolved.and_then(|resolved| resolved.fault.as_deref()) {
        Some(fault) => format!("is not followed: {fault}"),
        None if resolved.is_some_and(|resolved| resolved.is_gone) => {
            "has no address, as its name servers say".to_owned()
        }
        None => "has no address so far".to_owned(),
    };
    Some(format!("its host name {first} {why}"))
}

/// Shows one object.
fn object(
    (inventory, cluster): (&Inventory, &ClusterId),
    shard: &Shard,
    unanswered: &[Refused],
) -> ObjectDto {
    let unresolved = unresolved(inventory, shard);
    let is_resolved = unresolved.is_none();
    let why = match (&shard.unserved, &shard.readiness) {
        (Some(why), _) => Some(format!("not served: {why}")),
        (None, _) if !is_resolved => unresolved,
        (None, Readiness::NotReady(why)) => Some(why.to_string()),
        (None, Readiness::Ready) => None,
    };
    let addresses = shard.addresses.iter().take(ADDRESSES);
    let targets = shard.targets.iter().take(ADDRESSES);
    let refused = unanswered.iter().chain(&shard.refused).take(REFUSED);
    ObjectDto {
        cluster: cluster.to_string(),
        kind: shard.object.kind.as_str().to_owned(),
        namespace: shard.object.namespace.to_string(),
        name: shard.object.name.to_string(),
        addresses: addresses.map(ToString::to_string).collect(),
        targets: targets.map(ToString::to_string).collect(),
        ready: shard.readiness == Readiness::Ready && shard.unserved.is_none() && is_resolved,
        reason: why,
        served: shard.unserved.is_none(),
        drained: shard.is_drained,
        weight: shard.weight.0,
        backing: shard.backing.map(|backing| BackingDto {
            ready: backing.ready,
            serving: backing.serving,
            terminating: backing.terminating,
            total: backing.total,
        }),
        refused: refused
            .map(|part| RefusedPartDto {
                what: part.what.to_string(),
                reason: part.reason.to_string(),
            })
            .collect(),
        refused_count: number(unanswered.len() + shard.refused.len()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use super::*;
    use crate::inventory::{
        Backing, Change, FederationRules, NameForm, ObjectKind, ObjectRef, PrivateAddresses,
        ShardChange, ZoneRules,
    };
    use crate::model::{Cluster, PolicySpec, ServiceKey, Ttl, Weight};

    const AWS: ClusterIndex = ClusterIndex(0);
    const GCP: ClusterIndex = ClusterIndex(1);

    fn shard(kind: ObjectKind, address: &str) -> Shard {
        Shard {
            hosts: ["www.shop.svc.example".parse().unwrap()].into(),
            addresses: [address.parse().unwrap()].into(),
            weight: Weight(3),
            backing: Some(Backing {
                ready: 2,
                serving: 3,
                terminating: 1,
                total: 4,
            }),
            ..Shard::blank(ObjectRef::new(kind, "shop", "web"))
        }
    }

    /// An inventory of two clusters and one zone that makes names of services.
    fn inventory(shards: Vec<(ClusterIndex, Shard)>) -> Inventory {
        let cluster = |(index, id): (ClusterIndex, &str)| {
            let cluster = Cluster::named(id.parse().unwrap());
            (index, Arc::new(cluster))
        };
        let zone = ZoneRules {
            apex: "svc.example".parse().unwrap(),
            forms: vec![NameForm::ServiceNamespace],
            federation: None,
            grants: Vec::new(),
            private: PrivateAddresses::All,
            ttl: Ttl::BRIEF,
        };
        let rules = FederationRules {
            zones: vec![zone],
            base: Arc::new(PolicySpec::default()),
            min_ttl: None,
            weighs_endpoints: false,
        };
        let mut inventory = Inventory::default();
        let clusters = [(AWS, "aws"), (GCP, "gcp")].map(cluster);
        inventory.apply(Change::Clusters(clusters.into()));
        inventory.apply(Change::Rules(Arc::new(rules)));
        for (cluster, shard) in shards {
            let change = ShardChange::Upsert(Box::new(shard));
            inventory.apply(Change::of_cluster(cluster, vec![change]));
        }
        inventory
    }

    /// The service that has a name.
    fn service(inventory: &Inventory, name: &str) -> Service {
        let mut services = inventory.services().map(|(_, service)| service);
        let found =
            services.find(|service| service.names.iter().any(|one| one.to_string() == name));
        found.unwrap().clone()
    }

    #[test]
    fn objects_are_shown_by_cluster_with_what_their_clusters_say() {
        let mut gone = shard(ObjectKind::Service, "192.0.2.2");
        gone.readiness = Readiness::NotReady("0 of 3 endpoints are ready".into());
        gone.is_drained = true;
        let part = |at: usize| Refused {
            what: format!("annotation {at}").into(),
            reason: "no number".into(),
        };
        gone.refused = (0..30).map(part).collect();
        let inventory = inventory(vec![
            (GCP, gone),
            (AWS, shard(ObjectKind::Service, "192.0.2.1")),
        ]);
        let service = service(&inventory, "web.shop.svc.example");
        assert_eq!(service.key, ServiceKey::new("shop", "web").unwrap());
        let found = Provenance::of(&inventory, &service);
        assert_eq!(found.origin, ServiceOrigin::Kubernetes);
        assert_eq!(found.owners.len(), 2);
        assert!(found.owners.iter().all(|owner| owner.namespace == "shop"));
        let [aws, gcp] = &found.objects[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            (&*aws.cluster, &*aws.kind, &*aws.name, aws.weight),
            ("aws", "Service", "web", 3)
        );
        assert!(aws.ready && !aws.drained && aws.reason.is_none());
        assert_eq!(aws.backing.map(|backing| backing.ready), Some(2));
        assert!(!gcp.ready && gcp.drained);
        assert_eq!(gcp.reason.as_deref(), Some("0 of 3 endpoints are ready"));
        assert_eq!((gcp.refused.len(), gcp.refused_count), (REFUSED, 30));
        let address = |text: &str| Some(text.parse().unwrap());
        assert_eq!(
            found.from(AWS, address("192.0.2.1")),
            "Service shop/web in aws"
        );
        assert_eq!(
            found.unready(GCP, address("192.0.2.2")),
            "0 of 3 endpoints are ready"
        );
        assert_eq!(
            found.withdrawn(GCP, address("192.0.2.2")),
            "Service shop/web in gcp drains itself, or is being deleted"
        );
    }

    #[test]
    fn an_address_of_many_objects_names_the_first_ones() {
        let kinds = [
            ObjectKind::Ingress,
            ObjectKind::Gateway,
            ObjectKind::HttpRoute,
            ObjectKind::GrpcRoute,
            ObjectKind::TlsRoute,
        ];
        let shards = kinds.map(|kind| (AWS, shard(kind, "192.0.2.1")));
        let inventory = inventory(shards.into());
        let service = service(&inventory, "www.shop.svc.example");
        let found = Provenance::of(&inventory, &service);
        assert_eq!(found.object_count, 5);
        assert_eq!(
            found.from(AWS, "192.0.2.1".parse().ok()),
            "Ingress shop/web in aws; Gateway shop/web in aws; HTTPRoute shop/web in aws; and 2 more"
        );
    }

    #[test]
    fn names_that_others_have_are_told_with_the_service() {
        let mut late = shard(ObjectKind::Service, "192.0.2.2");
        late.object = ObjectRef::new(ObjectKind::Service, "late", "web");
        let inventory = inventory(vec![
            (AWS, shard(ObjectKind::Service, "192.0.2.1")),
            (GCP, late),
        ]);
        let service = service(&inventory, "web.late.svc.example");
        let found = Provenance::of(&inventory, &service);
        let [refused] = &found.refused[..] else {
            panic!("{:?}", found.refused)
        };
        assert_eq!(refused.place, "www.shop.svc.example");
        assert_eq!(refused.source, "Service late/web in gcp");
        assert!(
            refused.reason.starts_with("without `grants`"),
            "{refused:?}"
        );
    }

    #[test]
    fn a_host_name_without_an_address_is_why_there_is_none() {
        let mut by_name = shard(ObjectKind::Service, "192.0.2.1");
        by_name.addresses = Box::default();
        by_name.targets = ["lb.example.net".parse().unwrap()].into();
        let mut inventory = inventory(vec![(AWS, by_name)]);
        let mut target = ResolvedTarget {
            addresses: Box::default(),
            old: Box::default(),
            ttl: Ttl::BRIEF,
            inside: None,
            is_gone: false,
            fault: None,
        };
        let begin = "its host name lb.example.net";
        for (is_gone, fault, why) in [
            (false, None, "has no address so far"),
            (true, None, "has no address, as its name servers say"),
            (false, Some("in a circle"), "is not followed: in a circle"),
        ] {
            (target.is_gone, target.fault) = (is_gone, fault.map(Into::into));
            let targets = HashMap::from([("lb.example.net".parse().unwrap(), target.clone())]);
            inventory.apply(Change::Targets(Arc::new(targets)));
            let service = service(&inventory, "www.shop.svc.example");
            let found = Provenance::of(&inventory, &service);
            let object = &found.objects[0];
            let why = format!("{begin} {why}");
            assert!(!object.ready);
            assert_eq!(object.reason.as_ref(), Some(&why));
            assert_eq!(found.lacking(), format!("Service shop/web in aws: {why}."));
        }
    }

    #[test]
    fn an_address_of_a_host_name_says_so() {
        let mut by_name = shard(ObjectKind::Service, "192.0.2.1");
        by_name.addresses = Box::default();
        by_name.targets = ["lb.example.net".parse().unwrap()].into();
        let mut inventory = inventory(vec![(AWS, by_name)]);
        let resolved = ResolvedTarget {
            addresses: ["192.0.2.8".parse().unwrap()].into(),
            old: ["192.0.2.9".parse().unwrap()].into(),
            ttl: Ttl::BRIEF,
            inside: None,
            is_gone: false,
            fault: None,
        };
        let targets = HashMap::from([("lb.example.net".parse().unwrap(), resolved)]);
        inventory.apply(Change::Targets(Arc::new(targets)));
        let service = service(&inventory, "www.shop.svc.example");
        let found = Provenance::of(&inventory, &service);
        assert_eq!(found.objects[0].targets, ["lb.example.net"]);
        let old = "192.0.2.9".parse().ok();
        assert_eq!(
            found.from(AWS, old),
            "Service shop/web in aws, resolved from lb.example.net"
        );
        assert_eq!(
            found.unready(AWS, old),
            "lb.example.net was not seen to have it for long"
        );
    }

    #[test]
    fn what_is_not_served_gives_no_address_and_says_why() {
        let mut fenced = shard(ObjectKind::Service, "192.0.2.1");
        fenced.unserved = Some("`fence` names no country".into());
        let inventory = inventory(vec![(AWS, fenced)]);
        let service = service(&inventory, "www.shop.svc.example");
        let found = Provenance::of(&inventory, &service);
        assert!(!found.objects[0].served && !found.objects[0].ready);
        assert_eq!(
            found.objects[0].reason.as_deref(),
            Some("not served: `fence` names no country")
        );
        assert!(found.sites.is_empty());
    }

    #[test]
    fn what_is_observed_is_shown_with_its_objects() {
        let mut inventory = inventory(vec![(AWS, shard(ObjectKind::Service, "192.0.2.1"))]);
        inventory.apply(Change::Observed([AWS].into()));
        let service = service(&inventory, "web.shop.svc.example");
        assert_eq!(service.key.as_str(), "shop/web@observed");
        let found = Provenance::of(&inventory, &service);
        assert_eq!((found.objects.len(), found.owners.len()), (1, 2));
        assert!(found.knows(AWS, "192.0.2.1".parse().unwrap()));
    }

    #[test]
    fn a_service_of_the_configuration_comes_from_there() {
        let inventory = inventory(Vec::new());
        let service = Service {
            key: ServiceKey::new("shop", "web").unwrap(),
            origin: Origin::Configuration,
            names: std::iter::empty().collect(),
            ttl: None,
            policy: Arc::new(PolicySpec::default()),
            monitor: None,
            pools: crate::model::Pools::default(),
            extras: None,
        };
        let found = Provenance::of(&inventory, &service);
        assert_eq!(found.from(AWS, "192.0.2.1".parse().ok()), "configuration");
    }
}
