//! A worker: runs one attempt after the other in its slot.

use std::sync::Arc;

use super::run_attempt::run_attempt;
use crate::dispatch::run_state::EndedAttempt;
use crate::engine::Run;
use crate::orchestration::PlannedTurn;

/// Runs attempts in a slot until nothing is buffered.
pub(crate) async fn run_worker(run: Arc<Run>, slot: usize) {
    let state = &run.state;
    let clock = &*run.inner.clock;
    let mut next = state.first_attempt(slot, clock);
    while let Some(attempt) = next {
        let end = run_attempt(&run, &attempt).await;
        let planned = PlannedTurn::plan(&run, &attempt.task, &end).await;
        if attempt.started().is_none() {
            run.inner.credit.give_back();
        }
        let (following, woke_dispatcher) = state.next_attempt(slot, EndedAttempt { attempt, end, planned }, clock);
        next = following;
        if woke_dispatcher {
            // The dispatcher was woken on this thread and must not wait behind a handler that does
            // not yield.
            tokio::task::yield_now().await;
        } else {
            tokio::task::coop::consume_budget().await;
        }
    }
}
