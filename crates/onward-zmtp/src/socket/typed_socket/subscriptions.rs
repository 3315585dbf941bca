//! Subscriptions of a SUB or XSUB, and those that an XPUB makes for its peers.

use super::endpoints::Socket;
use crate::protocol::IntoFrame;
use crate::socket::error::{Error, Result};
use crate::socket::kind::{Subscribes, Xpub};
use crate::socket::peers::remote_peer::RemotePeer;

impl<T: Subscribes> Socket<T> {
    /// Subscribes to all messages whose first frame begins with `topic`, at every current and
    /// future publisher. The empty topic matches every message.
    ///
    /// Subscriptions add up: two subscriptions to a topic need two cancellations.
    ///
    /// A publisher sends matching messages from the moment at which it receives the subscription.
    /// Earlier messages are not sent.
    ///
    /// # Errors
    ///
    /// Returns an error ([`Error::is_limit`]) if the topic is longer than
    /// [`TOPIC_BYTES`](crate::protocol::bounds::TOPIC_BYTES), or there are more than
    /// [`SUBSCRIPTIONS`](crate::socket::bounds::SUBSCRIPTIONS) topics.
    pub fn subscribe(&self, topic: impl IntoFrame) -> Result<()> {
        self.owner().shared.subscribe(topic.into_frame())
    }

    /// Cancels one subscription. Does nothing if there is none to this topic. After the last
    /// cancellation no message of the topic is received any more, even if it was on its way.
    pub fn cancel(&self, topic: impl IntoFrame) {
        self.owner().shared.cancel(&topic.into_frame());
    }
}

impl Socket<Xpub> {
    /// Subscribes a peer to a topic, for a socket with [manual] subscriptions. Subscriptions add
    /// up. Returns `false` if the peer has disconnected.
    ///
    /// # Errors
    ///
    /// Returns an error ([`Error::is_misuse`]) if the socket subscribes peers by itself.
    ///
    /// [manual]: crate::socket::SocketOptions::manual
    pub fn subscribe_peer(&self, peer: &RemotePeer, topic: impl IntoFrame) -> Result<bool> {
        self.decide_topic(peer, topic, true)
    }

    /// Cancels one subscription of a peer, for a socket with [manual] subscriptions. Returns
    /// `false` if the peer has disconnected.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`subscribe_peer`](Self::subscribe_peer).
    ///
    /// [manual]: crate::socket::SocketOptions::manual
    pub fn cancel_peer(&self, peer: &RemotePeer, topic: impl IntoFrame) -> Result<bool> {
        self.decide_topic(peer, topic, false)
    }

    fn decide_topic(&self, peer: &RemotePeer, topic: impl IntoFrame, is_subscribed: bool) -> Result<bool> {
        let shared = &self.owner().shared;
        if !shared.options.is_manual {
            return Err(Error::misuse(
                "the socket subscribes its peers by itself; make it with `SocketOptions::manual`",
            ));
        }
        Ok(shared.decide_topic(peer.connection, &topic.into_frame(), is_subscribed))
    }
}
