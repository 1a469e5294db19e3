//! A network namespace joined by a veth pair: a remote site whose packets can be made to vanish.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};

use super::packages::{IP, need};

/// A namespace with addresses of its own. Removed when it falls.
pub struct Site {
    name: String,
    net: u8,
}

/// Runs `ip` and fails loudly.
pub fn ip(args: &[&str]) {
    let output = Command::new("ip").args(args).output().unwrap();
    assert!(
        output.status.success(),
        "ip {} (network namespaces need root): {}",
        args.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
}

impl Site {
    /// Makes a namespace with `count` addresses, 10.213.N.10 and on.
    pub fn new(count: u8) -> Self {
        static NEXT: AtomicU8 = AtomicU8::new(0);
        need(&[IP]);
        let net = NEXT.fetch_add(1, Ordering::Relaxed) + 1;
        let name = format!("mtest{}n{net}", std::process::id());
        let (outer, inner) = (
            format!("mo{}n{net}", std::process::id()),
            format!("mi{}n{net}", std::process::id()),
        );
        ip(&["netns", "add", &name]);
        let site = Self { name, net };
        ip(&[
            "link", "add", &outer, "type", "veth", "peer", "name", &inner, "netns", &site.name,
        ]);
        ip(&["addr", "add", &format!("10.213.{net}.1/24"), "dev", &outer]);
        ip(&["link", "set", &outer, "up"]);
        ip(&["-n", &site.name, "link", "set", "lo", "up"]);
        ip(&["-n", &site.name, "link", "set", &inner, "up"]);
        ip(&[
            "-n",
            &site.name,
            "addr",
            "add",
            &format!("10.213.{net}.2/24"),
            "dev",
            &inner,
        ]);
        // Through a hop, so that a removed address is silence and not an unanswered ARP.
        ip(&[
            "route",
            "add",
            &format!("10.214.{net}.0/24"),
            "via",
            &format!("10.213.{net}.2"),
        ]);
        for host in 0..count {
            ip(&[
                "-n",
                &site.name,
                "addr",
                "add",
                &format!("{}/32", site.address(host)),
                "dev",
                "lo",
            ]);
        }
        site
    }

    /// Gives the address of one host.
    pub fn address(&self, host: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 214, self.net, host + 10))
    }

    /// Gives the address of ours that those inside reach.
    pub fn gateway(&self) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 213, self.net, 1))
    }

    /// Listens inside.
    pub fn listen(&self, host: u8, port: u16) -> TcpListener {
        let address = self.address(host);
        self.inside(move || TcpListener::bind((address, port)).unwrap())
    }

    /// Makes a socket of a host inside.
    pub fn socket(&self, host: u8) -> UdpSocket {
        let address = self.address(host);
        self.inside(move || UdpSocket::bind((address, 0)).unwrap())
    }

    /// Does something inside.
    fn inside<T: Send + 'static>(&self, what: impl FnOnce() -> T + Send + 'static) -> T {
        let path = format!("/run/netns/{}", self.name);
        // A thread that enters a namespace stays there, so it must not be one of the test's own.
        let doing = std::thread::spawn(move || {
            let namespace = File::open(path).unwrap();
            nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            what()
        });
        doing.join().unwrap()
    }

    /// From now on packets to this host vanish without a word.
    pub fn drop_packets(&self, host: u8) {
        ip(&[
            "-n",
            &self.name,
            "addr",
            "del",
            &format!("{}/32", self.address(host)),
            "dev",
            "lo",
        ]);
    }

    /// Undoes `drop_packets`.
    pub fn restore_packets(&self, host: u8) {
        ip(&[
            "-n",
            &self.name,
            "addr",
            "add",
            &format!("{}/32", self.address(host)),
            "dev",
            "lo",
        ]);
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // The veth pair and the route go with the namespace.
        let _ = Command::new("ip")
            .args(["netns", "del", &self.name])
            .status();
    }
}
