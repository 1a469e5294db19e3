//! The whole room over loopback, against the real answering path: an empty world, which refuses every name, is enough.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::{Message, OpCode, ResponseCode};

use super::*;
use crate::lifecycle::Supervisor;
use crate::snapshot::{Snapshot, SnapshotCell};
use crate::telemetry::Count;

/// A served configuration on loopback, and the runtime it lives in.
struct Node {
    runtime: tokio::runtime::Runtime,
    supervisor: Supervisor,
    running: Running,
}

/// Configuration for one loopback address, port 0.
fn config(listen: &str) -> Config {
    Config {
        listen: vec![listen.parse().expect("an address")],
        workers: 2,
        ..Config::default()
    }
}

/// Serves an empty world.
fn serve(config: &Config) -> Node {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let cell = Arc::<SnapshotCell>::default();
    drop(cell.publish(Snapshot::default()));
    let mut supervisor = Supervisor::default();
    let bound = Bound::bind(config).expect("loopback binds");
    let running = runtime.block_on(async { bound.spawn(&cell.reader(), &mut supervisor) });
    let running = running.expect("starts");
    Node {
        runtime,
        supervisor,
        running,
    }
}

impl Node {
    fn address(&self) -> SocketAddr {
        self.running.addresses()[0]
    }

    fn count(&self, count: Count) -> u64 {
        let counters = self.running.counters().iter();
        counters.map(|counters| counters.get(count)).sum()
    }

    fn total(&self, name: &str) -> u64 {
        let totals = self.running.streams().totals();
        let total = totals.iter().find(|(known, _)| known.contains(name));
        total.expect("a known name").1
    }

    /// Stops, and tells how long that took.
    fn stop(self) -> Duration {
        let start = tokio::time::Instant::now();
        let deadline = Duration::from_secs(5);
        self.runtime.block_on(self.supervisor.shut_down(deadline));
        start.elapsed()
    }
}

/// A message with one question (`www.example` A IN) and this ID, opcode and RD.
fn message(id: u16, opcode: u8) -> Vec<u8> {
    let mut octets = id.to_be_bytes().to_vec();
    octets.extend([opcode << 3 | 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    octets.extend(b"\x03www\x07example\x00\x00\x01\x00\x01");
    octets
}

/// A client whose receives give up after a while.
fn udp(from: &str, to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(from).expect("loopback binds");
    socket.connect(to).expect("connects");
    let timeout = Some(Duration::from_secs(5));
    socket.set_read_timeout(timeout).expect("takes a timeout");
    socket
}

/// A connection whose reads give up after a while.
fn tcp(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).expect("connects");
    let timeout = Some(Duration::from_secs(5));
    stream.set_read_timeout(timeout).expect("takes a timeout");
    stream
}

/// Asks over UDP.
fn ask(socket: &UdpSocket, query: &[u8]) -> Vec<u8> {
    socket.send(query).expect("sends");
    let mut reply = [0; 4096];
    let octets = socket.recv(&mut reply).expect("a reply");
    reply[..octets].to_vec()
}

/// Writes framed messages, in one go: a length on its own would wait for the acknowledgment of what came before.
fn write(stream: &mut TcpStream, messages: &[Vec<u8>]) {
    let mut octets = Vec::new();
    for message in messages {
        let length = u16::try_from(message.len()).expect("short");
        octets.extend(length.to_be_bytes());
        octets.extend(message);
    }
    stream.write_all(&octets).expect("writes");
}

/// Reads one framed message.
fn read(stream: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).expect("a length");
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut message).expect("a message");
    message
}

