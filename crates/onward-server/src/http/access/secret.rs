//! Secrets: 256 random bits. The store has only their SHA-256.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use onward_store::Error;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The digest of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SecretHash([u8; 32]);

impl SecretHash {
    pub(super) fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// Compares in a time that does not depend on the digests.
    pub(super) fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    pub(super) fn to_text(self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    pub(super) fn from_text(text: &str) -> Option<Self> {
        URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok().map(Self)
    }
}

/// Returns a new secret of 256 random bits: 43 characters.
pub(crate) fn new_secret() -> Result<String, Error> {
    Ok(URL_SAFE_NO_PAD.encode(random::<32>()?))
}

/// Returns a new number of a key: 16 characters that need no encoding anywhere.
pub(super) fn new_id() -> Result<String, Error> {
    Ok(random::<8>()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES], Error> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::io(format!("the system supplied no random numbers ({error}); try again")))?;
    Ok(bytes)
}

/// Returns a new salt of a password.
pub(super) fn new_salt() -> Result<[u8; 16], Error> {
    random()
}
