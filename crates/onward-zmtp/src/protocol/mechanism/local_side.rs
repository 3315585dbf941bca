//! The local side of a handshake.

use crate::protocol::error::{Error, Result};
use crate::protocol::metadata::Metadata;
use crate::protocol::options::Options;

/// The facts about the local side that a handshake needs.
#[derive(Debug)]
pub(crate) struct LocalSide<'a> {
    pub(crate) options: &'a Options,
    /// Set if the peer opened the connection. The local side then introduces itself only after it
    /// knows the peer.
    pub(crate) was_accepted: bool,
}

impl LocalSide<'_> {
    /// Returns the local metadata, encoded.
    pub(crate) fn metadata(&self) -> Vec<u8> {
        let options = self.options;
        Metadata::of(options.socket_type, options.identity.as_ref(), &options.properties).encode()
    }

    /// Reads the peer's metadata and rejects a peer whose socket type is incompatible.
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
