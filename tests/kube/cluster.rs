//! A cluster: one etcd, one kube-apiserver, and who may ask.

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api_server::ApiServer;
use crate::harness::loopback;
use crate::harness::process::Process;
use crate::harness::raw_http::Web;
use crate::keys::{Authority, User};
use crate::node::CONTINENTS;
use crate::objects::Admin;
use crate::running::{Cost, free_ports, run_folder, somewhere, start, wait_ready};
use crate::servers::servers;

/// A running cluster with a folder of its own. Everything ends when it falls.
pub struct Cluster {
    name: String,
    // Ended in this order.
    api: ApiServer,
    etcd: Process,
    etcd_at: SocketAddr,
    authority: Arc<Authority>,
    _folder: TempDir,
}

/// Gives the clusters that tests share, one on each of three continents. They must be left running, and each test has its own
/// namespaces in them. The first who asks starts them; they end with the program.
pub fn shared() -> &'static [Cluster; 3] {
    static SHARED: OnceLock<[Cluster; 3]> = OnceLock::new();
    SHARED.get_or_init(|| Cluster::start_all(CONTINENTS.map(|continent| continent.cluster)))
}

impl Cluster {
    /// Starts one and waits until it is ready.
    pub fn start(name: &str) -> Self {
        let folder = tempfile::Builder::new()
            .prefix(name)
            .tempdir_in(run_folder())
            .unwrap();
        let authority = Arc::new(Authority::new(name, folder.path()));
        let (etcd, etcd_at) = start_etcd(&authority);
        Self {
            name: name.to_owned(),
            api: ApiServer::start(etcd_at, &authority),
            etcd,
            etcd_at,
            authority,
            _folder: folder,
        }
    }

    /// Starts several at once.
    pub fn start_all<const COUNT: usize>(names: [&str; COUNT]) -> [Self; COUNT] {
        std::thread::scope(|scope| {
            names
                .map(|name| scope.spawn(move || Self::start(name)))
                .map(|starting| starting.join().expect("a cluster"))
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its API server.
    pub fn api(&self) -> &ApiServer {
        &self.api
    }

    /// Somebody who may do everything.
    pub fn admin(&self) -> &Admin {
        self.api.admin()
    }

    /// Writes a kubeconfig file with one context, which has the cluster's name; gives its path.
    pub fn kubeconfig(&self, user: User) -> PathBuf {
        self.api.kubeconfig(user)
    }

    /// The file of the certificate that its servers are known by.
    pub fn authority(&self) -> PathBuf {
        self.authority.certificate()
    }

    /// From now on the API server does nothing: connections are accepted by the kernel, and nobody answers (SIGSTOP).
    pub fn stop(&mut self) {
        self.api.process().signal("STOP");
    }

    /// It goes on as if nothing had been (SIGCONT).
    pub fn cont(&mut self) {
        self.api.process().signal("CONT");
    }

    /// Ends the API server as a crash would. The etcd goes on.
    pub fn kill9_api(&mut self) {
        self.api.kill();
    }

    /// Starts the API server again at the same place, and waits until it is ready.
    pub fn restart_api(&mut self) {
        self.api.restart();
    }

    /// Starts another API server in front of the same etcd.
    pub fn second_api(&self) -> ApiServer {
        ApiServer::start(self.etcd_at, &self.authority)
    }

    /// Has etcd forget all but the present revision; gives that.
    pub fn compact(&self) -> u64 {
        let status = self.ask_etcd("/v3/maintenance/status", &json!({}));
        let revision = status["header"]["revision"].as_str().expect("a revision");
        let compact = json!({"revision": revision, "physical": true});
        self.ask_etcd("/v3/kv/compaction", &compact);
        revision.parse().unwrap()
    }

    /// Asks etcd through its JSON gateway.
    fn ask_etcd(&self, path: &str, body: &Value) -> Value {
        let web = Web::new(self.etcd_at, "POST", path).json(&body.to_string());
        let answer = web.send();
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// What the API server and the etcd have cost so far.
    pub fn costs(&self) -> [Cost; 2] {
        [self.api.cost(), Cost::of(&self.etcd)]
    }

    /// The pids of the API server and the etcd.
    pub fn pids(&self) -> [u32; 2] {
        [self.api.process().id(), self.etcd.id()]
    }
}

/// Starts an etcd on free ports of an address of its own, without a wait for the disk.
fn start_etcd(authority: &Authority) -> (Process, SocketAddr) {
    let folder = authority.folder();
    somewhere(|| {
        let address = loopback();
        let [client, peer] = free_ports(address);
        let (client, peer) = (
            SocketAddr::new(address, client),
            SocketAddr::new(address, peer),
        );
        let data = folder.join(format!("etcd-{address}"));
        let name = authority.cluster();
        let args = [
            format!("--name={name}"),
            format!("--data-dir={}", data.display()),
            format!("--listen-client-urls=http://{client}"),
            format!("--advertise-client-urls=http://{client}"),
            format!("--listen-peer-urls=http://{peer}"),
            format!("--initial-advertise-peer-urls=http://{peer}"),
            format!("--initial-cluster={name}=http://{peer}"),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
            // 4 GiB: room for a compaction that never comes.
            "--quota-backend-bytes=4294967296".to_owned(),
        ];
        let mut etcd = start("etcd", folder, &servers().etcd, &args);
        wait_ready(&mut etcd, || {
            let health = Web::get(client, "/health");
            TcpStream::connect(client).is_ok()
                && health.try_send().is_some_and(|answer| answer.status == 200)
        })?;
        Ok((etcd, client))
    })
}
