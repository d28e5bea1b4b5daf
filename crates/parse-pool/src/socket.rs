//! How parent and child are connected and wait for each other: a pair of Unix sockets, of which the child
//! gets one as standard input. Nothing in the file system leads to it. Also sockets with a path, for the
//! owner of a data directory.

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// A connection for a child that is still to be started: our end, and what becomes its standard input.
pub(crate) fn pair() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    make_room(&ours)?;
    Ok((ours, theirs.into()))
}

/// The child's end, which its parent gave it as standard input. An error if that is no socket: no parser
/// pool has started this process.
pub(crate) fn of_parent() -> io::Result<UnixStream> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::net::sockopt::socket_type(&input)?;
    let stream = UnixStream::from(input);
    stream.set_nonblocking(true)?;
    make_room(&stream)?;
    Ok(stream)
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
fn make_room(stream: &UnixStream) -> io::Result<()> {
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

    fn connect(path: &Path) -> io::Result<UnixStream> {
        through_short_path(path, UnixStream::connect)
    }

    #[test]
    fn only_the_owner_may_connect() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("control.sock");
        let _listener = private_listener(&path, 1).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_stale_socket_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("control.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let listener = private_listener(&path, 1).unwrap();
        let _stream = connect(&path).unwrap();
        listener.accept().unwrap();
    }

    #[test]
    fn directories_may_be_deep() {
        let directory = tempfile::tempdir().unwrap();
        let deep = directory.path().join("d".repeat(200));
        std::fs::create_dir(&deep).unwrap();
        let path = deep.join("control.sock");
        let listener = private_listener(&path, 1).unwrap();
        let _stream = connect(&path).unwrap();
        listener.accept().unwrap();
    }
}
