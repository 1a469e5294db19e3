//! The prober as a whole: real sockets, short intervals, and waiting for flips with a deadline.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::servers::{Server, refusing, serve, target, tcp};
use crate::health::{Flip, ProbeError};
use crate::model::{EndpointIndex, Target, Verdict};
use crate::prober::{Config, Prober, ProberHandle};

/// Every wait of a test ends by then: longer than the hold-down that a stall of this machine could bring.
pub(super) const DEADLINE: Duration = Duration::from_secs(60);

/// A running prober and what it has said so far.
pub(super) struct Running {
    pub(super) handle: ProberHandle,
    batches: mpsc::Receiver<Vec<Flip>>,
    verdicts: HashMap<EndpointIndex, Verdict>,
    sizes: Vec<usize>,
    token: CancellationToken,
    tasks: JoinSet<()>,
}

pub(super) fn start(config: &Config) -> Running {
    let (prober, handle, batches) = Prober::new(config, &[], 42);
    let token = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(prober.run(token.clone()));
    Running {
        handle,
        batches,
        verdicts: HashMap::new(),
        sizes: Vec::new(),
        token,
        tasks,
    }
}

impl Running {
    pub(super) async fn watch(&self, targets: impl IntoIterator<Item = (u32, Target)>) {
        let watch = targets
            .into_iter()
            .map(|(index, target)| (EndpointIndex(index), target));
        self.handle
            .change(watch.collect(), Vec::new(), Vec::new())
            .await;
    }

    /// Has it take verdicts from before a restart.
    pub(super) async fn recall(&self, verdicts: Vec<(Target, Verdict)>) {
        self.handle.change(Vec::new(), Vec::new(), verdicts).await;
    }

    /// Takes flips until `done`.
    pub(super) async fn until(&mut self, done: impl Fn(&HashMap<EndpointIndex, Verdict>) -> bool) {
        let all = async {
            while !done(&self.verdicts) {
                let batch = self.batches.recv().await.expect("the prober runs");
                assert!(!batch.is_empty());
                self.sizes.push(batch.len());
                for flip in batch {
                    for endpoint in flip.endpoints {
                        self.verdicts.insert(endpoint, flip.verdict);
                    }
                }
            }
        };
        let in_time = timeout(DEADLINE, all).await;
        assert!(in_time.is_ok(), "{:?}", self.verdicts);
    }

    pub(super) async fn until_verdict(&mut self, index: u32, verdict: Verdict) {
        self.until(|verdicts| verdicts.get(&EndpointIndex(index)) == Some(&verdict))
            .await;
    }

    pub(super) async fn stop(mut self) {
        self.token.cancel();
        let ended = timeout(DEADLINE, self.tasks.join_next()).await;
        assert!(matches!(ended, Ok(Some(Ok(())))), "{ended:?}");
        assert_eq!(self.handle.commands.capacity(), 64);
        // Nobody is there to take it, and nobody waits for that.
        self.handle.change(Vec::new(), Vec::new(), Vec::new()).await;
    }
}

/// A target with a timeout that a busy machine keeps.
pub(super) fn patient(address: SocketAddr) -> Target {
    target(
        address,
        tcp(address.port(), b"", b""),
        Duration::from_millis(100),
    )
}

pub(super) async fn closing() -> Server {
    serve(|stream| async move { drop(stream) }).await
}

