//! The interface of the sockets under test.

use std::future::Future;

use anyhow::{Result, bail};
use bytes::Bytes;

use crate::one_way::BETWEEN_YIELDS;

/// Sockets on tokio: one type for each ZeroMQ socket type that the rows use.
pub trait System {
    /// The PUSH socket.
    type Push: Sends;
    /// The PULL socket.
    type Pull: Receives;
    /// The DEALER socket.
    type Dealer: Sends + Receives;
    /// The ROUTER socket.
    type Router: Receives + Echoes;
}

/// A socket.
pub trait Socket: Sized + Send + 'static {
    /// Binds a socket to the endpoint.
    fn bind(endpoint: &str) -> impl Future<Output = Result<Self>> + Send;
    /// Connects a socket to the endpoint, now or later.
    fn connect(endpoint: &str) -> impl Future<Output = Result<Self>> + Send;
}

/// A socket that sends.
pub trait Sends: Socket {
    /// Sends a message of one frame.
    fn send(&mut self, payload: Bytes) -> impl Future<Output = Result<()>> + Send;

    /// Sends `count` messages with the same frame, in one call if the socket can. Otherwise it
    /// yields in between, as in the other shapes.
    fn send_many(&mut self, payload: &Bytes, count: usize) -> impl Future<Output = Result<()>> + Send {
        async move {
            for index in 0..count {
                if index > 0 && index % BETWEEN_YIELDS == 0 {
                    tokio::task::yield_now().await;
                }
                self.send(payload.clone()).await?;
            }
            Ok(())
        }
    }
}

/// A socket that receives.
pub trait Receives: Socket {
    /// The received message.
    type Message: Send;

    /// Receives a message, with the envelope that a ROUTER gives it.
    fn recv(&mut self) -> impl Future<Output = Result<Self::Message>> + Send;

    /// Returns the last frame of a message.
    fn body(message: &Self::Message) -> &[u8];

    /// Receives and drops up to `limit` messages, and returns their number.
    fn recv_many(&mut self, _limit: usize) -> impl Future<Output = Result<usize>> + Send {
        async { bail!("it takes one message at a time") }
    }
}

/// A socket that can reply.
pub trait Echoes: Socket {
    /// Receives a message and sends it back to its sender.
    fn echo(&mut self) -> impl Future<Output = Result<()>> + Send;
}
