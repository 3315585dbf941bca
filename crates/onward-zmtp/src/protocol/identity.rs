//! The identity by which a ROUTER addresses a peer.

use std::fmt;

use bytes::Bytes;

use super::bounds::IDENTITY_BYTES;
use super::error::{Error, Result, printable};
use super::message::IntoFrame;

/// An identity that a socket chose for itself: 1 to 255 octets. A local identity does not begin
/// with zero, as the protocol requires. A peer's identity may.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Identity(Bytes);

impl Identity {
    /// Returns an identity of these octets.
    ///
    /// # Errors
    ///
    /// Returns an error ([`Error::is_misuse`]) if there are none or more than 255, or if the first
    /// one is zero.
    pub fn new(identity: impl IntoFrame) -> Result<Self> {
        let identity = identity.into_frame();
        if identity.is_empty() || identity.len() > IDENTITY_BYTES {
            return Err(Error::misuse(format!("an identity has 1 to {IDENTITY_BYTES} octets, not {}", identity.len())));
        }
        if identity[0] == 0 {
            return Err(Error::misuse("an identity may not begin with a zero octet"));
        }
        Ok(Self(identity))
    }

    /// Returns the identity that a peer chose. It may begin with a zero octet, because libzmq
    /// allows that.
    pub(crate) fn of_peer(identity: Bytes) -> Result<Self> {
        if identity.is_empty() || identity.len() > IDENTITY_BYTES {
            return Err(Error::malformed(format!(
                "the peer's identity has {} octets, not 1 to {IDENTITY_BYTES}",
                identity.len()
            )));
        }
        Ok(Self(identity))
    }

    /// Returns the octets.
    #[must_use]
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Identity({})", printable(&self.0))
    }
}
