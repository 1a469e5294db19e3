//! The document's examples, of the very types that are sent: they always fit.

use std::collections::BTreeMap;

use crate::admin::dto::{
    AnnotationDto, AuditDto, BackingDto, BudgetDto, ChallengeDto, ChallengeState, ChangeDto,
    ClusterDto, CountsDto, DelegationDto, DelegationServerDto, DrainDto, DrainState, EndpointDto,
    EventDto, EventKind, EvidenceDto, ExplanationDto, ForceDto, ForcedVerdict, HealthState,
    HeldDeletionsDto, KindDto, KindStateDto, LeavingDto, LinkDto, LocationDto, MemberDto,
    MembersDto, MonitorDto, NewChallenge, NewDrain, NewForce, NodeChallengeDto, NodeDrainDto,
    NodeDto, ObjectDto, OriginDto, OwnerDto, Page, PeerDto, PlaceShareDto, PolicyConflictDto,
    ProbeDto, ProblemDto, RatesDto, RefusalDto, RefusedPartDto, SendersDto, ServiceDto,
    ServiceOrigin, ServiceRowDto, Severity, ShareDto, SourceDto, SourceKind, SourceState,
    StatusDto, StepDto, TargetDto, TargetKind, TrafficDto, TtlDto, ZoneDto,
};

const NOW: &str = "2026-03-01T03:00:12Z";
const THEN: &str = "2026-03-01T02:55:00Z";
const SERVICE: &str = "shop/web";
const CLUSTER: &str = "aws-use1";
const NAME: &str = "www.svc.example.com";

/// Owns a text.
fn text(text: &str) -> String {
    text.to_owned()
}

/// Makes a page of one item.
pub(super) fn page<T>(item: T) -> Page<T> {
    Page {
        items: vec![item],
        total: 1,
        next: None,
    }
}

fn counts(up: u64, down: u64) -> CountsDto {
    CountsDto {
        up,
        down,
        ..CountsDto::default()
    }
}

// === The whole ===

pub(super) fn status() -> StatusDto {
    StatusDto {
        node: NodeDto {
            name: text("fra-1"),
            version: text(env!("CARGO_PKG_VERSION")),
            started: text(THEN),
            now: text(NOW),
            ready: true,
            generation: 42,
            names: 1204,
        },
        problems: vec![ProblemDto {
            severity: Severity::Critical,
            title: text("shop/web has nothing up"),
            text: text("All its endpoints are down; they are answered as if they were up."),
            link: text("/services/shop/web"),
            since: Some(text(THEN)),
        }],
        problem_count: 1,
        clusters: counts(3, 1),
        services: counts(400, 1),
        monitors: counts(1200, 3),
        rates: rates(),
        senders: Some(SendersDto {
            sampled: 1204,
            addresses: 310,
            private_share: 0.0,
            subnet_share: 0.42,
            busiest_share: 0.031,
            busiest_network: Some(text("192.0.2.0/24")),
            translated: None,
        }),
        drains: 1,
        forces: 0,
        challenges: 0,
        members: Some(MembersDto {
            synced: 4,
            refused_objects: 1,
            refusals: 1,
            ..MembersDto::default()
        }),
        peers: vec![peer()],
    }
}

fn rates() -> RatesDto {
    RatesDto {
        queries_per_second: 1520.5,
        failures_per_second: 0.0,
        latency_p50_us: Some(3.1),
        latency_p99_us: Some(9.8),
    }
}

pub(super) fn traffic() -> TrafficDto {
    let series = |name: &str| BTreeMap::from([(text(name), vec![1500.0, 1520.5])]);
    TrafficDto {
        end: 1_772_334_012,
        step_seconds: 10,
        queries: vec![1500.0, 1520.5],
        replies: series("NOERROR"),
        clusters: series(CLUSTER),
        countries: BTreeMap::from([(text("DE"), 41_000)]),
        latency_p50_us: vec![3.0, 3.1],
        latency_p99_us: vec![9.5, 9.8],
        probe_ms: BTreeMap::from([(text(CLUSTER), vec![88.0, 90.5])]),
    }
}

pub(super) fn peer() -> PeerDto {
    PeerDto {
        url: text("https://ns2.example.com:8053"),
        name: Some(text("iad-1")),
        reachable: true,
        heard_ms_ago: Some(420),
        error: None,
        in_step: true,
    }
}

