//! ZeroMQ's sockets on tokio: PUSH and PULL, REQ and REP, DEALER and ROUTER, PUB and SUB with their X forms, PAIR; over tcp, ipc and inproc.
//!
//! They talk to libzmq, and to whatever else speaks ZMTP 3.
//!
//! ```
//! use onward_zmtp::protocol::Message;
//! use onward_zmtp::{PullSocket, PushSocket};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), onward_zmtp::socket::Error> {
//! let mut pull = PullSocket::new();
//! // The operating system chooses a port; the answer says which.
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
//! // Sends what is queued, and waits until every task of the socket has ended.
//! assert_eq!(push.close().await, 0);
//! # Ok(())
//! # }
//! ```
//!
//! # The types
//!
//! | type | talks to | |
//! |---|---|---|
//! | [`PushSocket`], [`PullSocket`] | each other | work for one of many: in turn to those who have room, in turn from all |
//! | [`ReqSocket`], [`RepSocket`] | each other, ROUTER, DEALER | question and answer, strictly in turn |
//! | [`DealerSocket`] | DEALER, ROUTER, REP | both ways at any time: in turn to those who have room, in turn from all |
//! | [`RouterSocket`] | DEALER, ROUTER, REQ | both ways at any time: the first frame says who |
//! | [`PubSocket`], [`SubSocket`] | each other | news for all who subscribed to its topic |
//! | [`XpubSocket`], [`XsubSocket`] | as PUB and SUB | the same, with subscriptions as messages: for what stands between the two |
//! | [`PairSocket`] | each other | exactly one peer |
//!
//! What a type cannot do it has no method for: a PULL has no `send`.
//!
//! # What holds for all of them
//!
//! - **Nothing waits without a bound.** Queues have [marks](HighWaterMark) in messages and bytes, for each peer and each way; at a mark, whoever sends
//!   waits. Where a message must be dropped (a subscriber that does not read, a peer that is gone) it is [counted](Statistics).
//! - **Connections look after themselves.** Heartbeats, reconnects with a growing and random [back-off](Reconnect), and ends happen while the
//!   program is elsewhere. A peer that is gone gets no more messages; what it was not sent goes to others, or waits for its return.
//! - **Futures can be dropped.** A `recv` that is dropped has taken nothing, a `send` that is dropped has sent nothing, so both may stand in
//!   `select!` and `timeout`.
//! - **Dropping a socket closes it,** and leaves no task behind. What is queued is sent in the background for as long as the socket
//!   [lingers](SocketOptions::linger) *and its runtime lives*: before `main` returns, [`close`](Socket::close) it.
//! - **A peer can end its own connection and nothing else**: see [`protocol`](crate::protocol#what-a-peer-can-do-to-us). Those who connect and say
//!   nothing keep nobody out.
//! - **What happens is told**, with reasons, by a [`Monitor`].
//!
//! `Ok` from `send` says that a message is queued; there are no acknowledgements. If a connection breaks while a message is being written,
//! nobody knows whether it arrived; the [event](MonitorEvent::Disconnected) says how many these are. Whoever needs to know asks for an answer.
//!
//! # Two tasks
//!
//! Sending and receiving need the socket exclusively. [`Socket::split`] gives each a half of its own; sockets and halves are also a
//! [`Stream`](futures_core::Stream) and a [`Sink`](futures_sink::Sink).
//!
//! ```
//! use onward_zmtp::{DealerSocket, RouterSocket};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), onward_zmtp::socket::Error> {
//! let router = RouterSocket::new();
//! let endpoint = router.bind("inproc://echo").await?;
//! let (mut answers, mut questions) = router.split();
//! tokio::spawn(async move {
//!     while let Ok(message) = questions.recv().await {
//!         // The identity is still in front, so it goes back to whoever sent it.
//!         let _ = answers.send(message).await;
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
//! # Who may connect
//!
//! Mechanisms are set with [`SocketOptions::security`], and servers of PLAIN and CURVE ask [a function](SocketOptions::authenticate_with) of
//! yours. `inproc` has no mechanisms: it asks nobody, and a socket with one is not bound or connected to it.
//!
//! # What they do not do
//!
//! There are no draft types (CLIENT, SERVER, RADIO, DISH and others), no udp, pgm, websockets or vmci, no GSSAPI, and no versions of the protocol before 3.0.

mod allowed;
mod authentication;
mod backoff;
mod batch;
mod bounds;
mod connector;
mod delivery;
mod dialogue;
mod driver;
mod endpoint;
mod error;
mod halves;
mod inproc;
mod interest;
mod keepalive;
pub mod kind;
mod leftovers;
pub mod limits;
mod link;
mod listener;
mod misuse;
#[cfg(all(test, onward_loom))]
mod models;
mod monitor;
mod names;
mod options;
mod origin;
mod owner;
mod pipe;
mod proxy;
mod queue;
mod receive;
mod refusal;
mod rest;
mod roster;
mod rotation;
mod route;
mod send;
mod share;
mod shared;
mod statistics;
mod stop;
mod succession;
mod topics;
mod transport;
mod typed;
mod write_costs;

pub use allowed::AddressRange;
pub use authentication::{Candidate, Decision};
pub use endpoint::Endpoint;
pub use error::{Error, Result};
pub use keepalive::TcpKeepalive;
pub use monitor::{Monitor, MonitorEvent};
pub use names::{
    DealerSocket, PairSocket, PubSocket, PullSocket, PushSocket, RepSocket, ReqSocket, RouterSocket, SubSocket,
    XpubSocket, XsubSocket,
};
pub use options::{DuplicateIdentity, HighWaterMark, Overflow, Reconnect, Refusal, SocketOptions};
pub use origin::RemotePeer;
pub use proxy::Proxy;
pub use receive::Receiver;
pub use send::{Sender, TrySendError};
pub use statistics::{QueueSize, Statistics};
pub use typed::Socket;
