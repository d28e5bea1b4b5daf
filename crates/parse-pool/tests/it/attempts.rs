//! Ways out of a jail. Each works outside, or the tests would prove nothing.

use std::fs::File;
use std::io::{self, Read};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Command;

use rustix::net::{AddressFamily, SocketType};
use rustix::process::{Pid, Resource, Rlimit};

/// Something a prisoner might try.
pub(crate) struct Attempt {
    pub(crate) name: &'static str,
    pub(crate) run: fn() -> io::Result<()>,
}

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt { name: "read a file", run: || File::open("/etc/passwd").map(drop) },
    Attempt { name: "read its own program", run: || File::open("/proc/self/exe").map(drop) },
    Attempt { name: "list a directory", run: || std::fs::read_dir("/").map(drop) },
    Attempt { name: "look at a file", run: || std::fs::metadata("/etc").map(drop) },
    Attempt { name: "write a file", run: || tempfile::tempfile().map(drop) },
    Attempt { name: "change directory", run: || std::env::set_current_dir("/") },
    Attempt { name: "make a pipe", run: || io::pipe().map(drop) },
    Attempt { name: "talk TCP", run: || open_socket(AddressFamily::INET, SocketType::STREAM) },
    Attempt { name: "talk UDP", run: || open_socket(AddressFamily::INET6, SocketType::DGRAM) },
    Attempt { name: "listen", run: || TcpListener::bind("127.0.0.1:0").map(drop) },
    Attempt { name: "bind UDP", run: || UdpSocket::bind("127.0.0.1:0").map(drop) },
    Attempt { name: "talk to local services", run: || UnixDatagram::unbound().map(drop) },
    Attempt { name: "make a pair of sockets", run: || UnixStream::pair().map(drop) },
    Attempt { name: "start a program", run: start_program },
    Attempt { name: "start a thread", run: start_thread },
    Attempt { name: "read from another descriptor", run: || io::stdin().read(&mut [0]).map(drop) },
    Attempt { name: "send a signal", run: send_signal },
    Attempt { name: "change a limit", run: change_limit },
    Attempt {
        name: "duplicate a descriptor",
        run: || Ok(rustix::io::dup(io::stdout()).map(drop)?),
    },
];

/// What each attempt came to, one line each: `no` or `yes`, and the attempt.
pub(crate) fn report() -> String {
    let line = |attempt: &Attempt| {
        let word = if (attempt.run)().is_ok() { "yes" } else { "no" };
        format!("{word}: {}\n", attempt.name)
    };
    ATTEMPTS.iter().map(line).collect()
}

fn open_socket(family: AddressFamily, kind: SocketType) -> io::Result<()> {
    Ok(rustix::net::socket(family, kind, None).map(drop)?)
}

fn start_program() -> io::Result<()> {
    Command::new("true").status().map(drop)
}

fn start_thread() -> io::Result<()> {
    std::thread::Builder::new().spawn(|| ()).map(drop)
}

/// Signal zero, to itself: asks whether a signal could be sent.
fn send_signal() -> io::Result<()> {
    let own = i32::try_from(std::process::id()).ok().and_then(Pid::from_raw);
    Ok(rustix::process::test_kill_process(own.ok_or(io::ErrorKind::NotFound)?)?)
}

/// Lowers a limit, which everybody may do outside.
fn change_limit() -> io::Result<()> {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    Ok(rustix::process::setrlimit(Resource::Core, none)?)
}
