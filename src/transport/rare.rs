//! The rare lane: opcodes but QUERY, through hickory-server's `RequestHandler`.
//!
//! Decides who is told what (RFC 1996, RFC 2136, RFC 8906) and changes nothing. What hickory cannot parse is answered with a
//! bare header of our own. A reply is never longer than its query. Fed by a bounded queue from the UDP workers, which are
//! never to wait for it, and called directly by TCP connections. The only file that knows hickory-server.

use std::net::{SocketAddr, UdpSocket};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use hickory_proto::op::{Edns, Header, HeaderCounts, Metadata, OpCode, ResponseCode};
use hickory_proto::rr::{DNSClass, Record, RecordType};
use hickory_proto::serialize::binary::{BinDecoder, BinEncoder};
use hickory_server::net::NetError;
use hickory_server::net::runtime::{Time, TokioTime};
use hickory_server::net::xfer::Protocol;
use hickory_server::server::{Request, RequestHandler, ResponseHandler, ResponseInfo};
use hickory_server::zone_handler::{MessageResponse, MessageResponseBuilder, Queries};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::udp::Path;
use crate::answer::{Transport, bad_key};
use crate::model::NameRef;
use crate::snapshot::{Snapshot, SnapshotReader};
use crate::telemetry::{Count, Counters};

/// Datagrams that may wait for the lane. When it is full the workers drop: nobody of good will sends so many.
pub(super) const QUEUE: usize = 256;
/// Octets of a message's header.
const HEADER_OCTETS: usize = 12;
/// Fewest octets of a question: the root's name, type, class.
const QUESTION_OCTETS: usize = 5;
/// Fewest octets of a record: the root's name, type, class, TTL, length.
const RECORD_OCTETS: usize = 11;
/// Octets of a message that is read at all. Longer ones are refused unread: they would be refused anyway, and reading 64 KiB
/// takes milliseconds.
const MAX_OCTETS: usize = 4096;
/// Records of a message that is read at all; a NOTIFY has few (RFC 1996 section 3.7).
const MAX_RECORDS: usize = 32;
/// Opcodes that have a meaning to us: NOTIFY and UPDATE.
const KNOWN_OPCODES: [u8; 2] = [4, 5];
/// RCODEs of header-only replies (RFC 1035 section 4.1.1).
const FORMERR: u8 = 1;
/// The opcode is not implemented.
const NOTIMP: u8 = 4;
/// We do not do this for anyone.
const REFUSED: u8 = 5;
/// We know no such key (RFC 8945 section 5.2.1), or the zone is not ours (RFC 2136 section 3.1.2).
const NOTAUTH: u8 = 9;
/// The UDP size that our OPT records announce (RFC 9715 section 3.1).
const PAYLOAD: u16 = 1232;

/// A datagram on its way to the lane, and the way back.
#[derive(Debug)]
pub(super) struct RareDatagram {
    /// The message.
    pub(super) query: Box<[u8]>,
    /// Who asks.
    pub(super) sender: SocketAddr,
    /// Where the reply goes, and where from.
    pub(super) path: Path,
    /// The socket that it came by.
    pub(super) socket: Arc<UdpSocket>,
}

/// Answers what comes through the queue, one after the other, until the token falls.
pub(super) async fn run(
    lane: RareLane,
    mut queue: mpsc::Receiver<RareDatagram>,
    counters: Arc<Counters>,
    token: CancellationToken,
) {
    loop {
        // Cancel-safe: `recv` loses nothing when dropped.
        let datagram = tokio::select! {
            () = token.cancelled() => return,
            datagram = queue.recv() => datagram,
        };
        match datagram {
            Some(datagram) => answer(&lane, &datagram, &counters),
            // The workers are gone; the token is about to fall.
            None => return token.cancelled().await,
        }
    }
}

/// Answers one datagram.
fn answer(lane: &RareLane, datagram: &RareDatagram, counters: &Counters) {
    let Some(reply) = lane.reply(&datagram.query, datagram.sender, Transport::Udp) else {
        return;
    };
    counters.bump(Count::Rare);
    if datagram.path.send(&datagram.socket, &reply).is_err() {
        counters.bump(Count::DroppedSend);
    }
}

