//! The snapshot that tests ask: two clusters, two places, and a service for each case.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::World;
use super::zones::zones;
use crate::geo::{GeoDb, Override, OverridePlace};
use crate::inventory::{Change, Extras, HostNames, HostsOf, Inventory, PortNames, Service};
use crate::model::{
    Carrier, Cluster, ClusterIndex, ClusterSelector, Coordinates, EndpointIndex, EndpointState,
    FallbackSpec, FenceRule, Groups, HeadlessEndpoint, Location, LowerName, MonitorSpec, NamedPort,
    Names, Origin, PolicySpec, PoolsBuilder, ServiceKey, Steer, Ttl, Weight,
};
use crate::snapshot::{Challenges, Inputs, Settings, Snapshot, build};
use crate::zone::{Zone, ZoneSet};

/// Clients in Frankfurt and in Virginia; all others are in an unknown place.
pub(super) const GERMAN: &str = "192.0.2.0/24";
pub(super) const AMERICAN: &str = "198.51.100.0/24";

/// What becomes a service: its hostname is `<name>.svc.test`.
struct Plan {
    name: &'static str,
    policy: PolicySpec,
    /// (cluster, addresses).
    endpoints: Vec<(u16, Vec<IpAddr>)>,
    /// (cluster, host name).
    hostnames: Vec<(u16, &'static str)>,
    monitor: Option<Arc<MonitorSpec>>,
    /// It is `svc.test` too.
    is_at_apex: bool,
    ports: Vec<NamedPort>,
    /// (cluster, label, address), where it is its endpoints.
    hosts: Option<Vec<(u16, String, IpAddr)>>,
}

impl Plan {
    fn new(name: &'static str) -> Self {
        let pair = |net: u8| {
            let v4 = format!("10.{net}.0.1").parse().unwrap();
            let v6 = format!("2001:db8:{net}::1").parse().unwrap();
            vec![v4, v6]
        };
        Self {
            name,
            policy: PolicySpec::default(),
            endpoints: vec![(0, pair(1)), (1, pair(2))],
            hostnames: Vec::new(),
            monitor: None,
            is_at_apex: false,
            ports: Vec::new(),
            hosts: None,
        }
    }

    fn policy(mut self, policy: PolicySpec) -> Self {
        self.policy = policy;
        self
    }

    fn endpoints(mut self, endpoints: &[(u16, &[&str])]) -> Self {
        self.endpoints = endpoints
            .iter()
            .map(|(cluster, list)| {
                (
                    *cluster,
                    list.iter().map(|text| text.parse().unwrap()).collect(),
                )
            })
            .collect();
        self
    }

    fn hostname(mut self, cluster: u16, name: &'static str) -> Self {
        self.hostnames.push((cluster, name));
        self
    }

    /// Adds a named port.
    fn port(mut self, name: &str, carrier: Carrier, number: u16) -> Self {
        self.ports.push(NamedPort {
            name: name.parse().unwrap(),
            carrier,
            number: number.try_into().unwrap(),
        });
        self
    }

    /// Makes it headless, with these endpoints: cluster, label and address. They listen on the port `http` 8080.
    fn headless(mut self, hosts: &[(u16, &str, &str)]) -> Self {
        let read = |(cluster, label, address): &(u16, &str, &str)| {
            (*cluster, (*label).to_owned(), address.parse().unwrap())
        };
        let hosts: Vec<(u16, String, IpAddr)> = hosts.iter().map(read).collect();
        let mut endpoints: BTreeMap<u16, Vec<IpAddr>> = BTreeMap::new();
        for (cluster, _, address) in &hosts {
            endpoints.entry(*cluster).or_default().push(*address);
        }
        self.endpoints = endpoints.into_iter().collect();
        self.hosts = Some(hosts);
        self.port("http", Carrier::Tcp, 80)
    }

    fn watched(mut self) -> Self {
        self.monitor = Some(Arc::new(MonitorSpec::new(
            crate::model::Check::connect(80),
            Origin::Operator,
        )));
        self
    }