/// Tells whether the other side closes, orderly or not, and says nothing before.
fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 1]) {
        Ok(octets) => octets == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

/// Decodes a reply and checks that it refuses the query.
fn check_refused(query: &[u8], reply: &[u8]) {
    let decoded = Message::from_vec(reply).expect("hickory decodes it");
    assert_eq!(decoded.metadata.response_code, ResponseCode::Refused);
    assert_eq!(reply[..2], query[..2], "the ID");
}

// === Binding ===

#[test]
fn port_zero_is_one_port_for_all() {
    let mut config = config("127.0.0.1:0");
    config.listen.push("[::1]:0".parse().expect("an address"));
    config.listen.push("0.0.0.0:0".parse().expect("an address"));
    config.listen.push("[::]:0".parse().expect("an address"));
    let bound = Bound::bind(&config).expect("binds");
    let addresses = bound.addresses();
    assert_eq!(addresses.len(), 4);
    for (address, wanted) in addresses.iter().zip(&config.listen) {
        assert!(address.port() != 0 && address.ip() == wanted.ip());
        // Both are taken: a socket that shares with nobody finds neither free.
        assert!(UdpSocket::bind(address).is_err());
        assert!(std::net::TcpListener::bind(address).is_err());
    }
    let mut ports: Vec<_> = addresses.iter().map(SocketAddr::port).collect();
    ports.dedup();
    assert_eq!(ports.len(), 4, "no two listen addresses share");
}

#[test]
fn one_port_serves_both_families() {
    let v4 = Bound::bind(&config("0.0.0.0:0")).expect("binds");
    let port = v4.addresses()[0].port();
    let v6 = Bound::bind(&config(&format!("[::]:{port}")));
    assert!(v6.is_ok(), "IPv6 sockets are IPv6 only: {v6:?}");
}

#[test]
fn a_failed_bind_names_the_address_and_a_hint() {
    let udp = UdpSocket::bind("127.0.0.1:0").expect("binds");
    let taken = udp.local_addr().expect("bound");
    let error = Bound::bind(&config(&taken.to_string())).expect_err("taken");
    assert!(
        matches!(
            error,
            TransportError::InUse {
                transport: "UDP",
                ..
            }
        ),
        "{error:?}"
    );
    assert!(
        error
            .to_string()
            .contains(&format!("{taken} over UDP: address in use"))
    );

    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
    let taken = listener.local_addr().expect("bound");
    let error = Bound::bind(&config(&taken.to_string())).expect_err("taken");
    assert!(
        matches!(
            error,
            TransportError::InUse {
                transport: "TCP",
                ..
            }
        ),
        "{error:?}"
    );

    // Documentation addresses are nobody's (RFC 5737, RFC 3849).
    for nowhere in ["192.0.2.1:0", "[2001:db8::1]:0"] {
        let error = Bound::bind(&config(nowhere)).expect_err("not ours");
        assert!(
            matches!(error, TransportError::NoSuchAddress { .. }),
            "{error:?}"
        );
        assert!(error.to_string().contains("no interface has this address"));
    }
}

// === Without a reply ===

#[test]
fn a_client_over_its_share_is_closed_at_once() {
    let mut config = config("127.0.0.1:0");
    config.tcp.per_client = 3;
    let node = serve(&config);
    let mut held: Vec<_> = (0..3).map(|_| tcp(node.address())).collect();
    for _ in 0..5 {
        assert!(is_closed(&mut tcp(node.address())));
    }
    assert_eq!(node.running.streams().open(), 3);
    assert_eq!(
        (
            node.total("connections_total"),
            node.total("reason=\"client\"")
        ),
        (3, 5)
    );
    for stream in &mut held {
        stream.set_nonblocking(true).expect("takes it");
        let open = stream.read(&mut [0; 1]).expect_err("nothing to read");
        assert_eq!(
            open.kind(),
            std::io::ErrorKind::WouldBlock,
            "those before stay"
        );
    }
    assert!(node.stop() < Duration::from_secs(1));
}

#[test]
fn rfc7766_6_2_3_an_idle_connection_makes_room_when_all_are_taken() {
    let mut config = config("127.0.0.1:0");
    (config.tcp.connections, config.tcp.per_client) = (2, 10);
    let node = serve(&config);
    let (mut first, _second, _third) = (
        tcp(node.address()),
        tcp(node.address()),
        tcp(node.address()),
    );
    assert!(is_closed(&mut first));
    assert_eq!(node.total("evicted"), 1);
    assert!(node.stop() < Duration::from_secs(1));
}

#[test]
fn idle_connections_end_with_the_node() {
    let node = serve(&config("[::1]:0"));
    let mut held: Vec<_> = (0..20).map(|_| tcp(node.address())).collect();
    assert!(node.stop() < Duration::from_secs(1));
    for stream in &mut held {
        assert!(is_closed(stream));
    }
}

#[test]
fn a_proxy_without_a_header_is_cut() {
    let mut config = config("127.0.0.1:0");
    config.proxy_protocol = vec!["127.0.0.0/8".parse().expect("a prefix")];
    let node = serve(&config);
    let mut stream = tcp(node.address());
    write(&mut stream, &[message(1, 0)]);
    assert!(is_closed(&mut stream));
    let socket = udp("127.0.0.1:0", node.address());
    socket.send(&message(1, 0)).expect("sends");
    assert!(node.stop() < Duration::from_secs(1));
}

// === Against the real answering path ===

#[test]
fn queries_are_answered_over_both_transports_and_families() {
    for (listen, from) in [("127.0.0.1:0", "127.0.0.1:0"), ("[::1]:0", "[::1]:0")] {
        let node = serve(&config(listen));
        let socket = udp(from, node.address());
        let mut stream = tcp(node.address());
        for id in 0..300 {
            let query = message(id, 0);
            check_refused(&query, &ask(&socket, &query));
            write(&mut stream, std::slice::from_ref(&query));
            check_refused(&query, &read(&mut stream));
        }
        assert_eq!(node.count(Count::QueriesUdp), 300);
        assert_eq!(node.count(Count::QueriesTcp), 300);
        assert_eq!(node.count(Count::Refused), 600);
        assert!(node.stop() < Duration::from_secs(1));
    }
}

#[test]
fn a_wildcard_answers_from_the_address_asked() {
    for (listen, asked, from) in [
        ("0.0.0.0:0", "127.0.0.2", "127.0.0.1:0"),
        ("[::]:0", "::1", "[::1]:0"),
    ] {
        let node = serve(&config(listen));
        let asked: IpAddr = asked.parse().expect("an address");
        let socket = udp(from, (asked, node.address().port()).into());
        for opcode in [0, 2] {
            // Also from the rare lane.
            let query = message(7, opcode);
            assert_eq!(ask(&socket, &query)[..2], query[..2]);
        }
        assert!(node.stop() < Duration::from_secs(1));
    }
}

#[test]
fn rfc7766_6_2_1_1_a_pipeline_is_answered_whole_and_what_is_rare_holds_up_nobody() {
    let node = serve(&config("127.0.0.1:0"));
    let mut stream = tcp(node.address());
    let queries: Vec<_> = (0..500)
        .map(|id| message(id, if id % 7 == 0 { 2 } else { 0 }))
        .collect();
    write(&mut stream, &queries);
    stream
        .shutdown(std::net::Shutdown::Write)
        .expect("shuts down");
    let replies: Vec<_> = queries.iter().map(|_| read(&mut stream)).collect();
    assert!(is_closed(&mut stream));
    let id_of = |message: &[u8]| u16::from_be_bytes([message[0], message[1]]);
    let (rare, ordinary): (Vec<u16>, Vec<u16>) = replies
        .iter()
        .map(|reply| id_of(reply))
        .partition(|id| id % 7 == 0);
    let asked = |is_rare: bool| (0..500_u16).filter(move |id| (id % 7 == 0) == is_rare);
    assert!(ordinary.iter().copied().eq(asked(false)), "{ordinary:?}");
    assert!(rare.iter().copied().eq(asked(true)), "{rare:?}");
    // The first message is rare, and those behind it were not held up.
    assert_ne!(id_of(&replies[0]), 0);
    assert!(node.stop() < Duration::from_secs(1));
}

#[test]
fn odd_datagrams_do_no_harm() {
    let node = serve(&config("127.0.0.1:0"));
    // Its replies are never read.
    let noise = udp("127.0.0.1:0", node.address());
    let socket = udp("127.0.0.1:0", node.address());
    for round in 0..3000usize {
        let size = match round % 100 {
            99 => [4096, 4097, 9000, 65507][round / 100 % 4],
            _ => round % 600,
        };
        let octet = u8::try_from(round * 31 % 256).expect("small");
        // The QR bit is set in some, and those get no reply.
        noise.send(&vec![octet; size]).expect("sends");
        if round % 100 == 0 {
            // Still there; and the noise is taken in as it comes.
            let query = message(u16::try_from(round).expect("small"), 0);
            check_refused(&query, &ask(&socket, &query));
        }
    }
    // Too long for us: FORMERR.
    let mut long = message(0xabcd, 0);
    let mut refused = long.clone();
    (refused[2], refused[3]) = (0x81, 1);
    long.resize(65507, 0);
    assert_eq!(ask(&socket, &long), refused);
    long[2] |= 0x80;
    socket.send(&long).expect("sends");
    let query = message(1, 0);
    check_refused(&query, &ask(&socket, &query));
    assert!(node.stop() < Duration::from_secs(1));
}

/// A query with an OPT record of these options, which may be announced longer than they are.
fn with_opt(id: u16, announced: u16, options: &[u8]) -> Vec<u8> {
    let mut query = message(id, 0);
    query[11] = 1;
    query.extend([0, 0, 41, 4, 208, 0, 0, 0, 0]);
    query.extend(announced.to_be_bytes());
    query.extend(options);
    query
}

#[test]
fn rfc6891_6_1_1_a_datagram_too_long_is_formerr_with_opt() {
    let node = serve(&config("127.0.0.1:0"));
    let socket = udp("127.0.0.1:0", node.address());
    // One option of padding that reaches behind what we take (RFC 7830).
    let padding = [&[0, 12, 0x1f, 0x3c][..], &[0; 7996]].concat();
    let reply = ask(&socket, &with_opt(7, 8000, &padding));
    let decoded = Message::from_vec(&reply).expect("hickory decodes it");
    assert_eq!(decoded.metadata.response_code, ResponseCode::FormErr);
    assert!(decoded.edns.is_some());
    assert_eq!((decoded.metadata.id, decoded.queries.len()), (7, 1));
    assert_eq!(node.count(Count::FormErr), 1);
    assert!(node.stop() < Duration::from_secs(1));
}

#[test]
fn rfc7828_3_3_2_keepalive_is_announced_over_tcp_when_offered() {
    let node = serve(&config("127.0.0.1:0"));
    let socket = udp("127.0.0.1:0", node.address());
    let mut stream = tcp(node.address());
    let offer = with_opt(9, 4, &[0, 11, 0, 0]);
    let plain = with_opt(9, 0, &[]);
    // A time in tenths of a second: two octets.
    let announced = |reply: &[u8]| {
        let mut options = reply.windows(4);
        options.any(|option| option == [0, 11, 0, 2])
    };
    for (query, expected) in [(&offer, true), (&plain, false)] {
        write(&mut stream, std::slice::from_ref(query));
        let reply = read(&mut stream);
        check_refused(query, &reply);
        assert_eq!(announced(&reply), expected);
        let reply = ask(&socket, query);
        check_refused(query, &reply);
        assert!(!announced(&reply), "over UDP it means nothing");
    }
    assert!(node.stop() < Duration::from_secs(1));
}

#[test]
fn proxied_queries_are_answered_to_the_proxy() {
    let mut config = config("127.0.0.1:0");
    config.proxy_protocol = vec!["127.0.0.1/32".parse().expect("a prefix")];
    config.tcp.per_client = 2;
    let node = serve(&config);
    let header = |last: u8| {
        let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
        header.extend([192, 0, 2, last, 198, 51, 100, 1, 0x30, 0x39, 0, 53]);
        header
    };
    let query = message(5, 0);
    let socket = udp("127.0.0.1:0", node.address());
    check_refused(&query, &ask(&socket, &[header(1), query.clone()].concat()));
    // Without a header: dropped, and counted before the next one is answered.
    socket.send(&query).expect("sends");
    check_refused(&query, &ask(&socket, &[header(1), query.clone()].concat()));
    // Senders outside the prefixes need none.
    let stranger = udp("127.0.0.5:0", node.address());
    check_refused(&query, &ask(&stranger, &query));
    let rare = message(6, 2);
    assert_eq!(
        ask(&socket, &[header(1), rare.clone()].concat())[..2],
        rare[..2]
    );
    assert!(node.count(Count::DroppedProxy) >= 1);
    // The share is the client's behind the proxy, not the proxy's.
    let mut held = Vec::new();
    for (client, admitted) in [(1, true), (1, true), (1, false), (2, true)] {
        let mut stream = tcp(node.address());
        stream.write_all(&header(client)).expect("writes");
        // A refused one may be gone already.
        let framed = [&[0, u8::try_from(query.len()).expect("short")][..], &query].concat();
        let written = stream.write_all(&framed);
        if admitted {
            written.expect("writes");
            check_refused(&query, &read(&mut stream));
        } else {
            assert!(is_closed(&mut stream));
        }
        held.push(stream);
    }
    assert!(node.stop() < Duration::from_secs(1));
}

#[test]
fn rfc8906_3_1_4_other_opcodes_are_refused_without_amplification() {
    let node = serve(&config("127.0.0.1:0"));
    let socket = udp("127.0.0.1:0", node.address());
    let mut stream = tcp(node.address());
    for (opcode, code) in [
        (1, ResponseCode::NotImp),
        (2, ResponseCode::NotImp),
        (3, ResponseCode::NotImp),
        (4, ResponseCode::NotAuth),
        (6, ResponseCode::NotImp),
        (15, ResponseCode::NotImp),
    ] {
        let query = message(0x1234, opcode);
        write(&mut stream, std::slice::from_ref(&query));
        for reply in [ask(&socket, &query), read(&mut stream)] {
            assert!(reply.len() <= query.len());
            let decoded = Message::from_vec(&reply).expect("hickory decodes it");
            assert_eq!(decoded.metadata.response_code, code, "opcode {opcode}");
            assert_eq!(decoded.metadata.op_code, OpCode::from_u8(opcode));
        }
    }
    assert_eq!(node.count(Count::Rare), 12);
    assert!(node.stop() < Duration::from_secs(1));
}

#[test]
fn rfc7766_6_2_3_honest_clients_are_served_during_an_idle_flood() {
    let mut config = config("127.0.0.1:0");
    (config.tcp.connections, config.tcp.per_client) = (40, 16);
    let node = serve(&config);
    let flood: Vec<_> = (0..200)
        .map(|_| TcpStream::connect(node.address()))
        .collect();
    // The flood comes from 127.0.0.1; the honest ones from elsewhere.
    let mut served = 0;
    for host in 2..22 {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)
            .expect("a socket");
        socket
            .bind(&SocketAddr::from(([127, 0, host, 1], 0)).into())
            .expect("binds");
        socket.connect(&node.address().into()).expect("connects");
        let mut stream = TcpStream::from(socket);
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .expect("takes a timeout");
        let query = message(u16::from(host), 0);
        write(&mut stream, std::slice::from_ref(&query));
        check_refused(&query, &read(&mut stream));
        served += 1;
    }
    assert_eq!(served, 20);
    drop(flood);
    assert!(node.stop() < Duration::from_secs(1));
}

#[test]
fn what_is_queued_at_the_stop_is_answered() {
    let node = serve(&config("127.0.0.1:0"));
    let socket = udp("127.0.0.1:0", node.address());
    for id in 0..200 {
        socket.send(&message(id, 0)).expect("sends");
    }
    assert!(node.stop() < Duration::from_secs(1));
    for _ in 0..200 {
        socket.recv(&mut [0; 512]).expect("a reply");
    }
}
