//! A world made by hand, for tests of templates: eight clusters on five continents, one in each state, and names that are
//! everything that nobody should be able to put into a page.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

pub(super) use super::hostile::{HOSTILE, TIME};
use super::member_samples::{member, object};
use super::shell::{Asked, Shell};
use crate::admin::dto::{
    AnnotationDto, AuditDto, BudgetDto, ChangeDto, ClusterDto, CountsDto, DelegationDto,
    DelegationServerDto, DrainDto, DrainState, EndpointDto, EventDto, EventKind, EvidenceDto,
    ExplanationDto, ForceDto, ForcedVerdict, HealthState, LocationDto, MonitorDto, NodeDrainDto,
    NodeDto, OriginDto, OwnerDto, PeerDto, PlaceShareDto, PolicyConflictDto, ProbeDto, ProblemDto,
    RatesDto, RefusalDto, SendersDto, ServiceDto, ServiceOrigin, ServiceRowDto, Severity, ShareDto,
    SourceDto, SourceKind, SourceState, StatusDto, StepDto, TargetDto, TargetKind, TrafficDto,
    TtlDto, ZoneDto,
};
use crate::admin::identity::{How, Identity, Role};

/// Somebody.
pub(super) fn asked(role: Role, url: &str) -> Asked {
    Asked {
        identity: Identity {
            name: Arc::from("ann"),
            role,
            how: How::Token,
            from: IpAddr::from([127, 0, 0, 1]),
            request: Arc::from("r1"),
        },
        url: url.to_owned(),
        part: false,
    }
}

/// The shell of an operator's page.
pub(super) fn shell(title: &str, url: &str) -> Shell {
    Shell::new(&asked(Role::Operator, url), title, "fra-1")
}

fn s(text: &str) -> String {
    text.to_owned()
}

/// Counts.
pub(super) fn counts(up: u64, drained: u64, degraded: u64, down: u64) -> CountsDto {
    CountsDto {
        up,
        unknown: 0,
        degraded,
        drained,
        down,
    }
}

/// A flip to down.
pub(super) fn flip(id: u64) -> EventDto {
    EventDto {
        id,
        time: s(TIME),
        kind: EventKind::Flip,
        severity: Severity::Warning,
        cluster: Some(s("aws-use1")),
        services: vec![s("shop/web")],
        service_count: Some(12),
        target: Some(s("192.0.2.10:80")),
        before: Some(s("down")),
        text: s("192.0.2.10:80 (http GET /healthz) went down: connection refused"),
    }
}

/// Eight clusters, and one whose place is not known.
pub(super) fn clusters() -> Vec<ClusterDto> {
    let places = [
        ("aws-use1", 38.9, -77.4, "US", "NA", HealthState::Down),
        ("aws-usw2", 45.9, -119.3, "US", "NA", HealthState::Up),
        ("gcp-euw1", 50.4, 3.8, "BE", "EU", HealthState::Up),
        ("onprem-fra", 50.1, 8.7, "DE", "EU", HealthState::Degraded),
        ("azure-sea", 1.3, 103.8, "SG", "AS", HealthState::Drained),
        ("aws-apne1", 35.6, 139.7, "JP", "AS", HealthState::Up),
        ("gcp-sae1", -23.5, -46.6, "BR", "SA", HealthState::Unknown),
        ("aws-afs1", -33.9, 18.4, "ZA", "AF", HealthState::Up),
    ];
    let mut all: Vec<ClusterDto> = places
        .into_iter()
        .map(
            |(name, latitude, longitude, country, continent, state)| ClusterDto {
                location: Some(LocationDto {
                    latitude,
                    longitude,
                }),
                country: Some(s(country)),
                continent: Some(s(continent)),
                state,
                ..cluster(name)
            },
        )
        .collect();
    all.push(ClusterDto {
        country: None,
        continent: None,
        ..cluster(HOSTILE)
    });
    all
}

fn cluster(name: &str) -> ClusterDto {
    let is_drained = name.starts_with("azure");
    ClusterDto {
        name: s(name),
        from: s("Secret meridian/aws-use1, key kubeconfig"),
        state: HealthState::Up,
        location: None,
        country: None,
        continent: None,
        provider: Some(s("aws")),
        region: Some(s("us-east-1")),
        zones: vec![s("us-east-1a"), s("us-east-1b")],
        tags: vec![s("us")],
        cost_km: 0,
        evidence: vec![EvidenceDto {
            what: s("coordinates"),
            value: s("38.9, -77.4"),
            from: s("the built-in table of cloud regions"),
        }],
        annotations: vec![AnnotationDto {
            key: s("meridian-dns.io/geo-tag"),
            value: s("us"),
        }],
        services: 42,
        endpoints: counts(36, 0, 0, 6),
        answers_per_second: 1234.5,
        probe_ms: Some(12.3),
        drain: is_drained.then(drain),
        force: (name == HOSTILE).then(force),
        admitted: true,
        leaving: None,
        kubernetes: (name == HOSTILE || is_drained).then(|| member(name)),
    }
}

