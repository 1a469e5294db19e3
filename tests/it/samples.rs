//! Configurations that several tests serve.

use std::net::IpAddr;

use crate::harness::backend::Backend;

/// A zone with static records, five clusters on five continents and a few services, nobody monitored.
pub const FIVE: &str = "
zones:
  - name: svc.mesh
    nameservers: [{name: ns1.svc.mesh, addresses: [192.0.2.53, \"2001:db8::53\"]}]
    contact: hostmaster.svc.mesh
    file: svc.mesh.zone
clusters:
  - {name: europe, provider: aws, region: eu-central-1}
  - {name: america, provider: aws, region: us-east-1}
  - {name: asia, provider: aws, region: ap-northeast-1}
  - {name: brazil, provider: aws, region: sa-east-1}
  - {name: africa, provider: aws, region: af-south-1}
services:
  - namespace: shop
    name: web
    hostnames: [www.svc.mesh, \"*.wild.svc.mesh\"]
    ttl: 10
    endpoints:
      - {cluster: europe, addresses: [192.0.2.1, \"2001:db8::1\"]}
      - {cluster: america, addresses: [192.0.2.2, \"2001:db8::2\"]}
      - {cluster: asia, addresses: [192.0.2.3]}
      - {cluster: brazil, addresses: [192.0.2.4, 192.0.2.14]}
      - {cluster: africa, addresses: [192.0.2.5]}
  - namespace: shop
    name: fenced
    hostnames: [fenced.svc.mesh]
    policy: {fence: [{clients: [continent:EU], clusters: [europe]}]}
    endpoints:
      - {cluster: europe, addresses: [192.0.2.1]}
      - {cluster: america, addresses: [192.0.2.2]}
  - namespace: shop
    name: deep
    hostnames: [a.b.c.svc.mesh]
    policy: {steer: all}
    endpoints:
      - {cluster: europe, addresses: [192.0.2.1]}
      - {cluster: america, addresses: [192.0.2.2]}
  - namespace: shop
    name: empty
    hostnames: [empty.svc.mesh]
    endpoints: []
  - namespace: shop
    name: alias
    hostnames: [alias.svc.mesh]
    endpoints: [{cluster: europe, hostname: www.svc.mesh}]
";

/// Its static records.
pub const FIVE_ZONE: &str = "
$TTL 300
mail MX 10 www
www TXT \"beside a steered name\"
text TXT \"one\" \"two\"
static CNAME www
old DNAME www
child NS ns.child
child DS 12345 13 2 0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF
ns.child A 192.0.2.54
ns.child AAAA 2001:db8::54
*.star A 192.0.2.9
ent.below.star A 192.0.2.10
service HTTPS 1 . alpn=h2 ipv4hint=192.0.2.1
_sip._tcp SRV 0 5 5060 www
odd TYPE65280 \\# 4 01020304
$GENERATE 0-99 big TXT number-$-padding-padding-padding
";

/// A service for the end of [`FIVE`], watched in two clusters: clients in Europe get `near` while it lives.
pub fn watched(near: &Backend, far: IpAddr) -> String {
    let (address, port) = (near.address().ip(), near.address().port());
    format!(
        "  - namespace: shop
    name: watched
    hostnames: [watched.svc.mesh]
    monitor: {{http: {{path: /, port: {port}}}, interval: 300ms, timeout: 250ms}}
    endpoints:
      - {{cluster: europe, addresses: [{address}]}}
      - {{cluster: america, addresses: [{far}]}}
"
    )
}

/// One zone and two clusters, all services watched on one port; the services follow.
pub fn two_clusters(port: u16) -> String {
    format!(
        "zones: [{{name: svc.mesh, nameservers: [{{name: ns1.svc.mesh, addresses: [192.0.2.53]}}], contact: hostmaster.svc.mesh}}]
clusters:
  - {{name: europe, provider: aws, region: eu-central-1}}
  - {{name: america, provider: aws, region: us-east-1}}
defaults: {{monitor: {{http: {{path: /, port: {port}}}, interval: 300ms, timeout: 250ms}}}}
services:
"
    )
}
