//! ZMTP 3.1 without I/O: bytes in, events out.

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
pub use message::Message;
pub use metadata::Metadata;
pub use options::{HANDSHAKE_TIMEOUT, HEARTBEAT_TTL_LONGEST, Heartbeat, Options};
pub use output::Output;
pub use socket_type::SocketType;
pub use subscriptions::Subscriptions;
