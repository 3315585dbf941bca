//! Schedules: recurring tasks, as data.
//!
//! A store keeps schedules and applies their firings, but it computes no times. It does not
//! interpret time zones or cron expressions: the caller that sets or fires a schedule states the
//! next firing.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api::error::{Error, Result};
use crate::api::name::Name;
use crate::api::task::{NewTask, TaskId};
use crate::api::timestamp::Timestamp;

/// The times at which a schedule fires.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recurrence {
    /// Every whole multiple of the interval since [`starts_at`](NewSchedule::starts_at), or since
    /// 1970-01-01T00:00:00Z without a start. So the times do not depend on when a schedule was set.
    /// The interval is 100 ms to 3660 days.
    Every(Duration),
    /// The times of a cron expression in a time zone.
    Cron {
        /// Five fields (minute, hour, day of month, month, day of week), or six with seconds first;
        /// at most 256 bytes.
        expression: String,
        /// The name of a zone in the IANA database, such as `Europe/Berlin` or `UTC`; at most 64
        /// bytes.
        zone: String,
    },
}

/// The effect of a firing while the task of the previous firing is live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// Skips the firing. The default.
    #[default]
    Skip,
    /// Submits the task anyway.
    Allow,
    /// Holds the firing and submits its task when the previous one has ended. One firing is held;
    /// further firings are skipped.
    QueueOne,
    /// Cancels the previous task. A task that has not started is replaced at once. If it runs, the
    /// firing is held until it has ended. A newer firing replaces a held one, which counts as
    /// skipped.
    CancelRunning,
}

impl Overlap {
    /// All policies.
    pub const ALL: [Self; 4] = [Self::Skip, Self::Allow, Self::QueueOne, Self::CancelRunning];

    /// Returns the name of the policy: `skip`, `allow`, `queue-one` or `cancel-running`.
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

/// The effect of firings that were missed because no scheduler ran when they were due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// Missed firings are skipped.
    None,
    /// Only the last missed firing fires. The default.
    #[default]
    Last,
    /// The last n missed firings fire, oldest first: 1 to 1000.
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

    /// Parses `none`, `last`, or the number of missed firings that fire.
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

/// A schedule, as the caller that sets it describes it.
///
/// ```
/// use std::time::Duration;
/// use onward_store::{CatchUp, NewSchedule, NewTask, Overlap, Recurrence};
///
/// // A report on working days at 8 in Berlin. A report that still runs is not started again, and
/// // reports that were missed while no worker ran are dropped.
/// let (expression, zone) = ("0 8 * * 1-5".into(), "Europe/Berlin".into());
/// let recurrence = Recurrence::Cron { expression, zone };
/// let schedule = NewSchedule {
///     overlap: Overlap::Skip,
///     catch_up: CatchUp::None,
///     jitter: Duration::from_secs(60),
///     ..NewSchedule::new("daily-report".parse()?, recurrence, NewTask::new("report")?)
/// };
/// assert_eq!(schedule.name.as_str(), "daily-report");
/// # Ok::<(), onward_store::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewSchedule {
    /// The name.
    pub name: Name,
    /// The times at which it fires.
    pub recurrence: Recurrence,
    /// The task that each firing submits. If the task has no key, its key is `schedule:NAME:TIME`.
    /// The task may have a delay ([`When::After`](crate::When::After)), but neither a due time nor
    /// a deadline.
    pub task: NewTask,
    /// The effect of a firing while the previous task is live. Default: skip.
    pub overlap: Overlap,
    /// The effect of missed firings. Default: the last one fires.
    pub catch_up: CatchUp,
    /// The largest delay that is added to each firing, at most a day. The delay depends on the
    /// schedule's name and the time of the firing. Default: none.
    pub jitter: Duration,
    /// The time before which the schedule does not fire. Default: none.
    pub starts_at: Option<Timestamp>,
    /// The time from which on the schedule does not fire. Default: none.
    pub ends_at: Option<Timestamp>,
    /// The provider of the schedule. Only a caller that states the same provider may change it.
    /// Default: none.
    pub provider: Option<Name>,
}

impl NewSchedule {
    /// Creates a schedule with defaults for all other fields.
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

    /// Returns whether both schedules fire at the same times.
    #[must_use]
    pub fn fires_as(&self, other: &Self) -> bool {
        let timing = |it: &Self| (it.recurrence.clone(), it.jitter, it.starts_at, it.ends_at);
        timing(self) == timing(other)
    }
}

