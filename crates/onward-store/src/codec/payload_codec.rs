//! The interface of a codec for payloads.

use std::fmt;

use bytes::Bytes;

use crate::api::error::Result;

/// A codec for payloads, such as compression or encryption.
///
/// A store with a codec encodes payloads, results and checkpoints. It also encodes the status,
/// values, history and messages of orchestrations, and the contents of documents. It does not
/// encode names, keys, tags and errors. Empty values stay empty.
///
/// [`decode`](Self::decode) must be able to read everything that [`encode`](Self::encode) ever
/// returned, for as long as it is stored. Let the first byte identify the key or the method. Both
/// methods run during commits, so they must not block.
///
/// ```
/// use bytes::Bytes;
/// use onward_store::{PayloadCodec, Result};
///
/// #[derive(Debug)]
/// struct Reversed;
///
/// impl PayloadCodec for Reversed {
///     fn encode(&self, payload: Bytes) -> Result<Bytes> {
///         Ok(payload.iter().rev().copied().collect::<Vec<u8>>().into())
///     }
///
///     fn decode(&self, kept: Bytes) -> Result<Bytes> {
///         self.encode(kept)
///     }
/// }
/// # assert_eq!(Reversed.decode(Reversed.encode("ab".into())?)?, "ab");
/// # Ok::<(), onward_store::Error>(())
/// ```
pub trait PayloadCodec: fmt::Debug + Send + Sync + 'static {
    /// Encodes a payload for storage.
    ///
    /// # Errors
    /// Any error makes the whole call fail; none of its writes is applied.
    fn encode(&self, payload: Bytes) -> Result<Bytes>;

    /// Decodes a stored payload.
    ///
    /// # Errors
    /// An error means that the payload cannot be read, for example because another codec or key
    /// wrote it.
    fn decode(&self, kept: Bytes) -> Result<Bytes>;
}

/// Replaces a payload by the result of `change`. Leaves an empty payload unchanged.
pub(super) fn replace(payload: &mut Bytes, change: impl FnOnce(Bytes) -> Result<Bytes>) -> Result<()> {
    if !payload.is_empty() {
        *payload = change(std::mem::take(payload))?;
    }
    Ok(())
}
