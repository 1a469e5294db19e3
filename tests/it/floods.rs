//! FAULTS F16: slow, idle, deaf and restless TCP clients all at once, and honest ones are served.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hickory_proto::rr::RecordType;

use crate::harness::client::Ask;
use crate::harness::honest::{Honest, connect_from, framed};
use crate::harness::node::Node;
use crate::harness::{loopback, loopback_network};
use crate::samples::{FIVE, FIVE_ZONE};

/// How long the attack lasts.
const ATTACK: Duration = Duration::from_secs(6);

/// The node's limit for a query to come in and for a reply to be taken.
const WRITE: Duration = Duration::from_secs(1);

/// What the node may be late with on a busy machine.
const SLACK: Duration = Duration::from_secs(2);

/// What all attackers share.
struct Attack {
    server: SocketAddr,
    stop: AtomicBool,
    connections: AtomicUsize,
}

impl Attack {
    fn connect(&self, address: IpAddr) -> Option<TcpStream> {
        let stream = connect_from(address, self.server).ok()?;
        self.connections.fetch_add(1, Ordering::Relaxed);
        Some(stream)
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }
}

/// Tells whether the node has ended a connection, without blocking.
fn is_cut(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 1]) {
        Ok(octets) => octets == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// Begins queries and sends one octet now and then. Gives the longest time that one was let do so.
fn trickle(attack: &Attack) -> Duration {
    let packet = framed(&Ask::a("www.svc.mesh").message().to_vec().unwrap());
    let addresses: Vec<IpAddr> = (0..4).map(|_| loopback_network()).collect();
    let mut open: Vec<(TcpStream, Instant, usize)> = Vec::new();
    let mut longest = Duration::ZERO;
    while attack.goes_on() || !open.is_empty() {
        if attack.goes_on() && open.len() < 40 {
            let address = addresses[open.len() % addresses.len()];
            if let Some(mut stream) = attack.connect(address) {
                stream.set_nonblocking(true).unwrap();
                // Refused connections are found out below.
                let _ = stream.write(&packet[..1]);
                open.push((stream, Instant::now(), 1));
            }
        }
        open.retain_mut(|(stream, since, sent)| {
            // An octet every 200 ms: a whole query takes more than ten times the limit.
            let due = usize::try_from(since.elapsed().as_millis() / 200).unwrap();
            let failed = due > *sent && {
                let octet = packet.get(*sent).copied().unwrap_or(0);
                *sent += 1;
                stream.write_all(&[octet]).is_err()
            };
            let ended = failed || is_cut(stream);
            if ended {
                longest = longest.max(since.elapsed());
            }
            assert!(since.elapsed() < WRITE + SLACK, "a trickling peer goes on");
            !ended
        });
        std::thread::sleep(Duration::from_millis(5));
    }
    longest
}

/// Opens as many connections as it gets and says nothing.
fn idle(attack: &Attack) {
    let addresses: Vec<IpAddr> = (0..32).map(|_| loopback_network()).collect();
    let mut open: Vec<TcpStream> = Vec::new();
    for turn in 0.. {
        if !attack.goes_on() {
            return;
        }
        open.extend(attack.connect(addresses[turn % addresses.len()]));
        if turn % 64 == 0 {
            open.retain_mut(|stream| {
                stream.set_nonblocking(true).unwrap();
                !is_cut(stream)
            });
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Asks for long answers without end and takes none. Gives how many connections were cut for it.
fn deaf(attack: &Attack) -> usize {
    let addresses: Vec<IpAddr> = (0..4).map(|_| loopback_network()).collect();
    let question = Ask::a("big.svc.mesh").of_type(RecordType::TXT);
    let flood = framed(&question.message().to_vec().unwrap()).repeat(1000);
    let (mut open, mut cut): (Vec<TcpStream>, usize) = (Vec::new(), 0);
    while attack.goes_on() {
        if open.len() < 32 {
            let stream = attack.connect(addresses[open.len() % addresses.len()]);
            open.extend(stream.inspect(|stream| stream.set_nonblocking(true).unwrap()));
        }
        let before = open.len();
        open.retain_mut(|stream| match stream.write(&flood) {
            Err(error) => error.kind() == ErrorKind::WouldBlock,
            Ok(_) => true,
        });
        cut += before - open.len();
        std::thread::sleep(Duration::from_millis(10));
    }
    cut
}

/// Connects, sends a part of a query and resets, as fast as it can.
fn churn(attack: &Attack) {
    let address = loopback_network();
    let packet = framed(&Ask::a("www.svc.mesh").message().to_vec().unwrap());
    for turn in 0.. {
        if !attack.goes_on() {
            return;
        }
        if let Some(mut stream) = attack.connect(address) {
            socket2::SockRef::from(&stream)
                .set_linger(Some(Duration::ZERO))
                .unwrap();
            let _ = stream.write(&packet[..turn % packet.len()]);
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

fn spawn<T: Send + 'static>(attack: &Arc<Attack>, run: fn(&Attack) -> T) -> JoinHandle<T> {
    let attack = Arc::clone(attack);
    std::thread::spawn(move || run(&attack))
}

#[test]
fn slow_idle_deaf_and_restless_peers_at_once_keep_nobody_out() {
    let dns = "tcp: {connections: 256, perClient: 16, idle: 2s, write: 1s}, ";
    let mut node = Node::start_on(loopback(), dns, FIVE, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
    });
    let attack = Arc::new(Attack {
        server: node.dns(),
        stop: AtomicBool::new(false),
        connections: AtomicUsize::new(0),
    });
    let (trickling, deafness) = (spawn(&attack, trickle), spawn(&attack, deaf));
    let others = [spawn(&attack, idle), spawn(&attack, churn)];
    let www = Ask::a("www.svc.mesh").from("46.114.0.0/24");
    let honest = (Honest::udp(node.dns(), &www), Honest::tcp(node.dns(), &www));
    let until = Instant::now() + ATTACK;
    crate::harness::wait_for("the attack to last", ATTACK * 2, || {
        (Instant::now() >= until).then_some(())
    });
    let (udp, tcp) = (honest.0.end(), honest.1.end());
    attack.stop.store(true, Ordering::Relaxed);
    let longest = trickling.join().unwrap();
    let cut = deafness.join().unwrap();
    for other in others {
        other.join().unwrap();
    }
    let connections = attack.connections.load(Ordering::Relaxed);
    println!(
        "{connections} hostile connections; honest UDP {udp:?}, TCP {tcp:?}; longest trickle {longest:?}; {cut} deaf peers cut"
    );
    assert!(connections > 1000, "{connections}: the attack must be one");
    udp.assert_percent(99);
    tcp.assert_percent(95);
    assert!(longest > Duration::ZERO && cut > 0);
    node.process().assert_running();
}
