//! Settings of queues: weights, concurrency, and the mode by which claims choose among queues.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api::error::{Error, Result};
use crate::api::name::Name;
use crate::bounds;

/// The mode by which a claim chooses among queues that have work for it. Within a queue the most
/// urgent task goes first, then the oldest, in every mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueMode {
    /// The queue with the highest weight goes first. While it has work, queues of lower weights
    /// wait. Queues of one weight are treated as one queue, in which the most urgent task goes
    /// first, then the oldest. The default.
    #[default]
    Strict,
    /// Each turn goes to a random queue by weight: a queue of weight 3 gets three times as many
    /// turns as one of weight 1.
    Lenient,
    /// Interleaved weighted round robin: in a round each queue gets as many turns as its weight,
    /// spread over the round. No queue with work waits longer than a round.
    Interleaved,
}

impl QueueMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Strict, Self::Lenient, Self::Interleaved];

    /// Returns the name of the mode: `strict`, `lenient` or `interleaved`.
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

/// The settings of one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct QueueSettings {
    /// The weight among queues that have work: 1 to 1000, default 1. Its effect depends on the
    /// [mode](QueueMode).
    pub weight: u32,
    /// The largest number of tasks of the queue that run at once, in all processes of the store
    /// together: 1 to 1 000 000. `None`, the default, sets no limit. A claimed task counts as
    /// running.
    pub concurrency: Option<u32>,
    /// The time for which a task with an [affinity key](crate::NewTask::affinity) waits for the
    /// session that last ran the key, counted from its due time. After it, any session takes the
    /// task. 0 (no wait) to an hour, default 5 seconds.
    pub affinity_wait: Duration,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self { weight: 1, concurrency: None, affinity_wait: bounds::AFFINITY_WAIT }
    }
}

/// A change of the settings of a queue. Each field that is `None` leaves its value unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetQueue {
    /// The queue. It is created if it does not exist.
    pub queue: Name,
    /// The weight, 1 to 1000.
    pub weight: Option<u32>,
    /// The number of tasks that run at once.
    pub concurrency: Option<ConcurrencyLimit>,
    /// The time for which tasks wait for the session that their affinity key prefers, 0 to an hour.
    pub affinity_wait: Option<Duration>,
}

impl SetQueue {
    /// Creates a change without values. A store rejects it until at least one is set.
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

    /// Sets the time for which a task waits for the session that its affinity key prefers: 0 (no
    /// wait) to an hour, with microsecond precision.
    #[must_use]
    pub fn affinity_wait(self, wait: Duration) -> Self {
        Self { affinity_wait: Some(wait), ..self }
    }

    /// Removes the limit on tasks that run at once.
    #[must_use]
    pub fn unlimited(self) -> Self {
        Self { concurrency: Some(ConcurrencyLimit::Unlimited), ..self }
    }
}

/// A limit on tasks that run at once, in a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConcurrencyLimit {
    /// Removes the limit.
    Unlimited,
    /// Sets the limit: 1 to 1 000 000.
    AtMost(u32),
}

impl ConcurrencyLimit {
    /// Returns the limit; `None` if the change removes it.
    #[must_use]
    pub fn limit(self) -> Option<u32> {
        match self {
            Self::Unlimited => None,
            Self::AtMost(limit) => Some(limit),
        }
    }
}

/// The choice among queues, for one claim.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QueueChoice {
    /// The mode of this claim; `None` for that of the store.
    pub mode: Option<QueueMode>,
    /// The position in the round, which the claimer's last claim returned. Only
    /// [`QueueMode::Interleaved`] uses it.
    pub turn: QueueTurn,
    /// A random number for this claim. Only [`QueueMode::Lenient`] uses it.
    pub random: u64,
}

/// The position in a round. A claimer passes the one that its last claim returned to the next
/// claim. The default starts a round.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
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