/// A drain that waits for a node.
pub(super) fn drain() -> DrainDto {
    let node = |name: &str, own: bool| NodeDrainDto {
        node: s(name),
        own,
        in_force: own,
        heard_ms_ago: (!own).then_some(42_000),
        error: (!own).then(|| s("connection refused")),
        held: u64::from(own),
        last_given_seconds_ago: own.then_some(12.0),
        ttl: 30,
        remaining_seconds: own.then_some(23.0),
    };
    DrainDto {
        id: s("01HZX"),
        target: target("azure-sea"),
        state: DrainState::Partial,
        safe_to_stop: false,
        waiting_for: vec![s("ns2 has not said that it has it")],
        created: change(),
        starts: s(TIME),
        expires: None,
        ended: None,
        acknowledged: 1,
        expected: 2,
        held_services: vec![s("shop/alone"), s(HOSTILE)],
        nodes: vec![node("ns1", true), node("ns2", false)],
    }
}

fn target(cluster: &str) -> TargetDto {
    TargetDto {
        kind: TargetKind::Cluster,
        cluster: Some(s(cluster)),
        service: None,
        address: None,
    }
}

fn change() -> ChangeDto {
    ChangeDto {
        time: s(TIME),
        actor: s("ann"),
        reason: s(HOSTILE),
    }
}

/// A force.
pub(super) fn force() -> ForceDto {
    ForceDto {
        id: s("01HZY"),
        target: target("onprem-fra"),
        verdict: ForcedVerdict::Down,
        active: true,
        created: change(),
        expires: Some(s("2026-11-21T04:00:00Z")),
        ended: None,
        acknowledged: 1,
        expected: 2,
        missing: vec![s("ns2")],
    }
}

/// The status of a bad night.
pub(super) fn status() -> StatusDto {
    let problem = |severity, title: &str, text: &str, link: &str| ProblemDto {
        severity,
        title: s(title),
        text: s(text),
        link: s(link),
        since: Some(s(TIME)),
    };
    StatusDto {
        problems: vec![
            problem(
                Severity::Critical,
                "Cluster aws-use1 is down",
                "All 6 endpoints fail. 42 services; their clients in North America are sent to aws-usw2.",
                "/clusters/aws-use1",
            ),
            problem(
                Severity::Warning,
                "Zone file svc.example.com.zone was refused",
                "Line 12: no TTL. The last good one is served.",
                "/sources",
            ),
            problem(Severity::Warning, HOSTILE, HOSTILE, "javascript:alert(1)"),
        ],
        problem_count: 3,
        ..calm()
    }
}

/// The status of a good night.
pub(super) fn calm() -> StatusDto {
    StatusDto {
        node: NodeDto {
            name: s("fra-1"),
            version: s("0.1.0"),
            started: s("2026-11-20T03:00:00Z"),
            now: s(TIME),
            ready: true,
            generation: 1234,
            names: 100_000,
        },
        problems: Vec::new(),
        problem_count: 0,
        clusters: counts(5, 1, 1, 1),
        services: counts(40, 1, 1, 0),
        monitors: counts(80, 0, 2, 6),
        rates: RatesDto {
            queries_per_second: 123_456.7,
            failures_per_second: 0.0,
            latency_p50_us: Some(12.5),
            latency_p99_us: Some(1850.0),
        },
        senders: Some(SendersDto {
            sampled: 12_000,
            addresses: 310,
            private_share: 0.0,
            subnet_share: 0.42,
            busiest_share: 0.031,
            busiest_network: Some(s("192.0.2.0/24")),
            translated: None,
        }),
        drains: 1,
        forces: 1,
        challenges: 2,
        members: None,
        peers: peers(),
    }
}

/// The status of a node that knows nothing yet.
pub(super) fn empty_status() -> StatusDto {
    StatusDto {
        clusters: CountsDto::default(),
        services: CountsDto::default(),
        monitors: CountsDto::default(),
        rates: RatesDto::default(),
        senders: None,
        drains: 0,
        forces: 0,
        challenges: 0,
        peers: Vec::new(),
        ..calm()
    }
}

/// Two peers.
pub(super) fn peers() -> Vec<PeerDto> {
    let peer = |reachable: bool| PeerDto {
        url: s("https://ns2.example.com:8053"),
        name: reachable.then(|| s("ns2")),
        reachable,
        heard_ms_ago: reachable.then_some(800),
        error: (!reachable).then(|| s(HOSTILE)),
        in_step: reachable,
    };
    vec![peer(true), peer(false)]
}

