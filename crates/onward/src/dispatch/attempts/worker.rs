//! A slot: runs one attempt after the other while there are any.

use std::sync::Arc;

use super::run_attempt::drive;
use crate::dispatch::run_state::Ended;
use crate::engine::Run;

/// Mans a slot until nothing is buffered.
pub(crate) async fn man(run: Arc<Run>, slot: usize) {
    let floor = &run.floor;
    let clock = &*run.inner.clock;
    let mut next = floor.begin(slot, clock);
    while let Some(attempt) = next {
        let end = drive(&run, &attempt).await;
        let (following, told) = floor.turn(slot, Ended { attempt, end }, clock);
        next = following;
        if told {
            // The dispatcher was woken on this thread: it must not wait here behind a handler that
            // does not yield.
            tokio::task::yield_now().await;
        } else {
            tokio::task::coop::consume_budget().await;
        }
    }
}
