//! Old addresses of a host name stay in use for as long as a probe proves them.

use std::collections::HashMap;

use super::*;
use crate::inventory::{Change, Extras, NamedEndpoint, ResolvedTarget};
use crate::model::{HttpCheck, StatusRange, TlsMode, Ttl};

const LB: &str = "lb.example.net";

/// A service entered by a host name, under a check of a certificate of that name.
fn named() -> Service {
    let check = HttpCheck {
        tls: Some(TlsMode::Verify),
        port: 80,
        path: "/".into(),
        host: Some(LB.into()),
        head: false,
        expect: vec![StatusRange {
            first: 200,
            last: 399,
        }],
    };
    let target = NamedEndpoint {
        cluster: ClusterIndex(0),
        weight: Weight(1),
        clients: None,
        name: LB.parse().unwrap(),
    };
    Service {
        monitor: Some(Arc::new(MonitorSpec::new(
            Check::Http(check),
            Origin::Operator,
        ))),
        pools: crate::model::Pools::default(),
        extras: Some(Arc::new(Extras {
            targets: [target].into(),
            ..Extras::default()
        })),
        ..service("web", 1, None)
    }
}

/// The host name at 192.0.2.7, which nobody confirmed for long, or somebody did.
fn at_seven(is_old: bool) -> Command {
    let address = || -> Box<[std::net::IpAddr]> { [[192, 0, 2, 7].into()].into() };
    let (addresses, old) = match is_old {
        true => (Box::default(), address()),
        false => (address(), Box::default()),
    };
    let target = ResolvedTarget {
        addresses,
        old,
        ttl: Ttl::BRIEF,
        inside: None,
        is_gone: false,
        fault: None,
    };
    let all = HashMap::from([(LB.parse().unwrap(), target)]);
    Command::Change(Change::Targets(Arc::new(all)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn old_addresses_are_used_while_a_probe_proves_them() {
    run(async |mut running: Running| {
        running.handle.load(load(vec![named()])).await.unwrap();
        assert!(running.handle.send(at_seven(false)).await);
        let fresh = running.watched().await;
        running.until(fresh, true).await;
        assert!(running.handle.send(at_seven(true)).await);
        let old = running.watched().await;
        assert_ne!(fresh, old);
        // Nobody has proven it yet.
        running.until(old, false).await;
        let spec = named().monitor.unwrap();
        let says = |verdict| {
            let mut flips = flip(old, 7, verdict);
            for flip in &mut flips {
                flip.target.spec = Arc::clone(&spec);
            }
            flips
        };
        running.flips.send(says(Verdict::Up)).await.unwrap();
        running.until(old, true).await;
        running.flips.send(says(Verdict::Down)).await.unwrap();
        running.until(old, false).await;
        // A target that may not be probed any more proves nothing.
        running.flips.send(says(Verdict::Up)).await.unwrap();
        running.until(old, true).await;
        running.flips.send(says(Verdict::Unknown)).await.unwrap();
        running.until(old, false).await;
        assert!(running.handle.send(at_seven(false)).await);
        let again = running.watched().await;
        running.until(again, true).await;
    })
    .await;
}
