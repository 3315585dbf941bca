//! ZMTP 3.1 without I/O: bytes in, events out.
//!
//! A [`Connection`] is one end of a stream to a ZeroMQ peer (libzmq, or any other that speaks ZMTP
//! 3.0 or later). It is handed the bytes that were received and yields [`Event`]s; it takes
//! [`Message`]s and has bytes to write, its [`Output`]. It opens no socket, reads no clock and
//! draws no random numbers: moments come in as values, and so does its [`Entropy`]. So all of it
//! can be tested without a network, and it fits around blocking streams as well as around any
//! runtime.
//!
//! # Example
//!
//! Two ends that are linked by hand; a program has a stream between them, and calls the same in the
//! same order.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Instant;
//!
//! use bytes::Buf;
//! use onward_zmtp::protocol::{Connection, Entropy, Error, Event, Message, Options, SocketType};
//!
//! /// What the loop around a stream does: write, read, take events.
//! fn carry(from: &mut Connection, to: &mut Connection, now: Instant) -> Result<Vec<Event>, Error>
//! { let mut events = Vec::new(); while from.wants_write() { let taken =
//! to.receive(from.output().chunk()); from.output().advance(taken); while let Some(event) =
//! to.poll_event(now)? { events.push(event); } } Ok(events) }
//!
//! let now = Instant::now(); let mut push =
//! Connection::new(Arc::new(Options::new(SocketType::Push)), Entropy::from_system()?, now); let mut
//! pull = Connection::new(Arc::new(Options::new(SocketType::Pull)), Entropy::from_system()?, now);
//! while push.wants_write() || pull.wants_write() { carry(&mut push, &mut pull, now)?; carry(&mut
//! pull, &mut push, now)?; } assert_eq!(push.peer().map(|peer| peer.socket_type()),
//! Some(SocketType::Pull));
//!
//! push.send(Message::from("work"))?;
//! let events = carry(&mut push, &mut pull, now)?;
//! assert!(matches!(&events[..], [Event::Message(message)] if message.frames() == ["work"]));
//! # Ok::<(), Error>(())
//! ```
//!
//! # Who may connect
//!
//! The server of PLAIN and CURVE asks with [`Event::Authenticate`], and nothing of the peer is decoded until it has an answer.
//!
//! ```
//! use onward_zmtp::protocol::{Connection, Credentials, Error, PublicKey};
//!
//! fn decide(connection: &mut Connection, shown: &Credentials, welcome: &[PublicKey]) -> Result<(),
//! Error> { match shown { Credentials::Curve { key } if welcome.contains(key) =>
//! connection.accept(), _ => connection.refuse("400"), } }
//! ```
//!
//! # What a peer can do to us
//!
//! - Whatever it sends, the worst is an [`Error`] that ends its connection. Memory grows with what it has sent, never with a length that it
//!   announces, and everything that is kept has a limit: [`Limits`].
//! - Until its handshake is done it has [`HANDSHAKE_TIMEOUT`], a buffer of [`limits::HANDSHAKE_BUFFER_BYTES`] and no place among those that messages go to.
//!   How many handshakes go on at a time is for the listener to limit.
//! - The mechanism must match exactly, and there is no fallback to older versions of the protocol.
//! - A small message that is kept holds nothing but its own bytes.
//!
//! # What it does not do
//!
//! It knows the socket types and which of them go together ([`SocketType::is_compatible_with`]), but not how each of them routes; nor does it
//! reconnect, queue, or keep identities apart: that is for the sockets. RADIO and DISH groups (`JOIN`, `LEAVE`) and GSSAPI are not
//! implemented.

mod assembler;
mod command;
mod connection;
mod error;
mod event;
mod frame;
mod greeting;
mod heartbeat;
mod identity;
mod input;
pub mod limits;
mod local;
mod mechanism;
mod message;
mod metadata;
mod options;
mod output;
#[cfg(feature = "tokio")]
mod run;
mod socket_type;
mod state;
mod subscriptions;
mod traffic;

pub use connection::Connection;
pub use error::{Error, Result};
pub use event::{Event, Peer};
pub use identity::Identity;
pub use limits::Limits;
pub use mechanism::{Credentials, Entropy, KeyPair, Password, PublicKey, SecretKey, Security};
pub use message::{IntoFrame, Message};
pub use metadata::Metadata;
pub use options::{HANDSHAKE_TIMEOUT, HEARTBEAT_TTL_LONGEST, Heartbeat, Options};
pub use output::Output;
#[cfg(feature = "tokio")]
pub(crate) use run::Run;
pub use socket_type::SocketType;
pub use subscriptions::Subscriptions;
