//! Streams of the operating system, and their creation.

mod acceptor;
mod interfaces;
mod path;
mod stream;
mod tcp;

pub(in crate::socket) use acceptor::Acceptor;
pub(super) use stream::Stream;
