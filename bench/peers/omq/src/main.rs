//! The rows of sockets on omq-tokio 0.33.

use anyhow::Result;
use bench_protocol::run;
use bench_sockets::{Echoes, Receives, Sends, Socket, System};
use bytes::Bytes;
use omq_tokio::{Endpoint, Message, Options, SocketType};

fn main() -> Result<()> {
    run("omq", bench_sockets::run::<Omq>)
}

struct Omq;

const PUSH: u8 = 0;
const PULL: u8 = 1;
const DEALER: u8 = 2;
const ROUTER: u8 = 3;

impl System for Omq {
    type Push = Theirs<PUSH>;
    type Pull = Theirs<PULL>;
    type Dealer = Theirs<DEALER>;
    type Router = Theirs<ROUTER>;
}

/// A socket on the caller's runtime.
struct Theirs<const KIND: u8> {
    socket: omq_tokio::Socket,
    taken: Vec<Message>,
}

impl<const KIND: u8> Theirs<KIND> {
    fn new() -> Self {
        let kind = match KIND {
            PUSH => SocketType::Push,
            PULL => SocketType::Pull,
            DEALER => SocketType::Dealer,
            _ => SocketType::Router,
        };
        Self { socket: omq_tokio::Socket::new(kind, Options::default()), taken: Vec::new() }
    }
}

impl<const KIND: u8> Socket for Theirs<KIND> {
    async fn bind(endpoint: &str) -> Result<Self> {
        let new = Self::new();
        new.socket.bind(endpoint.parse::<Endpoint>()?).await?;
        Ok(new)
    }

    async fn connect(endpoint: &str) -> Result<Self> {
        let new = Self::new();
        new.socket.connect(endpoint.parse::<Endpoint>()?).await?;
        Ok(new)
    }
}

impl<const KIND: u8> Sends for Theirs<KIND> {
    async fn send(&mut self, payload: Bytes) -> Result<()> {
        Ok(self.socket.send(Message::single(payload)).await?)
    }
}

impl<const KIND: u8> Receives for Theirs<KIND> {
    type Message = Message;

    async fn recv(&mut self) -> Result<Message> {
        Ok(self.socket.recv().await?)
    }

    fn body(message: &Message) -> &[u8] {
        message.part_slice(message.len().saturating_sub(1)).unwrap_or_default()
    }

    async fn recv_many(&mut self, limit: usize) -> Result<usize> {
        self.taken.clear();
        Ok(self.socket.recv_many_into(limit, &mut self.taken).await?)
    }
}

impl Echoes for Theirs<ROUTER> {
    async fn echo(&mut self) -> Result<()> {
        let message = self.socket.recv().await?;
        Ok(self.socket.send(message).await?)
    }
}
