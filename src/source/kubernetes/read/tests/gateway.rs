//! Gateways.

use super::*;
use crate::source::kubernetes::{GatewayRecord, Listener, Port, Protocol};

/// Reads a Gateway with these fields beside its metadata.
fn gateway(fields: &str) -> GatewayRecord {
    let yaml = format!("metadata: {{name: edge, namespace: infra}}\n{fields}");
    match applied(Watched::Gateways, &yaml) {
        (_, Record::Gateway(record)) => record,
        other => panic!("{other:?}"),
    }
}

/// Makes a listener.
fn listener(name: &str, host: Option<&str>, port: (u16, Protocol), attached: u32) -> Listener {
    Listener {
        name: name.into(),
        host: host.map(|host| host.parse().unwrap()),
        port: Port {
            name: name.into(),
            number: port.0,
            protocol: port.1,
        },
        attached,
    }
}

#[test]
fn listeners_addresses_and_conditions() {
    let record = gateway(
        r#"
spec:
  gatewayClassName: any
  listeners:
  - {name: web, port: 80, protocol: HTTP}
  - {name: secure, port: 443, protocol: HTTPS, hostname: "*.Example.com", tls: {mode: Terminate}}
  - {name: pass.through, port: 8443, protocol: TLS, hostname: a.example.org}
  - {name: raw, port: 5432, protocol: TCP, hostname: ""}
  - {name: dns, port: 53, protocol: UDP, hostname: null}
  - {name: odd, port: 99, protocol: example.org/MAGIC}
status:
  addresses:
  - {value: 192.0.2.1}
  - {type: IPAddress, value: "2001:db8::1"}
  - {type: Hostname, value: gw.example.net}
  - {type: example.org/named, value: static-7}
  - {type: IPAddress, value: gw.example.net}
  - {type: Hostname}
  conditions:
  - {type: Accepted, status: "False", reason: Whatever}
  - {type: Programmed, status: "True", reason: Programmed, message: fine}
  listeners:
  - {name: secure, attachedRoutes: 12}
  - {name: web, attachedRoutes: 0}
  - {name: raw, attachedRoutes: -1}
  - {name: gone, attachedRoutes: 3}
"#,
    );
    assert_eq!(
        record.listeners,
        [
            listener("web", None, (80, Protocol::Http), 0),
            listener("secure", Some("*.example.com"), (443, Protocol::Tls), 12),
            listener(
                "pass.through",
                Some("a.example.org"),
                (8443, Protocol::Tls),
                0
            ),
            listener("raw", None, (5432, Protocol::Tcp), 0),
            listener("dns", None, (53, Protocol::Udp), 0),
            listener("odd", None, (99, Protocol::Other), 0),
        ]
    );
    assert_eq!(record.unready, None);
    assert_eq!(
        record.entries,
        entries(&["192.0.2.1", "2001:db8::1"], &["gw.example.net"])
    );
    assert_refused(
        &record.common,
        &[
            ("status.listeners[2].attachedRoutes", "and not -1"),
            (
                "status.addresses[3].type",
                "`IPAddress` or `Hostname` is wanted, and not `example.org/named`",
            ),
            (
                "status.addresses[4].value",
                "`gw.example.net` is no address",
            ),
            ("status.addresses[5].value", "it is missing"),
        ],
    );
}

#[test]
fn one_that_is_not_programmed_says_why() {
    for (conditions, why) in [
        ("", "nobody says yet that it is `Programmed`"),
        ("conditions: []", "nobody says yet that it is `Programmed`"),
        (
            "conditions: [{type: Accepted, status: 'True'}]",
            "nobody says yet that it is `Programmed`",
        ),
        (
            "conditions: [{type: Programmed}]",
            "`Programmed` is `Unknown`",
        ),
        (
            "conditions: [{type: Programmed, status: true}]",
            "`Programmed` is `Unknown`",
        ),
        (
            "conditions: [{type: Programmed, status: Unknown, reason: Pending, message: ''}]",
            "`Programmed` is `Unknown`: Pending",
        ),
        (
            "conditions: [{type: Programmed, status: 'False', reason: AddressNotAssigned, message: No address in pool.}]",
            "`Programmed` is `False`: AddressNotAssigned: No address in pool",
        ),
        (
            "conditions: [{type: Programmed, status: 'False', message: \"a\\u001b[2Jb\\nc\"}]",
            "`Programmed` is `False`: a\\u{1b}[2Jb\\nc",
        ),
    ] {
        let record = gateway(&format!("status: {{{conditions}}}"));
        assert_eq!(record.unready.as_deref(), Some(why), "{conditions}");
    }
    let long = "x".repeat(10_000);
    let record = gateway(&format!(
        "status: {{conditions: [{{type: Programmed, status: 'False', message: {long}}}]}}"
    ));
    assert!(record.unready.unwrap().len() <= 256);
}

#[test]
fn a_listener_that_cannot_be_read_whole_is_none() {
    let record = gateway(
        r#"
spec:
  listeners:
  - {name: a, port: 80, protocol: HTTP, hostname: "a b"}
  - {name: b, port: 80, protocol: HTTP, hostname: 7}
  - {name: c, port: 0, protocol: HTTP}
  - {name: d, port: 80}
  - {port: 80, protocol: HTTP}
  - {name: "E\t", port: 80, protocol: HTTP}
  - {name: f, protocol: HTTP}
  - {name: g, port: 70000, protocol: HTTP}
  - {name: h, port: 80, protocol: [HTTP]}
  - none
  - {name: z, port: 80, protocol: HTTP, hostname: z.example.com}
"#,
    );
    assert_eq!(
        record.listeners,
        [listener(
            "z",
            Some("z.example.com"),
            (80, Protocol::Http),
            0
        )]
    );
    assert_refused(
        &record.common,
        &[
            ("spec.listeners[0].hostname", "a host name has letters"),
            ("spec.listeners[1].hostname", "a text is wanted, and not 7"),
            ("spec.listeners[2].port", "and not 0"),
            ("spec.listeners[3].protocol", "it is missing"),
            ("spec.listeners[4].name", "it is missing"),
            ("spec.listeners[5].name", "and not `E\\t`"),
            ("spec.listeners[6].port", "it is missing"),
            ("spec.listeners[7].port", "and not 70000"),
            ("spec.listeners[8].protocol", "a text is wanted"),
            ("spec.listeners[9]", "an object is wanted, and not a text"),
        ],
    );
}
