//! Honest clients: they ask at an even pace, one after the other, and count who was answered.

use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::client::{Ask, read_framed};
use super::loopback_network;

/// Time between two questions.
const PACE: Duration = Duration::from_millis(5);
/// How long an honest client waits.
const PATIENCE: Duration = Duration::from_secs(2);

/// What an honest client saw.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub asked: usize,
    pub answered: usize,
}

impl Tally {
    /// Panics when fewer than so many of a hundred were answered, or too few were asked to tell.
    pub fn assert_percent(self, percent: usize) {
        assert!(self.asked >= 100, "{self:?}");
        assert!(self.answered * 100 >= self.asked * percent, "{self:?}");
    }
}

/// A client that asks until told to end.
pub struct Honest {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Tally>,
}

impl Honest {
    /// Asks over UDP.
    pub fn udp(server: SocketAddr, ask: &Ask) -> Self {
        let ask = ask.clone();
        Self::start(move || ask.try_udp(server, PATIENCE).is_some())
    }

    /// Asks over TCP, each question on a connection of its own, from a network that nobody else uses.
    pub fn tcp(server: SocketAddr, ask: &Ask) -> Self {
        let (ask, address) = (ask.clone(), loopback_network());
        Self::start(move || ask_tcp(address, server, &ask).is_ok())
    }

    fn start(ask: impl Fn() -> bool + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut tally = Tally::default();
            while !stopped.load(Ordering::Relaxed) {
                tally.asked += 1;
                tally.answered += usize::from(ask());
                std::thread::sleep(PACE);
            }
            tally
        });
        Self { stop, thread }
    }

    /// Stops and tells.
    pub fn end(self) -> Tally {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Connects from one of our addresses.
pub fn connect_from(address: IpAddr, server: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(address, 0).into())?;
    socket.connect_timeout(&server.into(), PATIENCE)?;
    Ok(TcpStream::from(socket))
}

/// Frames a message.
pub fn framed(packet: &[u8]) -> Vec<u8> {
    let length = u16::try_from(packet.len()).unwrap();
    [&length.to_be_bytes()[..], packet].concat()
}

fn ask_tcp(address: IpAddr, server: SocketAddr, ask: &Ask) -> std::io::Result<Vec<u8>> {
    let mut stream = connect_from(address, server)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&framed(&ask.message().to_vec().unwrap()))?;
    read_framed(&mut stream)
}
