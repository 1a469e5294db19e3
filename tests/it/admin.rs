//! The HTTP listeners under those who only hold connections.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::harness::loopback;
use crate::harness::node::Node;
use crate::samples::{FIVE, FIVE_ZONE};

/// Connects from a given address.
fn connect(from: IpAddr, to: SocketAddr) -> Option<TcpStream> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(from, 0).into()).unwrap();
    socket
        .connect_timeout(&to.into(), Duration::from_secs(1))
        .ok()?;
    let stream = TcpStream::from(socket);
    stream
        .set_read_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    Some(stream)
}

/// Asks on a connection that stays open; gives the status line.
fn ask(stream: &mut TcpStream) -> String {
    stream
        .write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut reader = BufReader::new(stream);
    let mut status = String::new();
    reader.read_line(&mut status).unwrap();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    status
}

#[test]
fn idle_connections_do_not_starve_livez() {
    let node = Node::start_on(loopback(), "", FIVE, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
    });
    let http = node.http();
    let mut scraper = connect(loopback(), http).unwrap();
    assert!(ask(&mut scraper).contains("200"));
    // From the address that the liveness check comes from too, and from others, each alone within its bound.
    let crowd = [loopback(); 1].into_iter().chain([http.ip()]);
    let mut held = Vec::new();
    for from in crowd {
        held.extend((0..300).filter_map(|_| connect(from, http)));
    }
    for _ in 0..20 {
        let from = loopback();
        held.extend((0..10).filter_map(|_| connect(from, http)));
    }
    for from in [http.ip(), loopback()] {
        let begun = Instant::now();
        let mut stream = connect(from, http).expect("a connection");
        assert!(ask(&mut stream).contains("200"), "from {from}");
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(1), "{took:?} from {from}");
    }
    drop(held);
}

#[test]
fn one_clients_flood_leaves_another_clients_connection_open() {
    let node = Node::start_on(loopback(), "", FIVE, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
    });
    let mut scraper = connect(loopback(), node.http()).unwrap();
    assert!(ask(&mut scraper).contains("200"));
    let from = loopback();
    let flood: Vec<TcpStream> = (0..300)
        .filter_map(|_| connect(from, node.http()))
        .collect();
    assert!(ask(&mut scraper).contains("200"));
    drop(flood);
}
