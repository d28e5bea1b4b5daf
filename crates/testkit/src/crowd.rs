//! [`Crowd`]: a synthetic web some of whose hosts misbehave, each in its way and for ever, over
//! loopback. What good hosts are asked is logged: what their neighbours do must not show in it.

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::bad_server::{Step, follow};
use crate::clock::TokioClock;
use crate::fake_web::{FakeWeb, FakeWebSpec, LiveWeb, SpecError, host_address};
use crate::request_log::RequestLog;
use crate::server::{Responder, bind_all};

/// What the gzip bomb unpacks to.
const BOMB_BYTES: usize = 64 << 20;

/// Hosts that are served until it is dropped. The first ones misbehave.
pub struct Crowd {
    web: FakeWeb,
    bad: usize,
    log: Arc<RequestLog>,
    /// Dropping it ends all tasks.
    _tasks: JoinSet<()>,
}

/// Why there is no crowd.
#[derive(Debug, thiserror::Error)]
pub enum CrowdError {
    /// There is no such web.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// It cannot be served.
    #[error("serve a crowd: {0}")]
    Serve(#[from] io::Error),
}

impl Crowd {
    /// Serves a web of which the first `bad` hosts misbehave, each in its way.
    pub async fn gather(spec: FakeWebSpec, bad: usize) -> Result<Self, CrowdError> {
        Self::with_habits(spec, bad, habits()?).await
    }

    /// Serves a web of which the first `bad` hosts all follow one script.
    pub async fn with_script(
        spec: FakeWebSpec,
        bad: usize,
        script: Vec<Step>,
    ) -> Result<Self, CrowdError> {
        Self::with_habits(spec, bad, vec![script]).await
    }

    async fn with_habits(
        spec: FakeWebSpec,
        bad: usize,
        habits: Vec<Vec<Step>>,
    ) -> Result<Self, CrowdError> {
        let web = FakeWeb::new(spec)?;
        let addresses: Vec<Ipv4Addr> = (0..web.spec().hosts).map(host_address).collect();
        let listeners = bind_all(&addresses).await?;
        let web = web.on_port(listeners.port);
        let log = Arc::new(RequestLog::new(Arc::new(TokioClock::new())));
        let responder = Responder::new(Arc::new(LiveWeb::new(web.clone())), Some(Arc::clone(&log)));
        let mut tasks = JoinSet::new();
        for (host, listener) in listeners.sockets.into_iter().enumerate() {
            let habit = (host < bad).then(|| habits[host % habits.len()].clone());
            tasks.spawn(receive(listener, habit, responder.clone()));
        }
        Ok(Self { web, bad, log, _tasks: tasks })
    }

    /// Its web, with the addresses under which it can be asked.
    pub fn web(&self) -> &FakeWeb {
        &self.web
    }

    /// What was asked of the hosts that behave; misbehaving ones keep no log.
    pub fn log(&self) -> &RequestLog {
        &self.log
    }

    /// How many hosts misbehave.
    pub fn bad(&self) -> usize {
        self.bad
    }

    /// Pages that were asked of the hosts with these numbers.
    pub fn pages_asked(&self, hosts: std::ops::Range<usize>) -> usize {
        let is_page_of_one = |host: &str, target: &str| {
            target.starts_with("/p/")
                && self.web.host_index(host).is_some_and(|host| hosts.contains(&host))
        };
        let requests = self.log.requests();
        requests.iter().filter(|it| is_page_of_one(&it.host, &it.target)).count()
    }
}

async fn receive(listener: TcpListener, habit: Option<Vec<Step>>, responder: Responder) {
    let mut visitors = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (habit, responder) = (habit.clone(), responder.clone());
        visitors.spawn(async move {
            // That the visitor goes away in the middle is what misbehaviour is about.
            let _ = match habit {
                Some(script) => follow(stream, script).await,
                None => responder.talk(stream).await,
            };
        });
        while visitors.try_join_next().is_some() {}
    }
}

/// The ways in which hosts misbehave, in equal parts.
fn habits() -> io::Result<Vec<Vec<Step>>> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n";
    let drip = |bytes: &str| Step::Drip {
        bytes: Bytes::copy_from_slice(bytes.as_bytes()),
        every: Duration::from_secs(1),
    };
    let bomb = bomb()?;
    let bomb_head =
        format!("{head}content-encoding: gzip\r\ncontent-length: {}\r\n\r\n", bomb.len());
    Ok(vec![
        // Accepts and says nothing.
        vec![Step::Hang],
        // Listens and says nothing.
        vec![Step::ReadRequest, Step::Hang],
        // Answers, robots.txt too, after what feels like an eternity.
        vec![
            Step::ReadRequest,
            Step::Pause(Duration::from_secs(9)),
            Step::send(format!("{head}content-length: 0\r\n\r\n")),
        ],
        vec![Step::ReadRequest, drip(&"HTTP/1.1 200 OK\r\nx: y\r\n".repeat(10))],
        vec![
            Step::ReadRequest,
            Step::send(format!("{head}content-length: 9000\r\n\r\n")),
            drip(&"slow ".repeat(100)),
        ],
        vec![Step::Reset],
        vec![
            Step::ReadRequest,
            Step::send(format!("{head}content-length: 9000\r\n\r\nhalf of it")),
            Step::Reset,
        ],
        vec![Step::Close],
        vec![
            Step::ReadRequest,
            Step::send(format!("{head}\r\n")),
            Step::SendForEver(Bytes::from("endless ".repeat(2000))),
        ],
        vec![
            Step::ReadRequest,
            Step::send(head),
            Step::SendForEver(Bytes::from("x-more: and more\r\n".repeat(500))),
        ],
        vec![Step::ReadRequest, Step::send(bomb_head), Step::Send(bomb)],
        vec![Step::send("SSH-2.0-OpenSSH_9.6\r\n"), Step::Hang],
        vec![
            Step::ReadRequest,
            Step::send("HTTP/1.1 503 Busy\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"),
        ],
    ])
}

fn bomb() -> io::Result<Bytes> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    let zeros = [0; 1 << 16];
    for _ in 0..BOMB_BYTES / zeros.len() {
        packed.write_all(&zeros)?;
    }
    Ok(Bytes::from(packed.finish()?))
}
