//! A hundred open dashboards cost less than a tenth of a core, while backends flip, and those who ask for names do not notice.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::harness::client::{Ask, exchange_udp};
use crate::harness::{loopback, wait_for};
use crate::world::World;

/// Dashboards.
const CROWD: usize = 100;
/// Servers that go and come back while it is measured.
const FLIPS: usize = 5;
/// From one to the next.
const PACE: Duration = Duration::from_secs(4);
/// From one query that is timed to the next.
const QUERIES: Duration = Duration::from_millis(5);

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

/// What was measured in one phase.
#[derive(Debug)]
struct Measured {
    /// Share of a core.
    cores: f64,
    /// Half of the queries took less.
    median: Duration,
    /// 99 of 100 took less.
    p99: Duration,
}

/// Lets backends flip, and times queries meanwhile.
fn measure(world: &mut World) -> Measured {
    let (pid, dns) = (world.node.process().id(), world.node.dns());
    let packet = Ask::a("www.svc.mesh").from("46.114.0.0/24").message();
    let packet = packet.to_vec().unwrap();
    let (begun, before) = (Instant::now(), computed(pid));
    let mut times = Vec::new();
    // Each in turn: who flaps is held down for longer and longer.
    for at in 0..FLIPS {
        let address = world.backend(at);
        world.kill(at);
        let due = PACE * (u32::try_from(at).unwrap() + 1);
        while begun.elapsed() < due {
            let asked = Instant::now();
            exchange_udp(dns, &packet, Duration::from_secs(1)).expect("an answer");
            times.push(asked.elapsed());
            std::thread::sleep(QUERIES);
        }
        world.revive(at, address);
    }
    times.sort_unstable();
    Measured {
        cores: (computed(pid) - before) / begun.elapsed().as_secs_f64(),
        median: times[times.len() / 2],
        p99: times[times.len() * 99 / 100],
    }
}

#[test]
fn a_hundred_dashboards_cost_under_a_tenth_of_a_core() {
    let _machine = crate::alone();
    let mut world = World::start("");
    world.settle();
    let host = world.node.http();
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
    println!("alone {alone:?}, with {CROWD} dashboards {crowded:?}, {fetches} fetches");
    assert!(fetches > CROWD as u64 * 4, "{fetches}");
    assert!(crowded.cores - alone.cores < 0.1, "{alone:?} {crowded:?}");
    // Half as much again is what the machine makes of the same by itself.
    assert!(
        crowded.median < alone.median.mul_f64(1.5),
        "{alone:?} {crowded:?}"
    );
    let bound = alone.p99 * 3 + Duration::from_millis(1);
    assert!(crowded.p99 < bound, "{alone:?} {crowded:?}");
}
