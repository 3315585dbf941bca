//! What keeps an orchestration from having turns.

use serde::{Deserialize, Serialize};

/// Whether an orchestration goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// It does.
    #[default]
    None,
    /// It is paused; it was running or waited for something when it was.
    Paused,
    /// It is paused, and had a turn to come, or has one to come since: when that is due it has it
    /// as soon as it is resumed.
    Aside,
    /// It was never started: it keeps what is sent to its key for whoever starts one with it.
    Unstarted,
}

impl Hold {
    /// The number by which stores keep it.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Paused => 1,
            Self::Aside => 2,
            Self::Unstarted => 3,
        }
    }

    /// What [`code`](Self::code) stands for.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Paused,
            2 => Self::Aside,
            3 => Self::Unstarted,
            _ => Self::None,
        }
    }

    /// Whether it is paused.
    #[must_use]
    pub fn is_paused(self) -> bool {
        matches!(self, Self::Paused | Self::Aside)
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::None
    }
}
