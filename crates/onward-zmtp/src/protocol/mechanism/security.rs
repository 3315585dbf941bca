//! The mechanism of a socket, and the credentials of a peer.

use std::fmt;

use bytes::Bytes;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::curve::keys::{KeyPair, PublicKey};
use super::name::MechanismName;
use crate::protocol::bounds::PLAIN_FIELD_BYTES;
use crate::protocol::error::{Error, Result};

/// The mechanism of a connection and the local side of it. The peer must be the other side of the
/// same mechanism. There is no negotiation and no fallback.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Security {
    /// No authentication and no encryption.
    Null,
    /// Sends a user name and a password, which anyone who listens on the wire can read.
    PlainClient {
        /// The user name, at most 255 bytes.
        username: String,
        /// The password.
        password: Password,
    },
    /// Requires a user name and a password: [`Credentials::Plain`].
    PlainServer,
    /// Encrypts the traffic to the server that has this key.
    CurveClient {
        /// The server's public key, which the client must know beforehand.
        server: PublicKey,
        /// The local long-term keys, by which the server identifies this client.
        keys: KeyPair,
    },
    /// Encrypts the traffic, and has the caller decide about the client's key:
    /// [`Credentials::Curve`].
    CurveServer {
        /// The local long-term keys, by which clients identify this server.
        keys: KeyPair,
    },
}

impl Security {
    pub(crate) fn name(&self) -> MechanismName {
        match self {
            Self::Null => MechanismName::Null,
            Self::PlainClient { .. } | Self::PlainServer => MechanismName::Plain,
            Self::CurveClient { .. } | Self::CurveServer { .. } => MechanismName::Curve,
        }
    }

    pub(crate) fn is_client(&self) -> bool {
        matches!(self, Self::PlainClient { .. } | Self::CurveClient { .. })
    }

    pub(crate) fn is_server(&self) -> bool {
        matches!(self, Self::PlainServer | Self::CurveServer { .. })
    }
}

/// A password. It is wiped when dropped and never shown.
#[derive(Clone)]
pub struct Password(Zeroizing<Vec<u8>>);

impl Password {
    /// Returns a password of at most 255 bytes.
    ///
    /// # Errors
    ///
    /// Returns an error ([`Error::is_misuse`]) if it is longer.
    pub fn new(password: impl Into<Vec<u8>>) -> Result<Self> {
        let password = Zeroizing::new(password.into());
        if password.len() > PLAIN_FIELD_BYTES {
            return Err(Error::misuse(format!(
                "a password of PLAIN has at most {PLAIN_FIELD_BYTES} bytes; use a shorter one"
            )));
        }
        Ok(Self(password))
    }

    /// Returns whether the two are equal. The time does not depend on how much of `password` is
    /// right.
    #[must_use]
    pub fn is(&self, password: &[u8]) -> bool {
        self.0.ct_eq(password).into()
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password(…)")
    }
}

/// The credentials of a client, on which the caller decides whether it may connect.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Credentials {
    /// A user name and a password.
    Plain {
        /// The user name: up to 255 octets, text by convention only.
        username: Bytes,
        /// The password; compare it with [`Password::is`].
        password: Password,
    },
    /// A public key. The client has proved that it has the matching secret key.
    Curve {
        /// The client's long-term key.
        key: PublicKey,
    },
}
