//! Ten thousand queries, a third of them malformed, over UDP and TCP: they agree in every field but size and TC.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use hickory_proto::op::Message;
use hickory_proto::rr::rdata::opt::EdnsCode;

use crate::harness::client::read_framed;
use crate::harness::loopback;
use crate::harness::node::Node;
use crate::samples::{FIVE, FIVE_ZONE};

/// How many queries.
const QUERIES: usize = 10_000;

/// A small generator of pseudo-random numbers (xorshift64*), so that a failure can be had again.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

const NAMES: &[&str] = &[
    "www.svc.mesh",
    "WWW.sVc.MeSh",
    "a.wild.svc.mesh",
    "fenced.svc.mesh",
    "a.b.c.svc.mesh",
    "b.c.svc.mesh",
    "svc.mesh",
    "empty.svc.mesh",
    "alias.svc.mesh",
    "static.svc.mesh",
    "x.old.svc.mesh",
    "y.child.svc.mesh",
    "child.svc.mesh",
    "z.star.svc.mesh",
    "below.star.svc.mesh",
    "q.below.star.svc.mesh",
    "nothing.svc.mesh",
    "deep.nothing.svc.mesh",
    "text.svc.mesh",
    "mail.svc.mesh",
    "big.svc.mesh",
    "odd.svc.mesh",
    "service.svc.mesh",
    "_sip._tcp.svc.mesh",
    "_tcp.svc.mesh",
    "www.example.com",
    "mesh",
    ".",
    "ns1.svc.mesh",
];

const TYPES: &[u16] = &[
    1, 28, 5, 6, 2, 15, 16, 33, 39, 43, 64, 65, 255, 257, 65280, 99, 12,
];

const NETWORKS: &[[u8; 4]] = &[
    [46, 114, 0, 0],
    [3, 80, 0, 0],
    [126, 0, 0, 0],
    [200, 147, 0, 0],
    [105, 224, 0, 0],
    [10, 0, 0, 0],
];

/// Writes a well-formed query.
fn well_formed(random: &mut Random, id: u16) -> Vec<u8> {
    let mut packet = id.to_be_bytes().to_vec();
    let flags: u16 = [0x0000, 0x0100, 0x0110, 0x0120][random.below(4)];
    packet.extend_from_slice(&flags.to_be_bytes());
    let edns = random.below(4) > 0;
    packet.extend_from_slice(&[0, 1, 0, 0, 0, 0, 0, u8::from(edns)]);
    for label in random
        .pick(NAMES)
        .split('.')
        .filter(|label| !label.is_empty())
    {
        packet.push(u8::try_from(label.len()).unwrap());
        packet.extend_from_slice(label.as_bytes());
    }
    packet.push(0);
    packet.extend_from_slice(&random.pick(TYPES).to_be_bytes());
    packet.extend_from_slice(&[0, 1]);
    if edns {
        let mut options = Vec::new();
        if random.below(3) > 0 {
            let network = random.pick(NETWORKS);
            options
                .extend_from_slice(&[0, 8, 0, 7, 0, 1, 24, 0, network[0], network[1], network[2]]);
        }
        if random.below(4) == 0 {
            options.extend_from_slice(&[0, 3, 0, 0]);
        }
        let do_bit = if random.below(4) == 0 { 0x80 } else { 0 };
        packet.extend_from_slice(&[
            0,
            0,
            41,
            4,
            208,
            0,
            0,
            do_bit,
            0,
            0,
            u8::try_from(options.len()).unwrap(),
        ]);
        packet.extend_from_slice(&options);
    }
    packet
}

/// Spoils a query until it is none.
fn malformed(random: &mut Random, id: u16) -> Vec<u8> {
    loop {
        let packet = spoiled(random, id);
        if meridian::answer::Query::parse(&packet).is_err() {
            return packet;
        }
    }
}

/// Spoils a query, or tries to: cut, flipped, extended, or its counts changed.
fn spoiled(random: &mut Random, id: u16) -> Vec<u8> {
    let mut packet = well_formed(random, id);
    match random.below(5) {
        0 => packet.truncate(12 + random.below(packet.len() - 12)),
        1 => {
            let at = 4 + random.below(packet.len() - 4);
            packet[at] ^= 1 << random.below(8);
        }
        2 => packet.extend((0..=random.below(20)).map(|n| u8::try_from(n).unwrap())),
        3 => {
            let at = 4 + random.below(8);
            packet[at] = packet[at].wrapping_add(1);
        }
        _ => {
            let at = 12 + random.below(packet.len() - 12);
            packet[at] = u8::try_from(random.below(256)).unwrap();
        }
    }
    packet
}

