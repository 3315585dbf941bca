//! How queues are worked off: weights, concurrency, and the mode of choosing among them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api::error::{Error, Result};
use crate::api::name::Name;
use crate::bounds;

/// How a claim chooses among queues that have work for it. Within a queue the most urgent task goes
/// first, then the oldest, whatever the mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueMode {
    /// The queue with the highest weight first: while it has work, those of a lower weight wait.
    /// Queues of the same weight are one line, in which the most urgent task goes first, then the
    /// oldest. With weights left alone, that is all there is to it.
    #[default]
    Strict,
    /// Each turn goes to a queue drawn at random, by weight: one of weight 3 gets three times as
    /// many as one of weight 1.
    Lenient,
    /// Interleaved weighted round robin: in a round each queue gets as many turns as its weight,
    /// spread over the round. No queue with work waits longer than a round.
    Interleaved,
}

impl QueueMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Strict, Self::Lenient, Self::Interleaved];

    /// The word for it: `strict`, `lenient` or `interleaved`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Lenient => "lenient",
            Self::Interleaved => "interleaved",
        }
    }
}

impl fmt::Display for QueueMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for QueueMode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text).ok_or_else(|| {
            Error::invalid(format!("there is no queue mode `{text}`; there are strict, lenient and interleaved"))
        })
    }
}

/// How one queue is worked off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct QueueSettings {
    /// Its share among the queues that have work: 1 to 1000, default 1. What it means depends on
    /// the [mode](QueueMode).
    pub weight: u32,
    /// The most tasks of it that run at once, in all processes of the store together: 1 to 1 000
    /// 000; `None`, the default, for any number. A task that is claimed counts as running.
    pub concurrency: Option<u32>,
    /// For how long a task of a [series](crate::NewTask::affinity), counted from when it became
    /// due, waits for the session that ran the series last before it goes to any: 0 (never) to an
    /// hour, default 5 seconds.
    pub affinity_wait: Duration,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self { weight: 1, concurrency: None, affinity_wait: bounds::AFFINITY_WAIT }
    }
}

/// What is to change about how a queue is worked off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetQueue {
    /// The queue; it is made if it is not there yet.
    pub queue: Name,
    /// Its weight from now on, 1 to 1000; `None` leaves it as it is.
    pub weight: Option<u32>,
    /// Its concurrency from now on; `None` leaves it as it is.
    pub concurrency: Option<ConcurrencyLimit>,
    /// How long its tasks wait for the session that their series prefers from now on, 0 to an hour;
    /// `None` leaves it as it is.
    pub affinity_wait: Option<Duration>,
}

impl SetQueue {
    /// A change of nothing, to be filled in.
    #[must_use]
    pub fn new(queue: Name) -> Self {
        Self { queue, weight: None, concurrency: None, affinity_wait: None }
    }

    /// Sets the weight, 1 to 1000.
    #[must_use]
    pub fn weight(self, weight: u32) -> Self {
        Self { weight: Some(weight), ..self }
    }

    /// Limits how many tasks of the queue run at once, in all processes together: 1 to 1 000 000.
    #[must_use]
    pub fn concurrency(self, tasks: u32) -> Self {
        Self { concurrency: Some(ConcurrencyLimit::AtMost(tasks)), ..self }
    }

    /// Sets how long a task waits for the session that its series prefers: 0 (never) to an hour, to
    /// the microsecond.
    #[must_use]
    pub fn affinity_wait(self, wait: Duration) -> Self {
        Self { affinity_wait: Some(wait), ..self }
    }

    /// Takes the limit on tasks that run at once away.
    #[must_use]
    pub fn unlimited(self) -> Self {
        Self { concurrency: Some(ConcurrencyLimit::Unlimited), ..self }
    }
}

/// How many may run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConcurrencyLimit {
    /// Any number.
    Unlimited,
    /// At most so many: 1 to 1 000 000.
    AtMost(u32),
}

impl ConcurrencyLimit {
    /// The number, if there is one.
    #[must_use]
    pub fn limit(self) -> Option<u32> {
        match self {
            Self::Unlimited => None,
            Self::AtMost(limit) => Some(limit),
        }
    }
}

/// How a claim is to choose among queues.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueChoice {
    /// The mode of this claim; `None` for the store's.
    pub mode: Option<QueueMode>,
    /// Where the claimer's round stands: what its last claim answered. Matters to
    /// [`QueueMode::Interleaved`].
    pub turn: QueueTurn,
    /// A number drawn at random for this claim. Matters to [`QueueMode::Lenient`].
    pub random: u64,
}

/// Where a round stands: to be handed to the next claim as it came from the last one. The default
/// begins a round.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueTurn {
    /// The cycle of the round, counted from 1; 0 before the first turn.
    pub(crate) cycle: u32,
    /// The queue that had the last turn.
    pub(crate) after: Option<Name>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_is_read_as_it_is_written() {
        for mode in QueueMode::ALL {
            assert_eq!(mode.to_string().parse::<QueueMode>().unwrap(), mode);
        }
        assert!("fair".parse::<QueueMode>().unwrap_err().to_string().contains("interleaved"));
    }
}
