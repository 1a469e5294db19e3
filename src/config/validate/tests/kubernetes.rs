//! Clusters that are watched, and how their objects are read.

use std::path::PathBuf;
use std::time::Duration;

use super::refused::check_table;
use super::{ENDPOINTS, accept, atlas, with_service};
use crate::config::faults::Warning;
use crate::model::{ClusterIndex, StatusRange, TlsMode};
use crate::source::kubernetes::annotations::compat::{Compat, Reader};
use crate::source::kubernetes::annotations::{CheckKind, Checks, PortRef};
use crate::source::kubernetes::{Access, MassDeletion, Rules, Trust, WriteBack};

/// A zone, two clusters that are watched and one that is not.
pub(super) const MEMBERS: &str = "\
version: 1
zones:
  - {name: svc.example, nameservers: [{name: ns1.example.net}]}
clusters:
  - {name: a, kubeconfig: {file: a.yaml, context: \"arn:aws:eks:eu:1:cluster/a b\"}}
  - {name: b, inCluster: true}
  - {name: c, inCluster: false, location: {country: SG}}
";

/// Checks the one warning of a text.
pub(super) fn check_warning(text: &str, path: &str, part: &str) {
    let (_, warnings) = accept(text);
    let [
        Warning {
            path: found,
            message,
            ..
        },
    ] = &warnings[..]
    else {
        panic!("{text}: {warnings:#?}")
    };
    assert_eq!(found, path, "{message}");
    assert!(message.contains(part), "{text}: {message}");
}

#[test]
fn members_are_reached_by_kubeconfig_or_from_within() {
    let text = MEMBERS.replace(
        "clusters:\n",
        "clusters:\n  - {name: z, kubeconfig: {file: /k/z}}\n",
    );
    let (config, warnings) = accept(&text);
    assert_eq!(warnings, []);
    let kubeconfig = |file: &str, context: Option<&str>| Access::Kubeconfig {
        file: PathBuf::from(file),
        context: context.map(Box::from),
        trust: Trust::Whole,
    };
    let members: Vec<_> = config
        .kubernetes
        .members
        .iter()
        .map(|member| (member.cluster, member.id.as_str(), &member.access))
        .collect();
    assert_eq!(
        members,
        [
            (ClusterIndex(0), "z", &kubeconfig("/k/z", None)),
            (
                ClusterIndex(1),
                "a",
                &kubeconfig("/etc/meridian/a.yaml", Some("arn:aws:eks:eu:1:cluster/a b"))
            ),
            (ClusterIndex(2), "b", &Access::InCluster),
        ]
    );
    let rules = Rules {
        groups: atlas().groups,
        ..Rules::default()
    };
    assert_eq!(*config.kubernetes.rules, rules);
}

const CLUSTERS: &str = r#"
kubeconfig: {} => clusters[0].kubeconfig => needs `file`
kubeconfig: {context: x} => clusters[0].kubeconfig => needs `file`
kubeconfig: {file: } => clusters[0].kubeconfig.file => no value
kubeconfig: {file: ""} => clusters[0].kubeconfig.file => path of a file
kubeconfig: {file: [x]} => clusters[0].kubeconfig.file => not a list
kubeconfig: {file: x, context: ""} => clusters[0].kubeconfig.context => 1 to 253
kubeconfig: {file: x, context: "a\tb"} => clusters[0].kubeconfig.context => printable
kubeconfig: {file: x, contxt: a} => clusters[0].kubeconfig.contxt => did you mean `context`
kubeconfig: x => clusters[0].kubeconfig => a map of keys
kubconfig: {file: x} => clusters[0].kubconfig => did you mean `kubeconfig`
kubeconfig: {file: x}, inCluster: true => clusters[0].inCluster => reached in one way
inCluster: yes => clusters[0].inCluster => true or false
inCluster: True => clusters[0].inCluster => true or false
inCluster: "true" => clusters[0].inCluster => without quotes
inCluster: [true] => clusters[0].inCluster => not a list
inCluster: true}, {name: b, inCluster: true => clusters[1].inCluster => `a` is the cluster that this runs in
kubeconfig: {file: x}, provider: aws, region: us-east1 => clusters[0].region => did you mean `us-east-1`
"#;

#[test]
fn members_that_cannot_be_reached() {
    check_table(CLUSTERS, |keys| format!("clusters: [{{name: a, {keys}}}]"));
    let long = format!("kubeconfig: {{file: x, context: {}}}", "x".repeat(254));
    let row = format!("{long} => clusters[0].kubeconfig.context => 1 to 253");
    check_table(&row, |keys| format!("clusters: [{{name: a, {keys}}}]"));
    check_warning(
        &MEMBERS.replace(
            "  - {name: b, inCluster: true}",
            "  - {name: b, kubeconfig: {file: a.yaml, context: \"arn:aws:eks:eu:1:cluster/a b\"}}",
        ),
        "clusters[1].kubeconfig",
        "`a` has this file and context too",
    );
    // Another context of the same file is another cluster.
    let other = MEMBERS.replace("inCluster: true", "kubeconfig: {file: a.yaml}");
    assert_eq!(accept(&other).1, []);
}

#[test]
fn what_nodes_may_tell_is_missed_by_nobody() {
    let text = with_service(ENDPOINTS).replace("location: {country: SG}", "kubeconfig: {file: x}");
    assert_eq!(accept(&text).1, []);
    check_warning(
        &text.replace(", kubeconfig: {file: x}", ""),
        "clusters[2]",
        "no place",
    );
    // Its Nodes may lie anywhere; what the file says of a cluster is said.
    let service = |selector: &str| {
        with_service(&format!(
            "policy: {{tiers: [[a], [\"{selector}\"]]}}, {ENDPOINTS}"
        ))
        .replace(
            "location: {country: SG}",
            "kubeconfig: {file: x}, provider: own, region: r",
        )
    };
    for open in [
        "zone:z",
        "country:BR",
        "continent:AF",
        "subdivision:US-CA",
        "group:EFTA",
    ] {
        assert_eq!(accept(&service(open)).1, [], "{open}");
    }
    for said in ["provider:azure", "region:eu-west-2"] {
        let row = format!(
            "{} => services[0].policy.tiers[1][0] => matches no cluster",
            service(said)
                .replacen("version: 1\n", "", 1)
                .trim_end()
                .replace('\n', "⏎")
        );
        check_table(&row, str::to_owned);
    }
}

#[test]
fn how_objects_are_read() {
    let (config, warnings) = accept(&format!(
        "{MEMBERS}kubernetes: {{optIn: false, class: edge-2, writeBack: none, compat: [k8gb, external-dns], staleAfter: 1m, maxAge: 48h, \
         massDeletion: {{action: hold, share: 0.25, atLeast: 3, for: 1h}}, \
         limits: {{ttl: {{min: 5s}}, interval: {{min: 2s}}, monitorsPerNamespace: 0}}}}\n"
    ));
    assert_eq!(warnings, []);
    let kubernetes = config.kubernetes;
    assert_eq!(kubernetes.stale_after, Duration::from_secs(60));
    assert_eq!(kubernetes.max_age, Duration::from_secs(2 * 86_400));
    let rules = Rules {
        opt_in: false,
        class: "edge-2".into(),
        min_ttl: crate::model::Ttl::new(5).unwrap(),
        min_interval: Duration::from_secs(2),
        monitors_per_namespace: 0,
        mass_deletion: MassDeletion {
            hold: true,
            share: 0.25,
            at_least: 3,
            wait: Duration::from_secs(3600),
        },
        checks: Checks::default(),
        compat: Compat {
            readers: vec![Reader::K8gb, Reader::ExternalDns],
            ..Compat::default()
        },
        groups: atlas().groups,
    };
    assert_eq!(*kubernetes.rules, rules);
    let (config, warnings) = accept(&format!(
        "{MEMBERS}kubernetes: {{massDeletion: {{action: release}}, limits: {{ttl: {{}}, interval: {{}}}}}}\n"
    ));
    assert_eq!(warnings, []);
    let rules = Rules {
        mass_deletion: MassDeletion {
            hold: false,
            ..MassDeletion::default()
        },
        groups: atlas().groups,
        ..Rules::default()
    };
    assert_eq!(*config.kubernetes.rules, rules);
    let (config, _) = accept(&format!(
        "{MEMBERS}kubernetes: {{}}\ngroups: {{nordics: [DK, SE]}}\n"
    ));
    let mut groups = atlas().groups;
    let nordics = ["DK", "SE"].map(|code| code.parse().unwrap());
    groups.0.insert("nordics".into(), nordics.into());
    let rules = Rules {
        groups,
        ..Rules::default()
    };
    assert_eq!(*config.kubernetes.rules, rules);
    assert_eq!(config.kubernetes.stale_after, Duration::from_secs(15));
    assert_eq!(config.kubernetes.max_age, Duration::from_secs(86_400));
}

#[test]
fn what_is_written_back() {
    let written = |rest: &str| {
        let (config, warnings) = accept(&format!(
            "{MEMBERS}node: {{name: fra-1}}\nkubernetes: {{{rest}}}\n"
        ));
        assert_eq!(warnings, [], "{rest}");
        config.kubernetes.write_back
    };
    let into = |namespace: &str| {
        Some(WriteBack {
            namespace: namespace.into(),
            node: "fra-1".into(),
        })
    };
    for (rest, write_back) in [
        ("", None),
        ("writeBack: none", None),
        ("writeBack: events", into("meridian")),
        ("writeBack: events, eventsNamespace: dns-2", into("dns-2")),
    ] {
        assert_eq!(written(rest), write_back, "{rest}");
    }
    check_warning(
        &format!("{MEMBERS}kubernetes: {{eventsNamespace: dns}}\n"),
        "kubernetes.eventsNamespace",
        "no effect",
    );
}

const KUBERNETES: &str = r#"
[] => kubernetes => a map of keys
{optin: true} => kubernetes.optin => did you mean `optIn`
{optIn: yes} => kubernetes.optIn => true or false
{class: Edge} => kubernetes.class => lower-case letters
{class: ""} => kubernetes.class => 1 to 63
{writeBack: annotations} => kubernetes.writeBack => not one of none, events
{writeBack: [events]} => kubernetes.writeBack => not a list
{writeBack: events, eventsNamespace: Shop} => kubernetes.eventsNamespace => lower-case
{writeBack: events, eventsNamespace: -shop} => kubernetes.eventsNamespace => hyphen
{writeBack: events, eventsNamespace: ""} => kubernetes.eventsNamespace => 1 to 63
{compat: [kuadrant]} => kubernetes.compat[0] => `kuadrant` is not supported yet
{compat: [k8bg]} => kubernetes.compat[0] => k8gb
{compat: [k8gb, cilium, k8gb]} => kubernetes.compat[2] => listed twice
{compat: [[k8gb]]} => kubernetes.compat[0] => not a list
{compat: k8gb} => kubernetes.compat => a list
{staleAfter: 0} => kubernetes.staleAfter => from 1s
{staleAfter: 500ms} => kubernetes.staleAfter => from 1s
{staleAfter: 61m} => kubernetes.staleAfter => to 3600s
{maxAge: 59s} => kubernetes.maxAge => from 60s
{maxAge: 31d} => kubernetes.maxAge => to 2592000s
{massDeletion: hold} => kubernetes.massDeletion => a map of keys
{massDeletion: {action: keep}} => kubernetes.massDeletion.action => hold, release
{massDeletion: {share: 1.5}} => kubernetes.massDeletion.share => from 0 to 1
{massDeletion: {share: 50%}} => kubernetes.massDeletion.share => from 0 to 1
{massDeletion: {atLeast: 0}} => kubernetes.massDeletion.atLeast => from 1
{massDeletion: {for: 0}} => kubernetes.massDeletion.for => from 1s
{massDeletion: {for: 8d}} => kubernetes.massDeletion.for => to 604800s
{limits: {ttl: 1s}} => kubernetes.limits.ttl => a map of keys
{limits: {ttl: {min: 0}}} => kubernetes.limits.ttl.min => from 1 to 86400
{limits: {ttl: {min: 500ms}}} => kubernetes.limits.ttl.min => whole seconds
{limits: {ttl: {max: 5}}} => kubernetes.limits.ttl.max => unknown key
{limits: {interval: {min: 50ms}}} => kubernetes.limits.interval.min => from 100ms
{limits: {interval: {min: 2h}}} => kubernetes.limits.interval.min => to 3600s
{limits: {monitorsPerNamespace: -1}} => kubernetes.limits.monitorsPerNamespace => from 0
"#;

#[test]
fn how_objects_cannot_be_read() {
    check_table(KUBERNETES, |keys| {
        format!("clusters: [{{name: a, inCluster: true}}]⏎kubernetes: {keys}")
    });
}

#[test]
fn keys_that_do_nothing() {
    let outside = "version: 1\nzones: [{name: svc.example, file: x}]\nclusters: [{name: c}]\n";
    check_warning(
        &format!("{outside}kubernetes: {{optIn: true}}\n"),
        "kubernetes",
        "nothing is watched",
    );
    check_warning(
        &format!("{outside}probes: {{allow: [10.0.0.0/8]}}\n"),
        "probes.allow",
        "has no effect",
    );
    assert_eq!(
        accept(&format!("{MEMBERS}probes: {{allow: [10.0.0.0/8]}}\n")).1,
        []
    );
    for key in ["share: 0.5", "atLeast: 10", "for: 5m"] {
        let name = key.split(':').next().unwrap();
        check_warning(
            &format!("{MEMBERS}kubernetes: {{massDeletion: {{action: release, {key}}}}}\n"),
            &format!("kubernetes.massDeletion.{name}"),
            "nothing is held",
        );
    }
    // A cluster that is meant to be a member counts as one.
    let faults = super::parse(
        "version: 1\nzones: [{name: a, file: x}]\nclusters: [{name: c, kubeconfig: {}}]\nkubernetes: {optIn: true}\n",
    )
    .unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:?}");
}

/// Reads `defaults.monitor` beside members: the checks, and the warnings as path and message.
fn checks(monitor: &str, limits: &str) -> (Checks, Vec<(String, String)>) {
    let text = format!("{MEMBERS}kubernetes: {limits}\ndefaults: {{monitor: {monitor}}}\n");
    let (config, warnings) = accept(&text);
    let warnings = warnings.into_iter();
    let warnings = warnings.map(|warning| (warning.path, warning.message));
    (config.kubernetes.rules.checks.clone(), warnings.collect())
}

#[test]
fn monitors_of_defaults_are_those_of_objects() {
    let seconds = |count| Some(Duration::from_secs(count));
    let pin = format!("pin:{}", "0f".repeat(32));
    let https = format!(
        "{{https: {{path: /x, port: 8443, host: h.example, method: HEAD, expect: [200, 300-302], tls: \"{pin}\"}}}}"
    );
    let range = |first, last| StatusRange { first, last };
    for (monitor, expected) in [
        ("{}", Checks::default()),
        (
            "{interval: 10s, timeout: 3s, rise: 1, fall: 5}",
            Checks {
                interval: seconds(10),
                timeout: seconds(3),
                rise: Some(1),
                fall: Some(5),
                ..Checks::default()
            },
        ),
        (
            "none",
            Checks {
                kind: Some(CheckKind::None),
                ..Checks::default()
            },
        ),
        (
            "{tcp: {port: 6379}}",
            Checks {
                kind: Some(CheckKind::Tcp),
                port: Some(PortRef::Number(6379)),
                ..Checks::default()
            },
        ),
        // What is not written is each object's own: its first port, its first name.
        (
            "{http: {path: /healthz}}",
            Checks {
                kind: Some(CheckKind::Http),
                path: Some("/healthz".into()),
                ..Checks::default()
            },
        ),
        (
            "{https: {}}",
            Checks {
                kind: Some(CheckKind::Https),
                ..Checks::default()
            },
        ),
        (
            &https,
            Checks {
                kind: Some(CheckKind::Https),
                port: Some(PortRef::Number(8443)),
                path: Some("/x".into()),
                host: Some("h.example".into()),
                head: Some(true),
                expect: Some(vec![range(200, 200), range(300, 302)]),
                tls: Some(TlsMode::Pin([0x0f; 32])),
                ..Checks::default()
            },
        ),
    ] {
        assert_eq!(checks(monitor, "{}"), (expected, Vec::new()), "{monitor}");
    }
    // Endpoints of this file have no first name.
    let text = format!("{MEMBERS}defaults: {{monitor: {{https: {{}}}}}}\nservices: []\n");
    check_warning(&text, "defaults.monitor.https", "without `host`");
}

#[test]
fn monitors_of_defaults_that_objects_cannot_have() {
    let (found, warnings) = checks("{tcp: {port: 1, send: a, expect: b}}", "{}");
    assert_eq!(found.kind, Some(CheckKind::Tcp));
    let paths: Vec<&str> = warnings.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        paths,
        ["defaults.monitor.tcp.send", "defaults.monitor.tcp.expect"]
    );
    for (_, message) in &warnings {
        assert!(message.contains("does not apply to Kubernetes services"));
    }
    let limits = "{limits: {interval: {min: 5s}}}";
    let (found, warnings) = checks("{interval: 1s}", limits);
    assert_eq!(found.interval, Some(Duration::from_secs(5)));
    assert_eq!(warnings[0].0, "defaults.monitor.interval");
    assert!(warnings[0].1.contains("limits.interval.min"));
    // The built-in interval is bounded too; nothing was written that would not hold.
    let (found, warnings) = checks("{rise: 3}", limits);
    assert_eq!(found.interval, Some(Duration::from_secs(5)));
    assert_eq!(warnings, []);
    let (found, warnings) = checks("{timeout: 2ms}", "{}");
    assert_eq!(found.timeout, Some(Duration::from_millis(10)));
    assert_eq!(warnings[0].0, "defaults.monitor.timeout");
    // Without members nobody asks.
    let text = with_service(&format!("monitor: {{http: {{}}}}, {ENDPOINTS}"));
    let text = format!("{text}defaults: {{monitor: {{tcp: {{port: 1, send: a}}}}}}\n");
    assert_eq!(accept(&text).1, []);
    let table = "defaults: {monitor: {timeout: 3s}} => defaults.monitor => longer than the interval of 2s\ndefaults: {monitor: {none: {}, timeout: 3s}} => defaults.monitor => longer than the interval of 2s";
    check_table(table, |lines| {
        format!("clusters: [{{name: a, inCluster: true}}]⏎{lines}")
    });
}