#[tokio::test]
async fn an_endpoint_dies_and_comes_back() {
    let mut running = start(&Config::default());
    let server = closing().await;
    let address = server.address;
    running.watch([(7, patient(address))]).await;
    running.until_verdict(7, Verdict::Up).await;
    drop(server);
    running.until_verdict(7, Verdict::Down).await;
    let again = async {
        // The port may be held for a moment by the connections of the listener before.
        loop {
            match TcpListener::bind(address).await {
                Ok(listener) => break listener,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    let _listener = timeout(DEADLINE, again)
        .await
        .expect("the port is free again");
    running.until_verdict(7, Verdict::Up).await;
    let mut reports = running.handle.reports();
    let seen = reports.wait_for(|all| all.iter().any(|report| report.verdict == Verdict::Up));
    let all = timeout(DEADLINE, seen)
        .await
        .expect("in time")
        .expect("running")
        .clone();
    assert_eq!(
        all.iter()
            .map(|one| (one.endpoints, one.never_succeeded))
            .collect::<Vec<_>>(),
        [(1, false)]
    );
    running.stop().await;
}

#[tokio::test]
async fn a_wrong_check_is_reported() {
    let mut running = start(&Config::default());
    running.watch([(1, patient(refusing(2)))]).await;
    running.until_verdict(1, Verdict::Down).await;
    let mut reports = running.handle.reports();
    let seen = reports.wait_for(|all| all.iter().any(|report| report.never_succeeded));
    let all = timeout(DEADLINE, seen)
        .await
        .expect("in time")
        .expect("running")
        .clone();
    let last = all.iter().next().and_then(|report| report.last);
    assert_eq!(last, Some(Err(ProbeError::Refused)));
    running
        .handle
        .change(Vec::new(), vec![EndpointIndex(1)], Vec::new())
        .await;
    let gone = reports.wait_for(|all| all.is_empty());
    assert!(timeout(DEADLINE, gone).await.expect("in time").is_ok());
    running.stop().await;
}

#[tokio::test]
async fn a_hanging_target_gives_its_place_back_at_the_timeout() {
    let hanging = serve(|stream| async move {
        let _held = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let good = closing().await;
    let one = Config {
        concurrency: 1,
        ..Config::default()
    };
    let mut running = start(&one);
    let hung = target(
        hanging.address,
        tcp(1, b"", b"never"),
        Duration::from_millis(100),
    );
    running.watch([(0, hung), (1, patient(good.address))]).await;
    running
        .until(|verdicts| {
            verdicts.get(&EndpointIndex(0)) == Some(&Verdict::Down)
                && verdicts.get(&EndpointIndex(1)) == Some(&Verdict::Up)
        })
        .await;
    running.stop().await;
}

#[tokio::test]
async fn one_address_is_probed_by_so_many_at_once() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (in_now, in_most) = (Arc::clone(&now), Arc::clone(&most));
    // Each connection is held until its other end is gone: as many as there are probes out.
    let server = serve(move |mut stream: tokio::net::TcpStream| {
        let (now, most) = (Arc::clone(&in_now), Arc::clone(&in_most));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let mut octet = [0];
            let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut octet).await;
            now.fetch_sub(1, Ordering::SeqCst);
        }
    })
    .await;
    let limits = Config {
        per_target: 3,
        ..Config::default()
    };
    let mut running = start(&limits);
    // Twelve checks of one address; told apart by what they wait for in vain.
    let check = |index: u32| {
        let words = index.to_string();
        let check = tcp(server.address.port(), b"", words.as_bytes());
        (
            index,
            target(server.address, check, Duration::from_millis(100)),
        )
    };
    running.watch((0..12).map(check)).await;
    running
        .until(|verdicts| verdicts.values().filter(|v| **v == Verdict::Down).count() == 12)
        .await;
    // One more may be seen for a moment: a closed connection is noticed after its successor.
    let most = most.load(Ordering::SeqCst);
    assert!((2..=6).contains(&most), "{most}");
    running.stop().await;
}

#[tokio::test]
async fn a_thousand_failures_come_in_few_batches() {
    let begun = Instant::now();
    let mut running = start(&Config::default());
    running
        .watch((0..1000).map(|index| (u32::from(index), patient(refusing(index)))))
        .await;
    running
        .until(|verdicts| verdicts.values().filter(|v| **v == Verdict::Down).count() == 1000)
        .await;
    // In doubt, then Down: two flips each.
    assert_eq!(running.sizes.iter().sum::<usize>(), 2000);
    let batches = running.sizes.len();
    let millis = begun.elapsed().as_millis();
    assert!(
        batches < 500 && batches as u128 <= millis + 2,
        "{batches} in {millis} ms"
    );
    running.stop().await;
}

#[tokio::test]
async fn a_restart_with_a_dead_cluster_knows_it_at_once() {
    let mut running = start(&Config::default());
    let dead = patient(refusing(3));
    running.watch([(5, dead.clone())]).await;
    running.recall(vec![(dead, Verdict::Down)]).await;
    running.until_verdict(5, Verdict::Down).await;
    running.stop().await;
}

#[tokio::test]
async fn a_controller_that_takes_nothing_locks_nobody_out() {
    let mut running = start(&Config::default());
    // More batches than the channel holds, and more commands than their channel holds, while no flip is taken.
    for index in 0..200u16 {
        running
            .watch([(u32::from(index), patient(refusing(index)))])
            .await;
        running.handle.configure(Config::default()).await;
    }
    let mut reports = running.handle.reports();
    let down = reports.wait_for(|all| {
        all.len() == 200 && all.iter().all(|report| report.verdict == Verdict::Down)
    });
    assert!(timeout(DEADLINE, down).await.expect("in time").is_ok());
    running
        .until(|verdicts| verdicts.len() == 200 && verdicts.values().all(|v| *v == Verdict::Down))
        .await;
    running.stop().await;
}

#[tokio::test]
async fn commands_are_obeyed_in_their_order() {
    let mut running = start(&Config::default());
    let server = closing().await;
    let address = server.address;
    let other = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3)), address.port());
    // Moved twice before anything can be probed: only the last target counts.
    running.watch([(1, patient(refusing(4)))]).await;
    running.watch([(1, patient(other))]).await;
    running.watch([(1, patient(address))]).await;
    running.until_verdict(1, Verdict::Up).await;
    let seen: HashSet<SocketAddr> = {
        let mut reports = running.handle.reports();
        let one = reports.wait_for(|all| all.len() == 1);
        let all = timeout(DEADLINE, one)
            .await
            .expect("in time")
            .expect("running")
            .clone();
        all.iter().map(|report| report.target.address).collect()
    };
    assert_eq!(seen, HashSet::from([address]));
    running.stop().await;
}
