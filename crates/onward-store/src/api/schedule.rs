//! Schedules: tasks that recur, as data.
//!
//! A store keeps schedules and fires them when it is told to; it computes no moments. Time zones
//! and cron text mean nothing to it: who sets or fires a schedule says when the next firing is.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api::error::{Error, Result};
use crate::api::name::Name;
use crate::api::task::{NewTask, TaskId};
use crate::api::timestamp::Timestamp;

/// When a schedule fires.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recurrence {
    /// At every whole multiple of the interval since [`starts_at`](NewSchedule::starts_at), or
    /// since 1970-01-01T00:00:00Z where there is none; so the moments do not depend on who set the
    /// schedule when. 100 ms to 3660 days.
    Every(Duration),
    /// At the moments of a cron expression in a time zone.
    Cron {
        /// Five fields (minute, hour, day of month, month, day of week), or six with seconds before
        /// them; at most 256 bytes.
        expression: String,
        /// The name of a zone in the IANA database, such as `Europe/Berlin` or `UTC`; at most 64
        /// bytes.
        zone: String,
    },
}

/// What to do when a firing comes while the task of the one before has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// Leave the new one out.
    #[default]
    Skip,
    /// Submit the new one all the same.
    Allow,
    /// Submit the new one when the task has ended. One waits so; further ones are left out.
    QueueOne,
    /// Cancel the task, and submit the new one when it has ended. A newer one takes the place of
    /// one that waits so.
    CancelRunning,
}

impl Overlap {
    /// Every policy.
    pub const ALL: [Self; 4] = [Self::Skip, Self::Allow, Self::QueueOne, Self::CancelRunning];

    /// The word for it: `skip`, `allow`, `queue-one` or `cancel-running`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Allow => "allow",
            Self::QueueOne => "queue-one",
            Self::CancelRunning => "cancel-running",
        }
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Overlap {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|overlap| overlap.as_str() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid(format!("there is no overlap policy `{text}`; there are {known}"))
        })
    }
}

/// What becomes of firings that were missed, because nobody ran when they were due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// They are left out.
    None,
    /// The last of them fires, once.
    #[default]
    Last,
    /// The last so many of them fire, oldest first: 1 to 1000.
    All(u32),
}

impl fmt::Display for CatchUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::Last => f.pad("last"),
            Self::All(limit) => f.pad(&limit.to_string()),
        }
    }
}

impl FromStr for CatchUp {
    type Err = Error;

    /// `none`, `last`, or a number: the last so many.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::invalid(format!(
                "there is no catch-up policy `{text}`; there are none, last, or how many: 1 to 1000"
            ))
        };
        match text {
            "none" => Ok(Self::None),
            "last" => Ok(Self::Last),
            number => number.parse().map(Self::All).map_err(|_| wrong()),
        }
    }
}

/// A schedule as whoever sets it describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewSchedule {
    /// Its name.
    pub name: Name,
    /// When it fires.
    pub recurrence: Recurrence,
    /// What it submits. Without a key of its own, each firing's task gets the key
    /// `schedule:NAME:MOMENT`. It may wait ([`When::After`](crate::When::After)), but may have no
    /// moment or deadline of its own.
    pub task: NewTask,
    /// What to do while the task of the firing before is active. Default: skip.
    pub overlap: Overlap,
    /// What becomes of missed firings. Default: the last one fires.
    pub catch_up: CatchUp,
    /// Each firing is put off by a part of this that depends on its name and moment: at most a day.
    /// Default: none.
    pub jitter: Duration,
    /// No firing is before this moment.
    pub starts_at: Option<Timestamp>,
    /// No firing is at or after this moment.
    pub ends_at: Option<Timestamp>,
    /// The provider that it comes from, which alone may change it.
    pub provider: Option<Name>,
}

impl NewSchedule {
    /// A schedule with the default of everything else.
    #[must_use]
    pub fn new(name: Name, recurrence: Recurrence, task: NewTask) -> Self {
        Self {
            name,
            recurrence,
            task,
            overlap: Overlap::default(),
            catch_up: CatchUp::default(),
            jitter: Duration::ZERO,
            starts_at: None,
            ends_at: None,
            provider: None,
        }
    }

    /// Whether both fire at the same moments.
    #[must_use]
    pub fn fires_as(&self, other: &Self) -> bool {
        let timing = |it: &Self| (it.recurrence.clone(), it.jitter, it.starts_at, it.ends_at);
        timing(self) == timing(other)
    }
}

