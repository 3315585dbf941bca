//! The I/O of a handshake with a SOCKS proxy.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::handshake::{Failure, Handshake, READ_BYTES};
use super::options::SocksProxy;

/// The reason why there is no connection through a proxy.
pub(in crate::socket) enum TunnelError {
    /// The proxy replied with a failure.
    Failed(Failure),
    /// The stream to the proxy failed.
    Io(io::Error),
}

/// Makes a proxy connect to the destination of a request. Afterwards the stream leads to the
/// destination, and nothing of it has been read.
pub(in crate::socket) async fn open<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    proxy: &SocksProxy,
    request: &[u8],
) -> Result<(), TunnelError> {
    let mut handshake = Handshake::new(proxy.login(), request);
    let mut output = handshake.greeting();
    let mut buffer = [0; READ_BYTES];
    loop {
        stream.write_all(output).await.map_err(TunnelError::Io)?;
        let octets = &mut buffer[..handshake.wanted()];
        if octets.is_empty() {
            return Ok(());
        }
        stream.read_exact(octets).await.map_err(|error| TunnelError::Io(name_end(error, &handshake)))?;
        output = handshake.receive(octets).map_err(TunnelError::Failed)?;
    }
}

/// Adds to the error of an ended stream what was still to come.
fn name_end(error: io::Error, handshake: &Handshake<'_>) -> io::Error {
    if error.kind() != io::ErrorKind::UnexpectedEof {
        return error;
    }
    io::Error::new(error.kind(), format!("the proxy closed the connection before {}", handshake.expects()))
}
