//! A DNS client that shares nothing with the server: messages by hickory-proto, sockets by std.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::str::FromStr;
use std::time::Duration;

use hickory_proto::op::{Edns, Message, Query, ResponseCode};
use hickory_proto::rr::rdata::opt::{ClientSubnet, EdnsCode, EdnsOption};
use hickory_proto::rr::{Name, RecordType};

/// How long one answer may take.
pub const PATIENCE: Duration = Duration::from_secs(3);

/// One question.
#[derive(Clone, Debug)]
pub struct Ask {
    pub name: String,
    pub rtype: RecordType,
    pub subnet: Option<String>,
    pub recursion: bool,
}

impl Ask {
    /// A question for A records, without ECS.
    pub fn a(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            rtype: RecordType::A,
            subnet: None,
            recursion: false,
        }
    }

    /// The same for another type.
    pub fn of_type(mut self, rtype: RecordType) -> Self {
        self.rtype = rtype;
        self
    }

    /// With an ECS option.
    pub fn from(mut self, subnet: &str) -> Self {
        self.subnet = Some(subnet.to_owned());
        self
    }

    /// With RD set.
    pub fn recursive(mut self) -> Self {
        self.recursion = true;
        self
    }

    /// Makes the message.
    pub fn message(&self) -> Message {
        let mut message = Message::query();
        message.metadata.recursion_desired = self.recursion;
        message.add_query(Query::query(
            Name::from_str(&format!("{}.", self.name)).unwrap(),
            self.rtype,
        ));
        let mut edns = Edns::new();
        edns.set_max_payload(1232);
        if let Some(subnet) = &self.subnet {
            edns.options_mut()
                .insert(EdnsOption::Subnet(ClientSubnet::from_str(subnet).unwrap()));
        }
        message.set_edns(edns);
        message
    }

    /// Asks over UDP; `None` when nothing came in time.
    pub fn try_udp(&self, server: SocketAddr, patience: Duration) -> Option<Reply> {
        let message = self.message();
        let octets = exchange_udp(server, &message.to_vec().unwrap(), patience)?;
        let reply = Message::from_vec(&octets).unwrap();
        assert_eq!(reply.metadata.id, message.metadata.id);
        assert_eq!(reply.queries, message.queries);
        Some(Reply(reply))
    }

    /// Asks over UDP.
    pub fn udp(&self, server: SocketAddr) -> Reply {
        self.try_udp(server, PATIENCE)
            .unwrap_or_else(|| panic!("{server} did not answer {self:?}"))
    }

    /// Asks over TCP.
    pub fn tcp(&self, server: SocketAddr) -> Reply {
        let octets =
            exchange_tcp(server, &self.message().to_vec().unwrap()).expect("an answer over TCP");
        Reply(Message::from_vec(&octets).unwrap())
    }
}

/// One datagram each way, from a socket of its own.
pub fn exchange_udp(server: SocketAddr, packet: &[u8], patience: Duration) -> Option<Vec<u8>> {
    let any: SocketAddr = if server.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    }
    .parse()
    .unwrap();
    let socket = UdpSocket::bind(any).unwrap();
    socket.connect(server).unwrap();
    socket.set_read_timeout(Some(patience)).unwrap();
    socket.send(packet).ok()?;
    let mut buffer = vec![0; 65_535];
    let length = socket.recv(&mut buffer).ok()?;
    buffer.truncate(length);
    Some(buffer)
}

/// One framed message each way.
pub fn exchange_tcp(server: SocketAddr, packet: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&[&u16::try_from(packet.len()).unwrap().to_be_bytes(), packet].concat())?;
    read_framed(&mut stream)
}

/// Reads one framed message.
pub fn read_framed(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut buffer = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut buffer)?;
    Ok(buffer)
}

/// A reply.
#[derive(Clone, Debug)]
pub struct Reply(pub Message);

impl Reply {
    /// The addresses of the answer section, sorted.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let mut addresses: Vec<IpAddr> = self
            .0
            .answers
            .iter()
            .filter_map(|record| record.data.ip_addr())
            .collect();
        addresses.sort();
        addresses
    }

    /// The one address of the answer section.
    pub fn address(&self) -> IpAddr {
        let addresses = self.addresses();
        assert_eq!(addresses.len(), 1, "{self:?}");
        addresses[0]
    }

    /// The RCODE.
    pub fn rcode(&self) -> ResponseCode {
        self.0.metadata.response_code
    }

    /// The lowest TTL of the answer section.
    pub fn ttl(&self) -> u32 {
        self.0
            .answers
            .iter()
            .map(|record| record.ttl)
            .min()
            .expect("an answer")
    }

    /// The scope of the ECS option.
    pub fn scope(&self) -> Option<u8> {
        match self.0.edns.as_ref()?.option(EdnsCode::Subnet)? {
            EdnsOption::Subnet(subnet) => Some(subnet.scope_prefix()),
            _ => None,
        }
    }
}
