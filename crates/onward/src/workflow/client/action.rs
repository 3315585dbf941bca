//! Actions of people and programs on runs.

use onward_store::{Name, Outcome, Recipient, Signal, TaskId, Write};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::workflow::run::{ACTION_SIGNAL, Action};

/// Actions on runs. Each is a message: it takes effect in order with everything else that happens
/// to the run, and the run refuses it where its state does not allow it.
impl Engine {
    /// Sends an action to a run. A run that has ended waits again first: both or neither.
    pub(crate) async fn act(&self, run: TaskId, action: &Action) -> Result<()> {
        let signal = Signal { to: Recipient::Task(run), name: Name::new(ACTION_SIGNAL)?, payload: action.encode()?.into() };
        let write = Write::Signal(Box::new(signal));
        let ended = self.record(run).await?.state.is_ended();
        let outcome = if ended {
            self.apply_and_wake(Write::All(vec![Write::Retry { task: run }, write])).await?
        } else {
            self.apply_and_wake(write).await?
        };
        match outcome {
            Outcome::Done | Outcome::All(_) => Ok(()),
            _ => Err(Error::unexpected("an action on a run")),
        }
    }
}
