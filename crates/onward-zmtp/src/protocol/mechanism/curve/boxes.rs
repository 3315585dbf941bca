//! The parts that both sides of CURVE (RFC 26) share: nonces, boxes, sizes.

use crypto_box::SalsaBox;
use crypto_box::aead::AeadInPlace;
use crypto_box::aead::generic_array::GenericArray;
use zeroize::Zeroizing;

use super::keys::{PublicKey, SecretKey};
use crate::protocol::error::{Error, Result};

/// The version in `HELLO`.
pub(super) const VERSION: [u8; 2] = [1, 0];
/// The number of zeros in `HELLO`. They make it no shorter than `WELCOME`, so that a sender with a
/// forged address gains no amplification.
pub(super) const HELLO_PADDING: usize = 72;
/// The plaintext in the box of `HELLO`.
pub(super) const HELLO_PLAIN: [u8; 64] = [0; 64];
/// The length of `HELLO` without its name: version (2), zeros (72), the client's transient public
/// key (32), number (8), and a box of 64 zeros (80).
pub(super) const HELLO_BYTES: usize = 194;
/// The length of `WELCOME` without its name: nonce (16), and a box (144) with the server's
/// transient public key (32) and the cookie (96).
pub(super) const WELCOME_BYTES: usize = 160;
/// The length of `INITIATE` without its name and without metadata: cookie (96), number (8), and a
/// box (144) with the client's long-term public key (32), a nonce (16) and the vouch (80). The
/// metadata follows in the same box.
pub(super) const INITIATE_BYTES: usize = 248;
/// The length of a cookie: a nonce (16), and a box (80) with the client's transient public key (32)
/// and the server's transient secret key (32).
pub(super) const COOKIE_BYTES: usize = 96;
/// The length of the tag that authenticates a box.
pub(crate) const TAG_BYTES: usize = 16;

/// A nonce: its purpose, then a number or random octets. Two boxes of the same keys never have the
/// same nonce, because the purposes differ, the numbers grow, and the random octets are drawn for
/// one connection.
pub(super) type Nonce = [u8; 24];

/// Returns a nonce with a counter.
#[inline]
pub(super) fn short_nonce(purpose: &[u8; 16], number: u64) -> Nonce {
    let mut nonce = [0; 24];
    nonce[..16].copy_from_slice(purpose);
    nonce[16..].copy_from_slice(&number.to_be_bytes());
    nonce
}

/// Returns a nonce with random octets.
pub(super) fn long_nonce(purpose: &[u8; 8], random: &[u8; 16]) -> Nonce {
    let mut nonce = [0; 24];
    nonce[..8].copy_from_slice(purpose);
    nonce[8..].copy_from_slice(random);
    nonce
}

/// Returns the box between two keys. Rejects a weak public key.
pub(super) fn shared(public: PublicKey, secret: &SecretKey) -> Result<SalsaBox> {
    if public.is_weak() {
        return Err(Error::cryptographic(
            "a public key is weak: a box with it would be the same for every secret key; use a generated key",
        ));
    }
    #[cfg(all(test, not(miri)))]
    super::multiplications::multiply();
    Ok(SalsaBox::new(&public.to_crypto(), secret.as_crypto()))
}

/// Encrypts: returns the tag, then the ciphertext.
pub(super) fn seal(
    cipher: &impl AeadInPlace<NonceSize = U24, TagSize = U16>,
    nonce: &Nonce,
    plain: &[u8],
) -> Result<Vec<u8>> {
    let mut sealed = vec![0; TAG_BYTES];
    sealed.extend_from_slice(plain);
    seal_in_place(cipher, nonce, &mut sealed)?;
    Ok(sealed)
}

/// Encrypts the bytes after the first [`TAG_BYTES`] in place, and writes the tag in front of them.
#[inline]
pub(super) fn seal_in_place(
    cipher: &impl AeadInPlace<NonceSize = U24, TagSize = U16>,
    nonce: &Nonce,
    buffer: &mut [u8],
) -> Result<()> {
    let (tag, text) = buffer.split_at_mut(TAG_BYTES);
    let sealed = cipher.encrypt_in_place_detached(GenericArray::from_slice(nonce), &[], text);
    tag.copy_from_slice(&sealed.map_err(|_| Error::cryptographic("a message is too long to be encrypted"))?);
    Ok(())
}

/// Decrypts a tag and the ciphertext after it.
pub(super) fn open(
    cipher: &impl AeadInPlace<NonceSize = U24, TagSize = U16>,
    nonce: &Nonce,
    sealed: &[u8],
    what: &str,
) -> Result<Zeroizing<Vec<u8>>> {
    let Some((tag, text)) = sealed.split_first_chunk::<TAG_BYTES>() else { return Err(cannot_open(what)) };
    let mut plain = Zeroizing::new(text.to_vec());
    cipher
        .decrypt_in_place_detached(GenericArray::from_slice(nonce), &[], &mut plain, GenericArray::from_slice(tag))
        .map_err(|_| cannot_open(what))?;
    Ok(plain)
}

#[cold]
pub(super) fn cannot_open(what: &str) -> Error {
    Error::cryptographic(format!("the peer's {what} cannot be decrypted: a wrong key, or it was tampered with"))
}

/// Returns the octets at an offset. The caller has checked that they exist.
pub(super) fn array<const N: usize>(bytes: &[u8], start: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes.get(start + index).copied().unwrap_or_default())
}

pub(super) use crypto_box::aead::consts::{U16, U24};
