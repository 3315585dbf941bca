//! Stops a run: it releases what has not started, waits for the rest, then cancels, aborts and
//! releases that too.

use std::time::Duration;

use onward_store::TaskState;

use super::deadlines::CallStart;
use super::dispatcher::Dispatcher;
use super::run_state::EndedAttempt;
use super::write_batch::WriteBatch;
use crate::error::Result;
use crate::handlers::Interruption;
use crate::timer;

/// The progress of a stop. Times are steady ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shutdown {
    /// The run continues.
    No,
    /// Running handlers may end by themselves.
    Waiting {
        /// The time at which they are asked to stop.
        until: Duration,
    },
    /// Running handlers were asked to stop.
    Aborting {
        /// The time at which the run ends even if some have not.
        until: Duration,
    },
}

impl Shutdown {
    pub(crate) fn is_stopping(self) -> bool {
        self != Self::No
    }

    pub(crate) fn wake_at(self) -> Option<Duration> {
        match self {
            Self::No => None,
            Self::Waiting { until } | Self::Aborting { until } => Some(until),
        }
    }

    /// Returns true if the run ends regardless of what still runs: handlers that block their thread
    /// cannot be aborted.
    pub(crate) fn is_time_over(self, now: Duration) -> bool {
        matches!(self, Self::Aborting { until } if until <= now)
    }
}

/// The extra wait for workers after the grace, which they measure with their own timers.
const SLOT_MARGIN: Duration = Duration::from_millis(100);

impl Dispatcher {
    /// Takes the next step of a stop if it is time.
    pub(super) fn advance_shutdown(&mut self) {
        let now = self.now();
        match self.shutdown {
            Shutdown::No if self.stop.is_cancelled() => {
                let until = now.saturating_add(self.run.inner.settings.shutdown_limit);
                self.shutdown = Shutdown::Waiting { until };
                // Queued writes go back to their callers, because no further commit may follow.
                self.run.outbox.close();
                self.must_retire = !self.run.state.occupancy().is_empty();
                let unstarted = self.run.state.clear_buffer();
                self.run.state.add_ended(unstarted.into_iter().map(EndedAttempt::released));
            }
            Shutdown::Waiting { until } if until <= now => {
                let margin = self.time_to_stop();
                self.shutdown = Shutdown::Aborting { until: now.saturating_add(margin) };
                self.run.state.interrupt_all(Interruption::ShuttingDown);
                self.run.instances.abort();
            }
            _ => {}
        }
    }

    /// Returns the time that workers need at most to stop their handlers, if these do not block.
    fn time_to_stop(&self) -> Duration {
        let settings = &self.run.inner.settings;
        let cleans_up = self.run.state.running().iter().any(|attempt| attempt.cleanup.is_set());
        let cleanup = if cleans_up { settings.cleanup_limit } else { Duration::ZERO };
        settings.grace.saturating_add(cleanup).saturating_add(SLOT_MARGIN)
    }

    /// Closes the sessions, which releases the tasks of handlers that could not be stopped.
    pub(super) async fn close(&mut self) -> Result<()> {
        for attempt in self.run.state.running() {
            let (task, kind) = (attempt.id().0, attempt.task.kind.as_str());
            tracing::warn!(task, kind, "the handler blocks its thread and cannot be stopped; its task is released");
        }
        let mut batch = WriteBatch::default();
        let unwritten = self.run.state.take_ended();
        let is_clean = unwritten.is_empty();
        for ended in unwritten {
            if let Some(finished) = batch.end(ended) {
                self.count(&finished.attempt, TaskState::Completed);
            }
        }
        self.retired.iter().copied().chain(self.session).for_each(|session| batch.close(session));
        if batch.is_empty() {
            return Ok(());
        }
        let began = CallStart::now(&*self.run.inner.clock);
        match self.run.inner.store.apply(batch.writes).await {
            Ok(outcomes) => {
                self.apply_outcomes(batch.pending, outcomes, began);
                Ok(())
            }
            // Ends that were not written would be lost, so only a clean close may ignore an error.
            Err(error) if is_clean && error.is_replaced() => Err(error.into()),
            Err(error) if is_clean => {
                tracing::warn!(%error, "the session could not be closed and lapses with its lease");
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Stops everything that runs without writing, after the store has failed.
    pub(super) async fn abandon(&mut self) {
        let until = self.now().saturating_add(self.time_to_stop());
        self.run.state.clear_buffer();
        self.run.state.interrupt_all(Interruption::SessionLost);
        self.run.instances.abort();
        while self.run.state.occupancy().running > 0 && self.now() < until {
            // Ended attempts are dropped: the store cannot be written to.
            self.run.state.take_ended();
            tokio::select! {
                biased;
                () = self.run.state.woken() => {}
                () = timer::reached(&*self.run.inner.clock, until) => {}
            }
        }
    }
}
