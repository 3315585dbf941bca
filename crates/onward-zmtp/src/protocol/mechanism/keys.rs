//! The long-term keys of CURVE.

use std::fmt;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::{entropy, z85};
use crate::protocol::error::{Error, Result};

/// A public key of CURVE: 32 octets, or 40 characters in Z85.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// The key of these octets.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key of 40 characters, as libzmq's tools print it.
    ///
    /// # Errors
    ///
    /// If it is not Z85 of 32 octets: [`Error::is_misuse`].
    pub fn from_z85(text: &str) -> Result<Self> {
        decode(text).map(|key| Self(*key))
    }

    /// The octets.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub(super) fn to_crypto(self) -> crypto_box::PublicKey {
        crypto_box::PublicKey::from_bytes(self.0)
    }
}

/// The 40 characters of Z85.
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

/// A secret key of CURVE. Wiped when dropped; never shown.
#[derive(Clone)]
pub struct SecretKey(crypto_box::SecretKey);

impl SecretKey {
    /// The key of these octets.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        let bytes = Zeroizing::new(bytes);
        Self(crypto_box::SecretKey::from_bytes(*bytes))
    }

    /// The key of 40 characters, as libzmq's tools print it.
    ///
    /// # Errors
    ///
    /// If it is not Z85 of 32 octets: [`Error::is_misuse`].
    pub fn from_z85(text: &str) -> Result<Self> {
        decode(text).map(|key| Self(crypto_box::SecretKey::from_bytes(*key)))
    }

    /// A new key from the operating system's random octets.
    ///
    /// # Errors
    ///
    /// If the operating system has none to give.
    pub fn generate() -> Result<Self> {
        let mut octets = Zeroizing::new([0; 32]);
        entropy::fill(&mut octets[..])?;
        Ok(Self(crypto_box::SecretKey::from_bytes(*octets)))
    }

    /// The 40 characters of Z85, to keep the key in a file. Show them to nobody.
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

/// A secret key and the public key to it.
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
    /// A new pair from the operating system's random octets.
    ///
    /// # Errors
    ///
    /// If the operating system has none to give.
    pub fn generate() -> Result<Self> {
        SecretKey::generate().map(Self::from)
    }

    /// The key to give to others.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// The key to keep.
    #[must_use]
    pub fn secret(&self) -> &SecretKey {
        &self.secret
    }
}

impl From<SecretKey> for KeyPair {
    fn from(secret: SecretKey) -> Self {
        let public = PublicKey(secret.0.public_key().to_bytes());
        Self { public, secret }
    }
}

fn decode(text: &str) -> Result<Zeroizing<[u8; 32]>> {
    z85::decode(text).ok_or_else(|| Error::misuse("a key is 40 characters of Z85"))
}
