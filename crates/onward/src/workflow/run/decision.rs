//! The inputs and the outputs of a turn.

use bytes::Bytes;
use onward_store::{Name, NewTask, TaskId, TaskState, Timestamp};

use super::bounds::{PUBLISHED_BYTES_PER_TURN, PUBLISHED_PER_TURN, SUBMITTED_PER_TURN};
use super::state::event::RunEvent;
use crate::workflow::template::Delivery;

/// An event from outside that a turn processes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Arrival {
    /// The run begins.
    Start,
    /// The task of a submission ended.
    StepEnded {
        /// The reference of the submission.
        reference: u64,
        task: TaskId,
        state: TaskState,
        result: ReportedResult,
        error: Option<String>,
        /// The attempts that began.
        attempts: u32,
    },
    /// The task of a submission was not inserted, because another one has its key.
    NotStarted {
        /// The reference of the submission.
        reference: u64,
        existing: TaskId,
    },
    /// A caller sent a signal.
    Signal { name: Name, payload: Bytes },
    /// A caller requested the cancellation, or the parent ended.
    Cancel,
    /// The moment of a timer, a deadline or the timeout may have come.
    Moment,
    /// The run is a copy of another one that has ended, and is to undo it.
    UndoOfRun { run: TaskId },
    /// The run begins with the results of another one. The events take the steps over that do not
    /// run, in the numbers of this run's template.
    Fork { run: Option<TaskId>, events: Vec<RunEvent> },
    /// A person or a program acts on the run.
    Action(Action),
}

/// The result in the report of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReportedResult {
    None,
    Value(Bytes),
    /// Too large for a report; it is read with the task.
    Omitted {
        bytes: u64,
    },
}

/// An action on a run, with its author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Action {
    pub(crate) kind: ActionKind,
    pub(crate) actor: Option<String>,
    pub(crate) reason: Option<String>,
}

/// An action on a run. Steps are named as in the template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ActionKind {
    /// Runs steps again that are bad or cancelled; all such without names. In a run that is held
    /// because an undo failed, it tries that undo again.
    Retry { steps: Vec<String> },
    /// Runs a step again that ended in any way.
    Reset { step: String },
    /// Marks a step, or an undo that failed, as completed by hand.
    Resolve { step: String },
    /// Completes a step with a result.
    Complete { step: String, result: Bytes },
    /// Skips a step.
    Skip { step: String },
    /// Cancels the run, and undoes it then if `undo` is set.
    Cancel { undo: bool },
    /// Undoes a run that has stopped.
    Undo,
}

/// Provides results that are not kept in the state.
pub(crate) trait Results {
    /// Returns the result of a task, or `None` if it has to be read first.
    fn result(&self, task: TaskId) -> Option<&[u8]>;
}

/// Results of which none was read.
#[cfg(test)]
pub(crate) struct NoResults;

#[cfg(test)]
impl Results for NoResults {
    fn result(&self, _: TaskId) -> Option<&[u8]> {
        None
    }
}

/// The result of [`advance`](super::advance).
#[derive(Debug)]
pub(crate) enum Advanced {
    /// The turn is decided.
    Decided(Decision),
    /// The results of these tasks have to be read; then the call is repeated.
    Needs(Vec<TaskId>),
}

/// The decision of a turn, which is written as a whole.
#[derive(Debug, PartialEq)]
pub(crate) struct Decision {
    /// The events to append to the history. Their fold is the state after the turn.
    pub(crate) events: Vec<RunEvent>,
    pub(crate) effects: Effects,
    pub(crate) next: RunNext,
}

/// The effects of a turn outside of the run.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Effects {
    /// The tasks to submit, in this order.
    pub(crate) submits: Vec<StepTask>,
    /// The submissions to cancel if they have not started.
    pub(crate) withdraws: Vec<u64>,
    /// The submissions to cancel.
    pub(crate) cancels: Vec<u64>,
    /// The events to publish, in this order.
    pub(crate) publishes: Vec<Published>,
}

/// The room that a turn has left, after what its earlier arrivals took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// The tasks that may be submitted for items.
    pub(crate) submits: usize,
    /// The events that may be published.
    pub(crate) publishes: usize,
    /// The size of the payloads, in bytes, at which nothing more is published.
    pub(crate) published_bytes: usize,
}

impl Room {
    /// Returns the room of a turn that has decided on these effects.
    pub(crate) fn behind(effects: &Effects) -> Self {
        let published_bytes: usize = effects.publishes.iter().map(|event| event.payload.len()).sum();
        Self {
            submits: SUBMITTED_PER_TURN.saturating_sub(effects.submits.len()),
            publishes: PUBLISHED_PER_TURN.saturating_sub(effects.publishes.len()),
            published_bytes: PUBLISHED_BYTES_PER_TURN.saturating_sub(published_bytes),
        }
    }

    /// Returns true if so little is left that further arrivals wait for the next turn.
    pub(crate) fn is_small(self) -> bool {
        self.submits < SUBMITTED_PER_TURN / 2
            || self.publishes < PUBLISHED_PER_TURN / 2
            || self.published_bytes < PUBLISHED_BYTES_PER_TURN / 2
    }
}

/// A task to submit. The caller sets its parent and its report.
#[derive(Debug, PartialEq)]
pub(crate) struct StepTask {
    pub(crate) reference: u64,
    /// The number of the step in the template.
    pub(crate) step: usize,
    /// The item of a step with `each`.
    pub(crate) item: Option<u32>,
    /// True if the task undoes the step.
    pub(crate) undo: bool,
    pub(crate) task: NewTask,
}

/// An event to publish.
#[derive(Debug, PartialEq)]
pub(crate) struct Published {
    /// The number of the step in the template.
    pub(crate) step: usize,
    pub(crate) name: String,
    pub(crate) payload: Bytes,
    pub(crate) delivery: Delivery,
}

/// The continuation of a run after a turn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RunNext {
    /// The run waits for an arrival, or until a moment if that comes first.
    Wait {
        until: Option<Timestamp>,
    },
    Complete {
        result: Option<Bytes>,
    },
    Fail {
        error: String,
    },
    Dead {
        error: String,
    },
    Cancelled {
        reason: String,
    },
    /// The run waits for an action.
    Held,
}
