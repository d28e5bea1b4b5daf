//! The one place where Telusur opens a connection. It takes a [`CheckedAddress`] and nothing else.

use std::io;

use tokio::net::TcpStream;

use crate::guard::CheckedAddress;

/// Connects to an address that the guard let through.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the guarded connector that every other part is sent to"
)]
pub(crate) async fn dial(address: CheckedAddress) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address.socket()).await?;
    // A request is one small write; waiting for more to send with it would only delay it.
    stream.set_nodelay(true)?;
    Ok(stream)
}
