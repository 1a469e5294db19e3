//! What a UDP query costs beside the least that a socket server can do.
//!
//! Three servers in turn on the same core, driven from another thread over loopback: `floor`, a bare recvmmsg/sendmmsg echo;
//! `batch`, the same echo through the batches of `transport/udp/mmsg.rs`; `meridian`, real workers over a real snapshot
//! (1,000 steered names, 4 clusters, random ECS /24, 80 % A and 20 % AAAA). Prints the server's CPU time per query
//! (`/proc/self/task/*/schedstat`), medians of interleaved rounds, and the ratio to the floor.
//!
//! `cargo bench --bench udp [-- SERVER…]`; without `--bench` (as `cargo test --benches` runs it) one short round shows that it works.
#![expect(
    unsafe_code,
    reason = "the bare loop, the generator and pinning are raw system calls on purpose"
)]
#![expect(
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a bench prints, and may die"
)]
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::mem::zeroed;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use meridian::geo::{GeoDb, Source, SourceKind};
use meridian::inventory::{Change, Inventory, Service};
use meridian::lifecycle::Supervisor;
use meridian::model::{
    Cluster, ClusterIndex, Coordinates, Groups, Location, LowerName, PolicySpec, PoolsBuilder,
    ServiceKey, Ttl, Weight,
};
use meridian::snapshot::{Inputs, Settings, Snapshot, SnapshotCell, build};
use meridian::transport::{Bound, Config};
use meridian::zone::{Nameserver, SoaTimers, Zone, ZoneSet, ZoneSpec};

#[path = "../src/transport/udp/mmsg.rs"]
#[allow(dead_code, reason = "the echo needs no way back and no options")]
mod mmsg;

/// Steered names.
const NAMES: usize = 1000;
/// Sockets of the generator, and queries outstanding on each.
const SOCKETS: usize = 8;
const WINDOW: usize = 24;
/// Octets of a buffer of the bare loop and of the generator.
const OCTETS: usize = 1536;

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let (rounds, span) = if full {
        (5, Duration::from_secs(2))
    } else {
        (1, Duration::from_millis(50))
    };
    let queries: Vec<Vec<u8>> = (0..100_000).map(query).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let stop = Arc::<AtomicBool>::default();
    let mut supervisor = Supervisor::default();
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let mut servers = Vec::new();
    for name in ["floor", "batch", "meridian"] {
        if !chosen.is_empty() && !chosen.iter().any(|chosen| chosen == name) {
            continue;
        }
        let address = match name {
            "floor" => spawn(name, &stop, floor),
            "batch" => spawn(name, &stop, batch),
            _ => runtime.block_on(async { meridian(&mut supervisor) }),
        };
        servers.push((name, address));
    }
    pin(0, 1);
    let mut costs = vec![Vec::new(); servers.len()];
    for _ in 0..rounds {
        for (index, (name, address)) in servers.iter().enumerate() {
            let threads = threads_of(if *name == "meridian" { "udp-" } else { name });
            threads.iter().for_each(|&thread| pin(thread, 0));
            load(*address, &queries, span / 4);
            let before = cpu(&threads);
            let (replies, wrong) = load(*address, &queries, span);
            let used = cpu(&threads) - before;
            assert!(
                *name != "meridian" || wrong == 0,
                "{wrong} replies without an answer"
            );
            costs[index].push((
                used as f64 / replies as f64,
                replies as f64 / span.as_secs_f64(),
            ));
        }
    }
    println!(
        "{:>10} {:>14} {:>9} {:>12}",
        "server", "CPU ns/query", "x floor", "queries/s"
    );
    let mut floor = 0.0;
    for ((name, _), costs) in servers.iter().zip(&mut costs) {
        costs.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (cost, rate) = costs[costs.len() / 2];
        if *name == "floor" {
            floor = cost;
        }
        let (low, high) = (costs[0].0, costs[costs.len() - 1].0);
        println!(
            "{name:>10} {cost:>14.0} {:>9.3} {rate:>12.0}  [{low:.0}-{high:.0}]",
            cost / floor
        );
    }
    stop.store(true, Ordering::Relaxed);
    runtime.block_on(supervisor.shut_down(Duration::from_secs(2)));
}

