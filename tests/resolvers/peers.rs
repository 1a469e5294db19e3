//! The resolvers.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::harness::client::Ask;
use crate::harness::packages::{BIND, KNOT_RESOLVER, RECURSOR, UNBOUND, need};
use crate::harness::process::Process;
use crate::harness::{loopback, wait_for};
use crate::parent::{Parent, write};

/// Which resolver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Unbound,
    /// As it comes: no ECS.
    PlainUnbound,
    Bind,
    KnotResolver,
    Recursor,
}

impl Kind {
    pub const ALL: [Self; 4] = [
        Self::Unbound,
        Self::Bind,
        Self::KnotResolver,
        Self::Recursor,
    ];

    /// Tells whether it sends ECS to us, out of the option that its client sent.
    pub fn sends_ecs(self) -> bool {
        matches!(self, Self::Unbound | Self::Recursor)
    }
}

/// A running resolver that starts from the parent's root.
pub struct Resolver {
    server: SocketAddr,
    _process: Process,
    _folder: TempDir,
}

impl Resolver {
    /// Starts one on an address of its own, from which it also asks.
    pub fn start(kind: Kind, parent: &Parent) -> Self {
        // BIND listens only on addresses that an interface lists, so it gets a port of its own instead.
        let server = match kind {
            Kind::Bind => free_port(),
            _ => SocketAddr::new(loopback(), 53),
        };
        let address = server.ip();
        let folder = tempfile::tempdir().unwrap();
        let mut command = match kind {
            Kind::Unbound | Kind::PlainUnbound => unbound(kind, &folder, parent, address),
            Kind::Bind => bind(&folder, parent, server),
            Kind::KnotResolver => knot_resolver(&folder, parent, address),
            Kind::Recursor => recursor(&folder, parent, address),
        };
        let mut process = Process::start(&format!("{kind:?}"), folder.path(), &mut command);
        wait_for("the resolver to answer", Duration::from_secs(20), || {
            process.assert_running();
            let ask = Ask::a("ns.root").recursive();
            ask.try_udp(server, Duration::from_millis(500))
                .filter(|reply| !reply.addresses().is_empty())
        });
        Self {
            server,
            _process: process,
            _folder: folder,
        }
    }

    /// Where it answers.
    pub fn server(&self) -> SocketAddr {
        self.server
    }
}

/// unbound asks with ECS.
const ECS: &str = "  module-config: \"subnetcache iterator\"\n  client-subnet-zone: \"svc.mesh.\"\n  client-subnet-always-forward: yes\n\
                   \x20 max-client-subnet-ipv4: 24\n  cache-min-ttl: 0\n  minimal-responses: yes\n";
/// unbound as it comes, but for DNSSEC: the root of the tests is not signed.
const NO_ECS: &str = "  module-config: \"iterator\"\n";

fn unbound(kind: Kind, folder: &TempDir, parent: &Parent, address: IpAddr) -> Command {
    need(&[UNBOUND]);
    let text = format!(
        "server:\n  interface: {address}\n  outgoing-interface: {address}\n  access-control: 127.0.0.0/8 allow\n  username: \"\"\n\
         \x20 chroot: \"\"\n  directory: \"{place}\"\n  pidfile: \"{place}/pid\"\n  use-syslog: no\n  do-daemonize: no\n  num-threads: 1\n\
         \x20 do-not-query-localhost: no\n  root-hints: \"{hints}\"\n{ecs}remote-control:\n  control-enable: no\n",
        place = folder.path().display(),
        hints = parent.hints().display(),
        ecs = if kind == Kind::Unbound { ECS } else { NO_ECS },
    );
    write(folder.path(), "unbound.conf", &text);
    let mut command = Command::new(UNBOUND.0);
    command
        .args(["-d", "-c"])
        .arg(folder.path().join("unbound.conf"));
    command
}

/// Gives a port of 127.0.0.1 that is free now.
fn free_port() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

fn bind(folder: &TempDir, parent: &Parent, server: SocketAddr) -> Command {
    need(&[BIND]);
    let text = format!(
        "options {{ directory \"{place}\"; listen-on port {port} {{ {address}; }}; listen-on-v6 {{ none; }}; query-source address {address};\n\
         recursion yes; allow-query {{ any; }}; dnssec-validation no; pid-file \"{place}/pid\"; session-keyfile \"{place}/key\"; }};\n\
         controls {{ }};\nzone \".\" {{ type hint; file \"{hints}\"; }};\n",
        address = server.ip(),
        port = server.port(),
        place = folder.path().display(),
        hints = parent.hints().display(),
    );
    write(folder.path(), "named.conf", &text);
    let mut command = Command::new(BIND.0);
    command
        .args(["-g", "-n", "1", "-c"])
        .arg(folder.path().join("named.conf"));
    command
}

fn knot_resolver(folder: &TempDir, parent: &Parent, address: IpAddr) -> Command {
    need(&[KNOT_RESOLVER]);
    let text = format!(
        "net.listen('{address}', 53, {{ kind = 'dns' }})\nnet.outgoing_v4('{address}')\nnet.ipv6 = false\n\
         trust_anchors.remove('.')\nmodules.unload('priming')\nmodules.unload('ta_signal_query')\nmodules.unload('ta_update')\nmodules.load('hints > iterate')\n\
         hints.root({{ ['ns.root.'] = '{root}' }})\ncache.size = 10 * MB\ncache.min_ttl(0)\n",
        root = parent.address(),
    );
    write(folder.path(), "kresd.conf", &text);
    let mut command = Command::new(KNOT_RESOLVER.0);
    command
        .args(["-n", "-c"])
        .arg(folder.path().join("kresd.conf"))
        .arg(folder.path())
        .current_dir(folder.path());
    command
}

fn recursor(folder: &TempDir, parent: &Parent, address: IpAddr) -> Command {
    need(&[RECURSOR]);
    let text = format!(
        "local-address={address}\nquery-local-address={address}\nsocket-dir={place}\ndaemon=no\nsecurity-poll-suffix=\ndnssec=off\n\
         hint-file={hints}\ndont-query=\nthreads=1\nallow-from=127.0.0.0/8\nedns-subnet-allow-list=svc.mesh\nuse-incoming-edns-subnet=yes\n\
         ecs-ipv4-bits=24\nsetuid=\nsetgid=\nserve-rfc1918=no\nnothing-below-nxdomain=no\n",
        place = folder.path().display(),
        hints = parent.hints().display(),
    );
    write(folder.path(), "recursor.conf", &text);
    let mut command = Command::new(RECURSOR.0);
    command.arg(format!("--config-dir={}", folder.path().display()));
    command
}
