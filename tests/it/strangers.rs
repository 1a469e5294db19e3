//! Messages that would change something: refused, and without effect.

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::RecordType;

use crate::harness::client::{Ask, PATIENCE, exchange_tcp, exchange_udp};
use crate::harness::loopback;
use crate::harness::node::Node;
use crate::samples::{FIVE, FIVE_ZONE};

/// The question of both: our own apex, SOA, IN.
const APEX: &[u8] = b"\x03svc\x04mesh\x00\x00\x06\x00\x01";

/// A message of an opcode for our own zone, with records in its third section.
fn message(opcode: u8, records: u8, body: &[u8]) -> Vec<u8> {
    let header = [0x77, 0x88, opcode << 3, 0, 0, 1, 0, 0, 0, records, 0, 0];
    [&header[..], APEX, body].concat()
}

#[test]
fn rfc2136_3_3_rfc1996_3_10_strangers_change_nothing() {
    let node = Node::start_on(loopback(), "", FIVE, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
    });
    let soa = || {
        Ask::a("svc.mesh")
            .of_type(RecordType::SOA)
            .udp(node.dns())
            .0
            .answers
    };
    let before = soa();
    // Adds `new.svc.mesh A 10.9.9.9`, and deletes all of `text.svc.mesh` (class ANY).
    let add = b"\x03new\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x0a\x09\x09\x09";
    let delete = b"\x04text\xc0\x0c\x00\xff\x00\xff\x00\x00\x00\x00\x00\x00";
    for packet in [
        message(4, 0, &[]),
        message(5, 1, add),
        message(5, 1, delete),
        message(5, 2, &[&add[..], delete].concat()),
    ] {
        let udp = exchange_udp(node.dns(), &packet, PATIENCE).unwrap();
        let tcp = exchange_tcp(node.dns(), &packet).unwrap();
        assert_eq!(udp, tcp);
        let reply = Message::from_vec(&udp).unwrap();
        assert_eq!(reply.metadata.response_code, ResponseCode::Refused);
        assert!(udp.len() <= packet.len());
    }
    let new = Ask::a("new.svc.mesh").udp(node.dns()).0;
    assert_eq!(new.metadata.response_code, ResponseCode::NXDomain);
    let text = Ask::a("text.svc.mesh")
        .of_type(RecordType::TXT)
        .udp(node.dns())
        .0;
    assert_eq!(text.answers.len(), 1);
    assert_eq!(soa(), before, "the serial too");
}
