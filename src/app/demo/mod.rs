//! `meridian demo`: the whole thing on one machine, with nothing but this program.
//!
//! Five small HTTP servers on loopback addresses play clusters on five continents. A node serves a zone that steers to them,
//! exactly as `meridian run` does. The demo asks it over UDP as ten cities' resolvers would, shows the answers, stops the
//! cluster nearest to one of them, and measures how long the answer takes to move.

mod backends;
mod show;

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};

use self::backends::{Backends, CLUSTERS};
use self::show::Stage;
use super::args::DemoArgs;
use super::load::{Parsed, parse};
use super::run::{Loaded, Node};
use crate::admin::{self, FreshToken};
use crate::inventory::ClusterRegistry;
use crate::lifecycle::Supervisor;
use crate::transport;

/// Where the demo listens if this port and the next are free; else anywhere.
const DNS_PORT: u16 = 5300;
/// As above, for livez, readyz and metrics.
const HTTP_PORT: u16 = 8053;
/// Ports that were taken between the look and the deed are chosen again so many times.
const TRIES: u32 = 5;
/// The name that is steered.
const NAME: &str = "www.demo.test";
/// Tasks that have not ended by then are left.
const STOP_TIME: Duration = Duration::from_secs(2);

/// Runs the demo.
pub(super) fn demo(args: &DemoArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let shown = runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
        let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
        // The terminal was closed, or told us to quit: nothing is left behind then either.
        let mut hangup = signal(SignalKind::hangup()).context("cannot listen for signals")?;
        let mut quit = signal(SignalKind::quit()).context("cannot listen for signals")?;
        let folder = Folder::make()?;
        let mut supervisor = Supervisor::default();
        // Cancel-safe: what is interrupted is never gone on with, and its tasks are ended below.
        let shown = tokio::select! {
            shown = play(&folder.0, args.script, &mut supervisor) => shown,
            _ = interrupt.recv() => Ok(()),
            _ = terminate.recv() => Ok(()),
            _ = hangup.recv() => Ok(()),
            _ = quit.recv() => Ok(()),
        };
        supervisor.shut_down(STOP_TIME).await;
        shown
    });
    // The task that waits for keys blocks in a read that nothing can end.
    runtime.shutdown_timeout(Duration::from_millis(100));
    shown.map(|()| ExitCode::SUCCESS)
}

/// A folder of our own for the configuration, gone when the demo ends.
struct Folder(PathBuf);

