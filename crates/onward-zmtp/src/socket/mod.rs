//! ZeroMQ's sockets on tokio: PUSH and PULL, REQ and REP, DEALER and ROUTER, PUB and SUB with their
//! X forms, PAIR; over tcp, ipc and inproc.
//!
//! They talk to libzmq, and to any other implementation of ZMTP 3.
//!
//! ```
//! use onward_zmtp::protocol::Message;
//! use onward_zmtp::{PullSocket, PushSocket};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), onward_zmtp::socket::Error> {
//! let mut pull = PullSocket::new();
//! // The operating system chooses a port; `bind` returns it.
//! let endpoint = pull.bind("tcp://127.0.0.1:*").await?;
//!
//! let mut push = PushSocket::new();
//! // Returns at once, and connects again whenever the connection is lost.
//! push.connect(&endpoint)?;
//! push.send("a frame").await?;
//! push.send(Message::from_iter(["two", "frames"])).await?;
//!
//! assert_eq!(pull.recv().await?.frames(), ["a frame"]);
//! assert_eq!(pull.recv().await?.frames(), ["two", "frames"]);
//! // Sends queued messages, and waits until every task of the socket has ended.
//! assert_eq!(push.close().await, 0);
//! # Ok(())
//! # }
//! ```
//!
//! # The types
//!
//! | type | talks to | |
//! |---|---|---|
//! | [`PushSocket`], [`PullSocket`] | each other | work, each message for one peer in turn |
//! | [`ReqSocket`], [`RepSocket`] | each other, ROUTER, DEALER | request and reply in turn |
//! | [`DealerSocket`] | DEALER, ROUTER, REP | both ways at any time, in turn |
//! | [`RouterSocket`] | DEALER, ROUTER, REQ | both ways; the first frame names the peer |
//! | [`PubSocket`], [`SubSocket`] | each other | messages for all subscribers of a topic |
//! | [`XpubSocket`], [`XsubSocket`] | as PUB and SUB | subscriptions are messages |
//! | [`PairSocket`] | each other | exactly one peer |
//!
//! A type has no method for an operation that it does not support: a PULL has no `send`. To send in
//! turn means to the next peer that has room.
//!
//! # Guarantees of all types
//!
//! - **Every queue is bounded.** Queues have [high-water marks](HighWaterMark) in messages and
//!   bytes, for each peer and each direction. At a high-water mark, the sender waits.
//! - **Every loss is counted.** A message is dropped if a subscriber does not read or a peer is
//!   gone. The [statistics](Statistics) count it.
//! - **Connections need no care.** Heartbeats, reconnects with a growing and random
//!   [back-off](Reconnect), and ends happen while the program does something else. A disconnected
//!   peer gets no more messages. Its unsent messages go to other peers, or wait for its return.
//! - **Futures can be dropped.** A dropped `recv` has taken nothing, and a dropped `send` has sent
//!   nothing. Both can be used in `select!` and `timeout`.
//! - **Dropping a socket closes it,** and leaves no task behind. Queued messages are sent in the
//!   background for as long as the socket [lingers](SocketOptions::linger) *and its runtime lives*:
//!   before `main` returns, [`close`](Socket::close) it.
//! - **A peer can end its own connection and nothing else**: see
//!   [`protocol`](crate::protocol#hostile-peers). Peers that connect and send nothing do not block
//!   others.
//! - **Events are reported**, with reasons, by a [`Monitor`].
//!
//! `Ok` from `send` means that a message is queued; there are no acknowledgements. If a connection
//! breaks while a message is being written, it is unknown whether the message arrived. The
//! [event](MonitorEvent::Disconnected) has the number of these messages. A program that must know
//! has to request a reply.
//!
//! # Two tasks
//!
//! Sending and receiving need exclusive access to the socket. [`Socket::split`] returns a half for
//! each. Sockets and halves are also a [`Stream`](futures_core::Stream) and a
//! [`Sink`](futures_sink::Sink).
//!
//! ```
//! use onward_zmtp::{DealerSocket, RouterSocket};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), onward_zmtp::socket::Error> {
//! let router = RouterSocket::new();
//! let endpoint = router.bind("inproc://echo").await?;
//! let (mut replies, mut requests) = router.split();
//! tokio::spawn(async move {
//!     while let Ok(message) = requests.recv().await {
//!         // The identity is still in front, so the reply goes back to its sender.
//!         let _ = replies.send(message).await;
//!     }
//! });
//!
//! let mut dealer = DealerSocket::new();
//! dealer.connect(&endpoint)?;
//! dealer.send("hello").await?;
//! assert_eq!(dealer.recv().await?.frames(), ["hello"]);
//! # Ok(())
//! # }
//! ```
//!
//! # Authentication
//!
//! [`SocketOptions::security`] sets the mechanism. Servers of PLAIN and CURVE call [a
//! function](SocketOptions::authenticate_with) of the program. `inproc` has no mechanisms and no
//! check, so a socket with a mechanism cannot be bound or connected to it.
//!
//! # Not supported
//!
//! There are no draft types (CLIENT, SERVER, RADIO, DISH and others). There is no udp, pgm,
//! websockets or vmci, no GSSAPI, and no version of the protocol before 3.0.

mod aliases;
pub mod bounds;
mod connection;
mod endpoint;
mod error;
mod halves;
pub mod kind;
mod monitor;
mod options;
mod owner;
mod patterns;
mod peers;
mod proxy;
mod queue;
mod receive;
mod security;
mod send;
mod shared;
mod socks;
mod typed_socket;

pub use aliases::{
    DealerSocket, PairSocket, PubSocket, PullSocket, PushSocket, RepSocket, ReqSocket, RouterSocket, SubSocket,
    XpubSocket, XsubSocket,
};
pub use endpoint::{Endpoint, Source};
pub use error::{Error, Result};
pub use monitor::events::{Monitor, MonitorEvent};
pub use monitor::statistics::{QueueSize, Statistics};
pub use options::high_water_mark::HighWaterMark;
pub use options::keepalive::TcpKeepalive;
pub use options::policies::{DuplicateIdentity, Overflow, Reconnect, RefusalPolicy};
pub use options::socket_options::SocketOptions;
pub use peers::remote_peer::RemotePeer;
pub use proxy::Proxy;
pub use receive::Receiver;
pub use security::address_range::AddressRange;
pub use security::authentication::{Candidate, Decision};
pub use send::{Sender, TrySendError};
pub use socks::options::SocksProxy;
pub use typed_socket::Socket;