    fn service(self) -> Service {
        let mut pools = PoolsBuilder::default();
        for (cluster, addresses) in &self.endpoints {
            let cluster = ClusterIndex(*cluster);
            pools
                .addresses(cluster, Weight(1), None, addresses)
                .unwrap();
        }
        let mut hostnames: Vec<LowerName> = Vec::new();
        for (cluster, name) in &self.hostnames {
            let cluster = ClusterIndex(*cluster);
            pools
                .hostname(cluster, Weight(1), None, hostnames.len())
                .unwrap();
            hostnames.push(name.parse().unwrap());
        }
        let mut names: Vec<LowerName> = vec![format!("{}.svc.test", self.name).parse().unwrap()];
        if self.is_at_apex {
            names.push("svc.test".parse().unwrap());
        }
        let ports = (!self.ports.is_empty()).then(|| PortNames {
            owners: names.clone().into(),
            ports: self.ports.into(),
        });
        let hosts = self.hosts.map(|hosts| host_names(&names, &hosts));
        let extras = (!hostnames.is_empty() || ports.is_some()).then(|| {
            Arc::new(Extras {
                hostnames: hostnames.into(),
                ports,
                hosts,
                ..Extras::default()
            })
        });
        let key = self.name.replace("*.", "any-");
        Service {
            key: ServiceKey::new("shop", &key).unwrap(),
            origin: crate::inventory::Origin::default(),
            names: names.iter().collect::<Names>(),
            ttl: (self.name == "ttl").then(|| Ttl::new(3).unwrap()),
            policy: Arc::new(self.policy),
            monitor: self.monitor,
            pools: pools.build().unwrap(),
            extras,
        }
    }
}

/// Names the endpoints of a headless service, by the clusters `eu` and `us`.
fn host_names(names: &[LowerName], hosts: &[(u16, String, IpAddr)]) -> HostNames {
    let listens: Arc<[NamedPort]> = [NamedPort {
        name: "http".parse().unwrap(),
        carrier: Carrier::Tcp,
        number: 8080.try_into().unwrap(),
    }]
    .into();
    let of_cluster = |(index, label): (u16, &str)| {
        let own = hosts.iter().filter(|(cluster, ..)| *cluster == index);
        let endpoints = own.map(|(_, label, address)| HeadlessEndpoint {
            label: label.parse().unwrap(),
            address: *address,
            ports: Arc::clone(&listens),
        });
        HostsOf {
            cluster: ClusterIndex(index),
            label: label.parse().ok(),
            endpoints: endpoints.collect(),
        }
    };
    let has = |index: u16| hosts.iter().any(|(cluster, ..)| *cluster == index);
    let clusters = [(0, "eu"), (1, "us")].into_iter();
    let clusters = clusters.filter(|(index, _)| hosts.is_empty() || has(*index));
    HostNames {
        owners: names.into(),
        clusters: clusters.map(of_cluster).collect(),
    }
}

fn steer(steer: Steer) -> PolicySpec {
    PolicySpec {
        steer,
        ..PolicySpec::default()
    }
}

/// A fence that lets German clients to the European cluster, and nobody else anywhere.
fn fence() -> PolicySpec {
    PolicySpec {
        fences: vec![vec![FenceRule {
            clients: vec!["country:DE".parse().unwrap()],
            clusters: vec!["eu".parse().unwrap()],
        }]],
        ..PolicySpec::default()
    }
}

fn addresses(list: &[&str]) -> FallbackSpec {
    FallbackSpec::Addresses(list.iter().map(|text| text.parse().unwrap()).collect())
}

fn hostname(name: &str) -> FallbackSpec {
    FallbackSpec::Hostname(name.parse().unwrap())
}

/// A service for each case.
fn plans() -> Vec<Plan> {
    let eu: ClusterSelector = "eu".parse().unwrap();
    let us: ClusterSelector = "us".parse().unwrap();
    let many: Vec<String> = (1..=32)
        .map(|host| format!("2001:db8:9::{host:x}"))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    vec![
        Plan::new("near"),
        Plan::new("ttl"),
        Plan::new("*.wild"),
        Plan::new("deep.er"),
        Plan::new("deep.ent.wild"),
        Plan::new("weighted").policy(PolicySpec {
            weights: vec![(eu, Weight(3)), (us, Weight(1))],
            ..steer(Steer::Weighted)
        }),
        Plan::new("turn").policy(steer(Steer::RoundRobin)),
        Plan::new("all").policy(steer(Steer::All)),
        Plan::new("v4").endpoints(&[(0, &["10.1.0.1"]), (1, &["10.2.0.1"])]),
        Plan::new("mixed").endpoints(&[(0, &["10.1.0.1"]), (1, &["10.2.0.1", "2001:db8:2::1"])]),
        Plan::new("none").endpoints(&[]),
        Plan::new("many")
            .endpoints(&[(0, &many)])
            .policy(PolicySpec {
                answers: 32,
                ..PolicySpec::default()
            }),
        Plan::new("fenced").policy(fence()),
        Plan::new("fenced2").policy(PolicySpec {
            fence_answer: Some(addresses(&["203.0.113.80"])),
            ..fence()
        }),
        Plan::new("fenced3").policy(PolicySpec {
            fence_answer: Some(hostname("www.example")),
            ..fence()
        }),
        Plan::new("dead")
            .endpoints(&[(0, &["10.3.0.1"]), (1, &["10.3.0.2"])])
            .watched(),
        Plan::new("dead2")
            .endpoints(&[(0, &["10.4.0.1"]), (1, &["10.4.0.2"])])
            .policy(PolicySpec {
                fallback: Some(addresses(&["203.0.113.81", "2001:db8:f::1"])),
                ..PolicySpec::default()
            })
            .watched(),
        Plan::new("dead3")
            .endpoints(&[(0, &["10.5.0.1"])])
            .policy(PolicySpec {
                fallback: Some(hostname("cdn.example.net")),
                ..PolicySpec::default()
            })
            .watched(),
        Plan::new("doubt")
            .endpoints(&[(0, &["10.6.0.1"])])
            .watched(),
        Plan::new("host").endpoints(&[]).hostname(0, "www.example"),
        Plan::new("host2")
            .endpoints(&[])
            .hostname(0, "lb-eu.example.net")
            .hostname(1, "lb-us.example.net"),
    ]
}

/// A place by country.
fn place(country: &str, continent: &str, point: (f64, f64)) -> Location {
    Location {
        coordinates: Coordinates::new(point.0, point.1).ok(),
        continent: continent.parse().ok(),
        country: country.parse().ok(),
        ..Location::default()
    }
}

fn cluster((id, region): (&str, &str), location: Location) -> Arc<Cluster> {
    Arc::new(Cluster {
        location,
        region: Some(region.into()),
        zones: vec![format!("{id}-A").into(), "both".into()],
        ..Cluster::named(id.parse().unwrap())
    })
}

/// Builds the world with the settings of everybody.
pub(super) fn world() -> World {
    world_with(Settings::default())
}

/// Builds the world. Endpoints of services that begin with `dead` are down, that of `doubt` is in doubt.
pub(super) fn world_with(settings: Settings) -> World {
    world_of(settings, plans())
}

/// Builds a world of one service, `near.svc.test`, with this policy; its clusters have these addresses.
pub(super) fn world_under(policy: PolicySpec, endpoints: &[(u16, &[&str])]) -> World {
    let plan = Plan::new("near").policy(policy).endpoints(endpoints);
    world_of(Settings::default(), vec![plan])
}

/// Builds a world of one service, `dead.svc.test` and `svc.test`, whose endpoint is down and whose `fallback` is a host name that
/// nobody has resolved.
pub(super) fn world_at_apex() -> World {
    let mut plan = Plan::new("dead")
        .endpoints(&[(0, &["10.5.0.1"])])
        .policy(PolicySpec {
            fallback: Some(hostname("cdn.example.net")),
            ..PolicySpec::default()
        })
        .watched();
    plan.is_at_apex = true;
    world_of(Settings::default(), vec![plan])
}

/// Builds a world of these zones, with federated services in `svc.test`, below `prod.svc`.
pub(super) fn world_leveled(zones: Vec<Arc<Zone>>) -> World {
    let plans = vec![
        Plan::new("web.shop.prod.svc"),
        Plan::new("half.shop.prod.svc")
            .endpoints(&[(0, &["10.3.0.1"]), (1, &["10.7.0.1"])])
            .watched(),
        Plan::new("dead.shop.prod.svc")
            .endpoints(&[(0, &["10.3.0.2"]), (1, &["10.3.0.3"])])
            .watched(),
        Plan::new("all.shop.prod.svc").policy(steer(Steer::All)),
        Plan::new("none.shop.prod.svc").endpoints(&[]),
        Plan::new("fenced.shop.prod.svc").policy(fence()),
        Plan::new("host.shop.prod.svc")
            .endpoints(&[])
            .hostname(0, "lb-eu.example.net")
            .hostname(1, "lb-us.example.net"),
        Plan::new("web.static"),
    ];
    world_in(Settings::default(), plans, (zones, Challenges::default()))
}

/// Builds a world of these zones, with services of a cluster set in `svc.test`, and `plain.svc.test`.
pub(super) fn world_of_ports(zones: Vec<Arc<Zone>>) -> World {
    let http = |name| Plan::new(name).port("http", Carrier::Tcp, 80);
    let plans = vec![
        http("web.shop.svc")
            .port("dns", Carrier::Udp, 53)
            .port("own", Carrier::Tcp, 8)
            .port("far", Carrier::Tcp, 9),
        http("none.shop.svc").endpoints(&[]),
        http("wild.shop.svc"),
        Plan::new("plain"),
    ];
    world_in(Settings::default(), plans, (zones, Challenges::default()))
}

/// Builds a world of these zones, with headless services of a cluster set in `svc.test`.
pub(super) fn world_of_hosts(zones: Vec<Arc<Zone>>) -> World {
    let everything = || PolicySpec {
        answers: 32,
        ..steer(Steer::All)
    };
    let all =
        |name, hosts: &[(u16, &str, &str)]| Plan::new(name).policy(everything()).headless(hosts);
    let both = &[(0, "db-0", "10.1.0.1"), (1, "db-0", "10.2.0.1")];
    let many: Vec<(String, String)> = (0..40)
        .map(|at| (format!("w{at:02}"), format!("10.1.1.{at}")))
        .collect();
    let many: Vec<(u16, &str, &str)> = many
        .iter()
        .map(|(label, address)| (0, label.as_str(), address.as_str()))
        .collect();
    let mut mixed = all("mixed.shop.svc", &both[..1]);
    mixed.endpoints.push((1, vec!["10.2.0.9".parse().unwrap()]));
    let plans = vec![
        all(
            "db.shop.svc",
            &[
                (0, "db-0", "10.1.0.1"),
                (0, "db-0", "2001:db8:1::1"),
                (0, "db-1", "10.1.0.2"),
                (0, "db-1", "10.1.0.3"),
                (1, "db-0", "10.2.0.1"),
            ],
        )
        .port("dns", Carrier::Udp, 53),
        Plan::new("near.shop.svc").headless(both),
        Plan::new("turn.shop.svc")
            .policy(steer(Steer::RoundRobin))
            .headless(both),
        Plan::new("fenced.shop.svc").policy(fence()).headless(both),
        Plan::new("fenced2.shop.svc")
            .policy(PolicySpec {
                fence_answer: Some(addresses(&["203.0.113.80"])),
                ..fence()
            })
            .headless(both),
        Plan::new("fenced3.shop.svc")
            .policy(PolicySpec {
                fence_answer: Some(hostname("www.example")),
                ..fence()
            })
            .headless(both),
        all("none.shop.svc", &[]),
        all("wild.shop.svc", both),
        mixed,
        all(
            "dead.shop.svc",
            &[(0, "db-0", "10.3.0.1"), (0, "db-1", "10.7.0.1")],
        )
        .watched(),
        all("many.shop.svc", &many),
        Plan::new("web.shop.svc").port("http", Carrier::Tcp, 80),
    ];
    world_in(Settings::default(), plans, (zones, Challenges::default()))
}

/// Builds a world of these zones and these challenges, with a service for each of these names in `svc.test`.
pub(super) fn world_challenged(
    zones: Vec<Arc<Zone>>,
    names: &[&'static str],
    challenges: &[(&str, &'static str)],
) -> World {
    let plans = names.iter().map(|name| Plan::new(name)).collect();
    let read = |(name, token): &(&str, &'static str)| -> (LowerName, &'static str) {
        (name.parse().unwrap(), token)
    };
    let challenges: Vec<_> = challenges.iter().map(read).collect();
    let challenges = challenges
        .iter()
        .map(|(name, token)| (name.as_ref(), *token));
    world_in(
        Settings::default(),
        plans,
        (zones, Challenges::of(challenges)),
    )
}

/// Makes a world of static zones alone.
pub(super) fn world_with_zones(zones: Vec<Arc<Zone>>) -> World {
    let settings = Settings::default();
    world_in(settings, Vec::new(), (zones, Challenges::default()))
}

fn world_of(settings: Settings, plans: Vec<Plan>) -> World {
    world_in(settings, plans, (zones(), Challenges::default()))
}

fn world_in(
    settings: Settings,
    plans: Vec<Plan>,
    (zones, challenges): (Vec<Arc<Zone>>, Challenges),
) -> World {
    let frankfurt = place("DE", "EU", (50.1, 8.7));
    let virginia = place("US", "NA", (38.9, -77.4));
    let mut inventory = Inventory::default();
    let mut watched = BTreeMap::new();
    let clusters = vec![
        (ClusterIndex(0), cluster(("eu", "eu-1"), frankfurt.clone())),
        (ClusterIndex(1), cluster(("us", "us-1"), virginia.clone())),
        // Nothing is there.
        (
            ClusterIndex(2),
            cluster(("ap", "ap-1"), Location::default()),
        ),
    ];
    let clusters = inventory.apply(Change::Clusters(clusters));
    let mut dirty = inventory.apply(Change::Replace(
        plans.into_iter().map(Plan::service).collect(),
    ));
    dirty.clusters |= clusters.clusters;
    for (index, target) in &dirty.watch {
        watched.insert(*index, target.address.ip());
    }
    let overrides = [
        (GERMAN, frankfurt.clone()),
        (AMERICAN, virginia),
        ("2001:db8:d::/48", frankfurt),
    ]
    .map(|(prefix, location)| Override {
        prefix: prefix.parse().unwrap(),
        place: OverridePlace::Place(location),
    });
    let (geo, rejections) = GeoDb::compile(&[], &overrides);
    assert_eq!(rejections, []);
    let states: Vec<(EndpointIndex, EndpointState)> = watched
        .iter()
        .map(|(&index, &address)| (index, state_of(address)))
        .collect();
    let inputs = Inputs {
        inventory: &inventory,
        zones: &Arc::new(ZoneSet::new(zones)),
        geo: &Arc::new(geo),
        groups: &Arc::new(Groups::default()),
        settings: &Arc::new(settings),
        challenges: &Arc::new(challenges),
        states: &states,
    };
    let built = build(&inputs, &dirty, &Snapshot::default());
    assert_eq!(built.rejections, []);
    World::new(built.snapshot)
}

/// The state of a watched address.
fn state_of(address: IpAddr) -> EndpointState {
    match address {
        IpAddr::V4(address) if address.octets()[1] == 6 => EndpointState::UP.with_doubt(true),
        IpAddr::V4(address) if address.octets()[1] == 7 => EndpointState::UP,
        _ => EndpointState::UP.with_verdict(crate::model::Verdict::Down),
    }
}
