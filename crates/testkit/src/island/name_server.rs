//! The island's name server: answers for the names of [`Lures`], each time as they please. Knows just
//! enough of RFC 1035 for questions with one name.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;

use tokio::net::UdpSocket;

use super::NAME_SERVER;
use super::lures::Lures;

const TYPE_A: u16 = 1;
const TYPE_CNAME: u16 = 5;
const TYPE_AAAA: u16 = 28;
/// An answer, recursion available; the response code is in the last four bits.
const ANSWER: u16 = 0x8180;
const NO_SUCH_NAME: u16 = ANSWER | 3;
/// Where the header ends and the question begins.
const QUESTION_AT: usize = 12;

/// Answers until the socket fails.
pub(super) async fn answer_names() -> io::Result<()> {
    let socket = UdpSocket::bind((NAME_SERVER, 53)).await?;
    let mut asked: HashMap<(String, u16), usize> = HashMap::new();
    let mut query = [0; 512];
    loop {
        let (length, from) = socket.recv_from(&mut query).await?;
        let Some(question) = Question::read(&query[..length]) else { continue };
        let times = asked.entry((question.name.clone(), question.kind)).or_default();
        let reply = question.reply(*times);
        *times += 1;
        socket.send_to(&reply, from).await?;
    }
}

struct Question<'a> {
    id: &'a [u8],
    /// Name, type and class as they came.
    bytes: &'a [u8],
    name: String,
    kind: u16,
}

impl<'a> Question<'a> {
    fn read(query: &'a [u8]) -> Option<Self> {
        let mut labels = Vec::new();
        let mut at = QUESTION_AT;
        loop {
            let length = usize::from(*query.get(at)?);
            at += 1;
            if length == 0 {
                break;
            }
            let label = std::str::from_utf8(query.get(at..at + length)?).ok()?;
            labels.push(label.to_ascii_lowercase());
            at += length;
        }
        let kind = u16::from_be_bytes(query.get(at..at + 2)?.try_into().ok()?);
        let bytes = query.get(QUESTION_AT..at + 4)?;
        Some(Self { id: query.get(..2)?, bytes, name: labels.join("."), kind })
    }

    fn reply(&self, asked: usize) -> Vec<u8> {
        let addresses = Lures::addresses(&self.name, asked);
        let records = self.records(&addresses);
        let flags = if addresses.is_empty() { NO_SUCH_NAME } else { ANSWER };
        let count = u16::try_from(records.len()).unwrap_or(0);
        let mut reply = self.id.to_vec();
        for number in [flags, 1, count, 0, 0] {
            reply.extend_from_slice(&number.to_be_bytes());
        }
        reply.extend_from_slice(self.bytes);
        reply.extend(records.concat());
        reply
    }

    fn records(&self, addresses: &[IpAddr]) -> Vec<Vec<u8>> {
        // The name is where the question's name is.
        let own_name = [0xc0, QUESTION_AT as u8];
        let inside = b"\x06inside\x04test\0";
        let is_alias = self.name == "alias.test";
        let owner: &[u8] = if is_alias { inside } else { &own_name };
        let mut records = Vec::new();
        if is_alias {
            records.push(record(&own_name, TYPE_CNAME, inside));
        }
        for address in addresses {
            match (address, self.kind) {
                (IpAddr::V4(address), TYPE_A) => {
                    records.push(record(owner, TYPE_A, &address.octets()));
                }
                (IpAddr::V6(address), TYPE_AAAA) => {
                    records.push(record(owner, TYPE_AAAA, &address.octets()));
                }
                _ => {}
            }
        }
        records
    }
}

/// A record of class IN that must not be kept.
fn record(owner: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
    let mut record = owner.to_vec();
    record.extend_from_slice(&kind.to_be_bytes());
    record.extend_from_slice(&1_u16.to_be_bytes());
    record.extend_from_slice(&0_u32.to_be_bytes());
    record.extend_from_slice(&u16::try_from(data.len()).unwrap_or(0).to_be_bytes());
    record.extend_from_slice(data);
    record
}
