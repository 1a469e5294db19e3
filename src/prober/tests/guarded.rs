//! Targets of tenants: what is refused is never connected to, and what is allowed leaves operators their places.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::driver::{DEADLINE, Running, closing, patient, start};
use super::servers::{Server, http, reply, serve, target, tcp, tenants};
use crate::health::{MonitorReport, ProbeError, Refusal};
use crate::model::{Check, EndpointIndex, Origin, Verdict};
use crate::prober::{Config, Prober};

/// A server whose connections are counted and told.
struct Counted {
    server: Server,
    count: Arc<AtomicUsize>,
    told: mpsc::Receiver<()>,
}

async fn counted() -> Counted {
    let (tell, told) = mpsc::channel(4096);
    let count = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&count);
    let server = serve(move |stream| {
        counting.fetch_add(1, Ordering::SeqCst);
        // Full, nobody waits for it any more.
        let _ = tell.try_send(());
        async move { drop(stream) }
    })
    .await;
    Counted {
        server,
        count,
        told,
    }
}

impl Counted {
    fn address(&self) -> SocketAddr {
        self.server.address
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Waits for so many connections more.
    async fn connections(&mut self, count: usize) {
        while self.told.try_recv().is_ok() {}
        for _ in 0..count {
            let told = timeout(DEADLINE, self.told.recv()).await;
            assert_eq!(told, Ok(Some(())));
        }
    }
}

fn allowing(prefix: &str) -> Config {
    Config {
        allow: vec![prefix.parse().unwrap()],
        ..Config::default()
    }
}

/// Waits for a report of a tenant's target that is as wanted.
async fn tenants_report(
    running: &Running,
    wanted: impl Fn(&MonitorReport<'_>) -> bool,
) -> MonitorReport<'static> {
    let is_tenants = |report: &MonitorReport<'_>| report.target.spec.origin == Origin::Tenant;
    let mut reports = running.handle.reports();
    let seen = reports.wait_for(|all| all.iter().filter(is_tenants).any(|report| wanted(&report)));
    let all = timeout(DEADLINE, seen).await.expect("in time");
    let all = all.expect("running").clone();
    let found = all.iter().filter(is_tenants).find(&wanted).unwrap();
    MonitorReport {
        target: Box::leak(Box::new(found.target.clone())),
        ..found
    }
}

#[tokio::test]
async fn a_refused_target_is_told_and_never_connected_to() {
    let (mut trusted, hostile) = (counted().await, counted().await);
    let mut running = start(&Config::default());
    let refused = tenants(&patient(hostile.address()));
    running
        .watch([(1, refused.clone()), (2, patient(trusted.address()))])
        .await;
    running.until_verdict(1, Verdict::Unknown).await;
    let report = tenants_report(&running, |report| report.refused.is_some()).await;
    assert_eq!(
        (report.refused, report.verdict, report.last),
        (Some(Refusal::Loopback), Verdict::Unknown, None)
    );
    assert!(!report.never_succeeded && !report.in_doubt);
    // Both have the same pace.
    trusted.connections(10).await;
    assert_eq!(hostile.count(), 0);
    // What is remembered of it does not stand.
    let remembered = vec![(refused, Verdict::Down)];
    running.recall(remembered).await;
    trusted.connections(5).await;
    let report = tenants_report(&running, |_| true).await;
    assert_eq!(report.verdict, Verdict::Unknown);
    assert_eq!(hostile.count(), 0);
    // A reload may open it, and close it again.
    running.handle.configure(allowing("127.0.0.1/32")).await;
    running.until_verdict(1, Verdict::Up).await;
    tenants_report(&running, |report| report.refused.is_none()).await;
    assert!(hostile.count() > 0);
    running.handle.configure(allowing("0.0.0.0/0")).await;
    running.until_verdict(1, Verdict::Unknown).await;
    tenants_report(&running, |report| report.refused == Some(Refusal::Loopback)).await;
    trusted.connections(5).await;
    let before = hostile.count();
    trusted.connections(10).await;
    assert_eq!(hostile.count(), before);
    running.stop().await;
}

#[tokio::test]
async fn what_is_remembered_of_a_refused_target_is_taken_back() {
    let mut running = start(&Config::default());
    let server = closing().await;
    let refused = tenants(&patient(server.address));
    running.watch([(1, refused.clone())]).await;
    running.recall(vec![(refused, Verdict::Down)]).await;
    // Whichever came first, Unknown is what stays.
    tenants_report(&running, |report| report.refused.is_some()).await;
    running.until_verdict(1, Verdict::Unknown).await;
    running.stop().await;
}

#[tokio::test]
async fn this_nodes_own_listeners_are_refused_whatever_is_allowed() {
    let own = counted().await;
    let open = allowing("127.0.0.0/8");
    let (prober, handle, _flips) = Prober::new(&open, &[own.address()], 42);
    let token = CancellationToken::new();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(prober.run(token.clone()));
    let mut beside = counted().await;
    let watch = [own.address(), beside.address()].map(|address| tenants(&patient(address)));
    let watch = watch.into_iter().zip(0..);
    let watch = watch.map(|(target, index)| (EndpointIndex(index), target));
    handle.change(watch.collect(), Vec::new(), Vec::new()).await;
    // The address is allowed; the listener is not.
    beside.connections(10).await;
    assert_eq!(own.count(), 0);
    let mut reports = handle.reports();
    let seen = reports.wait_for(|all| {
        let refused = |report: &MonitorReport<'_>| report.refused == Some(Refusal::Own);
        all.iter().filter(|report| refused(report)).count() == 1
    });
    assert!(timeout(DEADLINE, seen).await.expect("in time").is_ok());
    token.cancel();
    assert!(timeout(DEADLINE, tasks.join_next()).await.is_ok());
}

#[tokio::test]
async fn tenants_that_hang_leave_operators_their_places() {
    let hanging = serve(|stream| async move {
        let _held = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let mut trusted = counted().await;
    let few = Config {
        concurrency: 4,
        ..allowing("127.0.0.0/8")
    };
    let mut running = start(&few);
    // Each holds its place for longer than this test waits, told apart by what it waits for in vain.
    let hung = |index: u32| {
        let check = tcp(hanging.address.port(), b"", index.to_string().as_bytes());
        let hung = target(hanging.address, check, DEADLINE * 2);
        (index, tenants(&hung))
    };
    running.watch((0..100).map(hung)).await;
    running.watch([(100, patient(trusted.address()))]).await;
    running.until_verdict(100, Verdict::Up).await;
    trusted.connections(10).await;
    running.stop().await;
}

#[tokio::test]
async fn nothing_that_a_target_says_is_told_on() {
    const SAID: &str = "correct horse battery staple";
    let octets = format!(
        "HTTP/1.1 500 {SAID}\r\nx-{0}: {SAID}\r\ncontent-length: 28\r\n\r\n{SAID}",
        SAID.replace(' ', "-")
    );
    let talking = serve(move |stream| {
        let octets = octets.clone();
        async move { reply(stream, octets.as_bytes()).await }
    })
    .await;
    let mut running = start(&allowing("127.0.0.1/32"));
    let port = talking.address.port();
    let asking = Check::Http(http(port, &[(200, 299)]));
    let listening = tcp(port, b"GET / HTTP/1.1\r\n\r\n", b"imok");
    let targets = [asking, listening]
        .map(|check| tenants(&target(talking.address, check, Duration::from_secs(5))));
    running.watch((0..).zip(targets)).await;
    running
        .until(|verdicts| verdicts.values().filter(|v| **v == Verdict::Down).count() == 2)
        .await;
    let mut reports = running.handle.reports();
    let all = reports.wait_for(|all| all.iter().all(|report| report.last.is_some()));
    let all = timeout(DEADLINE, all).await.expect("in time");
    let all = all.expect("running").clone();
    let last: Vec<_> = all.iter().filter_map(|report| report.last).collect();
    assert!(last.contains(&Err(ProbeError::Status(500))), "{last:?}");
    assert!(last.contains(&Err(ProbeError::Protocol)), "{last:?}");
    for word in SAID.split(' ') {
        assert!(!format!("{all:?}").contains(word), "{all:?}");
    }
    running.stop().await;
}
