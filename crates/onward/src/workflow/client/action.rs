//! Actions of people and programs on runs.

use onward_store::{Name, Outcome, Recipient, Signal, TaskId, TaskState, Write};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::workflow::run::{self, ActionKind};

/// The name of the signals that carry actions. It is reserved, so no caller can send one by
/// accident.
pub(crate) const ACTION_SIGNAL: &str = "onward.action";

/// An action on a run ([`Engine::act_on_run`]). Steps are named as in the template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "action")]
#[non_exhaustive]
pub enum RunAction {
    /// Runs steps again that are bad or cancelled: all such steps if none is named. In a run that
    /// is held because an undo failed, it tries that undo again.
    Retry {
        /// The steps.
        #[serde(default)]
        steps: Vec<String>,
    },
    /// Runs a step again that ended in any way, and everything behind it.
    Reset {
        /// The step.
        step: String,
    },
    /// Marks a bad step, or an undo that failed, as completed by hand.
    Resolve {
        /// The step.
        step: String,
    },
    /// Completes a step with a result.
    Complete {
        /// The step.
        step: String,
        /// The result.
        result: Value,
    },
    /// Skips a step.
    Skip {
        /// The step.
        step: String,
    },
    /// Cancels the run, and undoes it then if `undo` is set.
    Cancel {
        /// True to undo.
        #[serde(default)]
        undo: bool,
    },
    /// Undoes a run that has stopped.
    Undo,
}

/// An action as its message carries it.
#[derive(Debug, Serialize, Deserialize)]
struct ActionMessage {
    #[serde(flatten)]
    action: RunAction,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    actor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Decodes the action of a message; `None` if this version does not know it.
pub(crate) fn decode_action(payload: &[u8]) -> Option<run::Action> {
    let message: ActionMessage = serde_json::from_slice(payload).ok()?;
    Some(run::Action { kind: kind(message.action), actor: message.actor, reason: message.reason })
}

fn kind(action: RunAction) -> ActionKind {
    match action {
        RunAction::Retry { steps } => ActionKind::Retry { steps },
        RunAction::Reset { step } => ActionKind::Reset { step },
        RunAction::Resolve { step } => ActionKind::Resolve { step },
        RunAction::Complete { step, result } => ActionKind::Complete { step, result: result.to_string().into() },
        RunAction::Skip { step } => ActionKind::Skip { step },
        RunAction::Cancel { undo } => ActionKind::Cancel { undo },
        RunAction::Undo => ActionKind::Undo,
    }
}

/// Signals for runs.
impl Engine {
    /// Sends a signal to a run whose step waits for it, or will wait for it. The payload is checked
    /// against the schema of the step's question.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if no step takes the signal or the payload does not fit;
    /// the errors of [`signal`](Self::signal).
    pub async fn signal_run(&self, run: TaskId, name: &str, payload: &Value) -> Result<()> {
        let follower = self.follow_run(run).await?.at_end().await?;
        follower.check_room()?;
        follower.check_signal(name, payload)?;
        self.signal(run, name, payload).await
    }

    /// Returns the people and roles who may send a signal to a run: `who` of the question that it
    /// answers next. An empty list stands for everyone. The caller, who knows the sender, checks
    /// it: without a sign-in, the local user writes to the store, and may reply.
    ///
    /// # Errors
    /// As [`run_view`](Self::run_view).
    pub async fn repliers(&self, run: TaskId, name: &str) -> Result<Vec<String>> {
        Ok(self.follow_run(run).await?.at_end().await?.repliers(name))
    }
}

/// Actions on runs. Each is a message: it takes effect in order with everything else that happens
/// to the run, and the run refuses it where its state does not allow it.
impl Engine {
    /// Sends an action to a run. A run that has ended waits again first: both or neither. `actor`
    /// and `reason` are kept in the history.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found); [`is_invalid`](Error::is_invalid) if the task is not
    /// a run, or its state does not allow the action: the message says what is possible.
    pub async fn act_on_run(
        &self,
        run: TaskId,
        action: RunAction,
        actor: Option<&str>,
        reason: Option<&str>,
    ) -> Result<()> {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let message = ActionMessage { action, actor: owned(actor), reason: owned(reason) };
        let follower = self.follow_run(run).await?.at_end().await?;
        let record = self.run_record(run).await?;
        let state = record.state;
        if let (Some(above), true) = (record.parent.filter(|_| record.report.is_some()), state.is_ended()) {
            return Err(Error::invalid(format!(
                "run {run} is a step of run {above} and has ended; act on that run: `onward workflow retry {above}`"
            )));
        }
        if state.is_ended() && !follower.phase().is_ended() {
            return self.act_on_unread_run(run, state, &message.action).await;
        }
        if !matches!(message.action, RunAction::Cancel { .. }) {
            follower.check_room()?;
        }
        follower.check(&kind(message.action.clone()))?;
        let payload = serde_json::to_vec(&message)
            .map_err(|error| Error::invalid(format!("the action cannot be written as JSON: {error}")))?;
        let signal = Signal { to: Recipient::Task(run), name: Name::new(ACTION_SIGNAL)?, payload: payload.into() };
        let write = Write::Signal(Box::new(signal));
        let outcome = if state.is_ended() {
            self.apply_and_wake(Write::All(vec![Write::Retry { task: run }, write])).await?
        } else {
            self.apply_and_wake(write).await?
        };
        match outcome {
            Outcome::Done | Outcome::All(_) => Ok(()),
            _ => Err(Error::unexpected("an action on a run")),
        }
    }

    /// Acts on a run whose task ended without a turn, such as one whose template cannot be read.
    /// Its steps have not ended, so a retry of all is the only action.
    async fn act_on_unread_run(&self, run: TaskId, state: TaskState, action: &RunAction) -> Result<()> {
        let is_retry = matches!(action, RunAction::Retry { steps } if steps.is_empty());
        if !is_retry {
            return Err(Error::invalid(format!(
                "run {run} is {state} and its last turn was not carried out; possible is retry without steps"
            )));
        }
        match self.apply_and_wake(Write::Retry { task: run }).await? {
            Outcome::Done => Ok(()),
            _ => Err(Error::unexpected("a retry of a run")),
        }
    }
}
