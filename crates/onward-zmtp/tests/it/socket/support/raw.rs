//! A peer of hand-made bytes on a real stream.

use onward_zmtp::socket::Endpoint;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::events::within;
use crate::zmtp::link::{introduction, named_introduction};

pub(crate) struct Raw(pub(crate) TcpStream);

impl Raw {
    /// Connects and sends nothing.
    pub(crate) async fn connect(endpoint: &Endpoint) -> Self {
        let Endpoint::Tcp { host, port } = endpoint else { panic!("{endpoint} is not TCP") };
        Self(TcpStream::connect((host.as_str(), *port)).await.unwrap())
    }

    /// Connects and does the handshake as a socket of this type.
    pub(crate) async fn introduced(endpoint: &Endpoint, socket_type: &str) -> Self {
        let mut raw = Self::connect(endpoint).await;
        raw.introduce(socket_type).await;
        raw
    }

    pub(crate) async fn introduce(&mut self, socket_type: &str) {
        self.exchange(&introduction(1, socket_type)).await;
    }

    /// Does the handshake with an identity.
    pub(crate) async fn introduce_as(&mut self, socket_type: &str, identity: &str) {
        self.exchange(&named_introduction(socket_type, identity.as_bytes())).await;
    }

    /// Does the handshake with an identity that need not be text.
    pub(crate) async fn introduce_as_octets(&mut self, socket_type: &str, identity: &[u8]) {
        self.exchange(&named_introduction(socket_type, identity)).await;
    }

    async fn exchange(&mut self, introduction: &[u8]) {
        self.write(introduction).await;
        // A greeting, then READY, which is a frame of less than 256 bytes.
        self.read(64).await;
        let header = self.read(2).await;
        self.read(usize::from(header[1])).await;
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        within(self.0.write_all(bytes)).await.unwrap();
    }

    pub(crate) async fn read(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        within(self.0.read_exact(&mut bytes)).await.unwrap();
        bytes
    }

    /// Reads until the other side closes. A reset counts as an end, too.
    pub(crate) async fn read_to_end(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = within(self.0.read_to_end(&mut bytes)).await;
        bytes
    }
}

/// Returns a listener for sockets that connect, and its endpoint.
pub(crate) async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    (listener, endpoint)
}

/// Accepts the next socket that connects, and does the handshake.
pub(crate) async fn accept(listener: &TcpListener, socket_type: &str) -> Raw {
    let (stream, _) = within(listener.accept()).await.unwrap();
    let mut raw = Raw(stream);
    raw.introduce(socket_type).await;
    raw
}
