//! `telusur serve`: owns the data directory, runs its crawls, and answers over HTTP until it is told to
//! end.

use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use telusur_engine::control;
use telusur_engine::{
    Engine, EngineError, EngineOptions, EngineParts, FREE_BYTES_LEAST, Part, SystemClock,
};
use telusur_fetch::{Fetch, FetchSettings, OwnAddresses, WebFetcher};
use telusur_ledger::StoreError;
use telusur_model::Clock;
use telusur_server::{Bounds, Service, ServiceError, ServiceParts, ServiceSettings};
use tokio::net::TcpListener;

use super::{Failure, Outcome, Session, crawl, key};
use crate::backend::{self, DataDir, OpenStore, engine_message};
use crate::cli::ServeArgs;
use crate::crawl_request::{crawl_request, settings_of};
use crate::foreground::{Signals, parse_threads, parser, parsers};
use crate::json::write_json_line;
use crate::message::{Code, Message, shown};
use crate::settings::{Key, Settings};
use crate::units::write_size;

/// Longest from the signal to the end, save for closing the store: service managers kill after ten seconds.
/// Orders under way and visits under way share it.
const END_MS_MAX: u64 = 9_000;
/// How often a service that the disk has stopped looks whether there is space.
const SPACE_LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) fn serve(session: &Session, arguments: &ServeArgs, output: &mut dyn Write) -> Outcome {
    let settings = session.settings(arguments.given())?.settings;
    let address = address(settings.text(Key::Listen))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| cannot_run(&format!("start the runtime: {error}")))?;
    let served = runtime.block_on(async {
        // Before anything else: a service that cannot listen must not start a crawl.
        let listener =
            TcpListener::bind(address).await.map_err(|error| cannot_listen(address, &error))?;
        let dir = backend::data_dir(&settings)?;
        let open = backend::open(dir)?;
        // Port 0 means any: what was given is only known now.
        let address = listener.local_addr().map_err(|error| cannot_run(&error.to_string()))?;
        let service = service_settings(session, arguments, &settings, dir, address)?;
        run(session, &settings, open, service, listener, output).await
    });
    // Lookups that hang must not hold up the end.
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    served
}

async fn run(
    session: &Session,
    settings: &Settings,
    open: OpenStore,
    service: ServiceSettings,
    listener: TcpListener,
    output: &mut dyn Write,
) -> Outcome {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let own_addresses = OwnAddresses::new([service.listen]);
    let fetch_settings = FetchSettings { own_addresses, ..FetchSettings::of_this_process() };
    let fetcher: Arc<dyn Fetch> = Arc::new(
        WebFetcher::new(fetch_settings, Arc::clone(&clock))
            .map_err(|error| cannot_run(&error.to_string()))?,
    );
    let children = parsers(settings);
    let parts = EngineParts {
        store: Arc::clone(&open.store),
        fetcher,
        clock: Arc::clone(&clock),
        parser: parser(children)?,
        index: open.index.clone(),
        followers: Vec::new(),
    };
    let options = EngineOptions {
        parse_threads: parse_threads(children),
        free_bytes_min: space_needed(settings),
    };
    let mut engine = Engine::start(parts, &options)
        .map_err(|error| cannot_run(&format!("start the engine: {error}")))?;
    let service = Service::start(ServiceParts {
        store: Arc::clone(&open.store),
        engine: engine.handle(),
        index: open.index.clone(),
        clock: Arc::clone(&clock),
        settings: service,
    });
    let service = service.await.map_err(|error| service_message(&error))?;
    // Who reaches the socket owns the directory.
    let socket = control::serve(&open.control_socket, service.owner_control())
        .map_err(|error| cannot_run(&format!("open the control socket: {error}")))?;
    tell(session, &listener, output)?;
    let mut signals = Signals::new().map_err(|error| cannot_run(&error.to_string()))?;
    let serving = telusur_server::serve(listener, service.clone());
    let serving = engine.handle().supervisor().task(Part::Service("http"), serving);
    let code = tokio::select! {
        code = signals.stop() => code,
        error = engine.failed() => {
            let message = engine_message(&error);
            return match error {
                EngineError::Store(StoreError::DiskFull(_)) => {
                    start_again_with_space(session, settings, &open.dir, message, signals).await
                }
                EngineError::Store(_)
                | EngineError::StageDied(_)
                | EngineError::PartDied(_)
                | EngineError::Parser(_) => Err(message.into()),
            };
        }
    };
    let deadline = clock.now().plus_ms(END_MS_MAX);
    session.talk.note("saving what is under way; once more leaves at once");
    tokio::spawn(async move {
        // The second one does not wait. Nothing is lost: what is not committed is still queued.
        std::process::exit(i32::from(signals.stop().await));
    });
    service.drain();
    drop(socket);
    serving.ended().await;
    // What the last orders took is not given to the crawls a second time.
    let left_ms = deadline.ms_since(clock.now());
    engine.shutdown_within(left_ms).await.map_err(|error| engine_message(&error))?;
    Ok(code)
}

