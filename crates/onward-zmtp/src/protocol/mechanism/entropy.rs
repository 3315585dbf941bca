//! Random octets for one handshake.

use std::fmt;

use zeroize::Zeroizing;

use crate::protocol::error::{Error, Result};

/// How many random octets a handshake may need.
const ENTROPY_BYTES: usize = 96;

/// The random octets of one handshake, drawn beforehand, because the protocol itself draws none.
/// Wiped when dropped.
///
/// Never use the same ones for two connections: with CURVE, all secrecy rests on them.
pub struct Entropy(Zeroizing<[u8; ENTROPY_BYTES]>);

impl Entropy {
    /// Octets from the operating system.
    ///
    /// # Errors
    ///
    /// If the operating system has none to give.
    pub fn from_system() -> Result<Self> {
        let mut octets = Zeroizing::new([0; ENTROPY_BYTES]);
        fill(&mut octets[..])?;
        Ok(Self(octets))
    }

    /// These octets: for tests that must come out the same each time.
    #[must_use]
    pub fn from_octets(octets: [u8; 96]) -> Self {
        Self(Zeroizing::new(octets))
    }

    /// Octets for the secret transient key.
    pub(super) fn transient_key(&self) -> [u8; 32] {
        self.array(0)
    }

    /// The first long nonce: of the vouch or of the welcome.
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
        .map_err(|error| Error::entropy(format!("the operating system has no random octets to give: {error}")))
}
