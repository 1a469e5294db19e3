//! One kube-apiserver.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use crate::harness::loopback;
use crate::harness::process::Process;
use crate::keys::{Authority, Context, User, write_kubeconfig};
use crate::objects::Admin;
use crate::running::{Cost, free_ports, somewhere, start, wait_ready};
use crate::servers::servers;

/// An API server in front of an etcd; it may be dead.
pub struct ApiServer {
    process: Option<Process>,
    at: SocketAddr,
    etcd: SocketAddr,
    authority: Arc<Authority>,
    admin: Admin,
}

impl ApiServer {
    /// Starts one on a free port of an address of its own, and waits until it is ready.
    pub fn start(etcd: SocketAddr, authority: &Arc<Authority>) -> Self {
        somewhere(|| {
            let address = loopback();
            let [port] = free_ports(address);
            authority.certify(address);
            let at = SocketAddr::new(address, port);
            let mut server = Self {
                process: None,
                at,
                etcd,
                admin: Admin::new(&kubeconfig(at, authority, User::Admin), authority.cluster()),
                authority: Arc::clone(authority),
            };
            server.spawn()?;
            Ok(server)
        })
    }

    /// Starts the process and waits until it is ready.
    fn spawn(&mut self) -> Result<(), String> {
        let name = format!("kube-apiserver-{}", self.at.ip());
        let folder = self.authority.folder();
        let mut process = start(&name, folder, &servers().api, &self.args());
        wait_ready(&mut process, || self.admin.is_ready())?;
        self.process = Some(process);
        Ok(())
    }

    /// The fewest flags that serve on loopback, without kubelets and without a controller manager.
    fn args(&self) -> Vec<String> {
        let path = |path: PathBuf| path.to_str().unwrap().to_owned();
        let authority = &self.authority;
        let file = |suffix: &str| {
            path(
                authority
                    .folder()
                    .join(format!("{}.{suffix}", self.at.ip())),
            )
        };
        let (private, public) = authority.accounts();
        [
            ("etcd-servers", format!("http://{}", self.etcd)),
            // Tests compact when they want to.
            ("etcd-compaction-interval", "0".to_owned()),
            ("bind-address", self.at.ip().to_string()),
            ("secure-port", self.at.port().to_string()),
            // It is told to nobody, but without one the server looks for a default route.
            ("advertise-address", "192.0.2.1".to_owned()),
            ("endpoint-reconciler-type", "none".to_owned()),
            ("tls-cert-file", file("crt")),
            ("tls-private-key-file", file("key")),
            ("client-ca-file", path(authority.certificate())),
            ("token-auth-file", path(authority.tokens())),
            ("authorization-mode", "RBAC".to_owned()),
            (
                "service-account-issuer",
                "https://kubernetes.default.svc".to_owned(),
            ),
            ("service-account-signing-key-file", path(private)),
            ("service-account-key-file", path(public)),
            ("service-cluster-ip-range", "10.96.0.0/16".to_owned()),
            // Nobody makes the accounts that pods would need.
            ("disable-admission-plugins", "ServiceAccount".to_owned()),
            // A crowd takes long one by one.
            ("delete-collection-workers", "16".to_owned()),
            ("cert-dir", path(authority.folder().join("certificates"))),
            ("profiling", "false".to_owned()),
        ]
        .map(|(flag, value)| format!("--{flag}={value}"))
        .to_vec()
    }

    /// Where it serves.
    pub fn url(&self) -> String {
        format!("https://{}", self.at)
    }

    /// A context onto it for a kubeconfig file.
    pub fn context<'a>(&'a self, name: &'a str, user: User) -> Context<'a> {
        Context {
            name,
            url: self.url(),
            authority: &self.authority,
            user,
        }
    }

    /// Writes a kubeconfig file with one context, which has the cluster's name; gives its path.
    pub fn kubeconfig(&self, user: User) -> PathBuf {
        kubeconfig(self.at, &self.authority, user)
    }

    /// Somebody who may do everything.
    pub fn admin(&self) -> &Admin {
        &self.admin
    }

    /// A client for a user.
    pub fn client(&self, user: User) -> Admin {
        Admin::new(&self.kubeconfig(user), self.authority.cluster())
    }

    /// Gives the process.
    pub fn process(&self) -> &Process {
        self.process.as_ref().expect("a running API server")
    }

    /// What it has cost so far.
    pub fn cost(&self) -> Cost {
        Cost::of(self.process())
    }

    /// Ends it as a crash would.
    pub fn kill(&mut self) {
        self.process.take().expect("a running API server").kill();
    }

    /// Starts it again at the same place, and waits until it is ready.
    pub fn restart(&mut self) {
        assert!(self.process.is_none(), "it is running");
        self.spawn().unwrap_or_else(|why| panic!("{why}"));
    }
}

/// Writes a kubeconfig file with one context.
fn kubeconfig(at: SocketAddr, authority: &Authority, user: User) -> PathBuf {
    let file = format!("{}.{}.kubeconfig", at.ip(), user.name());
    let path = authority.folder().join(file);
    let context = Context {
        name: authority.cluster(),
        url: format!("https://{at}"),
        authority,
        user,
    };
    write_kubeconfig(&path, &[context]);
    path
}
