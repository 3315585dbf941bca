//! What the workloads ask of sockets.

use std::future::Future;

use anyhow::{Result, bail};
use bytes::Bytes;

use crate::one_way::BETWEEN_YIELDS;

/// Sockets on tokio: one type for each of ZeroMQ's that the rows use.
pub trait System {
    /// Its PUSH.
    type Push: Sends;
    /// Its PULL.
    type Pull: Receives;
    /// Its DEALER.
    type Dealer: Sends + Receives;
    /// Its ROUTER.
    type Router: Receives + Echoes;
}

/// A socket.
pub trait Socket: Sized + Send + 'static {
    /// One that is bound to the endpoint.
    fn bind(endpoint: &str) -> impl Future<Output = Result<Self>> + Send;
    /// One that is connected to the endpoint, or will be.
    fn connect(endpoint: &str) -> impl Future<Output = Result<Self>> + Send;
}

/// A socket that sends.
pub trait Sends: Socket {
    /// Sends a message of one frame.
    fn send(&mut self, payload: Bytes) -> impl Future<Output = Result<()>> + Send;

    /// Sends `count` messages of the same frame: all at once, if it can. Otherwise it lets others
    /// run in between, as in the other shapes.
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
    /// What it receives.
    type Message: Send;

    /// Receives a message, with the envelope that a ROUTER gives it.
    fn recv(&mut self) -> impl Future<Output = Result<Self::Message>> + Send;

    /// The last frame of a message.
    fn body(message: &Self::Message) -> &[u8];

    /// Receives and drops up to `limit` messages and answers how many.
    fn recv_many(&mut self, _limit: usize) -> impl Future<Output = Result<usize>> + Send {
        async { bail!("it takes one message at a time") }
    }
}

/// A socket that can answer.
pub trait Echoes: Socket {
    /// Receives a message and sends it back to where it came from.
    fn echo(&mut self) -> impl Future<Output = Result<()>> + Send;
}
