//! A hundred open dashboards cost less than a tenth of a core, while backends flip.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::harness::{loopback, wait_for};
use crate::world::World;

/// Dashboards.
const CROWD: usize = 100;
/// Servers that go and come back while it is measured.
const FLIPS: usize = 5;
/// From one to the next.
const PACE: Duration = Duration::from_secs(4);

/// Connects from one address.
fn connect(from: IpAddr, to: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(from, 0).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    stream
}

/// Gets the live part of the overview on a connection that stays open; gives its octets.
fn get(stream: &mut BufReader<TcpStream>, host: SocketAddr) -> usize {
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nHX-Request: true\r\n\r\n");
    stream.get_mut().write_all(request.as_bytes()).unwrap();
    let mut length = None;
    let mut line = String::new();
    loop {
        line.clear();
        stream.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let length = length.expect("a length");
    stream.read_exact(&mut vec![0; length]).unwrap();
    length
}

/// One dashboard: listens, and fetches whenever it is told to.
fn dashboard(from: IpAddr, host: SocketAddr, stop: &AtomicBool, fetched: &AtomicU64) {
    let mut live = BufReader::new(connect(from, host));
    let request =
        format!("GET /live HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n\r\n");
    live.get_mut().write_all(request.as_bytes()).unwrap();
    let mut page = BufReader::new(connect(from, host));
    let mut line = String::new();
    while !stop.load(Ordering::Relaxed) {
        line.clear();
        assert!(live.read_line(&mut line).unwrap() > 0, "the stream ended");
        if line.starts_with("event:") {
            assert!(get(&mut page, host) > 5000);
            fetched.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Reads how long a process has computed, seconds.
fn computed(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after = stat.rsplit(") ").next().unwrap();
    let fields: Vec<&str> = after.split(' ').collect();
    // utime and stime, in hundredths of a second (proc(5)).
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / 100.0
}

#[test]
fn a_hundred_dashboards_cost_under_a_tenth_of_a_core() {
    let _machine = crate::alone();
    let mut world = World::start("");
    world.settle();
    let host = world.node.http();
    let pid = world.node.process().id();
    let measure = |world: &mut World| {
        let (begun, before) = (Instant::now(), computed(pid));
        // Each in turn: who flaps is held down for longer and longer.
        for at in 0..FLIPS {
            let address = world.backend(at);
            world.kill(at);
            let due = PACE * (u32::try_from(at).unwrap() + 1);
            wait_for("the next flip", PACE * 2, || {
                (begun.elapsed() > due).then_some(())
            });
            world.revive(at, address);
        }
        (computed(pid) - before) / begun.elapsed().as_secs_f64()
    };
    let alone = measure(&mut world);
    let (stop, fetched) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let IpAddr::V4(base) = loopback() else {
        unreachable!("loopback addresses are IPv4")
    };
    let crowd: Vec<_> = (0..CROWD)
        .map(|at| {
            let from = IpAddr::V4(Ipv4Addr::from(u32::from(base) + 0x1_0000 + at as u32));
            let (stop, fetched) = (Arc::clone(&stop), Arc::clone(&fetched));
            std::thread::spawn(move || dashboard(from, host, &stop, &fetched))
        })
        .collect();
    wait_for("every dashboard to fetch", Duration::from_secs(20), || {
        (fetched.load(Ordering::Relaxed) >= CROWD as u64).then_some(())
    });
    let before = fetched.load(Ordering::Relaxed);
    let crowded = measure(&mut world);
    let fetches = fetched.load(Ordering::Relaxed) - before;
    stop.store(true, Ordering::Relaxed);
    for one in crowd {
        one.join().unwrap();
    }
    println!(
        "alone {alone:.3} cores, with {CROWD} dashboards {crowded:.3} cores, {fetches} fetches"
    );
    assert!(fetches > CROWD as u64 * 4, "{fetches}");
    assert!(crowded - alone < 0.1, "{alone} {crowded}");
}
