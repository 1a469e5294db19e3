//! A slip in the fence of one cluster's object opens the name in no other cluster, over a restart neither.

use std::fs;
use std::net::IpAddr;
use std::time::Duration;

use serde_json::json;

use crate::cluster::shared;
use crate::harness::wait_for;
use crate::keys::User;
use crate::kinds::{Pods, SERVICE, namespace, service, slice};
use crate::node::{CONTINENTS, Member, Meridian};
use crate::objects::Admin;

const PATIENCE: Duration = Duration::from_secs(20);
const ZONE: &str = "zones: [{name: f.example, ttl: 1, nameservers: [{name: ns.f.example, addresses: [192.0.2.53]}]}]\n";
const WWW: &str = "www.fenced.f.example";
const FENCE: &str = "meridian-dns.io/fence";

/// Puts the Service `fenced/web` into a cluster.
fn put(admin: &Admin, address: &str, more: &[(&str, &str)]) {
    admin.create(namespace("fenced")).unwrap();
    let pods = Pods {
        ready: 1,
        ..Pods::default()
    };
    admin.create(slice(("fenced", "web"), 1, pods)).unwrap();
    let own = [
        ("meridian-dns.io/hostname", WWW),
        ("meridian-dns.io/health-check", "endpoints"),
    ];
    let annotations = [&own, more].concat();
    admin
        .create(service(("fenced", "web"), &annotations, &[address]))
        .unwrap();
}

#[test]
fn a_slip_in_one_fence_opens_the_name_nowhere() {
    let [europe, america] = [&shared()[0], &shared()[1]];
    put(
        europe.admin(),
        "192.0.2.81",
        &[(FENCE, "country:DE->country:DE;*->*")],
    );
    put(america.admin(), "192.0.2.82", &[]);
    let clusters = [europe, america];
    let files = clusters.map(|cluster| cluster.kubeconfig(User::Admin));
    let members = [0, 1].map(|at: usize| Member {
        name: clusters[at].name(),
        region: CONTINENTS[at].region,
        kubeconfig: Some((&files[at], clusters[at].name())),
    });
    let mut meridian = Meridian::start(&members, ZONE);
    let [germans, americans] = [CONTINENTS[0].clients, CONTINENTS[1].clients];
    meridian.wait_answer(WWW, germans, &["192.0.2.81"], PATIENCE);
    meridian.wait_answer(WWW, americans, &["192.0.2.82"], PATIENCE);

    let slip = json!({"metadata": {"annotations": {FENCE: "country:DE>country:DE;*->*"}}});
    europe
        .admin()
        .patch(SERVICE, ("fenced", "web"), &slip)
        .unwrap();
    let abroad: IpAddr = "192.0.2.82".parse().unwrap();
    let path = format!("/api/v1/explain?name={WWW}&client={germans}");
    let check = |meridian: &Meridian, round: &str| {
        wait_for(round, PATIENCE, || {
            let sent = meridian.ask(WWW, germans).addresses();
            assert!(!sent.contains(&abroad), "{round}");
            let explained = meridian.api(&path).to_string();
            let is_said = explained.contains("in europe is not served: its fence was refused")
                && explained.contains("the last one that could be read stays in force");
            (is_said && sent.is_empty()).then_some(())
        });
        meridian.wait_answer(WWW, americans, &["192.0.2.82"], PATIENCE);
    };
    check(&meridian, "the slip");
    let offers = meridian.node().folder().join("state/offers.json");
    wait_for("the slip to be on disk", PATIENCE, || {
        let text = fs::read_to_string(&offers).ok()?;
        text.contains("its fence was refused").then_some(())
    });
    meridian.node().kill();
    meridian.node().spawn();
    check(&meridian, "the slip after a restart");
}
