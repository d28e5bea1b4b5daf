//! What name servers do to a lookup (D8, D16, D17), on the real resolver and a loopback socket.

use std::net::SocketAddr;

use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use tokio::net::UdpSocket;

use super::*;

const TYPE_A: u16 = 1;
const TYPE_CNAME: u16 = 5;

/// Header flags: an answer, recursion available, and the response code in the last four bits.
const ANSWER: u16 = 0x8180;
const NXDOMAIN: u16 = ANSWER | 3;
const SERVFAIL: u16 = ANSWER | 2;
const REFUSED: u16 = ANSWER | 5;
const TRUNCATED: u16 = ANSWER | 0x0200;

/// A record for the name that was asked for.
struct Record {
    kind: u16,
    ttl: u32,
    data: Vec<u8>,
}

fn cname(label: &str) -> Record {
    let length = u8::try_from(label.len()).unwrap();
    let data = [&[length], label.as_bytes(), b"\x04test\0"].concat();
    Record { kind: TYPE_CNAME, ttl: 60, data }
}

fn reply(query: &[u8], flags: u16, records: &[Record]) -> Vec<u8> {
    let question_end = 12 + query[12..].iter().position(|&byte| byte == 0).unwrap() + 5;
    let count = u16::try_from(records.len()).unwrap();
    let mut reply = query[..2].to_vec();
    for number in [flags, 1, count, 0, 0] {
        reply.extend_from_slice(&number.to_be_bytes());
    }
    reply.extend_from_slice(&query[12..question_end]);
    for record in records {
        // The name is where the question's name is.
        reply.extend_from_slice(&[0xc0, 12]);
        reply.extend_from_slice(&record.kind.to_be_bytes());
        reply.extend_from_slice(&1_u16.to_be_bytes());
        reply.extend_from_slice(&record.ttl.to_be_bytes());
        reply.extend_from_slice(&u16::try_from(record.data.len()).unwrap().to_be_bytes());
        reply.extend_from_slice(&record.data);
    }
    reply
}

/// Whether a query is for IPv4 addresses.
fn is_for_v4(query: &[u8]) -> bool {
    let name_end = 12 + query[12..].iter().position(|&byte| byte == 0).unwrap();
    query[name_end + 1..name_end + 3] == TYPE_A.to_be_bytes()
}

/// The first label of the name that is asked for.
fn label(query: &[u8]) -> String {
    let length = usize::from(query[12]);
    String::from_utf8(query[13..13 + length].to_vec()).unwrap()
}

type Script = fn(&[u8]) -> Vec<u8>;

/// A name server with a script, and a lookup that asks it.
async fn lookup_at(script: Script) -> (SystemLookup, Arc<UdpSocket>) {
    let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let server = socket.local_addr().unwrap();
    let answering = Arc::clone(&socket);
    tokio::spawn(async move {
        let mut query = [0; 512];
        while let Ok((length, from)) = answering.recv_from(&mut query).await {
            let reply = script(&query[..length]);
            if !reply.is_empty() {
                let _ = answering.send_to(&reply, from).await;
            }
        }
    });
    let config = ResolverConfig::from_name_servers(vec![name_server(server)]);
    let builder = Resolver::builder_with_config(config, TokioRuntimeProvider::default());
    (SystemLookup::build(builder).unwrap(), socket)
}

fn name_server(at: SocketAddr) -> NameServerConfig {
    let (mut udp, mut tcp) = (ConnectionConfig::udp(), ConnectionConfig::tcp());
    (udp.port, tcp.port) = (at.port(), at.port());
    NameServerConfig::new(at.ip(), true, vec![udp, tcp])
}

async fn cause(script: Script) -> &'static str {
    let (lookup, _socket) = lookup_at(script).await;
    let failure = lookup.lookup("a.test").await.unwrap_err();
    assert!(!failure.is_local, "{failure:?}");
    failure.cause
}

#[tokio::test]
async fn an_address() {
    let (lookup, _socket) = lookup_at(|query| {
        let record = Record { kind: TYPE_A, ttl: 7, data: vec![192, 0, 2, 1] };
        let records = if is_for_v4(query) { vec![record] } else { vec![] };
        reply(query, ANSWER, &records)
    })
    .await;
    let answer = lookup.lookup("a.test").await.unwrap();
    assert_eq!(answer.addresses, ["192.0.2.1".parse::<IpAddr>().unwrap()]);
    assert!(answer.ttl <= Duration::from_secs(7), "{answer:?}");
}

#[tokio::test]
async fn every_refusal_has_its_word() {
    assert_eq!(cause(|query| reply(query, NXDOMAIN, &[])).await, "nxdomain");
    assert_eq!(cause(|query| reply(query, SERVFAIL, &[])).await, "servfail");
    assert_eq!(cause(|query| reply(query, REFUSED, &[])).await, "refused");
    assert_eq!(cause(|query| reply(query, ANSWER, &[])).await, "no_address");
}

#[tokio::test]
async fn a_name_that_leads_in_a_circle() {
    let found = cause(|query| {
        let next = if label(query) == "a" { cname("b") } else { cname("a") };
        reply(query, ANSWER, &[next])
    });
    assert!(matches!(found.await, "no_address" | "failed"));
}

#[tokio::test]
async fn a_name_that_leads_to_another() {
    let (lookup, _socket) = lookup_at(|query| match &*label(query) {
        "a" => reply(query, ANSWER, &[cname("inside")]),
        _ if is_for_v4(query) => {
            let record = Record { kind: TYPE_A, ttl: 60, data: vec![169, 254, 169, 254] };
            reply(query, ANSWER, &[record])
        }
        _ => reply(query, ANSWER, &[]),
    })
    .await;
    // The chain ends at an address, and that is what the guard is shown.
    let answer = lookup.lookup("a.test").await.unwrap();
    assert_eq!(answer.addresses, ["169.254.169.254".parse::<IpAddr>().unwrap()]);
}

#[tokio::test]
async fn a_cut_answer_without_a_second_way() {
    let found = cause(|query| reply(query, TRUNCATED, &[])).await;
    assert!(matches!(found, "unreachable" | "failed" | "no_address"), "{found}");
}

/// Time is paused: the clock jumps to the next deadline whenever nothing else is to be done.
#[tokio::test(start_paused = true)]
async fn what_is_no_answer_is_not_waited_for() {
    let scripts: [Script; 3] = [
        |_| Vec::new(),
        |_| b"garbage".to_vec(),
        |query| {
            let wrong_id = [!query[0], !query[1]];
            [&wrong_id, &reply(query, ANSWER, &[])[2..]].concat()
        },
    ];
    for script in scripts {
        let started_at = tokio::time::Instant::now();
        let found = cause(script).await;
        assert!(matches!(found, "timeout" | "garbage" | "failed"), "{found}");
        assert!(started_at.elapsed() <= Duration::from_secs(10), "{:?}", started_at.elapsed());
    }
}