/// The space below which crawls wait.
fn space_needed(settings: &Settings) -> u64 {
    settings.bytes(Key::MinFreeDisk).max(FREE_BYTES_LEAST)
}

/// The disk was full before crawls could be paused, and the store takes no more writes until it is opened again.
/// Waits for space, and becomes a new process of the same command under the same pid: everything that is open
/// here is closed by that.
async fn start_again_with_space(
    session: &Session,
    settings: &Settings,
    dir: &Path,
    why: Message,
    mut signals: Signals,
) -> Outcome {
    let needed = space_needed(settings);
    session.talk.warning(&format!(
        "{}; the service goes on by itself when {} are free",
        why.what,
        write_size(needed)
    ));
    loop {
        tokio::select! {
            // It has nothing to save.
            code = signals.stop() => return Ok(code),
            () = tokio::time::sleep(SPACE_LOOK_EVERY) => {}
        }
        if backend::free_bytes(dir).is_ok_and(|free| free >= needed) {
            break;
        }
    }
    session.talk.note("there is space again: the service goes on");
    let program = std::env::current_exe();
    let program = program.map_err(|error| cannot_run(&format!("find this program: {error}")))?;
    let error = Command::new(program).args(std::env::args_os().skip(1)).exec();
    Err(cannot_run(&format!("start again: {error}")).into())
}

/// Says where it listens: on standard output, for whoever started it to read.
fn tell(session: &Session, listener: &TcpListener, output: &mut dyn Write) -> Result<(), Failure> {
    let address = listener.local_addr().map_err(|error| cannot_run(&error.to_string()))?;
    let url = format!("http://{address}/");
    match session.global.json {
        true => write_json_line(output, &json!({ "listening": url, "pid": std::process::id() }))?,
        false => writeln!(output, "listening on {url}")?,
    }
    output.flush()?;
    Ok(())
}

/// What the operator decided: the settings of crawls become the defaults of every crawl.
fn service_settings(
    session: &Session,
    arguments: &ServeArgs,
    settings: &Settings,
    dir: &Path,
    listen: SocketAddr,
) -> Result<ServiceSettings, Message> {
    let mut request = crawl_request(settings);
    crawl::add_secrets(session, settings, &mut request)?;
    if !request.fetch.allow_private.is_empty() {
        let allowed = request.fetch.allow_private.join(", ");
        session.talk.note(&format!("not only public addresses: {allowed} may be asked"));
    }
    let bounds = Bounds {
        running_max: settings.small_count::<u32>(Key::MaxRunning) as usize,
        queued_max: settings.small_count::<u32>(Key::MaxQueued) as usize,
        scrub_bytes_per_second: settings.bytes(Key::ScrubPace),
        ..Bounds::default()
    };
    Ok(ServiceSettings {
        listen,
        allowed_hosts: settings.list(Key::AllowedHosts).to_vec(),
        public_search: settings.switch(Key::PublicSearch),
        read_only: arguments.read_only,
        has_ui: !arguments.no_ui,
        keys_file: DataDir::keys_file(dir),
        defaults: settings_of(&request)?,
        bounds,
    })
}

fn address(text: &str) -> Result<SocketAddr, Message> {
    let found = text.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    found.ok_or_else(|| {
        Message::new(Code::Listen, format!("\"{}\" is not an address with a port", shown(text)))
            .hint("Write it like 127.0.0.1:8088")
    })
}

fn cannot_listen(address: SocketAddr, error: &std::io::Error) -> Message {
    let port = address.port();
    Message::new(Code::Listen, format!("cannot listen on {address}: {error}")).hint(format!(
        "Choose another: --listen {}:{}",
        address.ip(),
        if port < 1024 { 8088 } else { port.wrapping_add(1).max(1024) }
    ))
}

fn service_message(error: &ServiceError) -> Message {
    match error {
        ServiceError::Store(error) => backend::store_message(error),
        ServiceError::Keys(error) => key::message(error),
        ServiceError::NoKey(_) => Message::new(Code::NoKey, error.to_string())
            .hint("telusur key create --scope admin   then start again"),
        ServiceError::UnboundSecret(secret) => Message::new(Code::UnboundSecret, error.to_string())
            .hint(format!(
                "Write in [fetch] of telusur.toml, with the site that it is for: {}",
                secret.bound_line()
            )),
        ServiceError::Rules(what) => Message::new(Code::BadArgument, what.clone()),
    }
}

fn cannot_run(why: &str) -> Message {
    Message::new(Code::Storage, format!("cannot run the service: {why}"))
}
