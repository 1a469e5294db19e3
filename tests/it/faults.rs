//! Attackers and shortages: honest clients are served.

use std::io::Write;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use crate::harness::client::{Ask, exchange_udp};
use crate::harness::loopback;
use crate::harness::netns::ip;
use crate::harness::node::Node;
use crate::harness::packages::{IP, need};
use crate::samples::{FIVE, FIVE_ZONE};

fn start(dns: &str) -> Node {
    Node::start_on(loopback(), dns, FIVE, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap()
    })
}

/// Counts how many of a hundred honest questions are answered.
fn honest(node: &Node, tcp: bool) -> usize {
    let ask = Ask::a("www.svc.mesh").from("46.114.0.0/24");
    let server = node.dns();
    let answered = |_: &usize| {
        if tcp {
            std::panic::catch_unwind(|| ask.tcp(server)).is_ok()
        } else {
            ask.try_udp(server, Duration::from_millis(500)).is_some()
        }
    };
    (0..100).filter(answered).count()
}

#[test]
fn idle_floods_and_trickles_from_one_client_keep_nobody_out() {
    let mut node = start("tcp: {connections: 256, perClient: 16, idle: 2s, write: 1s}, ");
    let flood: Vec<TcpStream> = (0..300)
        .filter_map(|_| TcpStream::connect_timeout(&node.dns(), Duration::from_secs(1)).ok())
        .collect();
    for mut stream in &flood {
        // Half a length: a query that never comes. The server may have closed it already.
        let _ = stream.write_all(&[0]);
    }
    assert!(honest(&node, false) >= 99);
    // Honest clients come from another address than the flood.
    let server = node.dns();
    let begun = Instant::now();
    let answered = (0..100)
        .filter(|_| {
            let socket =
                socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
            socket.bind(&SocketAddr::new(loopback(), 0).into()).unwrap();
            if socket
                .connect_timeout(&server.into(), Duration::from_secs(1))
                .is_err()
            {
                return false;
            }
            let mut stream = TcpStream::from(socket);
            stream
                .set_read_timeout(Some(Duration::from_secs(1)))
                .unwrap();
            let packet = Ask::a("www.svc.mesh").message().to_vec().unwrap();
            let framed = [
                &u16::try_from(packet.len()).unwrap().to_be_bytes()[..],
                &packet,
            ]
            .concat();
            stream.write_all(&framed).is_ok()
                && crate::harness::client::read_framed(&mut stream).is_ok()
        })
        .count();
    assert!(
        answered >= 95,
        "{answered} of 100 over TCP in {:?}",
        begun.elapsed()
    );
    node.process().assert_running();
}

#[test]
fn odd_datagrams_change_nothing() {
    let mut node = start("");
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect(node.dns()).unwrap();
    for size in [
        0, 1, 11, 12, 13, 511, 512, 513, 1232, 4095, 4096, 4097, 9000, 65_507,
    ] {
        for fill in [0x00, 0x01, 0x80, 0xc0, 0xff] {
            // A datagram that the kernel refuses is not ours to judge.
            let _ = socket.send(&vec![fill; size]);
        }
    }
    assert_eq!(honest(&node, false), 100);
    node.process().assert_running();
}

#[test]
fn replies_get_no_reply() {
    let node = start("");
    let mut packet = Ask::a("www.svc.mesh").message().to_vec().unwrap();
    packet[2] |= 0x80;
    assert!(exchange_udp(node.dns(), &packet, Duration::from_millis(300)).is_none());
}

#[test]
fn a_wildcard_listener_answers_from_the_address_asked() {
    let mut node = start("");
    // A second listener on every address: queries to 127.x.y.z must be answered from there, or the client's connected
    // socket would not take the reply.
    let port = free_everywhere();
    let dns = node.dns();
    node.write_config(&node.config().replace(
        &format!("\"{dns}\""),
        &format!("\"0.0.0.0:{port}\", \"[::]:{port}\""),
    ));
    let process = node.take_process();
    assert!(process.terminate(Duration::from_secs(10)).success());
    node.spawn();
    for server in [
        SocketAddr::new(loopback(), port),
        SocketAddr::new(loopback(), port),
        SocketAddr::new("::1".parse().unwrap(), port),
    ] {
        let reply = Ask::a("www.svc.mesh").from("46.114.0.0/24").udp(server);
        assert_eq!(reply.address().to_string(), "192.0.2.1");
        assert_eq!(
            Ask::a("www.svc.mesh")
                .from("46.114.0.0/24")
                .tcp(server)
                .address()
                .to_string(),
            "192.0.2.1"
        );
    }
}