impl Folder {
    /// Makes it.
    fn make() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("meridian-demo-{}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed holds one small file.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Starts clusters and node, then shows.
async fn play(folder: &Path, script: bool, supervisor: &mut Supervisor) -> anyhow::Result<()> {
    let mut backends = Backends::start()
        .await
        .context("cannot start the demo's clusters on loopback")?;
    let path = folder.join("meridian.yaml");
    let token = FreshToken::make().context("the system gives no random numbers")?;
    std::fs::write(folder.join("operator.token"), format!("{}\n", token.line))
        .context("cannot write the demo's token")?;
    let Listening {
        parsed,
        registry,
        bound,
        admin,
    } = listen(&path, backends.port())?;
    let loaded = tokio::task::block_in_place(|| Loaded::of(&path, parsed, registry))?;
    let own = [bound.addresses(), admin.addresses()].concat();
    let node = Node::start(loaded, &own, supervisor).await?;
    let running = bound.spawn(&node.cell.reader(), supervisor)?;
    let server = *running.addresses().first().context("no DNS address")?;
    let http = admin.addresses();
    let sources = node.sources(&running);
    let view = node.view(&sources, "the demo's own configuration");
    admin.spawn(supervisor, &sources, &view);
    let stage = Stage {
        server,
        http: *http.first().context("no HTTP address")?,
        configuration: path,
        token: token.token,
        cell: std::sync::Arc::clone(&node.cell),
    };
    node.condition.meet();
    let shown = show(&stage, &mut backends, script).await;
    node.ready.stop();
    backends.stop().await;
    shown
}

/// A node's configuration, and its sockets.
struct Listening {
    parsed: Parsed,
    registry: ClusterRegistry,
    bound: transport::Bound,
    admin: admin::Bound,
}

/// Writes the configuration and listens where it says: at the usual ports if both are free, else anywhere.
///
/// Other demos may begin at the same time and have found the same ports free. The one for HTTP is nobody's but one's, so whoever has
/// it has the other one too; the others look elsewhere.
fn listen(path: &Path, probe_port: u16) -> anyhow::Result<Listening> {
    let mut tries = 0;
    loop {
        let usual = free_port(DNS_PORT).zip(free_port(HTTP_PORT));
        let usual = usual.filter(|_| tries == 0);
        let (dns, http) = usual
            .or_else(|| free_port(0).zip(free_port(0)))
            .context("no port on 127.0.0.1 is free")?;
        std::fs::write(path, configuration(probe_port, dns, http))
            .context("cannot write the demo's configuration")?;
        let mut registry = ClusterRegistry::default();
        let parsed = parse(path, &mut registry)?;
        // The ports were free a moment ago: they are taken before anything that takes time.
        let admin = admin::Bound::bind(&parsed.config.admin).map_err(|(_, error)| error);
        let both = admin.map_err(anyhow::Error::from).and_then(|admin| {
            let bound = transport::Bound::bind(&parsed.config.dns);
            Ok((bound.context("cannot listen for DNS")?, admin))
        });
        match both {
            Ok((bound, admin)) => {
                return Ok(Listening {
                    parsed,
                    registry,
                    bound,
                    admin,
                });
            }
            Err(error) if tries == TRIES => return Err(error),
            Err(_) => tries += 1,
        }
    }
}

/// The acts.
async fn show(stage: &Stage, backends: &mut Backends, script: bool) -> anyhow::Result<()> {
    stage.introduce()?;
    stage.wait_until_up().await?;
    stage.table().await?;
    stage.dig_lines()?;
    loop {
        if !script
            && !stage
                .key(
                    "Press Enter to stop the cluster nearest to Frankfurt, or q to end.",
                    key,
                )
                .await?
        {
            return Ok(());
        }
        stage.failover(backends).await?;
        if script {
            return stage.farewell();
        }
        if !stage
            .key("Press Enter to start it again, or q to end.", key)
            .await?
        {
            return Ok(());
        }
        stage.recovery(backends).await?;
    }
}

/// Waits for a line on standard input: false for `q` or the end of input.
async fn key() -> bool {
    let mut input = tokio::io::stdin();
    let mut line = Vec::new();
    loop {
        match input.read_u8().await {
            Ok(b'\n') => {
                return !line
                    .first()
                    .is_some_and(|first: &u8| first.eq_ignore_ascii_case(&b'q'));
            }
            Ok(octet) => line.push(octet),
            Err(_) => return false,
        }
    }
}

/// Gives a port on 127.0.0.1 that is free for UDP and TCP: this one, or any where it is 0.
fn free_port(wished: u16) -> Option<u16> {
    let is_free = |port| {
        let address = (IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let tcp = std::net::TcpListener::bind(address).ok()?;
        let port = tcp.local_addr().ok()?.port();
        std::net::UdpSocket::bind((address.0, port))
            .ok()
            .map(|_| port)
    };
    let tries = if wished == 0 { 100 } else { 1 };
    (0..tries).find_map(|_| is_free(wished))
}

/// Writes the configuration, as an operator would.
fn configuration(probe_port: u16, dns: u16, http: u16) -> String {
    let clusters: String = CLUSTERS
        .iter()
        .map(|cluster| {
            format!(
                "  - {{name: {}, provider: {}, region: {}}}\n",
                cluster.name, cluster.provider, cluster.region
            )
        })
        .collect();
    let endpoints: String = CLUSTERS
        .iter()
        .map(|cluster| {
            format!(
                "      - {{cluster: {}, addresses: [{}]}}\n",
                cluster.name, cluster.address
            )
        })
        .collect();
    format!(
        "# The demo's configuration. Edit it while the demo runs: it is read again on every change.
version: 1
node: {{name: demo, stateDirectory: \"\"}}
dns: {{listen: [\"127.0.0.1:{dns}\"], workers: 1}}
admin: {{listen: [\"127.0.0.1:{http}\"], tokens: [{{name: demo, file: operator.token, role: operator}}]}}
zones:
  - name: demo.test
    nameservers: [{{name: ns1.demo.test, addresses: [127.0.0.1]}}]
    contact: hostmaster.demo.test
clusters:
{clusters}services:
  - namespace: demo
    name: www
    hostnames: [{NAME}]
    ttl: 5
    policy: {{steer: proximity}}
    monitor: {{http: {{path: /healthz, port: {probe_port}}}, interval: 500ms, timeout: 400ms, rise: 1, fall: 2}}
    endpoints:
{endpoints}"
    )
}