/// An hour in steps of ten seconds.
pub(super) fn traffic() -> TrafficDto {
    let wave = |base: f64, swing: f64, shift: f64| -> Vec<f64> {
        (0..360)
            .map(|at| swing.mul_add((f64::from(at) / 40.0 + shift).sin(), base))
            .collect()
    };
    let lines = |base: f64| -> BTreeMap<String, Vec<f64>> {
        clusters()
            .into_iter()
            .zip(1_u32..)
            .map(|(cluster, at)| {
                let at = f64::from(at);
                (cluster.name, wave(base * at, base / 2.0, at))
            })
            .collect()
    };
    TrafficDto {
        end: 1_795_000_000,
        step_seconds: 10,
        queries: wave(120_000.0, 30_000.0, 0.0),
        replies: BTreeMap::from([
            (s("NOERROR"), wave(110_000.0, 30_000.0, 0.0)),
            (s("NXDOMAIN"), wave(9000.0, 2000.0, 1.0)),
            (s("SERVFAIL"), vec![0.0; 360]),
        ]),
        clusters: lines(2000.0),
        countries: [
            ("DE", 90_000),
            ("US", 250_000),
            ("BR", 30_000),
            ("IN", 70_000),
            ("JP", 40_000),
            ("ZA", 9000),
            ("AU", 15_000),
            ("unknown", 1200),
            (HOSTILE, 5),
        ]
        .map(|(code, answers)| (s(code), answers))
        .into(),
        latency_p50_us: wave(12.0, 3.0, 0.0),
        latency_p99_us: wave(80.0, 40.0, 1.0),
        probe_ms: lines(4.0),
    }
}

/// A row of the list of services.
pub(super) fn service_row(key: &str) -> ServiceRowDto {
    let (namespace, name) = key.split_once('/').unwrap_or(("shop", key));
    ServiceRowDto {
        key: s(key),
        namespace: s(namespace),
        name: s(name),
        origin: ServiceOrigin::Kubernetes,
        hostnames: vec![s(name), format!("{name}.svc.example.com")],
        state: HealthState::Degraded,
        steer: s("proximity"),
        clusters: shares(None),
        endpoints: counts(2, 0, 0, 1),
    }
}

fn shares(share: Option<f64>) -> Vec<ShareDto> {
    let one = |cluster: &str, state| ShareDto {
        cluster: s(cluster),
        state,
        share,
    };
    vec![
        one("aws-use1", HealthState::Down),
        one("gcp-euw1", HealthState::Up),
        one("onprem-fra", HealthState::Up),
    ]
}

/// A service.
pub(super) fn service() -> ServiceDto {
    let endpoint = |address: &str, cluster: &str, state, verdict: &str| EndpointDto {
        cluster: s(cluster),
        address: s(address),
        weight: 1,
        state,
        reason: None,
        unconfirmed_since: None,
        from: format!("Service shop/web in {cluster}"),
        verdict: s(verdict),
        in_doubt: false,
        drained: false,
        withdrawn: false,
        forced: None,
        clients: Vec::new(),
        monitor: Some(s("m1")),
        last: Some(probe(verdict == "up")),
        last_flip: Some(s(TIME)),
    };
    let mut endpoints = vec![
        endpoint("192.0.2.20", "gcp-euw1", HealthState::Up, "up"),
        endpoint("2001:db8::20", "gcp-euw1", HealthState::Up, "up"),
        endpoint("192.0.2.10", "aws-use1", HealthState::Down, "down"),
    ];
    endpoints[1].drained = true;
    endpoints.push(EndpointDto {
        reason: Some(format!("0 of 3 endpoints are ready {HOSTILE}")),
        unconfirmed_since: Some(s("2026-11-19T02:40:00Z")),
        from: s(HOSTILE),
        ..endpoint("192.0.2.30", "onprem-fra", HealthState::Unready, "up")
    });
    endpoints[2].forced = Some(ForcedVerdict::Down);
    endpoints[2].clients = vec![s("10.0.0.0/8")];
    ServiceDto {
        key: s("shop/web"),
        namespace: s("shop"),
        name: s("web"),
        origin: ServiceOrigin::Kubernetes,
        hostnames: vec![s("www.svc.example.com"), s(HOSTILE)],
        owners: vec![OwnerDto {
            name: s("www.svc.example.com"),
            namespace: s(HOSTILE),
        }],
        objects: vec![object("gcp-euw1"), object(HOSTILE)],
        object_count: 3,
        conflicts: vec![PolicyConflictDto {
            key: s("ttl"),
            overruled: vec![s(HOSTILE)],
        }],
        refused: vec![RefusalDto {
            source: s("services"),
            place: s(HOSTILE),
            reason: s("another namespace has it"),
        }],
        state: HealthState::Degraded,
        steer: s("proximity"),
        policy: vec![s("Clients get the nearest cluster that is up."), s(HOSTILE)],
        monitor: Some(s("http GET /healthz on port 80, every 2 s")),
        clusters: shares(Some(0.333)),
        places: vec![PlaceShareDto {
            country: s("DE"),
            cluster: Some(s("gcp-euw1")),
        }],
        endpoints,
        counts: counts(2, 0, 0, 1),
        ttl: TtlDto {
            configured: 30,
            now: 5,
            reason: Some(s("a monitor is in doubt")),
        },
        budget: Some(BudgetDto {
            detect_ms: 4000,
            agree_ms: 0,
            publish_ms: 5,
            ttl_ms: 30_000,
            total_ms: 34_005,
        }),
        drains: vec![drain()],
        forces: vec![force()],
        history: vec![flip(7), flip(3)],
    }
}

