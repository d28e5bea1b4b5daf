//! [`CostlyFeeds`]: hosts whose feeds are small on the wire and expensive to parse, over loopback. Every
//! item holds markup that makes an HTML tree builder do much work for few bytes, and links to a
//! further feed of the same kind.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::answer::{FakeAnswer, FakeRequest, Website};
use crate::fake_web::host_address;
use crate::server::{LoopbackServer, bind_all};

/// Items of a feed, and the markup of each: about 1 MiB together, some 5 kB packed.
const ITEMS: u64 = 30;
const OPEN_ELEMENTS: usize = 500;
const STRAY_END_TAGS: usize = 7_900;

/// Hosts with costly feeds, served until it is dropped.
pub struct CostlyFeeds {
    addresses: Vec<Ipv4Addr>,
    server: LoopbackServer,
}

impl CostlyFeeds {
    /// Serves the feeds of `hosts` hosts, on the addresses that follow those of the first `after`
    /// hosts of a synthetic web.
    pub async fn serve(after: usize, hosts: usize) -> io::Result<Self> {
        let addresses: Vec<Ipv4Addr> = (after..after + hosts).map(host_address).collect();
        let listeners = bind_all(&addresses).await?;
        let server = LoopbackServer::start(listeners, Arc::new(FeedSite), None);
        Ok(Self { addresses, server })
    }

    /// One feed of each host.
    pub fn seeds(&self) -> Vec<String> {
        let port = self.server.port;
        self.addresses.iter().map(|address| format!("http://{address}:{port}/feed/0")).collect()
    }
}

/// The feeds of any host.
struct FeedSite;

impl Website for FeedSite {
    fn address_of(&self, _host: &str) -> Option<Ipv4Addr> {
        None
    }

    fn answer_to(&self, request: FakeRequest<'_>) -> Option<FakeAnswer> {
        let number = request.target.strip_prefix("/feed/").and_then(|text| text.parse().ok());
        let Some(number) = number else { return Some(FakeAnswer::not_found()) };
        let mut answer = FakeAnswer::ok("application/rss+xml", pack(&feed(number)));
        answer.headers.push(("content-encoding", "gzip".into()));
        Some(answer)
    }
}

fn feed(number: u64) -> String {
    let markup = "<span>".repeat(OPEN_ELEMENTS) + &"</b>".repeat(STRAY_END_TAGS);
    let mut text = String::from(r#"<rss version="2.0"><channel><title>Feed</title>"#);
    for item in 1..=ITEMS {
        let target = number.wrapping_mul(ITEMS).wrapping_add(item);
        write!(
            text,
            "<item><title>Item {target}</title><link>/feed/{target}</link>\
             <description><![CDATA[{markup}]]></description></item>"
        )
        .expect("a string takes it");
    }
    text.push_str("</channel></rss>");
    text
}

fn pack(text: &str) -> Bytes {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(text.as_bytes()).expect("memory takes it");
    Bytes::from(packed.finish().expect("memory takes it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_is_small_on_the_wire_and_large_in_memory() {
        let text = feed(7);
        // Just within what is read of a body by default.
        assert!((1_000_000..1 << 20).contains(&text.len()), "{}", text.len());
        assert!(pack(&text).len() < 16 << 10, "{}", pack(&text).len());
        assert!(text.contains("<link>/feed/211</link>"));
    }
}
