//! The phases of a run.

use minicbor::{Decode, Encode};
use onward_store::text::Shown;

use crate::error::{Error, Result};

/// The phase of a run. The numbers are part of the file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Encode, Decode)]
#[cbor(index_only)]
#[non_exhaustive]
pub enum Phase {
    /// It has not begun.
    #[default]
    #[n(0)]
    Waiting,
    /// Steps start and end.
    #[n(1)]
    Running,
    /// Only steps on a failure path start. Running steps continue to their ends.
    #[n(2)]
    Stopping,
    /// The undos of its steps run.
    #[n(3)]
    Undoing,
    /// It needs a person.
    #[n(4)]
    Held,
    /// It ended, and every step that it needed completed.
    #[n(5)]
    Completed,
    /// It ended, and a step is bad or cancelled.
    #[n(6)]
    Failed,
    /// It ended, and a step is dead.
    #[n(7)]
    Dead,
    /// It was cancelled.
    #[n(8)]
    Cancelled,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 9] = [
        Self::Waiting,
        Self::Running,
        Self::Stopping,
        Self::Undoing,
        Self::Held,
        Self::Completed,
        Self::Failed,
        Self::Dead,
        Self::Cancelled,
    ];

    /// Returns the name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Undoing => "undoing",
            Self::Held => "held",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns true if the run has ended.
    #[must_use]
    pub fn is_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Dead | Self::Cancelled)
    }
}

impl std::str::FromStr for Phase {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|phase| phase.as_str() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid(format!("`{}` is no phase of a run; there are {known}", Shown(text)))
        })
    }
}

impl serde::Serialize for Phase {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
