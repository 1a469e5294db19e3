//! Names: intersections, and those that stay.

use super::*;
use crate::source::kubernetes::world::project::intersection;

#[test]
fn hosts_and_wildcards_have_in_common_the_narrower() {
    for (a, b, expected) in [
        ("a.example.com", "a.example.com", Some("a.example.com")),
        ("a.example.com", "b.example.com", None),
        ("*.example.com", "a.example.com", Some("a.example.com")),
        ("*.example.com", "a.b.example.com", Some("a.b.example.com")),
        ("*.example.com", "example.com", None),
        ("*.example.com", "aexample.com", None),
        ("*.example.com", "*.example.com", Some("*.example.com")),
        ("*.example.com", "*.b.example.com", Some("*.b.example.com")),
        ("*.b.example.com", "b.example.com", None),
        ("*.a.example.com", "*.b.example.com", None),
    ] {
        let (left, right) = (name(a), name(b));
        let expected = expected.map(name);
        assert_eq!(intersection(&left, &right), expected.as_ref(), "{a} {b}");
        assert_eq!(intersection(&right, &left), expected.as_ref(), "{b} {a}");
    }
}

/// Gives the hosts of a Route at a Gateway with these listeners.
fn published(
    kind: ObjectKind,
    hosts_of: &[&str],
    listeners: Vec<Listener>,
    at: &str,
) -> Vec<String> {
    let mut play = Play::listed();
    play.put("gw", gateway(said(&[]), listeners));
    let mut record = route(enabled(&[]), hosts_of, vec![parent(at)]);
    record.kind = kind;
    play.put("web", record);
    hosts(&play.shard(kind, "web").unwrap())
}

#[test]
fn routes_publish_what_their_listeners_take() {
    let all = || {
        vec![
            listener("a", "*.example.com"),
            listener("b", "b.example.org"),
        ]
    };
    for (own, at, expected) in [
        (
            &["a.example.com", "x.example.net"][..],
            "gw",
            &["a.example.com"][..],
        ),
        (&[], "gw", &["*.example.com", "b.example.org"]),
        (&[], "gw#b", &["b.example.org"]),
        (&["*.example.org"], "gw", &["b.example.org"]),
        (&["*.example.org"], "gw#a", &[]),
        (&["a.example.com"], "gw#c", &[]),
        (
            &["*.com", "a.example.com"],
            "gw",
            &["*.example.com", "a.example.com"],
        ),
    ] {
        let found = published(ObjectKind::HttpRoute, own, all(), at);
        assert_eq!(found, expected, "{own:?} at {at}");
    }
    let bare = || vec![listener("a", "")];
    let found = published(ObjectKind::HttpRoute, &["a.example.com"], bare(), "gw");
    assert_eq!(found, ["a.example.com"]);
    assert!(published(ObjectKind::HttpRoute, &[], bare(), "gw").is_empty());
}

#[test]
fn listeners_take_routes_of_their_protocol() {
    let listeners = || {
        [
            ("http", 80, Protocol::Http),
            ("tls", 443, Protocol::Tls),
            ("tcp", 5432, Protocol::Tcp),
            ("udp", 53, Protocol::Udp),
        ]
        .map(|(label, number, protocol)| Listener {
            port: port("", number, protocol),
            ..listener(label, &format!("{label}.example.com"))
        })
        .to_vec()
    };
    for (kind, expected) in [
        (ObjectKind::HttpRoute, &["http", "tls"][..]),
        (ObjectKind::GrpcRoute, &["http", "tls"]),
        (ObjectKind::TlsRoute, &["tls"]),
        (ObjectKind::TcpRoute, &["tls", "tcp"]),
        (ObjectKind::UdpRoute, &["udp"]),
    ] {
        let expected: Vec<_> = expected
            .iter()
            .map(|label| format!("{label}.example.com"))
            .collect();
        assert_eq!(published(kind, &[], listeners(), "gw"), expected, "{kind}");
    }
    let mut play = Play::listed();
    play.put("gw", gateway(said(&[]), listeners()));
    let by_port = Parent {
        port: Some(80),
        ..parent("gw")
    };
    play.put("web", route(enabled(&[]), &[], vec![by_port]));
    assert_eq!(hosts(&play.route("web")), ["http.example.com"]);
}