/// Finds a port that is free on all addresses, over UDP and TCP; none of those that the system gives to connections of others.
fn free_everywhere() -> u16 {
    let is_free = |port: &u16| {
        let v4 = ("0.0.0.0", *port);
        let v6 = ("::", *port);
        (UdpSocket::bind(v4).is_ok() && TcpListener::bind(v4).is_ok())
            && (UdpSocket::bind(v6).is_ok() && TcpListener::bind(v6).is_ok())
    };
    (20_000..30_000).find(is_free).unwrap()
}

#[test]
fn without_descriptors_udp_goes_on_and_tcp_returns() {
    let mut node = start("");
    let pid = node.process().id().to_string();
    let limit = |files: &str| {
        let status = std::process::Command::new("prlimit")
            .args(["--pid", &pid, &format!("--nofile={files}:")])
            .status()
            .unwrap();
        assert!(status.success());
    };
    limit("10");
    let blocked: Vec<TcpStream> = (0..20)
        .filter_map(|_| TcpStream::connect_timeout(&node.dns(), Duration::from_secs(1)).ok())
        .collect();
    assert!(honest(&node, false) >= 99);
    drop(blocked);
    limit("1024");
    crate::harness::wait_for("TCP to return", Duration::from_secs(10), || {
        let server = node.dns();
        std::panic::catch_unwind(|| Ask::a("www.svc.mesh").from("46.114.0.0/24").tcp(server)).ok()
    });
    node.process().assert_running();
}

/// In a namespace of its own, which has three IPv6 addresses: left to itself, the kernel would answer from the asker's own.
#[test]
fn a_wildcard_listener_answers_from_the_address_asked_over_ipv6() {
    need(&[IP]);
    let all = ["fd99::1", "fd99::2", "fd99::3"].map(|text| text.parse::<Ipv6Addr>().unwrap());
    // A thread that leaves its namespace does not come back, and what it starts is where it is.
    let inside = std::thread::spawn(move || {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        ip(&["link", "set", "lo", "up"]);
        for address in all {
            let address = format!("{address}/128");
            ip(&["-6", "addr", "add", &address, "dev", "lo", "nodad"]);
        }
        let _node = Node::start_on(Ipv6Addr::UNSPECIFIED.into(), "", FIVE, |folder| {
            std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
        });
        let asker = UdpSocket::bind((all[0], 0)).unwrap();
        asker
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let query = Ask::a("www.svc.mesh").message().to_vec().unwrap();
        for asked in [all[1], all[2], all[1]] {
            let asked = SocketAddr::new(asked.into(), 53);
            asker.send_to(&query, asked).unwrap();
            let (_, from) = asker.recv_from(&mut [0; 1500]).expect("a reply");
            assert_eq!(from, asked);
        }
    });
    inside.join().unwrap();
}

#[test]
fn every_address_has_a_worker_and_a_socket_for_each_core() {
    let mut node = start("");
    let both = [node.dns(), SocketAddr::new(loopback(), 53)];
    let [first, second] = both.map(|address| format!("\"{address}\""));
    let config = node.config().replace("workers: 2", "workers: 0");
    node.write_config(&config.replace(&first, &format!("{first}, {second}")));
    let process = node.take_process();
    assert!(process.terminate(Duration::from_secs(10)).success());
    node.spawn();
    let cores = std::thread::available_parallelism().unwrap().get();
    let tasks = std::fs::read_dir(format!("/proc/{}/task", node.process().id())).unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    let workers = names.filter(|name| name.starts_with("udp-")).count();
    assert_eq!(workers, cores * both.len());
    let sockets = std::fs::read_to_string("/proc/net/udp").unwrap();
    for address in both {
        let IpAddr::V4(ip) = address.ip() else {
            panic!("{address}");
        };
        // As the kernel writes it: the octets as they lie.
        let place = format!(
            "{:08X}:{:04X}",
            u32::from_ne_bytes(ip.octets()),
            address.port()
        );
        let at = sockets
            .lines()
            .filter(|line| line.contains(&format!(" {place} ")));
        assert_eq!(at.count(), cores, "{place} of\n{sockets}");
    }
}
