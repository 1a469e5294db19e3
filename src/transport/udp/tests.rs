//! Batches and the loop over real loopback sockets, with an echo in the place of `answer`.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;

use super::mmsg::{BATCH, QUERY_OCTETS, Received, Replies, Wait, option};
use super::worker::serve;
use super::*;
use crate::telemetry::{Count, Counters};

/// A loop that echoes, on a thread of its own.
struct Echo {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    counters: Arc<Counters>,
    thread: JoinHandle<()>,
}

/// Binds a socket with a short receive timeout, as workers have.
fn socket(address: &str, info: PacketInfo) -> UdpSocket {
    let socket = UdpSocket::bind(address).expect("loopback binds");
    let timeout = Some(Duration::from_millis(20));
    socket.set_read_timeout(timeout).expect("takes a timeout");
    set_options(&socket, info).expect("takes options");
    socket
}

/// Starts an echo: each reply is the length as received, whether it was whole, and up to 1000 octets of the query. Queries
/// that begin with `!` get none.
fn echo(address: &str, info: PacketInfo) -> Echo {
    let socket = socket(address, info);
    let address = socket.local_addr().expect("bound");
    let stop = Arc::<AtomicBool>::default();
    let counters = Arc::<Counters>::default();
    let (flag, own) = (Arc::clone(&stop), Arc::clone(&counters));
    let thread = std::thread::spawn(move || {
        serve((&socket, info), &flag, &own, |received, replies| {
            for datagram in received.iter() {
                own.bump(Count::QueriesUdp);
                let octets = datagram.octets();
                if octets.starts_with(b"!") {
                    continue;
                }
                let reply = reply_to(octets, datagram.is_whole());
                replies.buffer()[..reply.len()].copy_from_slice(&reply);
                replies.push(reply.len(), &datagram);
            }
        });
    });
    Echo {
        address,
        stop,
        counters,
        thread,
    }
}

/// What the echo replies.
fn reply_to(octets: &[u8], whole: bool) -> Vec<u8> {
    let length = u16::try_from(octets.len()).expect("fits").to_be_bytes();
    let copied = &octets[..octets.len().min(1000)];
    [&length[..], &[u8::from(whole)], copied].concat()
}

impl Echo {
    fn stop(self) -> Arc<Counters> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic");
        self.counters
    }
}

/// Makes a client whose receives give up after a while.
fn client(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind(address).expect("loopback binds");
    let timeout = Some(Duration::from_secs(5));
    socket.set_read_timeout(timeout).expect("takes a timeout");
    socket
}

#[test]
fn datagrams_of_every_size_come_through() {
    for (listen, from) in [("127.0.0.1:0", "127.0.0.1:0"), ("[::1]:0", "[::1]:0")] {
        let echo = echo(listen, PacketInfo::Off);
        let client = client(from);
        let sizes = (0..200).chain([
            512,
            1232,
            1500,
            QUERY_OCTETS - 1,
            QUERY_OCTETS,
            QUERY_OCTETS + 1,
            9000,
            65507,
        ]);
        for (round, size) in sizes.enumerate() {
            let query = vec![u8::try_from(round % 31).expect("small"); size];
            client.send_to(&query, echo.address).expect("sends");
            let mut reply = [0; 2000];
            let (octets, sender) = client.recv_from(&mut reply).expect("a reply");
            let taken = &query[..size.min(QUERY_OCTETS)];
            assert_eq!(sender, echo.address);
            assert_eq!(
                reply[..octets],
                reply_to(taken, size <= QUERY_OCTETS),
                "{size} octets"
            );
        }
        let counters = echo.stop();
        assert_eq!(counters.get(Count::QueriesUdp), 208);
        assert_eq!(counters.get(Count::DroppedSend), 0);
    }
}