// === Clusters and services ===

pub(super) fn cluster() -> ClusterDto {
    ClusterDto {
        name: text(CLUSTER),
        from: text("Secret meridian/aws-use1, key kubeconfig"),
        state: HealthState::Up,
        location: Some(LocationDto {
            latitude: 38.9,
            longitude: -77.4,
        }),
        country: Some(text("US")),
        continent: Some(text("NA")),
        provider: Some(text("aws")),
        region: Some(text("us-east-1")),
        zones: vec![text("us-east-1a")],
        tags: vec![text("us")],
        cost_km: 0,
        evidence: vec![EvidenceDto {
            what: text("coordinates"),
            value: text("38.9, -77.4"),
            from: text("the configuration"),
        }],
        annotations: vec![AnnotationDto {
            key: text("meridian-dns.io/geo-tag"),
            value: text("us"),
        }],
        services: 400,
        endpoints: counts(400, 0),
        answers_per_second: 812.0,
        probe_ms: Some(90.5),
        drain: None,
        force: None,
        admitted: true,
        leaving: None,
        kubernetes: Some(member()),
    }
}

pub(super) fn leaving_cluster() -> ClusterDto {
    ClusterDto {
        state: HealthState::Drained,
        leaving: Some(LeavingDto {
            since: text(THEN),
            why: text("its kubeconfig is gone"),
            held: 1,
            held_services: vec![text("shop/web")],
            remaining_seconds: None,
        }),
        ..cluster()
    }
}

fn member() -> MemberDto {
    MemberDto {
        link: LinkDto::Synced,
        since: None,
        last_contact: Some(text(NOW)),
        age_seconds: Some(1),
        version: Some(text("v1.36.2")),
        last_error: None,
        warnings: Vec::new(),
        kinds: vec![KindDto {
            kind: text("Service"),
            version: Some(text("v1")),
            state: KindStateDto::Watching,
            objects: 120,
            left_out: 0,
            reason: None,
        }],
        shards: 96,
        held: Some(HeldDeletionsDto {
            count: 12,
            since: text(THEN),
            until: text("2026-03-01T03:00:30Z"),
        }),
        unconfirmed_since: None,
        refused_objects: 1,
        refused: vec![RefusalDto {
            source: text(CLUSTER),
            place: text("Service shop/cart: meridian-dns.io/ttl"),
            reason: text("`soon` is no number of seconds"),
        }],
    }
}

fn share(share: Option<f64>) -> ShareDto {
    ShareDto {
        cluster: text(CLUSTER),
        state: HealthState::Up,
        share,
    }
}

pub(super) fn service_row() -> ServiceRowDto {
    ServiceRowDto {
        key: text(SERVICE),
        namespace: text("shop"),
        name: text("web"),
        origin: ServiceOrigin::Kubernetes,
        hostnames: vec![text(NAME)],
        state: HealthState::Up,
        steer: text("proximity"),
        clusters: vec![share(None)],
        endpoints: counts(1, 0),
    }
}

pub(super) fn service() -> ServiceDto {
    ServiceDto {
        key: text(SERVICE),
        namespace: text("shop"),
        name: text("web"),
        origin: ServiceOrigin::Kubernetes,
        hostnames: vec![text(NAME)],
        owners: vec![OwnerDto {
            name: text(NAME),
            namespace: text("shop"),
        }],
        objects: vec![object()],
        object_count: 1,
        conflicts: vec![PolicyConflictDto {
            key: text("ttl"),
            overruled: vec![text("gcp-euw1")],
        }],
        refused: Vec::new(),
        state: HealthState::Up,
        steer: text("proximity"),
        policy: vec![text("The nearest cluster with a usable endpoint.")],
        monitor: Some(text("http GET /healthz on port 80 every 2 s")),
        clusters: vec![share(Some(1.0))],
        places: vec![PlaceShareDto {
            country: text("DE"),
            cluster: Some(text(CLUSTER)),
        }],
        endpoints: vec![endpoint()],
        counts: counts(1, 0),
        ttl: TtlDto {
            configured: 30,
            now: 30,
            reason: None,
        },
        budget: Some(BudgetDto {
            detect_ms: 4000,
            agree_ms: 0,
            publish_ms: 5,
            ttl_ms: 30_000,
            total_ms: 34_005,
        }),
        drains: Vec::new(),
        forces: Vec::new(),
        history: vec![event()],
    }
}

