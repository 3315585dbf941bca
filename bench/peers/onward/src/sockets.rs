//! Onward's sockets, for the rows of sockets.

use anyhow::Result;
use bench_sockets::{Echoes, Receives, Sends, Socket, System};
use bytes::Bytes;
use onward_zmtp::protocol::Message;
use onward_zmtp::socket::kind::{self, Dealer, Pull, Push, Router};

/// The system of Onward's sockets, as the workloads use it.
pub(crate) struct Ours;

impl System for Ours {
    type Push = Own<Push>;
    type Pull = Own<Pull>;
    type Dealer = Own<Dealer>;
    type Router = Own<Router>;
}

pub(crate) struct Own<T> {
    socket: onward_zmtp::Socket<T>,
    taken: Vec<Message>,
    queued: Vec<Message>,
}

impl<T: kind::Kind> Own<T> {
    fn new() -> Self {
        Self { socket: onward_zmtp::Socket::new(), taken: Vec::new(), queued: Vec::new() }
    }
}

impl<T: kind::Kind> Socket for Own<T> {
    async fn bind(endpoint: &str) -> Result<Self> {
        let new = Self::new();
        new.socket.bind(endpoint).await?;
        Ok(new)
    }

    async fn connect(endpoint: &str) -> Result<Self> {
        let new = Self::new();
        new.socket.connect(endpoint)?;
        Ok(new)
    }
}

impl<T: kind::Sends> Sends for Own<T> {
    async fn send(&mut self, payload: Bytes) -> Result<()> {
        Ok(self.socket.send(payload).await?)
    }

    async fn send_many(&mut self, payload: &Bytes, count: usize) -> Result<()> {
        self.queued.extend((0..count).map(|_| Message::from(payload.clone())));
        Ok(self.socket.send_many(&mut self.queued).await?)
    }
}

impl<T: kind::Receives> Receives for Own<T> {
    type Message = Message;

    async fn recv(&mut self) -> Result<Message> {
        Ok(self.socket.recv().await?)
    }

    fn body(message: &Message) -> &[u8] {
        message.frames().last().map_or(&[], |frame| &frame[..])
    }

    async fn recv_many(&mut self, limit: usize) -> Result<usize> {
        self.taken.clear();
        Ok(self.socket.recv_many(&mut self.taken, limit).await?)
    }
}

impl Echoes for Own<Router> {
    async fn echo(&mut self) -> Result<()> {
        let message = self.socket.recv().await?;
        Ok(self.socket.send(message).await?)
    }
}
