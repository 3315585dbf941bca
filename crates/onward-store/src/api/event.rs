//! Events: the stream of all transitions of tasks.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api::error::{Error, Result};
use crate::api::name::Name;
use crate::api::task::TaskId;
use crate::api::timestamp::Timestamp;

/// An event: one transition of one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The cursor after this event. Reading after it continues with the next event.
    pub cursor: EventCursor,
    /// The time of the transition, by the store's clock.
    pub at: Timestamp,
    /// The task.
    pub task: TaskId,
    /// The kind of the task.
    pub kind: Name,
    /// The queue of the task.
    pub queue: Name,
    /// The transition.
    #[serde(flatten)]
    pub change: Change,
}

/// A transition of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "change")]
#[non_exhaustive]
pub enum Change {
    /// The store accepted the task.
    Submitted,
    /// A session claimed the task.
    Started {
        /// The number of the attempt, counted from 1.
        attempt: u32,
    },
    /// The task completed.
    Completed,
    /// An attempt failed, and another follows.
    Retrying {
        /// The number of the failed attempt, counted from 1.
        attempt: u32,
        /// The delay until the next attempt is due.
        #[serde(with = "seconds")]
        after: Duration,
    },
    /// The task failed and is not retried.
    Failed,
    /// The task became a dead letter.
    Dead,
    /// The worker of the task, or the orchestration, was asked to stop.
    CancelRequested,
    /// The task was cancelled.
    Cancelled,
    /// The task expired.
    Expired,
    /// The task was released, as if it had not been claimed.
    Released,
    /// The session that ran the task lapsed, and the task waits again.
    LeaseLost,
    /// The task had ended and was retried: it waits again.
    Retried,
    /// A submit with the same key raised the priority of the task.
    PriorityRaised,
    /// The task was removed by a purge, a deletion, or the start of an orchestration that replaces
    /// it.
    Purged,
    /// Everything for which the task was blocked has ended.
    Unblocked,
    /// The task is blocked or parked: its attempt ended and it waits for children, an external
    /// completion or its next turn; or it is an orchestration that was paused.
    Blocked,
    /// The task is in another queue.
    Moved,
    /// The task was delivered as an item of a batch.
    Batched {
        /// The batch.
        batch: TaskId,
    },
    /// An orchestration or a run published an event, which its history keeps.
    Published {
        /// The position of the event in the history, counted from 0.
        position: u64,
    },
}

mod seconds {
    use std::time::Duration;

    pub(super) fn serialize<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let seconds = <f64 as serde::Deserialize>::deserialize(deserializer)?;
        Duration::try_from_secs_f64(seconds).map_err(serde::de::Error::custom)
    }
}

/// A position in the stream of events. A reader can store it and continue from it later, also after
/// a restart. Its text form is opaque.
///
/// Events are in the order in which the store made the changes durable. Submissions are not logged
/// separately but derived from the tasks, so a submission disappears when its task is pruned or
/// purged.
///
/// [`Write::Prune`](crate::Write::Prune) forgets events up to the last end that it removed. A read
/// after an older cursor continues with the oldest event that is left, and
/// [`EventPage::forgotten_up_to`] reports the gap. A reader that must see every event has to read
/// more often than history is pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct EventCursor {
    /// The log entry read last.
    pub(crate) entry: i64,
    /// The number of changes of that entry that were read.
    pub(crate) offset: u32,
    /// The lowest number of a task whose submission was not read.
    pub(crate) submitted: i64,
}

impl EventCursor {
    /// The position before the first event.
    pub const START: Self = Self { entry: 0, offset: 0, submitted: 0 };

    /// The offset after the last change of an entry.
    pub(crate) const BEHIND: u32 = u32::MAX;

    /// Returns the offset after `read` of the `of` changes of an entry.
    pub(crate) fn offset(read: usize, of: usize) -> u32 {
        if read == of { Self::BEHIND } else { u32::try_from(read).unwrap_or(Self::BEHIND) }
    }

    /// Returns whether some of the changes of the entry were read, but not all.
    pub(crate) fn is_within(self) -> bool {
        self.offset > 0 && self.offset < Self::BEHIND
    }

    /// Returns the position at which reading continues. `oldest` is the first entry from the
    /// cursor's entry on that was not forgotten.
    pub(crate) fn resumed(self, oldest: i64) -> Resumed {
        // Nothing is missing if the oldest entry follows the entry that was read completely.
        let is_next = oldest == self.entry + 1 && !self.is_within();
        if oldest == self.entry || is_next {
            return Resumed { at: self, forgotten_up_to: None };
        }
        let at = Self { entry: oldest - 1, offset: Self::BEHIND, ..self };
        Resumed { at, forgotten_up_to: Some(at).filter(|_| self != Self::START) }
    }
}

/// The position at which a reader continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resumed {
    pub(crate) at: EventCursor,
    /// The gap, as in [`EventPage::forgotten_up_to`].
    pub(crate) forgotten_up_to: Option<EventCursor>,
}

impl fmt::Display for EventCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.entry, self.offset, self.submitted)
    }
}

impl FromStr for EventCursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::invalid(format!("`{text}` is not an event cursor; use one that an event carried"));
        let mut parts = text.splitn(3, '.');
        let mut next = || parts.next().ok_or_else(wrong);
        let (entry, offset, submitted) = (next()?, next()?, next()?);
        Ok(Self {
            entry: entry.parse().map_err(|_| wrong())?,
            offset: offset.parse().map_err(|_| wrong())?,
            submitted: submitted.parse().map_err(|_| wrong())?,
        })
    }
}

impl Serialize for EventCursor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EventCursor {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventPage {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// The cursor for the next page. It is the given cursor if there were no events.
    pub next: EventCursor,
    /// The end of a gap: if events after the given cursor were forgotten, the cursor before the
    /// oldest event that is left. The page starts with that event.
    ///
    /// Only the page that skips the gap reports it. A read from [`START`](EventCursor::START)
    /// reports none. On PostgreSQL a failed commit can leave a gap in the numbers, and a prune that
    /// ends at it looks like forgotten events.
    pub forgotten_up_to: Option<EventCursor>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(entry: i64, offset: u32) -> EventCursor {
        EventCursor { entry, offset, submitted: 7 }
    }

    #[test]
    fn a_cursor_whose_entry_is_there_goes_on_in_it() {
        for offset in [1, EventCursor::BEHIND] {
            let resumed = Resumed { at: cursor(3, offset), forgotten_up_to: None };
            assert_eq!(cursor(3, offset).resumed(3), resumed);
        }
    }

    #[test]
    fn a_cursor_behind_an_entry_that_is_forgotten_lacks_nothing_of_the_next() {
        let behind = cursor(3, EventCursor::BEHIND);
        assert_eq!(behind.resumed(4), Resumed { at: behind, forgotten_up_to: None });
    }

    #[test]
    fn a_cursor_within_an_entry_that_is_forgotten_lacks_the_rest_of_it() {
        let at = cursor(3, EventCursor::BEHIND);
        assert_eq!(cursor(3, 1).resumed(4), Resumed { at, forgotten_up_to: Some(at) });
    }

    #[test]
    fn a_cursor_before_entries_that_are_forgotten_lacks_them() {
        let at = cursor(8, EventCursor::BEHIND);
        assert_eq!(cursor(3, EventCursor::BEHIND).resumed(9), Resumed { at, forgotten_up_to: Some(at) });
    }

    #[test]
    fn who_begins_at_the_start_lacks_nothing() {
        assert_eq!(EventCursor::START.resumed(9).forgotten_up_to, None);
    }
}