#[test]
fn thousands_in_bursts_all_get_their_own_reply() {
    let echo = echo("127.0.0.1:0", PacketInfo::Off);
    let clients: Vec<_> = (0..4).map(|_| client("127.0.0.1:0")).collect();
    for burst in 0u32..100 {
        for (client, number) in clients.iter().cycle().zip(0u32..80) {
            let query = [burst.to_be_bytes(), number.to_be_bytes()].concat();
            client.send_to(&query, echo.address).expect("sends");
        }
        for (index, client) in clients.iter().enumerate() {
            let mut numbers = HashSet::new();
            for _ in 0..20 {
                let mut reply = [0; 100];
                let (octets, _) = client.recv_from(&mut reply).expect("a reply");
                assert_eq!(
                    (octets, &reply[..7]),
                    (11, &[&[0, 8, 1][..], &burst.to_be_bytes()].concat()[..])
                );
                let number = u32::from_be_bytes(reply[7..11].try_into().expect("four octets"));
                assert_eq!(
                    number % 4,
                    u32::try_from(index).expect("small"),
                    "another's reply"
                );
                assert!(numbers.insert(number), "a reply twice");
            }
        }
    }
    assert_eq!(echo.stop().get(Count::QueriesUdp), 8000);
}

#[test]
fn replies_leave_from_the_address_asked() {
    for (listen, asked) in [
        ("0.0.0.0:0", "127.0.0.1"),
        ("0.0.0.0:0", "127.0.0.2"),
        ("0.0.0.0:0", "127.7.8.9"),
        ("[::]:0", "::1"),
    ] {
        let echo = echo(listen, PacketInfo::On);
        let asked = SocketAddr::new(asked.parse().expect("an address"), echo.address.port());
        let client = client(if asked.is_ipv4() {
            "127.0.0.1:0"
        } else {
            "[::1]:0"
        });
        // Connected: a reply from elsewhere would never be seen.
        client.connect(asked).expect("connects");
        for _ in 0..3 {
            client.send(b"query").expect("sends");
            let mut reply = [0; 100];
            let octets = client.recv(&mut reply).expect("a reply from there");
            assert_eq!(reply[..octets], reply_to(b"query", true));
        }
        drop(echo.stop());
    }
}

#[test]
fn what_is_queued_is_answered_before_the_end() {
    let socket = socket("127.0.0.1:0", PacketInfo::Off);
    let address = socket.local_addr().expect("bound");
    let client = client("127.0.0.1:0");
    for number in 0..150u8 {
        client.send_to(&[number], address).expect("sends");
    }
    let counters = Counters::default();
    // Stopped before it began.
    serve(
        (&socket, PacketInfo::Off),
        &AtomicBool::new(true),
        &counters,
        |received, replies| {
            for datagram in received.iter() {
                counters.bump(Count::QueriesUdp);
                replies.buffer()[0] = datagram.octets()[0];
                replies.push(1, &datagram);
            }
        },
    );
    for number in 0..150u8 {
        let mut reply = [0; 10];
        assert_eq!(client.recv(&mut reply).expect("a reply"), 1);
        assert_eq!(reply[0], number);
    }
    assert_eq!(counters.get(Count::QueriesUdp), 150);
}

#[test]
fn a_refused_reply_costs_its_own_only() {
    let socket = socket("127.0.0.1:0", PacketInfo::Off);
    let address = socket.local_addr().expect("bound");
    let clients: Vec<_> = (0..3).map(|_| client("127.0.0.1:0")).collect();
    for client in &clients {
        client.send_to(b"query", address).expect("sends");
    }
    let mut received = Received::new(PacketInfo::Off);
    let mut replies = Replies::new();
    let count = received.receive(&socket, Wait::ForOne).expect("receives");
    assert_eq!(count, 3);
    let unsendable = UdpSocket::bind("[::1]:0").expect("loopback binds");
    for datagram in received.iter() {
        replies.buffer()[..5].copy_from_slice(b"reply");
        replies.push(5, &datagram);
    }
    // An IPv6 socket takes no IPv4 address: each is refused, and the next is tried.
    assert_eq!(replies.send(&unsendable), 3);
    for datagram in received.iter() {
        replies.buffer()[..5].copy_from_slice(b"reply");
        replies.push(5, &datagram);
    }
    assert_eq!(replies.send(&socket), 0);
    for client in &clients {
        assert_eq!(client.recv(&mut [0; 10]).expect("a reply"), 5);
    }
    assert_eq!(replies.send(&socket), 0, "nothing is sent twice");
}

