//! The socket from the user's side.

mod endpoints;
mod messages;
mod stream_sink;
mod subscriptions;

pub use endpoints::Socket;
