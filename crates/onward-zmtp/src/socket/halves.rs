//! The halves of a socket are bound and connected as the whole is.

use super::endpoint::Endpoint;
use super::error::{Error, Result};
use super::kind::{Kind, Subscribes};
use super::receive::Receiver;
use super::send::Sender;
use crate::protocol::IntoFrame;

// The same methods for two types that have nothing else in common.
macro_rules! endpoints {
    ($half:ident) => {
        impl<T: Kind> $half<T> {
            /// Binds the socket, of which this is a half, as [`Socket::bind`](super::Socket::bind).
            ///
            /// # Errors
            ///
            /// As there.
            pub fn bind<E>(&self, endpoint: E) -> impl Future<Output = Result<Endpoint>> + Send + use<T, E>
            where
                E: TryInto<Endpoint>,
                Error: From<E::Error>,
            {
                let owner = self.core.owner.clone();
                let endpoint = endpoint.try_into().map_err(Error::from);
                async move { owner.bind(endpoint?).await }
            }

            /// Connects the socket, of which this is a half, as [`Socket::connect`](super::Socket::connect).
            ///
            /// # Errors
            ///
            /// As there.
            pub fn connect<E>(&self, endpoint: E) -> Result<bool>
            where
                E: TryInto<Endpoint>,
                Error: From<E::Error>,
            {
                self.core.owner.connect(endpoint.try_into()?, None)
            }

            /// Stops listening, as [`Socket::unbind`](super::Socket::unbind).
            ///
            /// # Errors
            ///
            /// As there.
            pub fn unbind<E>(&self, endpoint: E) -> Result<()>
            where
                E: TryInto<Endpoint>,
                Error: From<E::Error>,
            {
                self.core.owner.detach(&endpoint.try_into()?, true)
            }

            /// Ends the connection to an endpoint, as [`Socket::disconnect`](super::Socket::disconnect).
            ///
            /// # Errors
            ///
            /// As there.
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
    /// Subscribes, as [`Socket::subscribe`](super::Socket::subscribe).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn subscribe(&self, topic: impl IntoFrame) -> Result<()> {
        self.core.owner.shared.subscribe(topic.into_frame())
    }

    /// Takes one subscription back, as [`Socket::cancel`](super::Socket::cancel).
    pub fn cancel(&self, topic: impl IntoFrame) {
        self.core.owner.shared.cancel(&topic.into_frame());
    }
}
