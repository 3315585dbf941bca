//! The I/O of attempts.

use crate::api::io::Io;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::Lease;
use crate::model::state::State;

impl State {
    /// Records the I/O of the running attempt for the statistics of its kind.
    pub(in crate::model) fn record_io(&mut self, lease: Lease, io: Io) -> Result<Outcome, Refusal> {
        self.check_lease(lease)?;
        self.tasks.change(lease.task, |task| task.io = Some(io));
        Ok(Outcome::Done)
    }
}
