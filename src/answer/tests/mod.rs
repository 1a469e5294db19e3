//! Whole answers, from packet to packet: tables of queries and what each must get, named for the RFC that asks for it.
//!
//! Replies are decoded by hickory-proto, which shares no code with the encoder.

mod aliases;
mod chains;
mod challenges;
mod edns;
mod hostile;
mod hosts;
mod levels;
mod ports;
mod records;
mod scopes;
mod sizes;
mod slow;
mod statics;
mod steered;
mod words;
mod world;
mod zones;

use std::net::IpAddr;

use hickory_proto::op::{Edns, Message};
use hickory_proto::rr::rdata::opt::EdnsOption;

use super::{Draws, Outcome, Sender, Transport, answer};
use crate::model::{LowerName, RecordType};
use crate::snapshot::Snapshot;
use crate::telemetry::{Count, Counters};

/// A query under construction.
#[derive(Clone, Debug)]
struct Ask {
    id: u16,
    /// The header's flags.
    flags: [u8; 2],
    /// The question's name in wire form, of any case.
    name: Vec<u8>,
    qtype: u16,
    qclass: u16,
    /// Payload size, extended flags (RCODE, version, DO and Z), options.
    edns: Option<(u16, [u8; 4], Vec<u8>)>,
    sender: IpAddr,
}

impl Ask {
    /// Asks for a name and a type in presentation form, as `www.example A`. The name's case is kept.
    fn of(text: &str) -> Self {
        let (name, qtype) = text.split_once(' ').unwrap();
        let lower: LowerName = name.parse().unwrap();
        // Escapes aside, the wire form has the text's letters in the text's places.
        let mut wire = lower.as_wire().to_vec();
        if wire.len() == name.trim_end_matches('.').len() + 2 {
            for (octet, written) in wire.iter_mut().skip(1).zip(name.bytes()) {
                if written.is_ascii_alphabetic() {
                    *octet = written;
                }
            }
        }
        Self {
            id: 0x1234,
            flags: [0, 0],
            name: wire,
            qtype: qtype.parse::<RecordType>().unwrap().0,
            qclass: 1,
            edns: None,
            sender: "203.0.113.9".parse().unwrap(),
        }
    }

    fn class(mut self, class: u16) -> Self {
        self.qclass = class;
        self
    }

    fn flags(mut self, flags: [u8; 2]) -> Self {
        self.flags = flags;
        self
    }

    fn from(mut self, sender: &str) -> Self {
        self.sender = sender.parse().unwrap();
        self
    }

    /// Adds EDNS with a payload size.
    fn edns(mut self, size: u16) -> Self {
        self.edns = Some((size, [0; 4], Vec::new()));
        self
    }

    /// Sets the extended flags: RCODE, version, DO and Z.
    fn extended(mut self, flags: [u8; 4]) -> Self {
        let (size, _, options) = self.edns.unwrap_or((1232, [0; 4], Vec::new()));
        self.edns = Some((size, flags, options));
        self
    }

    /// Adds an option, and EDNS if there is none.
    fn option(mut self, code: u16, data: &[u8]) -> Self {
        let edns = self.edns.get_or_insert((1232, [0; 4], Vec::new()));
        edns.2.extend(code.to_be_bytes());
        edns.2
            .extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        edns.2.extend(data);
        self
    }

    /// Adds ECS for a network such as `192.0.2.0/24`.
    fn ecs(self, network: &str) -> Self {
        let (address, source) = network.split_once('/').unwrap();
        let source: u8 = source.parse().unwrap();
        let (family, octets) = match address.parse::<IpAddr>().unwrap() {
            IpAddr::V4(address) => (1, address.octets().to_vec()),
            IpAddr::V6(address) => (2, address.octets().to_vec()),
        };
        let mut data = vec![0, family, source, 0];
        data.extend(&octets[..usize::from(source).div_ceil(8)]);
        self.option(8, &data)
    }

    /// Writes the packet.
    fn packet(&self) -> Vec<u8> {
        let mut packet = self.id.to_be_bytes().to_vec();
        packet.extend(self.flags);
        let additional = u8::from(self.edns.is_some());
        packet.extend([0, 1, 0, 0, 0, 0, 0, additional]);
        packet.extend(&self.name);
        packet.extend(self.qtype.to_be_bytes());
        packet.extend(self.qclass.to_be_bytes());
        if let Some((size, flags, options)) = &self.edns {
            packet.extend([0, 0, 41]);
            packet.extend(size.to_be_bytes());
            packet.extend(flags);
            packet.extend(u16::try_from(options.len()).unwrap().to_be_bytes());
            packet.extend(options);
        }
        packet
    }
}