/// Starts an echo on a thread of its own and gives its address.
fn spawn(name: &str, stop: &Arc<AtomicBool>, run: fn(UdpSocket, &AtomicBool)) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let timeout = Some(Duration::from_millis(250));
    socket.set_read_timeout(timeout).unwrap();
    let address = socket.local_addr().unwrap();
    widen(&socket);
    let stop = Arc::clone(stop);
    let builder = std::thread::Builder::new().name(name.into());
    builder.spawn(move || run(socket, &stop)).unwrap();
    address
}

/// Starts real workers over a real snapshot and gives their address.
fn meridian(supervisor: &mut Supervisor) -> SocketAddr {
    let cell = Arc::<SnapshotCell>::default();
    drop(cell.publish(world()));
    let config = Config {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        workers: 1,
        ..Config::default()
    };
    let running = Bound::bind(&config)
        .unwrap()
        .spawn(&cell.reader(), supervisor)
        .unwrap();
    running.addresses()[0]
}

// === The servers to compare with ===

/// Message headers wired to one buffer each, as a C program would have them.
struct Raw {
    headers: Vec<libc::mmsghdr>,
    vectors: Vec<libc::iovec>,
    buffers: Vec<[u8; OCTETS]>,
    _names: Vec<libc::sockaddr_in>,
}

/// Makes headers for one batch, with addresses or, for connected sockets, without.
fn raw(named: bool) -> Box<Raw> {
    // SAFETY: all zeros is a valid value of each of these.
    let (header, vector, mut names) = unsafe {
        (
            zeroed::<libc::mmsghdr>(),
            zeroed::<libc::iovec>(),
            vec![zeroed::<libc::sockaddr_in>(); mmsg::BATCH],
        )
    };
    let mut raw = Box::new(Raw {
        headers: vec![header; mmsg::BATCH],
        vectors: vec![vector; mmsg::BATCH],
        buffers: vec![[0; OCTETS]; mmsg::BATCH],
        _names: Vec::new(),
    });
    let Raw {
        headers,
        vectors,
        buffers,
        ..
    } = &mut *raw;
    for (index, (vector, buffer)) in vectors.iter_mut().zip(buffers).enumerate() {
        vector.iov_base = buffer.as_mut_ptr().cast();
        vector.iov_len = OCTETS;
        headers[index].msg_hdr.msg_iov = vector;
        headers[index].msg_hdr.msg_iovlen = 1;
        if named {
            headers[index].msg_hdr.msg_name = (&raw mut names[index]).cast();
            headers[index].msg_hdr.msg_namelen = 16;
        }
    }
    raw._names = names;
    raw
}

/// The floor: receive a batch, set QR and AA, send it back from the same buffers.
fn floor(socket: UdpSocket, stop: &AtomicBool) {
    let (fd, mut raw) = (socket.as_raw_fd(), raw(true));
    while !stop.load(Ordering::Relaxed) {
        // SAFETY: the headers point to buffers and addresses that `raw` owns.
        let count = unsafe {
            libc::recvmmsg(
                fd,
                raw.headers.as_mut_ptr(),
                mmsg::BATCH as u32,
                libc::MSG_WAITFORONE,
                null_mut(),
            )
        };
        let count = usize::try_from(count).unwrap_or(0);
        for index in 0..count {
            raw.buffers[index][2] |= 0x84;
            raw.vectors[index].iov_len = raw.headers[index].msg_len as usize;
        }
        let mut done = 0;
        while done < count {
            // SAFETY: as above, and `done < count <= BATCH`.
            let sent = unsafe {
                libc::sendmmsg(
                    fd,
                    raw.headers.as_mut_ptr().add(done),
                    (count - done) as u32,
                    0,
                )
            };
            done += usize::try_from(sent).unwrap_or(0).max(1);
        }
        for index in 0..count {
            raw.vectors[index].iov_len = OCTETS;
            raw.headers[index].msg_hdr.msg_namelen = 16;
        }
    }
}