fn object() -> ObjectDto {
    ObjectDto {
        cluster: text(CLUSTER),
        kind: text("Service"),
        namespace: text("shop"),
        name: text("web"),
        addresses: vec![text("192.0.2.10")],
        targets: Vec::new(),
        ready: true,
        reason: None,
        served: true,
        drained: false,
        weight: 1,
        backing: Some(BackingDto {
            ready: 3,
            serving: 3,
            terminating: 0,
            total: 4,
        }),
        refused: vec![RefusedPartDto {
            what: text("meridian-dns.io/bias"),
            reason: text("`200` is not within -99 to 99"),
        }],
        refused_count: 1,
    }
}

fn endpoint() -> EndpointDto {
    EndpointDto {
        cluster: text(CLUSTER),
        address: text("192.0.2.10"),
        weight: 1,
        state: HealthState::Up,
        reason: None,
        unconfirmed_since: None,
        from: text("Service shop/web in aws-use1"),
        verdict: text("up"),
        in_doubt: false,
        drained: false,
        withdrawn: false,
        forced: None,
        clients: Vec::new(),
        monitor: Some(text("5f2c8a1e")),
        last: Some(probe()),
        last_flip: Some(text(THEN)),
    }
}

fn probe() -> ProbeDto {
    ProbeDto {
        ok: true,
        milliseconds: Some(90.5),
        error: None,
    }
}

pub(super) fn monitor() -> MonitorDto {
    MonitorDto {
        id: text("5f2c8a1e"),
        target: text("192.0.2.10:80"),
        origin: OriginDto::Operator,
        check: text("http GET /healthz"),
        verdict: text("up"),
        in_doubt: false,
        never_succeeded: false,
        refused: None,
        last: Some(probe()),
        clusters: vec![text(CLUSTER)],
        endpoints: 1,
        interval_ms: 2000,
        timeout_ms: 1000,
        rise: 2,
        fall: 2,
    }
}

pub(super) fn explanation() -> ExplanationDto {
    ExplanationDto {
        name: text(NAME),
        r#type: text("A"),
        client: text("198.51.100.0/24"),
        rcode: text("NOERROR"),
        cluster: Some(text(CLUSTER)),
        ttl: Some(30),
        scope: 22,
        answer: vec![text("www.svc.example.com. 30 IN A 192.0.2.10")],
        steps: vec![StepDto {
            number: 1,
            text: text("198.51.100.0/24 is in Germany, by the country database"),
        }],
    }
}

// === Events ===

pub(super) fn event() -> EventDto {
    EventDto {
        id: 17,
        time: text(THEN),
        kind: EventKind::Flip,
        severity: Severity::Warning,
        cluster: Some(text(CLUSTER)),
        services: vec![text(SERVICE)],
        service_count: Some(1),
        target: Some(text("192.0.2.10:80")),
        before: Some(text("up")),
        text: text("192.0.2.10:80 of aws-use1 is down: connection refused."),
    }
}

/// What a stream looks like.
pub(super) fn stream() -> String {
    let data = serde_json::to_string(&event()).unwrap_or_default();
    format!("id: 17\ndata: {data}\n\n")
}

// === What operators say ===

fn target() -> TargetDto {
    TargetDto {
        kind: TargetKind::Cluster,
        cluster: Some(text(CLUSTER)),
        service: None,
        address: None,
    }
}

fn change(time: &str, reason: &str) -> ChangeDto {
    ChangeDto {
        time: text(time),
        actor: text("ci"),
        reason: text(reason),
    }
}

pub(super) fn new_drain() -> NewDrain {
    NewDrain {
        target: target(),
        reason: text("upgrade of the nodes"),
        in_seconds: 60,
        for_seconds: Some(7200),
    }
}

pub(super) fn drain() -> DrainDto {
    DrainDto {
        id: text("01jnq2v6y7"),
        target: target(),
        state: DrainState::Draining,
        safe_to_stop: false,
        waiting_for: vec![text("fra-1: answers given 12 s ago are kept for 21 s more")],
        created: change(THEN, "upgrade of the nodes"),
        starts: text(THEN),
        expires: None,
        ended: None,
        acknowledged: 1,
        expected: 1,
        held_services: Vec::new(),
        nodes: vec![NodeDrainDto {
            node: text("fra-1"),
            own: true,
            in_force: true,
            heard_ms_ago: Some(0),
            error: None,
            held: 0,
            last_given_seconds_ago: Some(12.0),
            ttl: 30,
            remaining_seconds: Some(21.0),
        }],
    }
}

