//! The rows of sockets on zmq.rs 0.7.

use anyhow::{Context as _, Result};
use bench_protocol::run;
use bench_sockets::{Echoes, Receives, Sends, Socket, System};
use bytes::Bytes;
use zeromq::prelude::{SocketRecv as _, SocketSend as _};
use zeromq::{DealerSocket, PullSocket, PushSocket, RouterSocket, ZmqMessage};

fn main() -> Result<()> {
    run("zmq-rs", bench_sockets::run::<ZmqRs>)
}

struct ZmqRs;

impl System for ZmqRs {
    type Push = Theirs<PushSocket>;
    type Pull = Theirs<PullSocket>;
    type Dealer = Theirs<DealerSocket>;
    type Router = Theirs<RouterSocket>;
}

struct Theirs<S>(S);

impl<S: zeromq::Socket + Sync + 'static> Socket for Theirs<S> {
    async fn bind(endpoint: &str) -> Result<Self> {
        let mut socket = S::new();
        socket.bind(endpoint).await.context("bind")?;
        Ok(Self(socket))
    }

    async fn connect(endpoint: &str) -> Result<Self> {
        let mut socket = S::new();
        socket.connect(endpoint).await.context("connect")?;
        Ok(Self(socket))
    }
}

impl<S: zeromq::Socket + zeromq::SocketSend + Sync + 'static> Sends for Theirs<S> {
    async fn send(&mut self, payload: Bytes) -> Result<()> {
        Ok(self.0.send(ZmqMessage::from(payload)).await?)
    }
}

impl<S: zeromq::Socket + zeromq::SocketRecv + Sync + 'static> Receives for Theirs<S> {
    type Message = ZmqMessage;

    async fn recv(&mut self) -> Result<ZmqMessage> {
        Ok(self.0.recv().await?)
    }

    fn body(message: &ZmqMessage) -> &[u8] {
        message.get(message.len().saturating_sub(1)).map_or(&[], |frame| &frame[..])
    }
}

impl Echoes for Theirs<RouterSocket> {
    async fn echo(&mut self) -> Result<()> {
        let message = self.0.recv().await?;
        Ok(self.0.send(message).await?)
    }
}
