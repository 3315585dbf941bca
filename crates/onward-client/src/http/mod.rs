//! HTTP requests over kept connections, repeated until they succeed or the time for it is over.

mod attempts;
mod connection;
mod credential;
mod message_stream;
mod percent;
mod request;
mod response;
#[cfg(feature = "tls")]
mod tls;
mod transport;

pub(crate) use attempts::Attempts;
pub(crate) use connection::Server;
pub(crate) use credential::Credential;
pub use message_stream::{EventMessage, MessageStream};
pub(crate) use percent::encoded;
pub use request::Request;
pub use response::Response;
pub(crate) use transport::{Failure, Transport, is_transient};
