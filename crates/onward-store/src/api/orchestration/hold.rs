//! Holds, which prevent the turns of an orchestration.

use serde::{Deserialize, Serialize};

/// The hold on an orchestration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// No hold: the orchestration has turns. The default.
    #[default]
    None,
    /// Paused, with no turn to come: it ran, or waited for something, when it was paused.
    Paused,
    /// Paused, with a turn to come: it was due or scheduled when it was paused, or became so later.
    /// It has the turn when it is resumed and the turn is due.
    PausedDue,
    /// Never started: it keeps signals to its key for the orchestration that is submitted with the
    /// key.
    Unstarted,
}

impl Hold {
    /// Returns the number under which stores keep the hold.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Paused => 1,
            Self::PausedDue => 2,
            Self::Unstarted => 3,
        }
    }

    /// Returns the hold that has this [`code`](Self::code).
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Paused,
            2 => Self::PausedDue,
            3 => Self::Unstarted,
            _ => Self::None,
        }
    }

    /// Returns whether the orchestration is paused.
    #[must_use]
    pub fn is_paused(self) -> bool {
        matches!(self, Self::Paused | Self::PausedDue)
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::None
    }
}
