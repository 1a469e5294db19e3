//! Delegations as a resolver and the parent's servers show them: one socket plays them all.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::rdata::{A, NS};
use hickory_proto::rr::{Name, RData, Record, RecordType as WireType};
use tokio::net::UdpSocket;

use super::ask::resolvers_of;
use super::{find_addresses, find_delegation};
use crate::model::LowerName;

/// What is answered to a question: the RCODE, the answer section, the authority section.
type Reply = (ResponseCode, Vec<Record>, Vec<Record>);

fn ns(owner: &str, target: &str) -> Record {
    let target = Name::from_ascii(target).unwrap();
    Record::from_rdata(Name::from_ascii(owner).unwrap(), 60, RData::NS(NS(target)))
}

fn a(owner: &str) -> Record {
    let here = RData::A(A(Ipv4Addr::LOCALHOST));
    Record::from_rdata(Name::from_ascii(owner).unwrap(), 60, here)
}

/// Answers by a table, until the test ends.
async fn server(answer: fn(&str, WireType, bool) -> Reply) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let serve = async move {
        let mut buffer = [0; 1500];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
            let query = Message::from_vec(&buffer[..length]).unwrap();
            let question = query.queries[0].clone();
            let recursion = query.metadata.recursion_desired;
            let name = question.name().to_ascii();
            let (rcode, answers, authorities) = answer(&name, question.query_type(), recursion);
            let mut reply = Message::query();
            reply.metadata = query.metadata;
            reply.metadata.message_type = hickory_proto::op::MessageType::Response;
            reply.metadata.response_code = rcode;
            reply.add_query(question);
            reply.answers = answers;
            reply.authorities = authorities;
            socket
                .send_to(&reply.to_vec().unwrap(), from)
                .await
                .unwrap();
        }
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's server ends with its runtime"
    )]
    tokio::spawn(serve);
    address
}

fn zone() -> LowerName {
    "svc.lab".parse().unwrap()
}

#[tokio::test]
async fn the_walk_reaches_the_root() {
    let server = server(|name, rtype, recursion| match (name, rtype, recursion) {
        ("lab.", WireType::NS, true) => (ResponseCode::NXDomain, vec![], vec![]),
        (".", WireType::NS, true) => (ResponseCode::NoError, vec![ns(".", "a.root.")], vec![]),
        ("a.root.", WireType::A, true) => (ResponseCode::NoError, vec![a("a.root.")], vec![]),
        ("svc.lab.", WireType::NS, false) => (
            ResponseCode::NoError,
            vec![],
            vec![ns("svc.lab.", "ns1.svc.lab.")],
        ),
        _ => (ResponseCode::NoError, vec![], vec![]),
    });
    let server = server.await;
    let found = find_delegation(&zone(), server, server.port()).await;
    let found = found.unwrap().expect("a delegation");
    assert_eq!(found.parent.to_string(), ".");
    let names: Vec<String> = found.nameservers.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["ns1.svc.lab"]);
}

#[tokio::test]
async fn who_will_not_answer_does_not_say_that_there_is_nothing() {
    let resolver = server(|_, _, _| (ResponseCode::ServFail, vec![], vec![])).await;
    let error = find_delegation(&zone(), resolver, 53).await.unwrap_err();
    assert!(
        error.to_string().ends_with("answers SERVFAIL for lab NS"),
        "{error}"
    );
    let error = find_addresses(&zone(), resolver).await.unwrap_err();
    assert!(
        error.to_string().contains("SERVFAIL for svc.lab"),
        "{error}"
    );
    // The resolver answers, the parent's server does not.
    let server = server(|name, rtype, recursion| match (name, rtype, recursion) {
        ("lab.", WireType::NS, true) => {
            (ResponseCode::NoError, vec![ns("lab.", "ns.lab.")], vec![])
        }
        ("ns.lab.", WireType::A, true) => (ResponseCode::NoError, vec![a("ns.lab.")], vec![]),
        (_, _, false) => (ResponseCode::Refused, vec![], vec![]),
        _ => (ResponseCode::NoError, vec![], vec![]),
    });
    let server = server.await;
    let error = find_delegation(&zone(), server, server.port())
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("answers REFUSED for svc.lab NS"),
        "{error}"
    );
}

#[tokio::test]
async fn a_host_has_addresses_or_none() {
    let resolver = server(|name, rtype, _| match (name, rtype) {
        ("ns1.example.net.", WireType::A) => {
            (ResponseCode::NoError, vec![a("ns1.example.net.")], vec![])
        }
        ("ns1.example.net.", _) => (ResponseCode::ServFail, vec![], vec![]),
        _ => (ResponseCode::NXDomain, vec![], vec![]),
    });
    let resolver = resolver.await;
    let found = find_addresses(&"ns1.example.net".parse().unwrap(), resolver)
        .await
        .unwrap();
    assert_eq!(found, [IpAddr::from(Ipv4Addr::LOCALHOST)]);
    let none = find_addresses(&"gone.example.net".parse().unwrap(), resolver)
        .await
        .unwrap();
    assert!(none.is_empty());
}

#[test]
fn the_systems_list_is_read_in_order() {
    for (text, found) in [
        (
            "# by hand\nnameserver 192.0.2.53\nsearch a.example\nnameserver 2001:db8::53\n",
            &["192.0.2.53:53", "[2001:db8::53]:53"][..],
        ),
        // One that is only on a link, as routers announce it.
        (
            "nameserver fe80::1%eth0\nnameserver 127.0.0.53\noptions edns0\n",
            &["127.0.0.53:53"],
        ),
        ("search a.example\n", &[]),
        ("", &[]),
    ] {
        let resolvers = resolvers_of(text.as_bytes()).expect("a list");
        let texts: Vec<String> = resolvers.iter().map(ToString::to_string).collect();
        assert_eq!(texts, found, "{text}");
    }
    assert_eq!(resolvers_of(b"nameserver nobody\n"), None);
}