#[test]
fn annotated_names_come_first_and_doubles_once() {
    let mut play = Play::listed();
    let common = said(&[("hostname", "b.example.com,a.example.com,b.example.com")]);
    let record = ingress(common, &["a.example.com", "c.example.com"], &[]);
    play.put("web", record);
    assert_eq!(
        hosts(&play.ingress("web")),
        ["b.example.com", "a.example.com", "c.example.com"]
    );
    let common = said(&[("hostname", "gw.example.com")]);
    let listeners = vec![listener("a", "*.example.com"), listener("b", "")];
    play.put("gw", gateway(common, listeners));
    let shard = play.shard(ObjectKind::Gateway, "gw").unwrap();
    assert_eq!(hosts(&shard), ["gw.example.com", "*.example.com"]);
}

#[test]
fn an_object_has_a_thousand_names_at_most() {
    let mut play = Play::listed();
    let many: Vec<String> = (0..1_002).map(|n| format!("h{n}.example.com")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    play.put("web", ingress(enabled(&[]), &many, &[]));
    let shard = play.ingress("web");
    assert_eq!(shard.hosts.len(), 1_000);
    assert_eq!(
        refused(&shard),
        [(
            "hosts",
            "2 of its host names are beyond 1000, the most allowed"
        )]
    );
}

#[test]
fn names_of_a_route_stay_when_nobody_accepts_it_any_more() {
    let mut play = Play::listed();
    let listeners = vec![listener("a", "*.example.com")];
    play.put("gw", gateway(said(&[]), listeners));
    let asks = |hosts: &[&str], parents| route(enabled(&[]), hosts, parents);
    // It had none before anybody accepted it.
    play.put(
        "web",
        asks(
            &["a.example.com"],
            vec![unaccepted("gw", "no such listener")],
        ),
    );
    let shard = play.route("web");
    assert_eq!(hosts(&shard), Vec::<String>::new());
    assert_eq!(unready(&shard), "no Gateway accepts it: no such listener");
    let wanted = ["a.example.com", "b.example.com"];
    play.put("web", asks(&wanted, vec![parent("gw")]));
    assert_eq!(hosts(&play.route("web")), wanted);
    for (parents, why) in [
        (
            vec![unaccepted("gw", "not allowed")],
            "no Gateway accepts it: not allowed",
        ),
        (vec![parent("nowhere")], "Gateway shop/nowhere is not there"),
        (vec![], "it asks for no Gateway"),
    ] {
        play.put("web", asks(&wanted, parents));
        let shard = play.route("web");
        assert_eq!(hosts(&shard), wanted);
        assert_eq!(enters(&shard), ["192.0.2.3"]);
        assert_eq!(unready(&shard), why);
    }
    // Names that it does not ask for itself any more go.
    play.put("web", asks(&["b.example.com", "c.example.com"], vec![]));
    assert_eq!(hosts(&play.route("web")), ["b.example.com"]);
}

#[test]
fn a_namespace_has_ten_thousand_names_in_a_cluster() {
    let mut play = Play::listed();
    let wide = |at: usize| {
        let hosts: Vec<String> = (0..1_000)
            .map(|n| format!("h{n}.x{at}.example.com"))
            .collect();
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        ingress(enabled(&[]), &hosts, &[])
    };
    for at in 0..10 {
        play.put(&format!("in-{at}"), wide(at));
    }
    let web = || ingress(enabled(&[]), &["www.example.com"], &[]);
    play.put("web", web());
    play.put("other/web", web());
    let count = |play: &mut Play, name: &str| play.ingress(name).hosts.len();
    assert_eq!(
        [count(&mut play, "in-9"), count(&mut play, "web")],
        [1_000, 0]
    );
    assert_eq!(
        refused(&play.ingress("web")),
        [(
            "hostname",
            "namespace shop has its 10000 host names in this cluster already: 1 of this object's are beyond them"
        )]
    );
    assert_eq!(count(&mut play, "other/web"), 1, "another tenant");
    // One that comes before takes a name of the last that has some.
    play.put("a", web());
    assert_eq!([count(&mut play, "a"), count(&mut play, "in-9")], [1, 999]);
    play.gone(Watched::Ingresses, "in-3");
    play.take();
    assert_eq!(
        [count(&mut play, "in-9"), count(&mut play, "web")],
        [1_000, 1]
    );
    assert_eq!(play.ingress("web").refused, [].into());
}
