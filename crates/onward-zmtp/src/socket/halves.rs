//! The methods to bind and connect the halves of a socket.

use super::endpoint::Endpoint;
use super::error::{Error, Result};
use super::kind::{Kind, Subscribes};
use super::receive::Receiver;
use super::send::Sender;
use crate::protocol::IntoFrame;

// A macro, because the two types have nothing else in common.
macro_rules! endpoints {
    ($half:ident) => {
        impl<T: Kind> $half<T> {
            /// Binds the socket of this half, like [`Socket::bind`](super::Socket::bind).
            ///
            /// # Errors
            ///
            /// Returns the errors of [`Socket::bind`](super::Socket::bind).
            pub fn bind<E>(&self, endpoint: E) -> impl Future<Output = Result<Endpoint>> + Send + use<T, E>
            where
                E: TryInto<Endpoint>,
                Error: From<E::Error>,
            {
                let owner = self.core.owner.clone();
                let endpoint = endpoint.try_into().map_err(Error::from);
                async move { owner.bind(endpoint?).await }
            }

            /// Connects the socket of this half, like [`Socket::connect`](super::Socket::connect).
            ///
            /// # Errors
            ///
            /// Returns the errors of [`Socket::connect`](super::Socket::connect).
            pub fn connect<E>(&self, endpoint: E) -> Result<bool>
            where
                E: TryInto<Endpoint>,
                Error: From<E::Error>,
            {
                self.core.owner.connect(endpoint.try_into()?, None)
            }

            /// Stops listening, like [`Socket::unbind`](super::Socket::unbind).
            ///
            /// # Errors
            ///
            /// Returns the errors of [`Socket::unbind`](super::Socket::unbind).
            pub fn unbind<E>(&self, endpoint: E) -> Result<()>
            where
                E: TryInto<Endpoint>,
                Error: From<E::Error>,
            {
                self.core.owner.detach(&endpoint.try_into()?, true)
            }

            /// Ends the connections to an endpoint, like
            /// [`Socket::disconnect`](super::Socket::disconnect).
            ///
            /// # Errors
            ///
            /// Returns the errors of [`Socket::disconnect`](super::Socket::disconnect).
            pub fn disconnect<E>(&self, endpoint: E) -> Result<()>
            where
                E: TryInto<Endpoint>,
                Error: From<E::Error>,
            {
                self.core.owner.detach(&endpoint.try_into()?, false)
            }
        }
    };
}

endpoints!(Sender);
endpoints!(Receiver);

impl<T: Subscribes> Receiver<T> {
    /// Subscribes to a topic, like [`Socket::subscribe`](super::Socket::subscribe).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Socket::subscribe`](super::Socket::subscribe).
    pub fn subscribe(&self, topic: impl IntoFrame) -> Result<()> {
        self.core.owner.shared.subscribe(topic.into_frame())
    }

    /// Cancels one subscription, like [`Socket::cancel`](super::Socket::cancel).
    pub fn cancel(&self, topic: impl IntoFrame) {
        self.core.owner.shared.cancel(&topic.into_frame());
    }
}