fn probe(ok: bool) -> ProbeDto {
    ProbeDto {
        ok,
        milliseconds: ok.then_some(3.21),
        error: (!ok).then(|| s(HOSTILE)),
    }
}

/// A monitor.
pub(super) fn monitor(target: &str, verdict: &str) -> MonitorDto {
    MonitorDto {
        id: s("m1"),
        target: s(target),
        origin: if verdict == "unknown" {
            OriginDto::Tenant
        } else {
            OriginDto::Operator
        },
        check: s("http GET /healthz"),
        verdict: s(verdict),
        in_doubt: true,
        never_succeeded: verdict == "down",
        refused: (verdict == "unknown").then(|| s(HOSTILE)),
        last: Some(probe(verdict == "up")),
        clusters: vec![s("aws-use1"), s(HOSTILE)],
        endpoints: 12,
        interval_ms: 2000,
        timeout_ms: 1000,
        rise: 2,
        fall: 2,
    }
}

/// A zone with its delegation.
pub(super) fn zone() -> ZoneDto {
    ZoneDto {
        name: s("svc.example.com"),
        serial: 1_795_000_000,
        nameservers: vec![s("ns1.svc.example.com"), s("ns2.svc.example.com")],
        ttl: 30,
        negative_ttl: 30,
        names: 12,
        name_forms: vec![s("{service}.{namespace}"), s("kubefed")],
        federation_name: Some(s(HOSTILE)),
        delegation: Some(DelegationDto {
            checked: s(TIME),
            ok: false,
            faults: vec![s(HOSTILE)],
            wanted: vec![s("svc.example.com. 3600 IN NS ns1.svc.example.com.")],
            found: vec![s("svc.example.com. 3600 IN NS ns1.svc.example.com.")],
            servers: vec![DelegationServerDto {
                name: s("ns1.svc.example.com"),
                address: s("192.0.2.53"),
                serial: Some(1_795_000_000),
                fault: Some(s("lame")),
            }],
        }),
    }
}

/// Sources.
pub(super) fn sources() -> Vec<SourceDto> {
    let source = |kind, name: &str, state| SourceDto {
        kind,
        name: s(name),
        state,
        loaded: Some(s(TIME)),
        age_seconds: Some(86_400),
        details: vec![s("412,345 networks")],
        refused: vec![RefusalDto {
            source: s(name),
            place: format!("{name}:12"),
            reason: s(HOSTILE),
        }],
        refused_count: 101,
    };
    vec![
        source(
            SourceKind::Configuration,
            "/etc/meridian/meridian.yaml",
            SourceState::Refused,
        ),
        source(SourceKind::ZoneFile, HOSTILE, SourceState::Stale),
        source(SourceKind::Database, "GeoLite2-City.mmdb", SourceState::Ok),
        source(SourceKind::Kubernetes, "azure-sea", SourceState::Stale),
    ]
}

/// An entry of the audit log.
pub(super) fn audit() -> AuditDto {
    AuditDto {
        time: s(TIME),
        actor: s(HOSTILE),
        role: s("operator"),
        from: s("192.0.2.1"),
        action: s("drain"),
        target: s("cluster azure-sea"),
        reason: s(HOSTILE),
        outcome: s("done"),
        before: None,
        after: Some(serde_json::json!({ "id": "01HZX", "reason": HOSTILE })),
    }
}

/// An explanation.
pub(super) fn explanation() -> ExplanationDto {
    ExplanationDto {
        name: s("www.svc.example.com"),
        r#type: s("A"),
        client: s("46.114.0.0/24"),
        rcode: s("NOERROR"),
        cluster: Some(s("gcp-euw1")),
        ttl: Some(30),
        scope: 17,
        answer: vec![s("www.svc.example.com. 30 IN A 192.0.2.20")],
        steps: (1..6)
            .map(|number| StepDto {
                number,
                text: format!("step {number} {HOSTILE}"),
            })
            .collect(),
    }
}
