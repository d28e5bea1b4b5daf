//! How parent and child meet and wait for each other: at a Unix socket in the data directory, which
//! exists only while a child is being started, and then over the connection.

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// A socket that waits for one child. Dropping it removes it from the directory.
pub(crate) struct Rendezvous {
    listener: UnixListener,
    path: PathBuf,
}

impl Rendezvous {
    /// Waits at this path. What a process that was killed left there is replaced: the directory has
    /// one owner, and that is us.
    pub(crate) fn at(path: PathBuf) -> io::Result<Self> {
        let listener = private_listener(&path, 1)?;
        Ok(Self { listener, path })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the connection of this process; `None` if it is not there yet. Anybody else is turned
    /// away.
    pub(crate) fn take(&self, pid: u32) -> io::Result<Option<UnixStream>> {
        let stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        let peer = rustix::net::sockopt::socket_peercred(&stream)?.pid;
        Ok((u32::try_from(peer.as_raw_nonzero().get()) == Ok(pid)).then_some(stream))
    }
}

impl AsFd for Rendezvous {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for Rendezvous {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Listens at a path that only the owner can connect to, from the first moment on. An existing file is
/// replaced: call it as the owner of the directory. The listener does not block.
pub fn private_listener(path: &Path, backlog: i32) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The mode of the socket becomes the mode of its path.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    through_short_path(path, |short| {
        Ok(rustix::net::bind(&socket, &SocketAddrUnix::new(short)?)?)
    })?;
    let listen = || -> io::Result<()> {
        // Before anybody can connect: a file system may have its own idea of modes.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(rustix::net::listen(&socket, backlog)?)
    };
    if let Err(error) = listen() {
        let _ = std::fs::remove_file(path);
        return Err(error);
    }
    Ok(UnixListener::from(socket))
}

/// What one end may send before the other has taken any of it. A batch fits whole, so that its sender
/// is not woken for every piece that was taken. The kernel gives less where it allows no more.
const ROOM_BYTES: usize = 1 << 20;

/// Makes room for what is sent through this end.
pub(crate) fn make_room(stream: &UnixStream) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_socket_send_buffer_size(stream, ROOM_BYTES)?)
}

/// How long to wait for the other end.
pub(crate) trait Patience {
    /// The time between two looks; `None` to wait without looking.
    const PAUSE: Option<Duration>;

    /// Asked after each pause; an error ends the waiting.
    fn look(&mut self) -> io::Result<()>;
}

/// The patience of a child, which has nothing else to do.
pub(crate) struct Endless;

impl Patience for Endless {
    const PAUSE: Option<Duration> = None;

    fn look(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One end of a connection, which must not block by itself.
///
/// It waits by `poll`, not in `read`: in there, the kernel would also wake it whenever the other end
/// has taken a piece of what was sent, for nothing.
pub(crate) struct ChildStream<'a, P> {
    pub(crate) stream: &'a UnixStream,
    pub(crate) patience: P,
    /// Whether anything was sent.
    pub(crate) began: bool,
}

impl<'a, P: Patience> ChildStream<'a, P> {
    pub(crate) fn new(stream: &'a UnixStream, patience: P) -> Self {
        Self { stream, patience, began: false }
    }

    fn patiently(
        &mut self,
        event: PollFlags,
        mut act: impl FnMut(&UnixStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            match act(self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            if poll(&mut [PollFd::new(self.stream, event)], P::PAUSE)? == 0 {
                self.patience.look()?;
            }
        }
    }
}

impl<P: Patience> Read for ChildStream<'_, P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.patiently(PollFlags::IN, |mut stream| stream.read(buffer))
    }
}

impl<P: Patience> Write for ChildStream<'_, P> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let sent = self.patiently(PollFlags::OUT, |mut stream| stream.write_vectored(pieces))?;
        self.began = true;
        Ok(sent)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Waits for one of these events; zero if the time is over first.
pub(crate) fn poll(events: &mut [PollFd<'_>], time_max: Option<Duration>) -> io::Result<usize> {
    let time_max = time_max.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
    loop {
        match rustix::event::poll(events, time_max.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            ready => return Ok(ready?),
        }
    }
}

/// The child's way in.
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    through_short_path(path, UnixStream::connect)
}

/// Socket addresses hold about a hundred bytes, directories can be deeper: the directory is opened
/// and the socket named through the file descriptor.
pub fn through_short_path<T>(
    path: &Path,
    open: impl FnOnce(PathBuf) -> io::Result<T>,
) -> io::Result<T> {
    const ADDRESS_BYTES_MAX: usize = 100;
    if path.as_os_str().len() <= ADDRESS_BYTES_MAX {
        return open(path.to_owned());
    }
    let parent = path.parent().unwrap_or(Path::new("/"));
    let directory = std::fs::File::open(parent)?;
    let name = path.file_name().unwrap_or_default();
    open(PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_the_owner_may_connect_and_nothing_is_left_behind() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("parser.sock");
        let rendezvous = Rendezvous::at(path.clone()).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(rendezvous);
        assert!(!path.exists());
    }

    #[test]
    fn a_stale_socket_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("parser.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let rendezvous = Rendezvous::at(path.clone()).unwrap();
        let _stream = connect(&path).unwrap();
        assert!(rendezvous.take(std::process::id()).unwrap().is_some());
    }

    #[test]
    fn another_process_is_turned_away() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("parser.sock");
        let rendezvous = Rendezvous::at(path.clone()).unwrap();
        let _stream = connect(&path).unwrap();
        assert!(rendezvous.take(std::process::id() + 1).unwrap().is_none());
    }

    #[test]
    fn directories_may_be_deep() {
        let directory = tempfile::tempdir().unwrap();
        let deep = directory.path().join("d".repeat(200));
        std::fs::create_dir(&deep).unwrap();
        let path = deep.join("parser.sock");
        let rendezvous = Rendezvous::at(path.clone()).unwrap();
        let _stream = connect(&path).unwrap();
        assert!(rendezvous.take(std::process::id()).unwrap().is_some());
    }
}
