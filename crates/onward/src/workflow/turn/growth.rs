//! The bound of the histories of runs.

use onward_store::{AfterTurn, TaskId, Turn};

use crate::engine::Settings;
use crate::error::{Error, Result};
use crate::orchestration::TurnAbort;

/// Stops a run whose history would exceed its bound, before anything of the turn is written. A turn
/// that ends the run is its last one, so it is not stopped. `bytes_before` is the size of the
/// history before the turn.
///
/// # Errors
/// [`TurnAbort::Dead`]: retried under a higher bound, the run goes on where it was.
pub(super) fn check_growth(settings: &Settings, bytes_before: u64, turn: &Turn) -> std::result::Result<(), TurnAbort> {
    let (events, bytes) = (turn.length + turn.events, bytes_before + turn.chunk.len() as u64);
    let (most, most_bytes) = (settings.run_history_events, settings.run_history_bytes);
    let goes_on = matches!(turn.next, AfterTurn::Park { .. });
    if !goes_on || (events <= most && bytes <= most_bytes) {
        return Ok(());
    }
    Err(TurnAbort::Dead(format!(
        "the history of the run would have {events} events and {bytes} bytes, and may have {most} and {most_bytes}; move a part of \
         its steps to a workflow of their own, or raise `run_history_events` and `run_history_bytes` and retry the run"
    )))
}

/// Refuses a message to a run whose history is full, before it is sent.
///
/// # Errors
/// `is_invalid` with the bound that is reached.
pub(crate) fn check_room(settings: &Settings, run: TaskId, events: u64, bytes: u64) -> Result<()> {
    let (most, most_bytes) = (settings.run_history_events, settings.run_history_bytes);
    if events < most && bytes < most_bytes {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the history of run {run} has {events} events and {bytes} bytes, and may have {most} and {most_bytes}; cancel the run, and \
         fork it: onward workflow fork {run} --from STEP"
    )))
}