/// The same echo through our batches: what the safe door, separate reply buffers and copied addresses cost.
fn batch(socket: UdpSocket, stop: &AtomicBool) {
    let mut received = mmsg::Received::new(mmsg::PacketInfo::Off);
    let mut replies = mmsg::Replies::new();
    while !stop.load(Ordering::Relaxed) {
        if received.receive(&socket, mmsg::Wait::ForOne).is_err() {
            continue;
        }
        for datagram in received.iter() {
            let query = datagram.octets();
            if datagram.sender().is_none() || !datagram.is_whole() {
                continue;
            }
            let buffer = &mut replies.buffer()[..query.len()];
            buffer.copy_from_slice(query);
            buffer[2] |= 0x84;
            replies.push(query.len(), &datagram);
        }
        replies.send(&socket);
    }
}

// === The generator ===

/// Asks for a while, [`WINDOW`] queries outstanding on each socket, and gives the number of replies, and of those without
/// an answer record.
fn load(address: SocketAddr, queries: &[Vec<u8>], span: Duration) -> (u64, u64) {
    let sockets: Vec<_> = (0..SOCKETS)
        .map(|_| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(address).unwrap();
            widen(&socket);
            socket
        })
        .collect();
    let (mut out, mut back) = (raw(false), raw(false));
    let mut next = queries.iter().cycle();
    let (mut replies, mut wrong) = (0, 0);
    for socket in &sockets {
        send(socket, &mut out, &mut next, WINDOW);
    }
    let (start, mut progress) = (Instant::now(), Instant::now());
    loop {
        let now = Instant::now();
        if now - start >= span {
            return (replies, wrong);
        }
        assert!(
            now - progress < Duration::from_secs(1),
            "no replies from {address}"
        );
        for socket in &sockets {
            // SAFETY: the headers point to buffers that `back` owns; the socket is connected, so no address is asked for.
            let count = unsafe {
                libc::recvmmsg(
                    socket.as_raw_fd(),
                    back.headers.as_mut_ptr(),
                    mmsg::BATCH as u32,
                    libc::MSG_DONTWAIT,
                    null_mut(),
                )
            };
            let count = usize::try_from(count).unwrap_or(0);
            if count > 0 {
                replies += count as u64;
                wrong += back.buffers[..count]
                    .iter()
                    .filter(|reply| reply[3] & 15 != 0 || reply[7] == 0)
                    .count() as u64;
                progress = now;
                send(socket, &mut out, &mut next, count);
            }
        }
    }
}

/// Sends the next `count` queries.
fn send<'q>(
    socket: &UdpSocket,
    out: &mut Raw,
    next: &mut impl Iterator<Item = &'q Vec<u8>>,
    count: usize,
) {
    for (vector, query) in out.vectors.iter_mut().zip(next).take(count) {
        vector.iov_base = query.as_ptr().cast_mut().cast();
        vector.iov_len = query.len();
    }
    // SAFETY: the first `count` vectors point to queries, which are only read and outlive the call.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            out.headers.as_mut_ptr(),
            count as u32,
            0,
        )
    };
    assert_eq!(usize::try_from(sent).ok(), Some(count));
}

/// Asks for large buffers.
fn widen(socket: &UdpSocket) {
    let socket = socket2::SockRef::from(socket);
    socket.set_recv_buffer_size(4 << 20).unwrap();
    socket.set_send_buffer_size(4 << 20).unwrap();
}

// === The threads ===

/// Lists our threads whose name begins so.
fn threads_of(name: &str) -> Vec<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let tasks = tasks.map(|task| task.unwrap());
    let named = tasks.filter(|task| {
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.starts_with(name))
    });
    named
        .map(|task| task.file_name().to_str().unwrap().parse().unwrap())
        .collect()
}

/// Sums the nanoseconds that threads ran.
fn cpu(threads: &[i32]) -> u64 {
    let run = |thread: &i32| {
        let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).unwrap();
        text.split_whitespace()
            .next()
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    threads.iter().map(run).sum()
}

/// Pins a thread (0: this one) to a core, where there is such a core.
fn pin(thread: i32, core: usize) {
    // SAFETY: a zeroed set is empty, and the kernel reads it at its true length.
    unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(thread, size_of_val(&set), &raw const set);
    }
}

// === The world and its queries ===

