//! NULL: both sides say who they are, and that is all.

use super::negotiation::{Finished, Step, unexpected};
use crate::protocol::error::Result;
use crate::protocol::local::Local;
use crate::protocol::output::Output;

/// Waits for the peer's `READY`.
#[derive(Debug)]
pub(crate) struct Null;

impl Null {
    pub(super) fn start(local: &Local<'_>, output: &mut Output) -> Self {
        output.push_command("READY", &local.metadata());
        Self
    }

    pub(super) fn command(&mut self, name: &[u8], data: &[u8], local: &Local<'_>) -> Result<Step> {
        if name != b"READY" {
            return Err(unexpected(name, "READY"));
        }
        let metadata = local.read(data)?;
        Ok(Step::Finished(Box::new(Finished { metadata, client_key: None, cipher: None })))
    }
}
