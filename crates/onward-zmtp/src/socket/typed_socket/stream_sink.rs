//! A socket as a stream and as a sink.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_sink::Sink;

use super::endpoints::Socket;
use crate::protocol::Message;
use crate::socket::error::{Error, Result};
use crate::socket::kind::{Receives, Sends};

/// A stream of the messages. It does not end while the socket lives.
impl<T: Receives> Stream for Socket<T> {
    type Item = Result<Message>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Message>>> {
        self.receiver.core.poll_recv(context).map(Some)
    }
}

/// A sink like that of [`Sender`](crate::socket::Sender).
impl<T: Sends> Sink<Message> for Socket<T> {
    type Error = Error;

    fn poll_ready(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.sender.core.poll_sink_ready(context)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Message) -> Result<()> {
        self.sender.core.start_sink_send(message)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.sender.core.poll_sink_ready(context)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.sender.core.poll_sink_ready(context)
    }
}
