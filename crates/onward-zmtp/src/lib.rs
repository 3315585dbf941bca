//! A fair queue over many sources, and sockets compatible with ZeroMQ.
//!
//! * [`FairQueue`] reads from many sources (connections, channels, any
//!   [`Stream`](futures_core::Stream)) and starves none of them. It needs neither sockets nor a
//!   runtime. [Its module](fair_queue) has a complete example and explains how the queue works and
//!   what it costs.
//! * [`socket`] has the ZeroMQ sockets on tokio, from PUSH to XSUB. They interoperate with libzmq
//!   and with each other.
//! * [`blocking`] has the same sockets for programs without a runtime.
//! * [`protocol`] is ZMTP 3.1 as a state machine without I/O: bytes in, events out. It runs on any
//!   stream and any runtime, or without one.
//!
//! ```
//! use onward_zmtp::{RepSocket, ReqSocket};
//!
//! # #[cfg(feature = "tokio")]
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), onward_zmtp::socket::Error> {
//!     let mut server = RepSocket::new();
//!     let endpoint = server.bind("tcp://127.0.0.1:*").await?;
//!     tokio::spawn(async move {
//!         while let Ok(request) = server.recv().await {
//!             println!("request: {request:?}");
//!             if server.send("42").await.is_err() {
//!                 break;
//!             }
//!         }
//!     });
//!
//!     let mut client = ReqSocket::new();
//!     client.connect(&endpoint)?;
//!     client.send("what is six times seven?").await?;
//!     assert_eq!(client.recv().await?.frames(), ["42"]);
//!     // Sends queued messages before the runtime ends with `main`.
//!     client.close().await;
//!     Ok(())
//! }
//! # #[cfg(not(feature = "tokio"))]
//! # fn main() {}
//! ```
//!
//! The sockets require the feature `tokio`, which is on by default. Without it, the crate needs no
//! runtime.

#[cfg(feature = "tokio")]
pub mod blocking;
#[cfg(all(doctest, feature = "tokio"))]
mod documentation;
pub mod fair_queue;
pub mod protocol;
#[cfg(feature = "tokio")]
pub mod socket;

pub use fair_queue::FairQueue;
#[cfg(feature = "tokio")]
pub use socket::{
    DealerSocket, PairSocket, PubSocket, PullSocket, PushSocket, RepSocket, ReqSocket, RouterSocket, Socket,
    SocketOptions, SubSocket, XpubSocket, XsubSocket,
};