/// Makes the 12 octets that refuse a query: its ID, opcode and RD, QR, the RCODE, and nothing else (RFC 8906 section
/// 3.1.4). `None` when no reply is due: too short, or itself a reply (loop safety).
pub(super) fn header_only(query: &[u8], rcode: u8) -> Option<[u8; HEADER_OCTETS]> {
    /// The bit that says it is a reply, in the third octet.
    const QR: u8 = 0x80;
    /// Opcode and RD, in the third octet: what is copied.
    const COPIED: u8 = 0x79;
    let [first, second, flags, ..] = *query.first_chunk::<HEADER_OCTETS>()?;
    let mut reply = [0; HEADER_OCTETS];
    [reply[0], reply[1], reply[2], reply[3]] = [first, second, QR | (flags & COPIED), rcode & 0x0f];
    (flags & QR == 0).then_some(reply)
}

/// Decides what a message of another opcode is told.
#[derive(Clone, Debug)]
pub(super) struct RareLane {
    snapshots: SnapshotReader,
}

impl RareLane {
    /// Takes where the zones are.
    pub(super) fn new(snapshots: SnapshotReader) -> Self {
        Self { snapshots }
    }

    /// Replies to one message of an opcode but QUERY; `None` when it is a reply itself or has no whole header. Allocates.
    /// The reply is never longer than the query.
    pub(super) fn reply(
        &self,
        query: &[u8],
        sender: SocketAddr,
        transport: Transport,
    ) -> Option<Vec<u8>> {
        let opcode = query.get(2)? >> 3 & 0x0f;
        let unreadable = if KNOWN_OPCODES.contains(&opcode) {
            FORMERR
        } else {
            NOTIMP
        };
        // Says first whether there is to be a reply at all.
        let bare = header_only(query, unreadable)?;
        if !is_plausible(query) {
            return Some(bare.into());
        }
        if query.len() > MAX_OCTETS || records(query) > MAX_RECORDS {
            let code = if unreadable == NOTIMP {
                NOTIMP
            } else {
                REFUSED
            };
            return header_only(query, code).map(Vec::from);
        }
        let protocol = match transport {
            Transport::Udp => Protocol::Udp,
            Transport::Tcp => Protocol::Tcp,
        };
        let request = Request::from_bytes(query.to_vec(), sender, protocol).ok();
        let mut reply = request.and_then(|request| self.handle(&request));
        if let (NOTAUTH | REFUSED, Some(reply), Some(tsig)) =
            (rcode(reply.as_deref()), &mut reply, bad_key(query))
        {
            add_bad_key(reply, tsig.as_ref());
        }
        let reply = reply.filter(|reply| reply.len() <= query.len());
        Some(reply.unwrap_or_else(|| bare.to_vec()))
    }

    /// Runs the handler and takes the octets out; `None` when it wrote none.
    fn handle(&self, request: &Request) -> Option<Vec<u8>> {
        let capture = Capture::default();
        let handling = pin!(self.handle_request::<_, TokioTime>(request, capture.clone()));
        // Our handler awaits nothing but our capture, which is always ready: one poll is the whole run.
        match handling.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(_) => capture.take(),
            Poll::Pending => None,
        }
    }
}

/// Tells whether the counts of a message can be true for its length. hickory makes room for as many questions as are
/// announced before it reads one.
fn is_plausible(query: &[u8]) -> bool {
    let Some((header, body)) = query.split_first_chunk::<HEADER_OCTETS>() else {
        return false;
    };
    let [_, _, _, _, q1, q2, ..] = *header;
    let questions = usize::from(u16::from_be_bytes([q1, q2]));
    questions * QUESTION_OCTETS + records(query) * RECORD_OCTETS <= body.len()
}

/// Adds up the records that a message announces, questions aside.
fn records(query: &[u8]) -> usize {
    let counts = query.get(6..HEADER_OCTETS).unwrap_or(&[]);
    let counts = counts.as_chunks::<2>().0.iter();
    counts
        .map(|&count| usize::from(u16::from_be_bytes(count)))
        .sum()
}

/// Gives the RCODE of a reply; that of no reply is one we never write.
fn rcode(reply: Option<&[u8]>) -> u8 {
    let low = reply.and_then(|reply| reply.get(3));
    low.map_or(u8::MAX, |low| low & 0x0f)
}