pub(super) fn ended_drain() -> DrainDto {
    DrainDto {
        state: DrainState::Ended,
        waiting_for: Vec::new(),
        ended: Some(change(NOW, "repaired")),
        ..drain()
    }
}

pub(super) fn new_force() -> NewForce {
    NewForce {
        target: target(),
        verdict: ForcedVerdict::Down,
        reason: text("the database behind it is corrupt"),
        for_seconds: Some(3600),
    }
}

pub(super) fn force() -> ForceDto {
    ForceDto {
        id: text("01jnq2w0a3"),
        target: target(),
        verdict: ForcedVerdict::Down,
        active: true,
        created: change(THEN, "the database behind it is corrupt"),
        expires: None,
        ended: None,
        acknowledged: 1,
        expected: 1,
        missing: Vec::new(),
    }
}

pub(super) fn ended_force() -> ForceDto {
    ForceDto {
        active: false,
        ended: Some(change(NOW, "repaired")),
        ..force()
    }
}

pub(super) fn new_challenge() -> NewChallenge {
    NewChallenge {
        name: text(NAME),
        token: text("gfj9Xq-Rg85nM_zHQ2yU3sQx7Jr0b1c"),
        reason: text("certificate of the shop"),
    }
}

pub(super) fn challenge() -> ChallengeDto {
    ChallengeDto {
        id: text("01jnq2w0a3"),
        name: text(NAME),
        owner: format!("_acme-challenge.{NAME}"),
        token: new_challenge().token,
        state: ChallengeState::Served,
        created: change(THEN, "certificate of the shop"),
        expires: Some(text("2026-03-01T03:55:00Z")),
        ended: None,
        acknowledged: 1,
        expected: 1,
        missing: Vec::new(),
        nodes: vec![NodeChallengeDto {
            node: text("fra-1"),
            own: true,
            serves: true,
            heard_ms_ago: Some(0),
            error: None,
        }],
    }
}

pub(super) fn ended_challenge() -> ChallengeDto {
    let mut ended = ChallengeDto {
        state: ChallengeState::Ended,
        ended: Some(change(NOW, "issued")),
        ..challenge()
    };
    for node in &mut ended.nodes {
        node.serves = false;
    }
    ended
}

pub(super) fn audit() -> AuditDto {
    AuditDto {
        time: text(THEN),
        actor: text("ci"),
        role: text("operator"),
        from: text("192.0.2.200"),
        action: text("drain"),
        target: text("cluster aws-use1"),
        reason: text("upgrade of the nodes"),
        outcome: text("done"),
        before: None,
        after: serde_json::to_value(target()).ok(),
    }
}

// === What a node stands on ===

pub(super) fn delegation() -> DelegationDto {
    let records = || vec![text("svc.example.com. NS ns1.svc.example.com.")];
    DelegationDto {
        checked: text(NOW),
        ok: true,
        faults: Vec::new(),
        wanted: records(),
        found: records(),
        servers: vec![DelegationServerDto {
            name: text("ns1.svc.example.com"),
            address: text("192.0.2.53"),
            serial: Some(1_772_330_000),
            fault: None,
        }],
    }
}

pub(super) fn zone(delegation: Option<DelegationDto>) -> ZoneDto {
    ZoneDto {
        name: text("svc.example.com"),
        serial: 1_772_330_000,
        nameservers: vec![text("ns1.svc.example.com")],
        ttl: 30,
        negative_ttl: 30,
        names: 12,
        name_forms: vec![text("{service}.{namespace}"), text("kubefed")],
        federation_name: Some(text("prod")),
        delegation,
    }
}

pub(super) fn source() -> SourceDto {
    SourceDto {
        kind: SourceKind::Configuration,
        name: text("/etc/meridian/meridian.yaml"),
        state: SourceState::Ok,
        loaded: Some(text(THEN)),
        age_seconds: Some(312),
        details: Vec::new(),
        refused: Vec::new(),
        refused_count: 0,
    }
}
