//! Cancelling a run.

use super::{NotRead, Turn};
use crate::workflow::run::state::event::RunEvent;
use crate::workflow::run::state::phase::Phase;
use crate::workflow::run::state::reason::Reason;

impl Turn<'_> {
    /// Processes a request to cancel. Returns false if it changes nothing.
    pub(super) fn process_cancel(&mut self) -> Result<bool, NotRead> {
        if self.state.phase.is_ended() || self.state.is_cancelled {
            return Ok(false);
        }
        self.record(RunEvent::CancelRequested { at: self.at() });
        self.cancel()?;
        Ok(true)
    }

    /// Cancels everything that runs. An undo continues: a run never ends half undone.
    pub(super) fn cancel(&mut self) -> Result<(), NotRead> {
        let is_half_undone = self.state.phase == Phase::Held && self.state.has_undo_begun;
        if self.state.phase == Phase::Undoing || is_half_undone {
            return Ok(());
        }
        self.record(RunEvent::PhaseChanged { phase: Phase::Stopping, error: None, result: None });
        self.judges_all = true;
        self.cancel_active(Reason::Cancelled)
    }
}