/// Turns a refusal into that of a signed message: NOTAUTH, and the TSIG that says why, which comes last (RFC 8945 section
/// 5.3.2).
fn add_bad_key(reply: &mut Vec<u8>, tsig: &[u8]) {
    if let Some([_, _, _, low, .., high_count, low_count]) =
        reply.first_chunk_mut::<HEADER_OCTETS>()
    {
        *low = *low & 0xf0 | NOTAUTH;
        let count = u16::from_be_bytes([*high_count, *low_count]).saturating_add(1);
        [*high_count, *low_count] = count.to_be_bytes();
        reply.extend_from_slice(tsig);
    }
}

/// Whether the question goes back with the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Echo {
    Question,
    Nothing,
}

/// Judges one request: who is told what.
fn judge(snapshot: &Snapshot, request: &Request) -> (ResponseCode, Echo) {
    let opcode = request.metadata.op_code;
    if !matches!(opcode, OpCode::Notify | OpCode::Update) {
        // RFC 8906 section 3.1.4; RFC 8490 section 5.1.1 for DSO; RFC 3425 section 3 for IQUERY.
        return (ResponseCode::NotImp, Echo::Nothing);
    }
    if request.edns.as_ref().is_some_and(|edns| edns.version() > 0) {
        // RFC 6891 section 6.1.3.
        return (ResponseCode::BADVERS, Echo::Question);
    }
    let [question] = request.queries.queries() else {
        // RFC 2136 section 3.1.1; NOTIFY has the question of a query (RFC 1996 section 3.7).
        return (ResponseCode::FormErr, Echo::Nothing);
    };
    if opcode == OpCode::Update && question.query_type() != RecordType::SOA {
        // RFC 2136 section 3.1.1: ZTYPE is SOA.
        return (ResponseCode::FormErr, Echo::Nothing);
    }
    let mut wire = Vec::with_capacity(255);
    for label in question.original().name().iter() {
        wire.push(u8::try_from(label.len()).unwrap_or(0));
        wire.extend_from_slice(label);
    }
    wire.push(0);
    let ours = question.query_class() == DNSClass::IN && is_apex(snapshot, &wire);
    let code = if ours {
        // Nobody may change our zones, and we pull from nobody (RFC 2136 section 3.3, RFC 1996 section 3.10).
        ResponseCode::Refused
    } else {
        // RFC 2136 section 3.1.2.
        ResponseCode::NotAuth
    };
    (code, Echo::Question)
}

/// Tells whether a name in wire form, of any case, is the apex of a zone of ours.
fn is_apex(snapshot: &Snapshot, wire: &[u8]) -> bool {
    let Ok(name) = NameRef::from_wire(wire) else {
        return false;
    };
    let name = name.to_lower();
    let zones = snapshot.zones();
    zones
        .find(name.as_ref())
        .and_then(|index| zones.get(index))
        .is_some_and(|zone| *zone.apex() == name)
}

#[async_trait]
impl RequestHandler for RareLane {
    async fn handle_request<R: ResponseHandler, T: Time>(
        &self,
        request: &Request,
        mut response_handle: R,
    ) -> ResponseInfo {
        let (code, echo) = judge(&self.snapshots.load(), request);
        let mut metadata = Metadata::response_from_request(&request.metadata);
        metadata.response_code = code;
        metadata.checking_disabled = false;
        // RFC 6891 section 6.1.1: an OPT for an OPT, none of its options (section 6.1.2).
        let edns = request.edns.as_ref().map(|_| {
            let mut edns = Edns::new();
            edns.set_max_payload(PAYLOAD).set_version(0);
            edns
        });
        let none = Queries::read(&mut BinDecoder::new(&[]), 0);
        let queries = match (echo, &none) {
            (Echo::Nothing, Ok(none)) => none,
            _ => &request.queries,
        };
        let response =
            MessageResponseBuilder::new(queries, edns.as_ref()).build_no_records(metadata);
        let sent = response_handle.send_response(response).await;
        sent.unwrap_or_else(|_| {
            ResponseInfo::from(Header {
                metadata,
                counts: HeaderCounts::default(),
            })
        })
    }
}

