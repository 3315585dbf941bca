//! The long-term keys of CURVE.

use std::fmt;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::z85;
use crate::protocol::error::{Error, Result};
use crate::protocol::mechanism::entropy;

/// A public key of CURVE: 32 octets, or 40 characters of Z85.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Returns the key of these octets.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads a key of 40 characters, as libzmq's tools print it.
    ///
    /// # Errors
    ///
    /// Returns an error ([`Error::is_misuse`]) if it is not Z85 of 32 octets.
    pub fn from_z85(text: &str) -> Result<Self> {
        decode(text).map(|key| Self(*key))
    }

    /// Returns the octets.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns whether a peer can pass for the key's owner without the secret key.
    pub(super) fn is_weak(&self) -> bool {
        let mut point = self.0;
        // X25519 ignores the highest bit.
        point[31] &= 0x7F;
        WEAK.contains(&point)
    }

    pub(super) fn to_crypto(self) -> crypto_box::PublicKey {
        crypto_box::PublicKey::from_bytes(self.0)
    }
}

/// Writes the 40 characters of Z85.
impl fmt::Display for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&z85::encode(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PublicKey({self})")
    }
}

/// The points of small order. A box with such a point protects nothing, because it is the same for
/// every secret key.
pub(super) const WEAK: [[u8; 32]; 7] = [
    [0; 32],
    with_ends(1, 0, 0),
    [
        0xE0, 0xEB, 0x7A, 0x7C, 0x3B, 0x41, 0xB8, 0xAE, 0x16, 0x56, 0xE3, 0xFA, 0xF1, 0x9F, 0xC4, 0x6A, 0xDA, 0x09,
        0x8D, 0xEB, 0x9C, 0x32, 0xB1, 0xFD, 0x86, 0x62, 0x05, 0x16, 0x5F, 0x49, 0xB8, 0x00,
    ],
    [
        0x5F, 0x9C, 0x95, 0xBC, 0xA3, 0x50, 0x8C, 0x24, 0xB1, 0xD0, 0xB1, 0x55, 0x9C, 0x83, 0xEF, 0x5B, 0x04, 0x44,
        0x5C, 0xC4, 0x58, 0x1C, 0x8E, 0x86, 0xD8, 0x22, 0x4E, 0xDD, 0xD0, 0x9F, 0x11, 0x57,
    ],
    with_ends(0xEC, 0xFF, 0x7F),
    with_ends(0xED, 0xFF, 0x7F),
    with_ends(0xEE, 0xFF, 0x7F),
];

const fn with_ends(first: u8, between: u8, last: u8) -> [u8; 32] {
    let mut key = [between; 32];
    (key[0], key[31]) = (first, last);
    key
}

/// A secret key of CURVE. It is wiped when dropped and never shown.
#[derive(Clone)]
pub struct SecretKey(crypto_box::SecretKey);

impl SecretKey {
    /// Returns the key of these octets.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        let bytes = Zeroizing::new(bytes);
        Self(crypto_box::SecretKey::from_bytes(*bytes))
    }

    /// Reads a key of 40 characters, as libzmq's tools print it.
    ///
    /// # Errors
    ///
    /// Returns an error ([`Error::is_misuse`]) if it is not Z85 of 32 octets.
    pub fn from_z85(text: &str) -> Result<Self> {
        decode(text).map(|key| Self(crypto_box::SecretKey::from_bytes(*key)))
    }

    /// Generates a key from the operating system's random octets.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system cannot supply them.
    pub fn generate() -> Result<Self> {
        let mut octets = Zeroizing::new([0; 32]);
        entropy::fill(&mut octets[..])?;
        Ok(Self(crypto_box::SecretKey::from_bytes(*octets)))
    }

    /// Returns the 40 characters of Z85, to keep the key in a file. Do not disclose them.
    #[must_use]
    pub fn to_z85(&self) -> Zeroizing<String> {
        Zeroizing::new(z85::encode(&Zeroizing::new(self.0.to_bytes())))
    }

    pub(super) fn as_crypto(&self) -> &crypto_box::SecretKey {
        &self.0
    }
}

impl PartialEq for SecretKey {
    fn eq(&self, other: &Self) -> bool {
        Zeroizing::new(self.0.to_bytes()).ct_eq(&*Zeroizing::new(other.0.to_bytes())).into()
    }
}

impl Eq for SecretKey {}

impl fmt::Debug for SecretKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretKey(…)")
    }
}

/// A secret key and its public key.
///
/// ```
/// use onward_zmtp::protocol::KeyPair;
/// let keys = KeyPair::generate()?;
/// assert_eq!(keys.public().to_string().len(), 40);
/// # Ok::<(), onward_zmtp::protocol::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct KeyPair {
    public: PublicKey,
    secret: SecretKey,
}

impl KeyPair {
    /// Generates a pair from the operating system's random octets.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system cannot supply them.
    pub fn generate() -> Result<Self> {
        SecretKey::generate().map(Self::from)
    }

    /// Returns the public key, to be given to peers.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// Returns the secret key, to be kept private.
    #[must_use]
    pub fn secret(&self) -> &SecretKey {
        &self.secret
    }
}

impl From<SecretKey> for KeyPair {
    fn from(secret: SecretKey) -> Self {
        #[cfg(all(test, not(miri)))]
        super::multiplications::multiply();
        let public = PublicKey(secret.0.public_key().to_bytes());
        Self { public, secret }
    }
}

#[cfg(all(test, not(miri)))]
impl KeyPair {
    /// Returns the keys of an impostor, which has another's public key but not its secret key.
    pub(super) fn claimed(public: PublicKey, secret: &SecretKey) -> Self {
        Self { public, secret: secret.clone() }
    }
}

fn decode(text: &str) -> Result<Zeroizing<[u8; 32]>> {
    z85::decode(text).ok_or_else(|| Error::misuse("a key is 40 characters of Z85"))
}
