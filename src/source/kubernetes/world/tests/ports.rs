//! Named ports of Services in cluster sets: from what people write to the shard.

use serde::Deserialize as _;

use super::*;
use crate::source::kubernetes::object::Object;
use crate::source::kubernetes::read::read;

/// Reads the Service shop/web, and gives its ports as `web _tcp 80`, and what was refused.
fn ports_of(annotations: &str, ports: &str) -> (Vec<String>, Vec<String>) {
    let yaml = format!(
        "
metadata:
  name: web
  namespace: shop
  annotations: {{meridian-dns.io/enabled: 'true', {annotations}}}
spec: {{type: LoadBalancer, ports: [{ports}]}}
status: {{loadBalancer: {{ingress: [{{ip: 192.0.2.1}}]}}}}
"
    );
    let tree: serde_json::Value = serde_saphyr::from_str(&yaml).unwrap();
    let object = Object::deserialize(tree).unwrap();
    let mut play = Play::listed();
    play.event(
        Watched::Services,
        read(Watched::Services, &object).expect("it is kept"),
    );
    let shard = play.service("web");
    let all = shard.ports.iter();
    let shown = all.map(|port| format!("{} {} {}", port.name, port.carrier.label(), port.number));
    let refused = refused(&shard);
    let refused = refused.iter().map(|(what, why)| format!("{what}: {why}"));
    (shown.collect(), refused.collect())
}

const IN_SET: &str = "meridian-dns.io/clusterset-name: 'true'";

#[test]
fn named_ports_are_taken_of_services_in_a_cluster_set() {
    let ports = "{name: http, port: 80, appProtocol: http}, {port: 81}, {name: tls, port: 443, appProtocol: https},
        {name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53}, {name: n2, port: 36412, protocol: SCTP},
        {name: odd, port: 1, protocol: DCCP}";
    let (found, refused) = ports_of(IN_SET, ports);
    assert_eq!(
        found,
        [
            "http _tcp 80",
            "tls _tcp 443",
            "dns _udp 53",
            "dns-tcp _tcp 53",
            "n2 _sctp 36412"
        ]
    );
    assert_eq!(refused, [""; 0]);
    for elsewhere in ["", "meridian-dns.io/clusterset-name: 'false'"] {
        let (found, _) = ports_of(elsewhere, ports);
        assert_eq!(found, [""; 0], "{elsewhere}");
    }
}

#[test]
fn a_port_whose_name_is_no_label_is_told_and_the_rest_counts() {
    let long = "a".repeat(63);
    let ports =
        format!("{{name: {long}, port: 80}}, {{name: good, port: 81}}, {{name: good, port: 82}}");
    let (found, refused) = ports_of(IN_SET, &ports);
    assert_eq!(found, ["good _tcp 81"]);
    assert_eq!(
        refused,
        [format!(
            "spec.ports: no SRV is made of `{long}`: at most 62 octets fit into a label behind `_`"
        )]
    );
}

#[test]
fn a_service_has_so_many_named_ports() {
    let ports: Vec<String> = (1..=70)
        .map(|at| format!("{{name: p{at}, port: {at}}}"))
        .collect();
    let (found, refused) = ports_of(IN_SET, &ports.join(", "));
    assert_eq!(found.len(), 64);
    assert_eq!(found.last().unwrap(), "p64 _tcp 64");
    assert_eq!(
        refused,
        ["spec.ports: SRV are made of the first 64 named ports alone"]
    );
}