/// Keeps the octets of a reply instead of sending them.
#[derive(Clone, Debug, Default)]
struct Capture(Arc<Mutex<Option<Vec<u8>>>>);

impl Capture {
    /// Takes what was written, if anything was.
    fn take(&self) -> Option<Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[async_trait]
impl ResponseHandler for Capture {
    async fn send_response<'a>(
        &mut self,
        response: MessageResponse<
            '_,
            'a,
            impl Iterator<Item = &'a Record> + Send + 'a,
            impl Iterator<Item = &'a Record> + Send + 'a,
            impl Iterator<Item = &'a Record> + Send + 'a,
            impl Iterator<Item = &'a Record> + Send + 'a,
        >,
    ) -> Result<ResponseInfo, NetError> {
        let mut octets = Vec::with_capacity(512);
        let info = response.destructive_emit(&mut BinEncoder::new(&mut octets))?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(octets);
        Ok(info)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::snapshot::SnapshotCell;

    /// A lane over an empty world.
    fn lane() -> RareLane {
        RareLane::new(Arc::<SnapshotCell>::default().reader())
    }

    fn reply(query: &[u8]) -> Option<Vec<u8>> {
        let sender = SocketAddr::from(([192, 0, 2, 1], 5353));
        lane().reply(query, sender, Transport::Udp)
    }

    /// A message of an opcode with RD, AD and CD set and one question, `example` SOA IN, or what follows the header.
    fn message(opcode: u8, counts: [u8; 8], body: &[u8]) -> Vec<u8> {
        [&[0x12, 0x34, opcode << 3 | 1, 0x30][..], &counts, body].concat()
    }

    const ONE: [u8; 8] = [0, 1, 0, 0, 0, 0, 0, 0];
    const SOA: &[u8] = b"\x07example\x00\x00\x06\x00\x01";
    const OPT: &[u8] = &[0, 0, 41, 16, 0, 0, 0, 0x80, 0, 0, 0];

    #[test]
    fn rfc8906_3_1_4_unknown_opcodes_get_a_bare_header() {
        for opcode in [1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] {
            let expected = [
                0x12,
                0x34,
                0x81 | opcode << 3,
                NOTIMP,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
            ];
            assert_eq!(reply(&message(opcode, ONE, SOA)), Some(expected.into()));
            assert_eq!(reply(&message(opcode, [0; 8], &[])), Some(expected.into()));
            // Garbage, or counts that cannot be true.
            assert_eq!(
                reply(&message(opcode, [0xff; 8], SOA)),
                Some(expected.into())
            );
            assert_eq!(
                reply(&message(opcode, ONE, &[0xc0, 12, 0, 1, 0, 1])),
                Some(expected.into())
            );
        }
    }

    #[test]
    fn rfc6891_6_1_1_an_opt_is_answered_with_an_opt() {
        let body = [SOA, OPT].concat();
        let got = reply(&message(2, [0, 1, 0, 0, 0, 0, 0, 1], &body)).expect("a reply");
        let opt = [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0];
        assert_eq!(
            got[..12],
            [0x12, 0x34, 0x91, NOTIMP, 0, 0, 0, 0, 0, 0, 0, 1]
        );
        assert_eq!(got[12..], opt);
    }

    #[test]
    fn rfc2136_3_1_1_broken_updates_and_notifies_are_format_errors() {
        for opcode in KNOWN_OPCODES {
            let bare = [
                0x12,
                0x34,
                0x81 | opcode << 3,
                FORMERR,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
            ];
            for (counts, body) in [
                ([0; 8], &[][..]),
                ([0xff; 8], SOA),
                (ONE, &SOA[..8]),
                ([0, 1, 0, 1, 0, 0, 0, 0], SOA),
                ([0, 2, 0, 0, 0, 0, 0, 0], &[SOA, SOA].concat()),
            ] {
                assert_eq!(
                    reply(&message(opcode, counts, body)),
                    Some(bare.into()),
                    "{counts:?}"
                );
            }
        }
        // ZTYPE must be SOA (RFC 2136 section 3.1.1).
        let got = reply(&message(5, ONE, b"\x07example\x00\x00\x01\x00\x01")).expect("a reply");
        assert_eq!(got[3], FORMERR);
    }

    #[test]
    fn replies_and_stumps_get_nothing() {
        let mut query = message(4, ONE, SOA);
        query[2] |= 0x80;
        assert_eq!(reply(&query), None);
        for octets in 0..12 {
            assert_eq!(reply(&message(2, ONE, SOA)[..octets]), None);
            assert_eq!(header_only(&message(2, ONE, SOA)[..octets], FORMERR), None);
        }
    }

    /// Strangers may not change or announce anything (RFC 2136 section 3, RFC 1996 section 3.10).
    #[test]
    fn rfc2136_3_1_2_rfc1996_3_10_a_zone_that_is_not_ours_is_said_so() {
        for opcode in KNOWN_OPCODES {
            let query = message(opcode, ONE, SOA);
            let got = reply(&query).expect("a reply");
            let mut expected = query.clone();
            (expected[2], expected[3]) = (0x81 | opcode << 3, NOTAUTH);
            assert_eq!(got, expected, "the question comes back, AD and CD do not");
            let body = [SOA, OPT].concat();
            let query = message(opcode, [0, 1, 0, 0, 0, 0, 0, 1], &body);
            assert_eq!(reply(&query).expect("a reply").len(), query.len());
        }
    }

    /// Long messages cost us nothing: they are not read.
    #[test]
    fn rfc2136_3_3_long_messages_are_refused_unread() {
        let record = [0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0];
        let with = |records: u8, tail: usize| {
            let body = [SOA, &record.repeat(records.into()), &vec![0; tail]].concat();
            message(5, [0, 1, 0, 0, 0, records, 0, 0], &body)
        };
        let bare = |code| [0x12, 0x34, 0x81 | 5 << 3, code, 0, 0, 0, 0, 0, 0, 0, 0];
        for (query, code) in [
            (with(1, 5000), REFUSED),
            (with(0, 65_000), REFUSED),
            (with(33, 0), REFUSED),
        ] {
            assert_eq!(reply(&query), Some(bare(code).into()));
        }
        assert_eq!(reply(&with(32, 0)).expect("a reply")[3], NOTAUTH);
    }

    #[test]
    fn rfc8945_5_2_1_a_signed_update_gets_badkey() {
        let tsig = |mac: &[u8], error: u8| {
            let mut record = b"\x01k\x00\x00\xfa\x00\xff\x00\x00\x00\x00\x00".to_vec();
            record.push(29 + u8::try_from(mac.len()).expect("short"));
            record.extend(b"\x0bhmac-sha256\x00\x00\x00\x65\x43\x21\x00\x01\x2c\x00");
            record.push(u8::try_from(mac.len()).expect("short"));
            record.extend(mac);
            record.extend([0x12, 0x34, 0, error, 0, 0]);
            record
        };
        for opcode in KNOWN_OPCODES {
            let body = [SOA, &tsig(&[7; 32], 0)].concat();
            let query = message(opcode, [0, 1, 0, 0, 0, 0, 0, 1], &body);
            let mut expected = message(opcode, [0, 1, 0, 0, 0, 0, 0, 1], SOA);
            (expected[2], expected[3]) = (0x81 | opcode << 3, NOTAUTH);
            expected.extend(tsig(&[], 17));
            assert_eq!(reply(&query), Some(expected));
        }
    }

    proptest! {
        #[test]
        fn any_octets_get_a_short_reply_or_none(mut octets in proptest::collection::vec(any::<u8>(), 0..300), opcode in 1u8..16) {
            if let Some(flags) = octets.get_mut(2) {
                // Names of zones would be looked up: the table above has those.
                let opcode = if KNOWN_OPCODES.contains(&opcode) { 2 } else { opcode };
                *flags = *flags & 0x87 | opcode << 3;
            }
            match reply(&octets) {
                Some(reply) => {
                    prop_assert!(reply.len() <= octets.len() && reply.len() >= 12);
                    prop_assert_eq!(&reply[..2], &octets[..2]);
                    prop_assert!(reply[2] & 0x80 != 0 && octets[2] & 0x80 == 0);
                }
                None => prop_assert!(octets.len() < 12 || octets[2] & 0x80 != 0),
            }
        }
    }
}
