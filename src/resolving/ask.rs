//! One question to one server.

use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hickory_proto::op::{Edns, Message, Query, ResponseCode};
use hickory_proto::rr::rdata::opt::{ClientSubnet as WireSubnet, EdnsOption};
use hickory_proto::rr::{Name, RecordType as WireType};
use hickory_proto::serialize::binary::BinDecodable;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use crate::model::{ClientSubnet, LowerName, RecordType};

/// A server that has not answered by then does not count.
const PATIENCE: Duration = Duration::from_secs(2);

/// Octets read of the system's list of resolvers.
const MAX_LIST: u64 = 1 << 16;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nothing came within two seconds.
    #[error("{0} did not answer within 2 s")]
    Timeout(SocketAddr),
    /// The network's word.
    #[error("{server} cannot be asked")]
    Io {
        /// Whom.
        server: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Something came that is no DNS message, or not the reply to this question.
    #[error("{server} sent something else than a reply: {reason}")]
    Garbled {
        /// Who.
        server: SocketAddr,
        /// What.
        reason: String,
    },
    /// The server says that it cannot or will not answer.
    #[error("{server} answers {rcode} for {name} {record_type}")]
    Unwilling {
        /// Who.
        server: SocketAddr,
        /// The RCODE's mnemonic.
        rcode: String,
        /// What was asked.
        name: LowerName,
        /// What was asked of it.
        record_type: RecordType,
    },
    /// The question cannot be written: a bug of ours.
    #[error("the question cannot be written: {0}")]
    Unwritten(String),
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// The name.
    pub name: LowerName,
    /// The type.
    pub record_type: RecordType,
    /// An ECS option to send along.
    pub subnet: Option<ClientSubnet>,
    /// Whether the server should ask others for us.
    pub recursion: bool,
}

/// What was answered, as far as our callers look.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The whole message.
    pub(super) message: Message,
}

impl Asked {
    /// Gives the RCODE's mnemonic.
    #[must_use]
    pub fn rcode(&self) -> String {
        mnemonic(self.message.metadata.response_code)
    }

    /// Gives the reply back if it says something of the name: that it is there, or that it is not.
    ///
    /// # Errors
    /// When the RCODE is neither NOERROR nor NXDOMAIN.
    pub(super) fn willing(self, server: SocketAddr, question: &Question) -> Result<Self, AskError> {
        match self.message.metadata.response_code {
            ResponseCode::NoError | ResponseCode::NXDomain => Ok(self),
            _ => Err(AskError::Unwilling {
                server,
                rcode: self.rcode(),
                name: question.name.clone(),
                record_type: question.record_type,
            }),
        }
    }

    /// Tells whether the server is an authority for the name.
    #[must_use]
    pub fn is_authoritative(&self) -> bool {
        self.message.metadata.authoritative
    }

    /// Gives the addresses of the answer section, in order.
    #[must_use]
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.message
            .answers
            .iter()
            .filter_map(|record| record.data.ip_addr())
            .collect()
    }

    /// Gives the lowest TTL of the answer section.
    #[must_use]
    pub fn ttl(&self) -> Option<u32> {
        self.message.answers.iter().map(|record| record.ttl).min()
    }

    /// Gives the scope prefix length of the ECS option, if there is one.
    #[must_use]
    pub fn scope(&self) -> Option<u8> {
        let edns = self.message.edns.as_ref()?;
        match edns.option(hickory_proto::rr::rdata::opt::EdnsCode::Subnet)? {
            EdnsOption::Subnet(subnet) => Some(subnet.scope_prefix()),
            _ => None,
        }
    }

    /// Gives the serial of a SOA in the answer section.
    #[must_use]
    pub fn serial(&self) -> Option<u32> {
        self.message
            .answers
            .iter()
            .find_map(|record| match &record.data {
                hickory_proto::rr::RData::SOA(soa) => Some(soa.serial),
                _ => None,
            })
    }
}

/// Gives the mnemonic of an RCODE.
pub(super) fn mnemonic(code: ResponseCode) -> String {
    match code {
        ResponseCode::NoError => "NOERROR".to_owned(),
        ResponseCode::NXDomain => "NXDOMAIN".to_owned(),
        ResponseCode::FormErr => "FORMERR".to_owned(),
        ResponseCode::ServFail => "SERVFAIL".to_owned(),
        ResponseCode::NotImp => "NOTIMP".to_owned(),
        ResponseCode::Refused => "REFUSED".to_owned(),
        other => format!("RCODE{}", u16::from(other)),
    }
}

