//! A server in raw TCP that does exactly what its script says, however wrong.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, mpsc};

/// One thing that a server does.
#[derive(Clone)]
pub(crate) enum Act {
    /// Reads to the end of a request's head.
    Read,
    Send(Vec<u8>),
    /// Sends this again and again until the client is gone.
    SendEndlessly(Vec<u8>),
    /// Sends this byte by byte, again and again, with a pause before each.
    Drip(Vec<u8>),
    /// Meets the test: the first waits for the other.
    Meet,
    /// Waits until the client closes the connection.
    Hold,
    /// Cuts the connection with an RST.
    Reset,
}

pub(crate) use Act::{Hold, Meet, Read, Reset};

pub(crate) fn send(text: impl AsRef<[u8]>) -> Act {
    Act::Send(text.as_ref().to_vec())
}

pub(crate) fn send_endlessly(text: impl AsRef<[u8]>) -> Act {
    Act::SendEndlessly(text.as_ref().to_vec())
}

/// An answer with a body, after which the connection stays open.
pub(crate) fn page(body: &str) -> Act {
    send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
}

/// A server with a script for each connection it takes; the last one serves for all further ones.
pub(crate) struct ScriptedServer {
    pub(crate) address: SocketAddr,
    stage: Arc<Stage>,
    ended: mpsc::UnboundedReceiver<()>,
}

/// What the connections of a server share with the test.
struct Stage {
    requests: Mutex<Vec<String>>,
    meeting: Barrier,
}

impl ScriptedServer {
    pub(crate) async fn start(scripts: Vec<Vec<Act>>) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), scripts)
    }

    pub(crate) fn on(listener: TcpListener, scripts: Vec<Vec<Act>>) -> Self {
        let address = listener.local_addr().unwrap();
        let stage = Arc::new(Stage { requests: Mutex::default(), meeting: Barrier::new(2) });
        let (tell_end, ended) = mpsc::unbounded_channel();
        tokio::spawn(serve(listener, scripts, Arc::clone(&stage), tell_end));
        Self { address, stage, ended }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The heads of all requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.stage.requests.lock().unwrap().clone()
    }

    /// Waits until the script comes to [`Act::Meet`].
    pub(crate) async fn meet(&self) {
        self.stage.meeting.wait().await;
    }

    /// Waits until one more connection has ended.
    pub(crate) async fn connection_ended(&mut self) {
        self.ended.recv().await.unwrap();
    }
}

async fn serve(
    listener: TcpListener,
    scripts: Vec<Vec<Act>>,
    stage: Arc<Stage>,
    tell_end: mpsc::UnboundedSender<()>,
) {
    for index in 0.. {
        let Ok((stream, _)) = listener.accept().await else { return };
        let script = scripts[index.min(scripts.len() - 1)].clone();
        let (stage, tell_end) = (Arc::clone(&stage), tell_end.clone());
        tokio::spawn(async move {
            // A client that goes away in the middle is what many scripts are about.
            let _ = play(stream, script, &stage).await;
            let _ = tell_end.send(());
        });
    }
}

async fn play(mut stream: TcpStream, script: Vec<Act>, stage: &Stage) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    for act in script {
        match act {
            Act::Read => {
                let head = read_head(&mut stream).await?;
                stage.requests.lock().unwrap().push(head);
            }
            Act::Send(bytes) => stream.write_all(&bytes).await?,
            Act::SendEndlessly(bytes) => loop {
                stream.write_all(&bytes).await?;
            },
            Act::Drip(bytes) => loop {
                for byte in &bytes {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    stream.write_all(&[*byte]).await?;
                }
            },
            Act::Meet => {
                stage.meeting.wait().await;
            }
            Act::Hold => while stream.read(&mut [0; 512]).await? > 0 {},
            Act::Reset => {
                socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
                return Ok(());
            }
        }
    }
    // Closed with a FIN: the script has read all that the client sends.
    stream.shutdown().await
}

async fn read_head(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8(head).unwrap())
}
