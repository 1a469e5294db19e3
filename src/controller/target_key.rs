//! Names of targets, by which verdicts are kept on disk.

use super::folder::hex;
use crate::model::{Check, Origin, Target, TlsMode};

/// Names what a target is judged by: address and check, not how often. Stable between versions of the program. What is remembered
/// of a tenant's target is nothing that an operator's begins with: its name has a word in front.
#[must_use]
pub fn target_key(target: &Target) -> String {
    let key = check_key(target);
    match target.spec.origin {
        Origin::Operator => key,
        Origin::Tenant => format!("tenant {key}"),
    }
}

/// Names address and check.
fn check_key(target: &Target) -> String {
    let address = target.address;
    match &target.spec.check {
        Check::Tcp(check) => {
            let talk = |octets: &[u8]| octets.escape_ascii().to_string();
            format!(
                "tcp {address} send={} expect={}",
                talk(&check.send),
                talk(&check.expect)
            )
        }
        Check::Http(check) => {
            let tls = tls_word(check.tls.as_ref());
            let expect: Vec<String> = check
                .expect
                .iter()
                .map(|range| format!("{}-{}", range.first, range.last))
                .collect();
            let method = if check.head { "HEAD" } else { "GET" };
            let host = check.host.as_deref().unwrap_or("");
            format!(
                "http {address} {method} {} host={host} tls={tls} expect={}",
                check.path,
                expect.join(",")
            )
        }
    }
}

/// Says how far a certificate is trusted.
pub(super) fn tls_word(tls: Option<&TlsMode>) -> String {
    match tls {
        None => "off".to_owned(),
        Some(TlsMode::Verify) => "verify".to_owned(),
        Some(TlsMode::Skip) => "skip".to_owned(),
        Some(TlsMode::Pin(pin)) => hex(pin),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::model::{HttpCheck, MonitorSpec, StatusRange, TcpCheck};

    fn target(check: Check, origin: Origin) -> Target {
        Target {
            address: ([192, 0, 2, 1], check.port()).into(),
            spec: Arc::new(MonitorSpec {
                check,
                interval: Duration::from_secs(2),
                timeout: Duration::from_secs(1),
                rise: 2,
                fall: 2,
                origin,
            }),
        }
    }

    /// What is on the disks of nodes that run now must be found again.
    #[test]
    fn names_on_disk_stay() {
        let tcp = Check::Tcp(TcpCheck {
            port: 6379,
            send: (*b"PING\r\n").into(),
            expect: (*b"PONG").into(),
        });
        let http = HttpCheck {
            tls: Some(TlsMode::Pin([0xab; 32])),
            port: 443,
            path: "/healthz?a=b".into(),
            host: Some("www.example.com".into()),
            head: true,
            expect: vec![
                StatusRange {
                    first: 200,
                    last: 299,
                },
                StatusRange {
                    first: 401,
                    last: 401,
                },
            ],
        };
        let plain = HttpCheck {
            tls: None,
            port: 80,
            host: None,
            head: false,
            ..http.clone()
        };
        let pin = "ab".repeat(32);
        for (check, name) in [
            (
                tcp,
                r"tcp 192.0.2.1:6379 send=PING\r\n expect=PONG".to_owned(),
            ),
            (
                Check::Http(http),
                format!(
                    "http 192.0.2.1:443 HEAD /healthz?a=b host=www.example.com tls={pin} expect=200-299,401-401"
                ),
            ),
            (
                Check::Http(plain),
                "http 192.0.2.1:80 GET /healthz?a=b host= tls=off expect=200-299,401-401"
                    .to_owned(),
            ),
        ] {
            assert_eq!(target_key(&target(check.clone(), Origin::Operator)), name);
            let of_tenant = target_key(&target(check, Origin::Tenant));
            assert_eq!(of_tenant, format!("tenant {name}"));
        }
    }
}
