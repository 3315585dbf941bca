//! What tasks move.

use super::state::State;
use crate::io::Io;
use crate::outcome::{Outcome, Refusal};
use crate::task::Lease;

impl State {
    pub(super) fn record_io(&mut self, lease: Lease, io: Io) -> Result<Outcome, Refusal> {
        self.held(lease)?;
        self.tasks.change(lease.task, |task| task.io = Some(io));
        Ok(Outcome::Done)
    }
}