/// A snapshot and one worker's belongings.
struct World {
    snapshot: Snapshot,
    draws: Draws,
    counters: Counters,
}

impl World {
    fn new(snapshot: Snapshot) -> Self {
        Self {
            snapshot,
            draws: Draws::default(),
            counters: Counters::default(),
        }
    }

    /// Sends a packet; `None`: no reply.
    fn send(&mut self, packet: &[u8], sender: IpAddr, transport: Transport) -> Option<Vec<u8>> {
        let mut out = vec![0xee; 65535];
        let sender = Sender {
            address: sender,
            transport,
        };
        let worker = (&mut self.draws, &self.counters);
        match answer(&self.snapshot, packet, sender, &mut out, worker) {
            Outcome::Reply(length) => Some(out[..length].to_vec()),
            Outcome::Drop | Outcome::Rare => None,
        }
    }

    /// Asks over UDP or TCP and decodes the reply.
    fn ask_over(&mut self, ask: &Ask, transport: Transport) -> Message {
        let reply = self.send(&ask.packet(), ask.sender, transport);
        decode(&reply.expect("a query is replied to"))
    }

    /// Asks over UDP and decodes the reply.
    fn ask(&mut self, ask: &Ask) -> Message {
        self.ask_over(ask, Transport::Udp)
    }

    /// Asks and compares all of the reply, in lines as [`lines`] gives them.
    fn check(&mut self, ask: Ask, expected: &[&str]) {
        assert_eq!(lines(&self.ask(&ask)), expected, "{ask:?}");
    }

    /// Asks and names the counts that moved, queries aside.
    fn counted(&mut self, ask: &Ask) -> Vec<Count> {
        let before: Vec<u64> = self.read_counts();
        self.ask(ask);
        let after = self.read_counts();
        let moved = Count::ALL.iter().zip(before.iter().zip(&after));
        moved
            .filter(|(_, (before, after))| before != after)
            .map(|(count, _)| *count)
            .filter(|count| !matches!(count, Count::QueriesUdp | Count::QueriesTcp))
            .collect()
    }

    fn read_counts(&self) -> Vec<u64> {
        Count::ALL
            .iter()
            .map(|&count| self.counters.get(count))
            .collect()
    }
}

/// Decodes a reply independently.
fn decode(reply: &[u8]) -> Message {
    Message::from_vec(reply).unwrap_or_else(|error| panic!("{error}: {reply:02x?}"))
}

/// Shows a reply: the code and flags, each record behind the name of its section, then EDNS and its options.
fn lines(reply: &Message) -> Vec<String> {
    let meta = &reply.metadata;
    let mut first = format!("{:?}", meta.response_code).to_uppercase();
    for (set, flag) in [
        (meta.authoritative, " aa"),
        (meta.truncation, " tc"),
        (meta.recursion_desired, " rd"),
        (meta.recursion_available, " ra"),
        (meta.authentic_data, " ad"),
        (meta.checking_disabled, " cd"),
    ] {
        if set {
            first.push_str(flag);
        }
    }
    let mut lines = vec![first];
    for (section, records) in [
        ("an", &reply.answers),
        ("ns", &reply.authorities),
        ("ar", &reply.additionals),
    ] {
        lines.extend(records.iter().map(|record| format!("{section} {record}")));
    }
    if let Some(edns) = &reply.edns {
        lines.extend(edns_lines(edns));
    }
    lines
}

fn edns_lines(edns: &Edns) -> Vec<String> {
    let dnssec = if edns.flags().dnssec_ok { " do" } else { "" };
    assert_eq!(edns.flags().z, 0);
    let mut lines = vec![format!(
        "edns {} {}{dnssec}",
        edns.version(),
        edns.max_payload()
    )];
    for (code, option) in edns.options().as_ref() {
        lines.push(match option {
            EdnsOption::Subnet(ecs) => {
                format!("ecs {} {}", ecs.source_prefix(), ecs.scope_prefix())
            }
            EdnsOption::NSID(id) => format!("nsid {}", String::from_utf8_lossy(id.as_ref())),
            EdnsOption::Unknown(code, data) => format!("option {code} {data:?}"),
            _ => format!("option {code:?}"),
        });
    }
    lines
}
