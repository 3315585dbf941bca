//! The rows of sockets on rzmq 0.5.

use std::sync::OnceLock;

use anyhow::{Context as _, Result};
use bench_protocol::run;
use bench_sockets::{Echoes, Receives, Sends, Socket, System};
use bytes::Bytes;
use rzmq::socket::options::{RCVHWM, SNDHWM};
use rzmq::{Context, Msg, SocketType};

fn main() -> Result<()> {
    run("rzmq", bench_sockets::run::<Rzmq>)
}

struct Rzmq;

/// The high-water mark. The default of 1000 messages is too small for the shape `batch`, which
/// would wait for ever.
const MARK: i32 = 4096;

const PUSH: u8 = 0;
const PULL: u8 = 1;
const DEALER: u8 = 2;
const ROUTER: u8 = 3;

impl System for Rzmq {
    type Push = Theirs<PUSH>;
    type Pull = Theirs<PULL>;
    type Dealer = Theirs<DEALER>;
    type Router = Theirs<ROUTER>;
}

struct Theirs<const KIND: u8>(rzmq::Socket);

impl<const KIND: u8> Theirs<KIND> {
    async fn new() -> Result<Self> {
        static CONTEXT: OnceLock<Option<Context>> = OnceLock::new();
        let context = CONTEXT.get_or_init(|| Context::new().ok()).as_ref().context("rzmq made no context")?;
        let kind = match KIND {
            PUSH => SocketType::Push,
            PULL => SocketType::Pull,
            DEALER => SocketType::Dealer,
            _ => SocketType::Router,
        };
        let socket = context.socket(kind)?;
        for option in [SNDHWM, RCVHWM] {
            socket.set_option(option, MARK).await?;
        }
        Ok(Self(socket))
    }
}

impl<const KIND: u8> Socket for Theirs<KIND> {
    async fn bind(endpoint: &str) -> Result<Self> {
        let new = Self::new().await?;
        new.0.bind(endpoint).await?;
        Ok(new)
    }

    async fn connect(endpoint: &str) -> Result<Self> {
        let new = Self::new().await?;
        new.0.connect(endpoint).await?;
        Ok(new)
    }
}

impl<const KIND: u8> Sends for Theirs<KIND> {
    async fn send(&mut self, payload: Bytes) -> Result<()> {
        Ok(self.0.send(Msg::from_bytes(payload)).await?)
    }
}

/// Only the last frame of a received message counts, because a ROUTER's messages come in frames.
impl<const KIND: u8> Receives for Theirs<KIND> {
    type Message = Msg;

    async fn recv(&mut self) -> Result<Msg> {
        if KIND == ROUTER {
            return self.0.recv_multipart().await?.pop().context("a message without frames");
        }
        Ok(self.0.recv().await?)
    }

    fn body(message: &Msg) -> &[u8] {
        message.data().unwrap_or_default()
    }
}

impl Echoes for Theirs<ROUTER> {
    async fn echo(&mut self) -> Result<()> {
        let frames = self.0.recv_multipart().await?;
        Ok(self.0.send_multipart(frames).await?)
    }
}