/// Gives the first resolver of the system's list.
#[must_use]
pub fn system_resolver() -> Option<SocketAddr> {
    system_resolvers()?.into_iter().next()
}

/// Gives the system's resolvers, in order; `None`: the list cannot be read.
pub(super) fn system_resolvers() -> Option<Vec<SocketAddr>> {
    let mut text = Vec::new();
    let file = std::fs::File::open("/etc/resolv.conf").ok()?;
    file.take(MAX_LIST).read_to_end(&mut text).ok()?;
    resolvers_of(&text)
}

/// Reads a list of resolvers. Those on one link only are left out: a message to them would need the link's name.
pub(super) fn resolvers_of(text: &[u8]) -> Option<Vec<SocketAddr>> {
    let config = resolv_conf::Config::parse(text).ok()?;
    let addresses = config.nameservers.iter().map(IpAddr::from);
    let is_on_link = |address: &IpAddr| matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
    let addresses = addresses.filter(|address| !is_on_link(address));
    Some(addresses.map(|address| (address, 53).into()).collect())
}

/// Asks over UDP, and over TCP when the reply is truncated.
///
/// # Errors
/// When no reply to this question comes in time.
pub async fn ask(server: SocketAddr, question: &Question) -> Result<Asked, AskError> {
    let unwritten = |error: String| AskError::Unwritten(error);
    // From the octets: the root has no label, and others may hold any octet.
    let name = Name::from_bytes(question.name.as_ref().as_wire())
        .map_err(|error| unwritten(error.to_string()))?;
    let mut message = Message::query();
    message.metadata.recursion_desired = question.recursion;
    message.add_query(Query::query(name, WireType::from(question.record_type.0)));
    let mut edns = Edns::new();
    edns.set_max_payload(1232);
    if let Some(subnet) = question.subnet {
        edns.options_mut()
            .insert(EdnsOption::Subnet(WireSubnet::new(
                subnet.address,
                subnet.source.0,
                0,
            )));
    }
    message.set_edns(edns);
    let packet = message
        .to_vec()
        .map_err(|error| unwritten(error.to_string()))?;
    let reply = within(server, over_udp(server, &packet)).await?;
    let mut reply = check(server, &message, &reply)?;
    if reply.metadata.truncation {
        let octets = within(server, over_tcp(server, &packet)).await?;
        reply = check(server, &message, &octets)?;
    }
    Ok(Asked { message: reply })
}

/// Decodes a reply and makes sure it belongs to the question.
fn check(server: SocketAddr, question: &Message, octets: &[u8]) -> Result<Message, AskError> {
    let garbled = |reason: String| AskError::Garbled { server, reason };
    let reply = Message::from_vec(octets).map_err(|error| garbled(error.to_string()))?;
    if reply.metadata.id != question.metadata.id || reply.queries != question.queries {
        return Err(garbled("it answers another question".to_owned()));
    }
    Ok(reply)
}

/// Bounds an exchange in time.
async fn within(
    server: SocketAddr,
    exchange: impl Future<Output = io::Result<Vec<u8>>>,
) -> Result<Vec<u8>, AskError> {
    match tokio::time::timeout(PATIENCE, exchange).await {
        Err(_) => Err(AskError::Timeout(server)),
        Ok(Err(source)) => Err(AskError::Io { server, source }),
        Ok(Ok(octets)) => Ok(octets),
    }
}

/// One datagram each way.
async fn over_udp(server: SocketAddr, packet: &[u8]) -> io::Result<Vec<u8>> {
    let any: IpAddr = if server.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(packet).await?;
    let mut buffer = vec![0; 4096];
    let length = socket.recv(&mut buffer).await?;
    buffer.truncate(length);
    Ok(buffer)
}

/// One framed message each way (RFC 1035 section 4.2.2).
async fn over_tcp(server: SocketAddr, packet: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(packet.len()).map_err(io::Error::other)?;
    stream
        .write_all(&[&length.to_be_bytes(), packet].concat())
        .await?;
    let length = stream.read_u16().await?;
    let mut buffer = vec![0; usize::from(length)];
    stream.read_exact(&mut buffer).await?;
    Ok(buffer)
}