/// Gives the next number of a sequence that is the same in every run.
fn random(seed: usize) -> u64 {
    let mut value = (seed as u64)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Makes one query: a name, A or AAAA, ECS with a /24.
fn query(seed: usize) -> Vec<u8> {
    let draw = random(seed);
    let name = (draw % NAMES as u64) as usize;
    let rtype = if draw >> 20 & 7 < 6 { 1 } else { 28 };
    let network = (draw >> 32) as u32 % 0xdf00_0000 + 0x0100_0000;
    let mut packet = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1];
    packet[..2].copy_from_slice(&(seed as u16).to_be_bytes());
    packet.extend_from_slice(host(name).as_wire());
    packet.extend([0, rtype, 0, 1]);
    packet.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 11, 0, 8, 0, 7, 0, 1, 24, 0]);
    packet.extend(&network.to_be_bytes()[..3]);
    packet
}

/// Gives a steered name.
fn host(number: usize) -> LowerName {
    format!("s{number:06}.svc.example").parse().unwrap()
}

/// Builds the snapshot: one zone, four clusters on four continents, [`NAMES`] services in all of them.
fn world() -> Snapshot {
    let places = [
        ("aws-use1", 38.9, -77.4),
        ("gcp-euw1", 50.4, 3.8),
        ("aws-apse1", 1.3, 103.8),
        ("aws-sae1", -23.5, -46.6),
    ];
    let cluster = |(index, (id, latitude, longitude)): (usize, (&str, f64, f64))| {
        let cluster = Cluster {
            id: id.parse().unwrap(),
            location: Location {
                coordinates: Coordinates::new(latitude, longitude).ok(),
                ..Location::default()
            },
            region: None,
            provider: None,
            zones: Vec::new(),
            cost_km: 0.0,
        };
        (ClusterIndex(index as u16), Arc::new(cluster))
    };
    let policy = Arc::<PolicySpec>::default();
    let service = |number: usize| {
        let mut pools = PoolsBuilder::default();
        for index in 0..places.len() as u16 {
            let v4 = Ipv4Addr::from(0x0a00_0000 + (u32::from(index) << 20) + number as u32);
            let v6 = Ipv6Addr::from(
                (0x2001_0db8 << 96) + (u128::from(index) << 64) + number as u128 + 1,
            );
            let addresses = [IpAddr::V4(v4), IpAddr::V6(v6)];
            pools
                .addresses(ClusterIndex(index), Weight(1), None, &addresses)
                .unwrap();
        }
        Service {
            key: ServiceKey::new("bench", &format!("s{number:06}")).unwrap(),
            names: [host(number)].iter().collect(),
            ttl: None,
            policy: Arc::clone(&policy),
            monitor: None,
            pools: pools.build().unwrap(),
            extras: None,
        }
    };
    let mut inventory = Inventory::default();
    let mut dirty = inventory.apply(Change::Clusters(
        places.into_iter().enumerate().map(cluster).collect(),
    ));
    let more = inventory.apply(Change::Replace((0..NAMES).map(service).collect()));
    dirty.services.extend(more.services);
    let source = Source {
        name: "embedded".into(),
        kind: SourceKind::EmbeddedCountry,
        bytes: [].into(),
    };
    let (geo, rejections) = GeoDb::compile(&[source], &[]);
    assert!(rejections.is_empty(), "{rejections:?}");
    let inputs = Inputs {
        inventory: &inventory,
        zones: &Arc::new(ZoneSet::new(vec![Arc::new(zone())])),
        geo: &Arc::new(geo),
        groups: &Arc::<Groups>::default(),
        settings: &Arc::<Settings>::default(),
        states: &[],
    };
    let built = build(&inputs, &dirty, &Snapshot::default());
    assert!(built.rejections.is_empty(), "{:?}", built.rejections);
    built.snapshot
}

/// Compiles the zone of the names.
fn zone() -> Zone {
    let hour = Duration::from_secs(3600);
    let ttl = Ttl::new(30).unwrap();
    let spec = ZoneSpec {
        apex: "svc.example".parse().unwrap(),
        nameservers: vec![Nameserver {
            name: "ns1.svc.example".parse().unwrap(),
            addresses: vec![[127, 0, 0, 1].into()],
        }],
        contact: "hostmaster.example".parse().ok(),
        soa: SoaTimers {
            ttl,
            refresh: hour,
            retry: hour,
            expire: hour,
        },
        ns_ttl: ttl,
        ttl,
        negative_ttl: ttl,
        file: None,
        serial: 1,
    };
    Zone::compile(&spec).unwrap()
}
