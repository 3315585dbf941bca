//! How payloads become what is kept, and back.

use std::fmt;

use bytes::Bytes;

use crate::api::error::Result;

/// How payloads become what is kept, and back: compression, encryption. It is called for payloads,
/// results, memos, and what orchestrations keep and are sent; not for names, keys, tags and errors.
/// What is empty stays empty and is not passed to it.
///
/// Whatever [`encode`](Self::encode) has ever answered, [`decode`](Self::decode) must be able to
/// read for as long as it is kept: let the first byte say which key or method it was. Both run in
/// the middle of commits, so they must not wait.
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
    /// What is kept of a payload.
    ///
    /// # Errors
    /// If it cannot be kept so; then nothing of the call is written.
    fn encode(&self, payload: Bytes) -> Result<Bytes>;

    /// The payload, from what is kept.
    ///
    /// # Errors
    /// If it cannot be read: it was written with another codec or key.
    fn decode(&self, kept: Bytes) -> Result<Bytes>;
}

/// Replaces a payload by what `change` makes of it, unless it is empty.
pub(super) fn replace(payload: &mut Bytes, change: impl FnOnce(Bytes) -> Result<Bytes>) -> Result<()> {
    if !payload.is_empty() {
        *payload = change(std::mem::take(payload))?;
    }
    Ok(())
}
