//! How fast the synthetic web is, so that a crawl of it measures the crawler and not the server:
//!
//!     cargo run --release -p telusur-testkit --example serve_speed [SPEC]
//!
//! Prints the time to make a page, and the pages per second that a bare client gets over loopback.
//! Client and server share the machine, so the true rate of the server is higher.

use std::io;
use std::time::{Duration, Instant};

use telusur_testkit::{FakeWeb, FakeWebSpec, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CONNECTIONS: usize = 32;
const MEASURED: Duration = Duration::from_secs(3);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spec: FakeWebSpec = std::env::args().nth(1).unwrap_or_default().parse()?;
    let web = FakeWeb::new(spec)?;
    measure_making(&web);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure_serving(&web))?;
    Ok(())
}

fn measure_making(web: &FakeWeb) {
    let started = Instant::now();
    let mut pages = 0_u32;
    let mut bytes = 0;
    for page in (0..web.pages_of(0)).cycle() {
        bytes += web.answer(0, &format!("/p/{page}")).body.len();
        pages += 1;
        if pages.is_multiple_of(1000) && started.elapsed() > MEASURED / 3 {
            break;
        }
    }
    let per_page = started.elapsed() / pages;
    println!("making: {per_page:?} per page of {} bytes", bytes / pages as usize);
}

async fn measure_serving(web: &FakeWeb) -> io::Result<()> {
    let served = serve(web, None).await?;
    let until = Instant::now() + MEASURED;
    let clients: Vec<_> = (0..CONNECTIONS)
        .map(|number| tokio::spawn(ask_until(until, served.web().clone(), number)))
        .collect();
    let mut pages = 0;
    for client in clients {
        pages += client.await.map_err(io::Error::other)??;
    }
    println!("serving: {} pages per second", pages / MEASURED.as_secs());
    served.stop().await;
    Ok(())
}

/// Asks one host for page after page on one connection, and counts the answers.
#[expect(clippy::disallowed_methods, reason = "the example is its own client, on loopback")]
async fn ask_until(until: Instant, web: FakeWeb, number: usize) -> io::Result<u64> {
    let host = number % web.spec().hosts;
    let name = web.host_name(host);
    let mut stream = TcpStream::connect(&name).await?;
    let mut received = vec![0; 1 << 20];
    let mut pages = 0;
    while Instant::now() < until {
        let page = pages % web.pages_of(host);
        let request = format!("GET /p/{page} HTTP/1.1\r\nHost: {name}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut bytes = 0;
        while !is_whole(&received[..bytes]) {
            bytes += match stream.read(&mut received[bytes..]).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => read,
            };
        }
        pages += 1;
    }
    Ok(pages)
}

/// Whether the answer has arrived: nothing but the end of a page ends like this.
fn is_whole(received: &[u8]) -> bool {
    received.ends_with(b"</html>\n")
}