/// Asks everything over UDP; replies by ID. A query that gets no reply is missing.
fn over_udp(server: SocketAddr, queries: &[Vec<u8>]) -> BTreeMap<u16, Vec<u8>> {
    let any: IpAddr = if server.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let socket = UdpSocket::bind((any, 0)).unwrap();
    socket.connect(server).unwrap();
    let mut replies = BTreeMap::new();
    let mut buffer = [0; 65_535];
    for window in queries.chunks(100) {
        for query in window {
            socket.send(query).unwrap();
        }
        // What did not come while nothing else came for so long counts as missing.
        socket
            .set_read_timeout(Some(Duration::from_millis(150)))
            .unwrap();
        let mut expected = window.len();
        while expected > 0 {
            let Ok(length) = socket.recv(&mut buffer) else {
                break;
            };
            replies.insert(
                u16::from_be_bytes([buffer[0], buffer[1]]),
                buffer[..length].to_vec(),
            );
            expected -= 1;
        }
    }
    replies
}

/// Asks everything over one TCP connection at a time, pipelined.
fn over_tcp(server: SocketAddr, queries: &[Vec<u8>]) -> BTreeMap<u16, Vec<u8>> {
    let mut replies = BTreeMap::new();
    for window in queries.chunks(100) {
        let mut stream = TcpStream::connect(server).unwrap();
        let framed: Vec<u8> = window
            .iter()
            .flat_map(|query| {
                [
                    &u16::try_from(query.len()).unwrap().to_be_bytes()[..],
                    query,
                ]
                .concat()
            })
            .collect();
        stream.write_all(&framed).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        // Half closed, and still everything is answered; then the server closes.
        while let Ok(reply) = read_framed(&mut stream) {
            replies.insert(u16::from_be_bytes([reply[0], reply[1]]), reply);
        }
    }
    replies
}

/// Reads a reply and puts it into a form to compare: TC cleared, records of an RRset sorted, for an RRset has no order and
/// answers are rotated.
fn comparable(octets: &[u8]) -> Option<Message> {
    let mut message = Message::from_vec(octets).ok()?;
    message.metadata.truncation = false;
    message.answers.sort_by_key(ToString::to_string);
    if let Some(edns) = message.edns.as_mut() {
        // The keepalive is for TCP alone (RFC 7828 section 3.2.1).
        edns.options_mut().remove(EdnsCode::Keepalive);
    }
    Some(message)
}

/// Tells whether a spoiled query may hold an edns-tcp-keepalive option with data.
fn has_timed_keepalive(query: &[u8]) -> bool {
    query
        .windows(4)
        .any(|option| option[..3] == [0, 11, 0] && option[3] > 0)
}

#[test]
fn udp_and_tcp_agree_and_hickory_reads_every_reply() {
    check(loopback());
}

#[test]
fn udp_and_tcp_agree_over_ipv6_too() {
    check(Ipv6Addr::LOCALHOST.into());
}

/// Runs the battery against a node on this address.
fn check(address: IpAddr) {
    let node = Node::start_on(address, "identity: test, ", FIVE, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
    });
    let seed = 0x5eed_0000_0000_0001 ^ u64::from(std::process::id());
    println!("seed {seed:#x}");
    let mut random = Random(seed);
    let queries: Vec<Vec<u8>> = (0..QUERIES)
        .map(|at| {
            let id = u16::try_from(at).unwrap();
            if at % 3 == 0 {
                malformed(&mut random, id)
            } else {
                well_formed(&mut random, id)
            }
        })
        .collect();
    let (udp, tcp) = (
        over_udp(node.dns(), &queries),
        over_tcp(node.dns(), &queries),
    );
    assert!(tcp.len() > QUERIES * 2 / 3, "only {} replies", tcp.len());
    let mut truncated = 0;
    for (at, query) in queries.iter().enumerate() {
        let id = u16::from_be_bytes([query[0], query[1]]);
        let context = || {
            format!(
                "query {at}: {query:02x?}\nudp {:02x?}\ntcp {:02x?}",
                udp.get(&id),
                tcp.get(&id)
            )
        };
        if has_timed_keepalive(query) {
            // A keepalive with a time in it is malformed over TCP and ignored over UDP (RFC 7828 section 3.2.1).
            continue;
        }
        match (udp.get(&id), tcp.get(&id)) {
            (None, None) => assert!(at % 3 == 0, "no reply: {}", context()),
            (Some(datagram), Some(message)) => {
                let is_truncated = datagram[2] & 0x02 != 0;
                let (over_udp, over_tcp) = (comparable(datagram), comparable(message));
                assert!(datagram.len() <= 1232, "{}", context());
                let (Some(mut over_udp), Some(mut over_tcp)) = (over_udp, over_tcp) else {
                    panic!("hickory cannot read it: {}", context())
                };
                if is_truncated {
                    truncated += 1;
                    // Sections are left out whole; header, question and EDNS are the same.
                    for message in [&mut over_udp, &mut over_tcp] {
                        message.answers.clear();
                        message.authorities.clear();
                        message.additionals.clear();
                    }
                }
                assert_eq!(over_udp, over_tcp, "{}", context());
            }
            _ => panic!("only one transport replied: {}", context()),
        }
    }
    assert!(
        truncated > 0,
        "nothing was truncated: the battery lacks a large answer"
    );
}
