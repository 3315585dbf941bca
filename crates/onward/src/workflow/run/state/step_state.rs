//! The states of a step.

use minicbor::{Decode, Encode};
use onward_store::TaskState;

/// The state of a step. The numbers are part of the file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Encode, Decode)]
#[cbor(index_only)]
#[non_exhaustive]
pub enum StepState {
    /// It is not decided whether the step runs.
    #[default]
    #[n(0)]
    Pending,
    /// The step has a task, or tasks for its items.
    #[n(1)]
    Open,
    /// The step waits for a moment or a signal.
    #[n(2)]
    Waiting,
    /// The step completed.
    #[n(3)]
    Completed,
    /// The step failed without an effect.
    #[n(4)]
    Failed,
    /// The attempts of the step are used up; it may have had an effect.
    #[n(5)]
    Dead,
    /// The step did not start in its time to live.
    #[n(6)]
    Expired,
    /// The step was cancelled.
    #[n(7)]
    Cancelled,
    /// The step was not wanted.
    #[n(8)]
    Skipped,
    /// A step that it needed ended in another way.
    #[n(9)]
    Unreached,
}

impl StepState {
    /// Every state.
    pub const ALL: [Self; 10] = [
        Self::Pending,
        Self::Open,
        Self::Waiting,
        Self::Completed,
        Self::Failed,
        Self::Dead,
        Self::Expired,
        Self::Cancelled,
        Self::Skipped,
        Self::Unreached,
    ];

    /// Returns the name, which expressions read too.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Open => "open",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Dead => "dead",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
            Self::Unreached => "unreached",
        }
    }

    /// Returns true if the step has ended.
    #[must_use]
    pub fn is_ended(self) -> bool {
        !matches!(self, Self::Pending | Self::Open | Self::Waiting)
    }

    /// Returns true if the step has a task, a timer or a wait for a signal.
    #[must_use]
    pub fn is_active(self) -> bool {
        matches!(self, Self::Open | Self::Waiting)
    }

    /// Returns true if the step ended badly.
    #[must_use]
    pub fn is_bad(self) -> bool {
        matches!(self, Self::Failed | Self::Dead | Self::Expired)
    }

    /// Returns true if an action can complete the step by hand.
    #[must_use]
    pub fn is_bad_or_cancelled(self) -> bool {
        self.is_bad() || self == Self::Cancelled
    }

    /// Returns the state of a step whose task ended in a state of the store.
    pub(in crate::workflow::run) fn of_task(state: TaskState) -> Self {
        match state {
            TaskState::Completed => Self::Completed,
            TaskState::Failed => Self::Failed,
            TaskState::Expired => Self::Expired,
            TaskState::Cancelled => Self::Cancelled,
            // No report is of a task that has not ended. *Dead* assumes that there may be an
            // effect.
            _ => Self::Dead,
        }
    }
}

impl serde::Serialize for StepState {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
