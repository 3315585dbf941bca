//! Messages to and from a socket.

use super::endpoints::Socket;
use crate::protocol::Message;
use crate::socket::error::Error;
use crate::socket::kind::{Receives, Sends};
use crate::socket::peers::remote_peer::RemotePeer;
use crate::socket::receive::Receiver;
use crate::socket::send::{Sender, TrySendError};

impl<T: Sends> Socket<T> {
    /// Sends a message: queues it for one peer, or for all that are to get it.
    ///
    /// | type | to | when the queue is full, or no peer is connected |
    /// |---|---|---|
    /// | PUSH, DEALER | next with room | waits; without a peer, queues up to the high-water mark |
    /// | PAIR | the peer | as PUSH |
    /// | ROUTER | the peer named by the first frame | waits, or fails if it is gone |
    /// | PUB, XPUB | all subscribers | drops it for full queues, or [waits] |
    /// | XSUB | all publishers | drops it for full queues, or waits |
    ///
    /// A ROUTER does not send the first frame. A publication goes to the subscribers of every topic
    /// with which its first frame begins. An XSUB subscribes or cancels with a frame of 1 or 0 and
    /// a topic.
    ///
    /// `Ok` means that the message is queued, not that it has arrived or has left this process.
    /// [`close`](Self::close) the socket before the runtime ends (`main` returns), or queued
    /// messages are lost.
    ///
    /// Cancel safe: if the future is dropped before it is ready, the message is not sent. Use
    /// [`try_send`](Self::try_send) to keep it.
    ///
    /// # Errors
    ///
    /// - [`Error::is_state`] if the message has no frame.
    /// - [`Error::is_limit`] if it is larger than the [send limits] allow.
    /// - [`Error::is_unroutable`] if a ROUTER has no peer of this identity.
    /// - [`Error::is_refused`] if every peer refused the socket, so that none will come.
    ///
    /// [waits]: crate::socket::Overflow
    /// [send limits]: crate::socket::SocketOptions::send_limits
    pub async fn send(&mut self, message: impl Into<Message>) -> Result<(), Error> {
        self.sender.send(message).await
    }

    /// Sends all messages of a list in order, each like [`send`](Self::send), and leaves the list
    /// empty. Many short messages cost a fraction of what they cost one by one.
    ///
    /// Cancel safe: if the future is dropped before it is ready, the list contains exactly the
    /// messages that were not sent.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`send`](Self::send). The message that failed is then the first of
    /// those left in the list.
    pub async fn send_many(&mut self, messages: &mut Vec<Message>) -> Result<(), Error> {
        self.sender.send_many(messages).await
    }

    /// Sends a message if that can be done at once.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`send`](Self::send), and [`TrySendError::is_full`] if the call would
    /// have to wait. The error contains the message.
    pub fn try_send(&mut self, message: impl Into<Message>) -> Result<(), TrySendError> {
        self.sender.try_send(message)
    }
}

impl<T: Receives> Socket<T> {
    /// Waits for the next message and returns it. Peers take turns.
    ///
    /// The first frame of a message to a ROUTER is the identity of its peer. An XPUB receives a
    /// subscription as one frame: 1 or 0, then the topic.
    ///
    /// Cancel safe: a future that is dropped before it is ready has taken nothing.
    ///
    /// # Errors
    ///
    /// - [`Error::is_refused`] if every peer refused the socket and all messages were read, so that
    ///   none will come.
    /// - [`Error::is_gone`] if the socket [connects once] and has lost
    ///   its last connection, or the runtime of its last endpoint has ended.
    ///
    /// [connects once]: crate::socket::SocketOptions::connect_once
    pub async fn recv(&mut self) -> Result<Message, Error> {
        self.receiver.recv().await
    }

    /// Waits for the next message and returns it with the peer that sent it. The peer has its
    /// address, and the key of CURVE that it proved to have. Costs a look-up for each message.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`recv`](Self::recv).
    pub async fn recv_with_peer(&mut self) -> Result<(Message, RemotePeer), Error> {
        self.receiver.recv_with_peer().await
    }

    /// Waits for a message, then appends it and all others that are ready to `messages`, at most
    /// `limit`. Returns their number, which is zero only if `limit` is zero.
    ///
    /// Cancel safe: nothing is appended before the future is ready.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`recv`](Self::recv).
    pub async fn recv_many(&mut self, messages: &mut Vec<Message>, limit: usize) -> Result<usize, Error> {
        self.receiver.recv_many(messages, limit).await
    }

    /// Returns the next message if one is ready.
    pub fn try_recv(&mut self) -> Option<Message> {
        self.receiver.try_recv()
    }
}

impl<T: Sends + Receives> Socket<T> {
    /// Splits the socket into two halves for two tasks. Each half can bind and connect the socket,
    /// which closes when both are dropped.
    #[must_use]
    pub fn split(self) -> (Sender<T>, Receiver<T>) {
        (self.sender, self.receiver)
    }
}
