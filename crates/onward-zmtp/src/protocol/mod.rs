//! ZMTP 3.1 without I/O: bytes in, events out.
//!
//! A [`Connection`] is one end of a stream to a ZeroMQ peer (libzmq, or any other that speaks ZMTP
//! 3.0 or later). The caller passes it the received bytes and takes [`Event`]s. The caller adds
//! [`Message`]s and writes the bytes in its [`Output`]. A connection opens no socket, reads no
//! clock and draws no random numbers: the caller passes the time and the [`Entropy`] as values. The
//! whole protocol is therefore tested without a network, and it works with blocking streams and
//! with any runtime.
//!
//! # Example
//!
//! This example links two ends by hand. A program has a stream between them and makes the same
//! calls in the same order.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Instant;
//!
//! use bytes::Buf;
//! use onward_zmtp::protocol::{Connection, Entropy, Error, Event, Message, Options, SocketType};
//!
//! /// Does the work of the loop around a stream: writes, reads, takes events.
//! fn carry(
//!     from: &mut Connection,
//!     to: &mut Connection,
//!     now: Instant,
//! ) -> Result<Vec<Event>, Error> {
//!     let mut events = Vec::new();
//!     while from.wants_write() {
//!         let taken = to.receive(from.output().chunk());
//!         from.output().advance(taken);
//!         while let Some(event) = to.poll_event(now)? {
//!             events.push(event);
//!         }
//!     }
//!     Ok(events)
//! }
//!
//! let now = Instant::now();
//! let mut push =
//!     Connection::new(Arc::new(Options::new(SocketType::Push)), Entropy::from_system()?, now);
//! let mut pull =
//!     Connection::new(Arc::new(Options::new(SocketType::Pull)), Entropy::from_system()?, now);
//! while push.wants_write() || pull.wants_write() {
//!     carry(&mut push, &mut pull, now)?;
//!     carry(&mut pull, &mut push, now)?;
//! }
//! assert_eq!(push.peer().map(|peer| peer.socket_type()), Some(SocketType::Pull));
//!
//! push.send(Message::from("work"))?;
//! let events = carry(&mut push, &mut pull, now)?;
//! assert!(matches!(&events[..], [Event::Message(message)] if message.frames() == ["work"]));
//! # Ok::<(), Error>(())
//! ```
//!
//! # Authentication
//!
//! The server of PLAIN and CURVE requests a decision with [`Event::Authenticate`]. It decodes
//! nothing more from the peer until the caller has decided.
//!
//! ```
//! use onward_zmtp::protocol::{Connection, Credentials, Error, PublicKey};
//!
//! fn decide(
//!     connection: &mut Connection,
//!     shown: &Credentials,
//!     welcome: &[PublicKey],
//! ) -> Result<(), Error> {
//!     match shown {
//!         Credentials::Curve { key } if welcome.contains(key) => connection.accept(),
//!         _ => connection.refuse("400"),
//!     }
//! }
//! ```
//!
//! # Hostile peers
//!
//! - The worst that received bytes can cause is an [`Error`] that ends the connection. Memory grows
//!   with the bytes received, never with an announced length, and every buffer has a limit:
//!   [`Limits`].
//! - Until its handshake is done, a peer has [`HANDSHAKE_TIMEOUT`] and a buffer of
//!   [`bounds::HANDSHAKE_BUFFER_BYTES`], and it is no destination for messages. The listener must
//!   limit the number of simultaneous handshakes.
//! - The mechanism must match exactly, and there is no fallback to older versions of the protocol.
//! - A small message that the program keeps holds no memory but its own bytes.
//!
//! # Out of scope
//!
//! The protocol knows the socket types and which of them are compatible
//! ([`SocketType::is_compatible_with`]), but not how each of them routes. Reconnecting, queueing
//! and unique identities are left to the sockets. RADIO and DISH groups (`JOIN`, `LEAVE`) and
//! GSSAPI are not implemented.

pub mod bounds;
mod connection;
mod error;
mod event;
mod greeting;
mod heartbeat;
mod identity;
mod limits;
mod mechanism;
mod message;
mod metadata;
mod options;
mod socket_type;
mod state;
mod subscriptions;
pub(crate) mod topic_lengths;
mod traffic;
mod wire;

pub use connection::Connection;
pub use error::{Error, Result};
pub use event::{Event, Peer};
#[cfg(feature = "tokio")]
pub(crate) use greeting::{GREETING_BEGINNING, GREETING_BYTES};
pub use identity::Identity;
pub use limits::Limits;
pub use mechanism::{Credentials, Entropy, KeyPair, Password, PublicKey, SecretKey, Security};
pub use message::{IntoFrame, Message};
pub use metadata::Metadata;
pub use options::{HANDSHAKE_TIMEOUT, HEARTBEAT_TTL_LONGEST, Heartbeat, Options};
pub use socket_type::SocketType;
pub use subscriptions::Subscriptions;
#[cfg(feature = "tokio")]
pub(crate) use wire::message_run::MessageRun;
pub use wire::output::Output;