/// A firing in the future.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NextFiring {
    /// The time of the firing, without jitter.
    pub at: Timestamp,
    /// The time at which the firing is due: `at` plus its jitter.
    pub due: Timestamp,
}

/// A request to create or change a schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetSchedule {
    /// The schedule.
    pub schedule: NewSchedule,
    /// The next firing. It is used if the schedule is new or fires at other times than before;
    /// otherwise the stored next firing stays.
    pub next: Option<NextFiring>,
}

/// A firing of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FireSchedule {
    /// The schedule.
    pub name: Name,
    /// The [revision](ScheduleRecord::revision) of the schedule from which the caller decided to
    /// fire it.
    pub revision: u64,
    /// The times for which the schedule fires, in order; at most 1000. A held firing of one of
    /// these times is no longer held, unless this write holds it again.
    pub firings: Vec<Timestamp>,
    /// The overlap policy of these firings; `None` for that of the schedule.
    pub overlap: Option<Overlap>,
    /// The number of missed firings that are skipped.
    pub missed: u64,
    /// An error that prevented a firing. The schedule stores it.
    pub error: Option<String>,
    /// The next firing.
    pub then: AfterFiring,
}

/// The next firing after a write that fires a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterFiring {
    /// The next firing stays as it was, because this was an extra firing.
    AsBefore,
    /// This firing is next.
    Next(NextFiring),
    /// No firing is next: the schedule is over.
    Over,
}

/// The result of one time of a [`FireSchedule`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "firing")]
pub enum Firing {
    /// The task was submitted.
    Submitted {
        /// The task.
        task: TaskId,
    },
    /// The firing was skipped.
    Skipped {
        /// The live task because of which it was skipped.
        active: TaskId,
    },
    /// The firing is held until a task has ended.
    Pending {
        /// The task.
        behind: TaskId,
    },
    /// The task could not be submitted. The schedule stores the error and continues.
    Failed {
        /// The error message.
        message: String,
    },
}

/// The result of a [`FireSchedule`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Fired {
    /// The result of each time, in order.
    pub firings: Vec<Firing>,
    /// The revision of the schedule after the write.
    pub revision: u64,
}

/// The result of setting a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleSet {
    /// The schedule was created.
    Created,
    /// The schedule was changed.
    Changed,
    /// The schedule was already as requested.
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

/// The last firing that submitted a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LastFiring {
    /// The time of the firing, without jitter.
    pub at: Timestamp,
    /// The time at which the task was submitted.
    pub fired_at: Timestamp,
    /// The task.
    pub task: TaskId,
}

/// An error of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ScheduleError {
    /// The time of the error.
    pub at: Timestamp,
    /// The error message; cut at 8 KiB.
    pub message: String,
}

/// The record of a schedule: everything that a store knows about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleRecord {
    /// The schedule.
    pub schedule: NewSchedule,
    /// The revision. It changes with every change and every firing, and a store never uses a number
    /// twice.
    pub revision: u64,
    /// True if the schedule is paused.
    pub paused: bool,
    /// The next firing; `None` if the schedule is over.
    pub next: Option<NextFiring>,
    /// The time of a firing that is held until the previous task has ended.
    pub pending_at: Option<Timestamp>,
    /// The last firing that submitted a task. Extra firings that may overlap are not included,
    /// unless the schedule itself allows overlaps.
    pub last: Option<LastFiring>,
    /// The last error since a firing submitted a task.
    pub error: Option<ScheduleError>,
    /// The number of firings that submitted a task.
    pub fired: u64,
    /// The number of firings that were skipped because a task was live.
    pub skipped: u64,
    /// The number of firings that were missed and skipped.
    pub missed: u64,
    /// The number of firings whose task could not be submitted.
    pub failed: u64,
    /// The time at which the schedule was created.
    pub created_at: Timestamp,
}

/// The schedules that a listing returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleSelection {
    /// All schedules, by name.
    All,
    /// The schedule with this name.
    Named(Name),
    /// The schedules that fire next, by due time. Paused schedules and schedules that are over are
    /// excluded.
    Next {
        /// The largest number of schedules.
        limit: usize,
    },
    /// The schedules that hold a firing and are not paused, by name.
    Pending,
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
