//! Random octets for one handshake.

use std::fmt;

use zeroize::Zeroizing;

use crate::protocol::error::{Error, Result};

/// The number of random octets that a handshake may need.
const ENTROPY_BYTES: usize = 96;

/// The random octets of one handshake. The caller draws them beforehand, because the protocol
/// itself draws none. They are wiped when dropped.
///
/// Never use the same octets for two connections: with CURVE, all secrecy depends on them.
pub struct Entropy(Zeroizing<[u8; ENTROPY_BYTES]>);

impl Entropy {
    /// Returns octets from the operating system.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system cannot supply them.
    pub fn from_system() -> Result<Self> {
        let mut octets = Zeroizing::new([0; ENTROPY_BYTES]);
        fill(&mut octets[..])?;
        Ok(Self(octets))
    }

    /// Returns the given octets, for tests that must be reproducible.
    #[must_use]
    pub fn from_octets(octets: [u8; 96]) -> Self {
        Self(Zeroizing::new(octets))
    }

    /// Returns the octets of the secret transient key.
    pub(super) fn transient_key(&self) -> [u8; 32] {
        self.array(0)
    }

    /// Returns the first long nonce: that of the vouch or of `WELCOME`.
    pub(super) fn nonce(&self) -> [u8; 16] {
        self.array(32)
    }

    pub(super) fn cookie_nonce(&self) -> [u8; 16] {
        self.array(48)
    }

    pub(super) fn cookie_key(&self) -> [u8; 32] {
        self.array(64)
    }

    fn array<const N: usize>(&self, start: usize) -> [u8; N] {
        std::array::from_fn(|index| self.0[start + index])
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Entropy(…)")
    }
}

pub(super) fn fill(octets: &mut [u8]) -> Result<()> {
    getrandom::fill(octets)
        .map_err(|error| Error::entropy(format!("the operating system supplied no random octets: {error}")))
}