#[test]
fn a_reply_can_be_sent_later() {
    for (listen, asked, from) in [
        ("0.0.0.0:0", "127.0.0.3", "127.0.0.1:0"),
        ("[::]:0", "::1", "[::1]:0"),
    ] {
        let socket = socket(listen, PacketInfo::On);
        let port = socket.local_addr().expect("bound").port();
        let client = client(from);
        client
            .connect((asked.parse::<std::net::IpAddr>().expect("an address"), port))
            .expect("connects");
        client.send(b"query").expect("sends");
        let mut received = Received::new(PacketInfo::On);
        assert_eq!(
            received.receive(&socket, Wait::ForOne).expect("receives"),
            1
        );
        let datagram = received.iter().next().expect("one");
        assert_eq!(datagram.sender(), Some(client.local_addr().expect("bound")));
        let path = datagram.path();
        drop(received);
        path.send(&socket, b"later").expect("sends");
        let mut reply = [0; 10];
        assert_eq!(client.recv(&mut reply).expect("a reply"), 5);
        assert_eq!(&reply[..5], b"later");
    }
}

#[test]
fn batches_hold_what_they_can() {
    let socket = socket("127.0.0.1:0", PacketInfo::Off);
    let address = socket.local_addr().expect("bound");
    let client = client("127.0.0.1:0");
    for number in 0..100u8 {
        client.send_to(&[number; 3], address).expect("sends");
    }
    let mut received = Received::new(PacketInfo::Off);
    let mut replies = Replies::new();
    assert_eq!(
        received.receive(&socket, Wait::ForOne).expect("receives"),
        BATCH
    );
    let datagram = received.iter().next().expect("one");
    for _ in 0..BATCH {
        assert!(!replies.buffer().is_empty());
        replies.push(1, &datagram);
    }
    assert!(replies.buffer().is_empty());
    replies.push(1, &datagram);
    assert_eq!(replies.send(&socket), 0);
    assert_eq!(
        received.receive(&socket, Wait::ForOne).expect("receives"),
        100 - BATCH
    );
    assert_eq!(received.iter().count(), 100 - BATCH);
    assert_eq!(received.iter().last().expect("many").octets(), [99; 3]);
    let error = received
        .receive(&socket, Wait::No)
        .expect_err("nothing left");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert_eq!(received.iter().count(), 0, "those before are forgotten");
    let error = received
        .receive(&socket, Wait::ForOne)
        .expect_err("times out");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

#[tokio::test]
async fn a_thread_ends_with_the_token_and_a_dead_thread_is_noticed() {
    // The thread's end without the token.
    let stop = Arc::<AtomicBool>::default();
    let (alive, ended) = oneshot::channel();
    drop(alive);
    stand_for(
        StopOnDrop(Arc::clone(&stop)),
        ended,
        CancellationToken::new(),
    )
    .await;
    assert!(stop.load(Ordering::Relaxed));
    // The token first: the flag falls, and the thread is waited for.
    let stop = Arc::<AtomicBool>::default();
    let (alive, ended) = oneshot::channel::<()>();
    let token = CancellationToken::new();
    token.cancel();
    let flag = Arc::clone(&stop);
    let thread = std::thread::spawn(move || {
        while !flag.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        drop(alive);
    });
    stand_for(StopOnDrop(stop), ended, token).await;
    thread.join().expect("no panic");
}

/// R1: IPv6 is not fragmented. R2: forged path MTU messages do not make us fragment.
#[test]
fn rfc9715_3_1_replies_are_not_fragmented() {
    for (address, info) in [
        ("127.0.0.1:0", PacketInfo::Off),
        ("0.0.0.0:0", PacketInfo::On),
        ("[::1]:0", PacketInfo::Off),
        ("[::]:0", PacketInfo::On),
    ] {
        let socket = socket(address, info);
        let packet_info = i32::from(info == PacketInfo::On);
        if address.starts_with('[') {
            let get = |name| option(&socket, libc::IPPROTO_IPV6, name);
            assert_eq!(get(libc::IPV6_MTU_DISCOVER), libc::IPV6_PMTUDISC_OMIT);
            assert_eq!(get(libc::IPV6_DONTFRAG), 1);
            assert_eq!(get(libc::IPV6_RECVPKTINFO), packet_info);
        } else {
            let get = |name| option(&socket, libc::IPPROTO_IP, name);
            assert_eq!(get(libc::IP_MTU_DISCOVER), libc::IP_PMTUDISC_OMIT);
            assert_eq!(get(libc::IP_PKTINFO), packet_info);
        }
    }
}
