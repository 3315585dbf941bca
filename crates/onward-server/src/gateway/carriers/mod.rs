//! The carriers of the protocol: a stream per worker, or one listening socket for many.

mod listener;
mod outbox;
mod router;
mod router_session;
mod stream;

pub use listener::{ListenError, Listener};