/// A firing to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NextFiring {
    /// The moment in the schedule's terms.
    pub at: Timestamp,
    /// When it is to be done: the moment and its jitter.
    pub due: Timestamp,
}

/// A schedule to be made or changed.
#[derive(Debug, Clone, PartialEq)]
pub struct SetSchedule {
    /// What it is to be.
    pub schedule: NewSchedule,
    /// Its next firing, where it is new or fires at other moments than before; else what was due
    /// stays due.
    pub next: Option<NextFiring>,
}

/// A firing of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FireSchedule {
    /// The schedule.
    pub name: Name,
    /// Its [revision](ScheduleRecord::revision) when it was decided to fire it.
    pub revision: u64,
    /// The moments for which it fires, in order; at most 1000. One that was held until now is not
    /// held any more, or again.
    pub firings: Vec<Timestamp>,
    /// What to do while the task of the firing before is active; `None` for the schedule's own
    /// policy.
    pub overlap: Option<Overlap>,
    /// How many firings were missed and are left out.
    pub missed: u64,
    /// What went wrong before it came to a firing.
    pub error: Option<String>,
    /// What is next.
    pub then: AfterFiring,
}

/// What comes after a firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFiring {
    /// What was next before it: this was an extra one.
    AsBefore,
    /// This one.
    Next(NextFiring),
    /// Nothing: the schedule is over.
    Over,
}

/// What became of one moment of a [`FireSchedule`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "firing")]
pub enum Firing {
    /// Its task was submitted.
    Submitted {
        /// The task.
        task: TaskId,
    },
    /// It was left out.
    Skipped {
        /// The task that is active.
        active: TaskId,
    },
    /// It waits until a task has ended.
    Held {
        /// That task.
        behind: TaskId,
    },
    /// Its task could not be submitted; the schedule says why and goes on.
    Failed {
        /// What was wrong.
        message: String,
    },
}

/// What became of a [`FireSchedule`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fired {
    /// What became of each moment, in order.
    pub firings: Vec<Firing>,
    /// The schedule's revision now.
    pub revision: u64,
}

/// What setting a schedule did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleSet {
    /// There was none of that name.
    Created,
    /// It is another one now.
    Changed,
    /// It was so already.
    Unchanged,
}

impl fmt::Display for ScheduleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
        })
    }
}

/// The last firing of a schedule whose task was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LastFiring {
    /// The moment in the schedule's terms.
    pub at: Timestamp,
    /// When it was done.
    pub fired_at: Timestamp,
    /// Its task.
    pub task: TaskId,
}

/// What went wrong with a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ScheduleError {
    /// When.
    pub at: Timestamp,
    /// What was wrong.
    pub message: String,
}

/// Everything a store knows of one schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleRecord {
    /// What it is.
    pub schedule: NewSchedule,
    /// Another number after every change and every firing, never the same twice in a store.
    pub revision: u64,
    /// Whether it is paused.
    pub paused: bool,
    /// Its next firing; `None` once it is over.
    pub next: Option<NextFiring>,
    /// The moment of a firing that waits until the task of the one before has ended.
    pub held: Option<Timestamp>,
    /// Its last firing.
    pub last: Option<LastFiring>,
    /// What went wrong since its last good firing.
    pub error: Option<ScheduleError>,
    /// How many firings submitted a task.
    pub fired: u64,
    /// How many were left out because a task was active.
    pub skipped: u64,
    /// How many were missed and left out.
    pub missed: u64,
    /// How many could not submit their task.
    pub failed: u64,
    /// When it was first set.
    pub created_at: Timestamp,
}

/// Which schedules to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleSelection {
    /// All, by name.
    All,
    /// One.
    Named(Name),
    /// Those that fire next, by when that is due; paused ones and those that are over are left out.
    Next {
        /// At most so many.
        limit: usize,
    },
    /// Those that hold a firing and are not paused, by name.
    Held,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_read_as_it_is_written() {
        for overlap in Overlap::ALL {
            assert_eq!(overlap.to_string().parse::<Overlap>().unwrap(), overlap);
        }
        for catch_up in [CatchUp::None, CatchUp::Last, CatchUp::All(7)] {
            assert_eq!(catch_up.to_string().parse::<CatchUp>().unwrap(), catch_up);
        }
        assert!("some".parse::<CatchUp>().unwrap_err().to_string().contains("last"));
        assert!("never".parse::<Overlap>().unwrap_err().to_string().contains("queue-one"));
    }
}
