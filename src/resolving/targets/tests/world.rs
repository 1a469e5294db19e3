//! A resolver on loopback, over UDP and TCP, that says what the test wants it to.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use hickory_proto::op::{Message, MessageType, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, CNAME, NS, SOA};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

/// What is said to one question.
#[derive(Clone, Debug)]
pub(super) enum Said {
    /// These records are the answer section.
    Records(Vec<Record>),
    /// The same, over TCP; over UDP it is truncated.
    OverTcp(Vec<Record>),
    /// This RCODE, and a SOA record that lets a denial hold for a minute.
    Denied(ResponseCode, Vec<Record>),
    /// This RCODE alone.
    Rcode(ResponseCode),
    /// Other servers are named.
    Referral,
    /// Nothing.
    Silence,
}

type Asked = (String, RecordType);

#[derive(Debug, Default)]
struct Script {
    said: HashMap<Asked, Said>,
    asked: HashMap<Asked, usize>,
}

/// The resolver.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) address: SocketAddr,
    script: Arc<Mutex<Script>>,
}

impl World {
    /// Starts it; it ends with the runtime. What it was told nothing of has no data.
    pub(super) async fn start() -> Self {
        let (udp, tcp) = loop {
            let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            // The port may be taken over TCP by another test.
            if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()).await {
                break (udp, tcp);
            }
        };
        let world = Self {
            address: udp.local_addr().unwrap(),
            script: Arc::default(),
        };
        spawn(world.clone().serve_udp(udp));
        spawn(world.clone().serve_tcp(tcp));
        world
    }

    /// Sets what is said of one name and type from now on.
    pub(super) fn say(&self, name: &str, record_type: RecordType, said: Said) {
        let mut script = self.script.lock().unwrap();
        script.said.insert((name.to_owned(), record_type), said);
    }

    /// Says these records of their first owner; see [`records`].
    pub(super) fn has(&self, lines: &str) {
        let records = records(lines);
        let wanted = records.iter().map(Record::record_type);
        let wanted = wanted.filter(|wanted| *wanted != RecordType::CNAME);
        let name = plain(&records[0].name);
        for record_type in wanted.chain([RecordType::A]).collect::<Vec<_>>() {
            self.say(&name, record_type, Said::Records(records.clone()));
        }
    }

    /// Counts how often a name was asked for, by any type.
    pub(super) fn asked(&self, name: &str) -> usize {
        let script = self.script.lock().unwrap();
        let of_name = script.asked.iter().filter(|((asked, _), _)| asked == name);
        of_name.map(|(_, count)| count).sum()
    }

    async fn serve_udp(self, socket: UdpSocket) {
        let mut buffer = [0; 1500];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
            if let Some(reply) = self.reply(&buffer[..length], true) {
                socket.send_to(&reply, from).await.unwrap();
            }
        }
    }

    async fn serve_tcp(self, listener: TcpListener) {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let world = self.clone();
            spawn(async move {
                while let Ok(length) = stream.read_u16().await {
                    let mut query = vec![0; usize::from(length)];
                    stream.read_exact(&mut query).await.unwrap();
                    if let Some(reply) = world.reply(&query, false) {
                        let length = u16::try_from(reply.len()).unwrap();
                        stream.write_u16(length).await.unwrap();
                        stream.write_all(&reply).await.unwrap();
                    }
                }
            });
        }
    }

    /// Makes the reply to a query; `None`: silence.
    fn reply(&self, query: &[u8], is_udp: bool) -> Option<Vec<u8>> {
        let query = Message::from_vec(query).unwrap();
        assert!(query.metadata.recursion_desired);
        let question = query.queries[0].clone();
        let asked = (plain(question.name()), question.query_type());
        let said = {
            let mut script = self.script.lock().unwrap();
            *script.asked.entry(asked.clone()).or_default() += 1;
            script.said.get(&asked).cloned()
        };
        let mut reply = Message::query();
        reply.metadata = query.metadata;
        reply.metadata.message_type = MessageType::Response;
        reply.add_query(question);
        match said.unwrap_or(Said::Denied(ResponseCode::NoError, vec![])) {
            Said::Silence => return None,
            Said::OverTcp(_) if is_udp => reply.metadata.truncation = true,
            Said::OverTcp(records) | Said::Records(records) => reply.answers = records,
            Said::Rcode(rcode) => reply.metadata.response_code = rcode,
            Said::Referral => reply.authorities = vec![authority(RData::NS(NS(zone("ns."))))],
            Said::Denied(rcode, records) => {
                reply.metadata.response_code = rcode;
                reply.answers = records;
                let soa = SOA::new(zone("ns."), zone("hostmaster."), 1, 60, 60, 60, 60);
                reply.authorities = vec![authority(RData::SOA(soa))];
            }
        }
        Some(reply.to_vec().unwrap())
    }
}

fn zone(prefix: &str) -> Name {
    Name::from_ascii(format!("{prefix}example.")).unwrap()
}

fn authority(data: RData) -> Record {
    Record::from_rdata(zone(""), 60, data)
}

/// Gives a name in lower case, without its last dot.
fn plain(name: &Name) -> String {
    let text = name.to_ascii().to_ascii_lowercase();
    text.trim_end_matches('.').to_owned()
}

/// Reads lines such as `lb.example 60 A 192.0.2.1`; several go with `;` between.
pub(super) fn records(lines: &str) -> Vec<Record> {
    let record = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let data = match words[2] {
            "A" => RData::A(A(words[3].parse().unwrap())),
            "AAAA" => RData::AAAA(AAAA(words[3].parse().unwrap())),
            "CNAME" => RData::CNAME(CNAME(Name::from_ascii(format!("{}.", words[3])).unwrap())),
            other => panic!("{other}"),
        };
        let owner = Name::from_ascii(format!("{}.", words[0])).unwrap();
        Record::from_rdata(owner, words[1].parse().unwrap(), data)
    };
    lines.split(';').map(record).collect()
}

/// Runs a task that ends with the test's runtime.
pub(super) fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's task ends with its runtime"
    )]
    tokio::spawn(task);
}
