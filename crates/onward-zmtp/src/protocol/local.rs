//! Our side, as handshakes need it.

use super::error::{Error, Result};
use super::metadata::Metadata;
use super::options::Options;

/// What a handshake needs to know about us.
#[derive(Debug)]
pub(crate) struct Local<'a> {
    pub(crate) options: &'a Options,
    /// Whether the peer connected to us, and is told who we are when we know who it is.
    pub(crate) was_accepted: bool,
}

impl Local<'_> {
    /// Our metadata.
    pub(crate) fn metadata(&self) -> Vec<u8> {
        let options = self.options;
        Metadata::of(options.socket_type, options.identity.as_ref(), &options.properties).encode()
    }

    /// Reads the peer's metadata and sees whether the two go together.
    pub(crate) fn read(&self, metadata: &[u8]) -> Result<Metadata> {
        let metadata = Metadata::parse(metadata, &self.options.limits)?;
        let (ours, theirs) = (self.options.socket_type, metadata.socket_type()?);
        if !ours.is_compatible_with(theirs) {
            return Err(Error::incompatible(format!("a {theirs} socket cannot talk to a {ours} socket")));
        }
        metadata.identity()?;
        Ok(metadata)
    }
}
