//! NULL: both sides send their metadata, and nothing is authenticated.

use super::local_side::LocalSide;
use super::negotiation::{Finished, Step, unexpected};
use crate::protocol::error::Result;
use crate::protocol::wire::output::Output;

/// Waits for the peer's `READY`.
#[derive(Debug)]
pub(crate) enum Null {
    /// The local `READY` was sent.
    Introduced,
    /// The local `READY` replies to the peer's.
    Replies,
}

impl Null {
    pub(super) fn start(local: &LocalSide<'_>, output: &mut Output) -> Self {
        if local.was_accepted {
            return Self::Replies;
        }
        output.push_command("READY", &local.metadata());
        Self::Introduced
    }

    pub(super) fn command(&mut self, name: &[u8], data: &[u8], local: &LocalSide<'_>) -> Result<Step> {
        if name != b"READY" {
            return Err(unexpected(name, "READY"));
        }
        let metadata = local.read(data)?;
        let ready = matches!(self, Self::Replies).then(|| local.metadata());
        Ok(Step::Finished(Box::new(Finished { metadata, client_key: None, cipher: None, ready })))
    }
}
