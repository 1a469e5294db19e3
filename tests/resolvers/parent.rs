//! The zones above ours, in NSD.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::harness::client::Ask;
use crate::harness::packages::{NSD, need};
use crate::harness::process::Process;
use crate::harness::{loopback, wait_for};

/// NSD with a root and `mesh.`, delegating `svc.mesh.` to two addresses.
pub struct Parent {
    address: IpAddr,
    _process: Process,
    folder: TempDir,
}

impl Parent {
    /// Starts it. `nodes` are the addresses of ns1 and ns2.svc.mesh.
    pub fn start(nodes: [IpAddr; 2]) -> Self {
        need(&[NSD]);
        let folder = tempfile::tempdir().unwrap();
        let address = loopback();
        let soa = "SOA ns.root. hostmaster.root. 1 7200 900 1209600 60";
        write(
            folder.path(),
            "root.zone",
            &format!(
                ". 86400 {soa}\n. 86400 NS ns.root.\nns.root. 86400 A {address}\nmesh. 86400 NS ns.root.\n"
            ),
        );
        let [first, second] = nodes;
        write(
            folder.path(),
            "mesh.zone",
            &format!(
                "mesh. 86400 {soa}\nmesh. 86400 NS ns.root.\nsvc.mesh. 3600 NS ns1.svc.mesh.\nsvc.mesh. 3600 NS ns2.svc.mesh.\n\
                 ns1.svc.mesh. 3600 A {first}\nns2.svc.mesh. 3600 A {second}\n"
            ),
        );
        let place = folder.path().display();
        write(
            folder.path(),
            "nsd.conf",
            &format!(
                "server:\n  ip-address: {address}\n  server-count: 1\n  username: \"\"\n  chroot: \"\"\n  zonesdir: \"{place}\"\n\
                 \x20 database: \"\"\n  pidfile: \"{place}/nsd.pid\"\n  xfrdfile: \"{place}/xfrd.state\"\n  zonelistfile: \"{place}/zone.list\"\n\
                 \x20 xfrdir: \"{place}\"\n  rrl-ratelimit: 0\nremote-control:\n  control-enable: no\n\
                 zone:\n  name: .\n  zonefile: root.zone\nzone:\n  name: mesh\n  zonefile: mesh.zone\n"
            ),
        );
        let mut command = Command::new(NSD.0);
        command
            .args(["-d", "-c"])
            .arg(folder.path().join("nsd.conf"));
        let mut process = Process::start("nsd", folder.path(), &mut command);
        let server = SocketAddr::new(address, 53);
        wait_for("NSD to answer", Duration::from_secs(10), || {
            process.assert_running();
            Ask::a("ns.root")
                .try_udp(server, Duration::from_millis(100))
                .filter(|reply| !reply.addresses().is_empty())
        });
        Self {
            address,
            _process: process,
            folder,
        }
    }

    /// Gives the only root server's address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Writes a hints file for resolvers and gives its path.
    pub fn hints(&self) -> std::path::PathBuf {
        write(
            self.folder.path(),
            "hints",
            &format!(
                ". 3600000 NS ns.root.\nns.root. 3600000 A {}\n",
                self.address
            ),
        );
        self.folder.path().join("hints")
    }
}

/// Writes a file into a folder.
pub fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}
