//! Any shard.

use proptest::collection::vec;
use proptest::option;
use proptest::sample::select;

use super::*;
use crate::model::HeadlessEndpoint;

fn host() -> impl Strategy<Value = LowerName> {
    select(
        &[
            "www.g.example",
            "*.g.example",
            "a.b",
            "xn--bcher-kva.example",
        ][..],
    )
    .prop_map(read)
}

fn cluster() -> impl Strategy<Value = ClusterSelector> {
    let texts = [
        "*",
        "eu1",
        "cluster:eu1",
        "tag:EU",
        "region:eu-west-1",
        "zone:eu-west-1a",
        "provider:aws",
        "country:DE",
        "subdivision:US-CA",
        "continent:EU",
        "group:EU-27",
    ];
    select(texts.to_vec()).prop_map(read)
}

fn client() -> impl Strategy<Value = ClientSelector> {
    let texts = [
        "*",
        "unknown",
        "continent:EU",
        "country:DE",
        "subdivision:US-CA",
        "asn:64496",
        "192.0.2.0/24",
        "2001:db8::/32",
        "group:EU-27",
        "cluster:eu1",
    ];
    select(texts.to_vec()).prop_map(read)
}

fn answer() -> impl Strategy<Value = FallbackSpec> {
    prop_oneof![
        vec(any::<std::net::IpAddr>(), 1..3).prop_map(FallbackSpec::Addresses),
        host().prop_map(FallbackSpec::Hostname),
    ]
}

fn keys() -> impl Strategy<Value = NameKeys> {
    let steers = [
        Steer::Proximity,
        Steer::Weighted,
        Steer::RoundRobin,
        Steer::All,
    ];
    let clients = || vec(client(), 0..3);
    let clusters = || vec(cluster(), 0..3);
    let map =
        (clients(), clusters()).prop_map(|(clients, clusters)| MapEntry { clients, clusters });
    let rule =
        (clients(), clusters()).prop_map(|(clients, clusters)| FenceRule { clients, clusters });
    let first = (
        option::of((0..=Ttl::MAX.seconds()).prop_map(|seconds| Ttl::new(seconds).unwrap())),
        option::of(select(steers.to_vec())),
        option::of(vec((cluster(), any::<u16>().prop_map(Weight)), 0..3)),
        option::of(vec(clusters(), 0..3)),
        option::of(vec((cluster(), any::<i8>()), 0..3)),
    );
    let second = (
        option::of(vec(map, 0..3)),
        option::of(vec(rule, 0..3)),
        option::of(answer()),
        option::of(answer()),
        option::of(any::<u8>()),
        (
            option::of((0..=1000_u16).prop_map(|share| f64::from(share) / 1000.0)),
            option::of(any::<bool>()),
            option::of(select(vec![read("prod"), read("a-1")])),
            option::of(any::<bool>()),
        ),
    );
    (first, second).prop_map(|(first, second)| NameKeys {
        ttl: first.0,
        steer: first.1,
        weights: first.2,
        tiers: first.3,
        bias: first.4,
        maps: second.0,
        fence: second.1,
        fence_answer: second.2,
        fallback: second.3,
        answers: second.4,
        panic: second.5.0,
        weighs_endpoints: second.5.1,
        federation: second.5.2,
        in_cluster_set: second.5.3,
    })
}

fn monitor() -> impl Strategy<Value = MonitorSpec> {
    let tls = option::of(prop_oneof![
        Just(TlsMode::Verify),
        Just(TlsMode::Skip),
        any::<[u8; 32]>().prop_map(TlsMode::Pin),
    ]);
    let range = any::<(u16, u16)>().prop_map(|(first, last)| StatusRange { first, last });
    let http = (
        tls,
        any::<u16>(),
        "/[ -~]{0,9}",
        option::of("[a-z.]{1,9}"),
        any::<bool>(),
        vec(range, 1..3),
    );
    let http = http.prop_map(|(tls, port, path, host, head, expect)| {
        Check::Http(HttpCheck {
            tls,
            port,
            path: path.into(),
            host: host.map(Into::into),
            head,
            expect,
        })
    });
    let octets = || vec(any::<u8>(), 0..9).prop_map(Vec::into_boxed_slice);
    let tcp = (any::<u16>(), octets(), octets())
        .prop_map(|(port, send, expect)| Check::Tcp(TcpCheck { port, send, expect }));
    let times = (any::<u32>(), any::<u32>(), any::<u8>(), any::<u8>());
    let check = prop_oneof![http, tcp];
    (check, times).prop_map(|(check, (interval, timeout, rise, fall))| MonitorSpec {
        check,
        interval: Duration::from_millis(interval.into()),
        timeout: Duration::from_millis(timeout.into()),
        rise,
        fall,
        origin: Origin::Tenant,
    })
}

fn port() -> impl Strategy<Value = NamedPort> {
    let name = "[a-z0-9]{1,9}".prop_map(|text| read(&text));
    let number = any::<std::num::NonZeroU16>();
    let carrier = select(Carrier::ALL.to_vec());
    (name, carrier, number).prop_map(|(name, carrier, number)| NamedPort {
        name,
        carrier,
        number,
    })
}

fn endpoint() -> impl Strategy<Value = HeadlessEndpoint> {
    let label = "[a-z0-9]{1,9}".prop_map(|text| read(&text));
    let ports = select(vec![0, 1]).prop_flat_map(|count| vec(port(), count));
    (label, any::<std::net::IpAddr>(), ports).prop_map(|(label, address, ports)| HeadlessEndpoint {
        label,
        address,
        ports: ports.into(),
    })
}

pub(super) fn shard() -> impl Strategy<Value = Shard> {
    let object = (select(ObjectKind::ALL.to_vec()), "[a-z]{1,5}", "[a-z]{1,5}");
    let object = object.prop_map(|(kind, namespace, name)| ObjectRef {
        kind,
        namespace: namespace.into(),
        name: name.into(),
    });
    let places = (
        vec(host(), 0..3),
        vec(any::<std::net::IpAddr>(), 0..3),
        vec(host(), 0..3),
        vec(
            select(vec!["192.0.2.0/24", "2001:db8::1/128"]).prop_map(read),
            0..3,
        ),
    );
    let readiness = option::of("\\PC{0,9}").prop_map(|reason| match reason {
        None => Readiness::Ready,
        Some(reason) => Readiness::NotReady(reason.into()),
    });
    let state = (
        any::<u16>(),
        option::of(monitor()),
        readiness,
        any::<bool>(),
        option::of("\\PC{0,9}"),
    );
    let counts = (any::<bool>(), any::<bool>(), vec(port(), 0..3));
    let endpoints = option::of(vec(endpoint(), 0..3));
    let counts = (counts, endpoints);
    (object, places, state, keys(), counts).prop_map(
        |(object, places, state, keys, (counts, endpoints))| {
            let refused = counts.1.then(|| Refused {
                what: "weight".into(),
                reason: "no".into(),
            });
            Shard {
                object,
                hosts: places.0.into(),
                addresses: places.1.into(),
                targets: places.2.into(),
                weight: Weight(state.0),
                clients: places.3.into(),
                monitor: state.1.map(Arc::new),
                readiness: state.2,
                is_drained: state.3,
                backing: counts.0.then(Backing::default),
                keys: Arc::new(keys),
                ports: counts.2.into(),
                headless: endpoints.map(Into::into),
                unserved: state.4.map(Into::into),
                refused: refused.into_iter().collect(),
            }
        },
    )
}
