//! What happened, as a stream that nobody can miss.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api::error::{Error, Result};
use crate::api::name::Name;
use crate::api::task::TaskId;
use crate::api::timestamp::Timestamp;

/// One transition of one task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// Reading after this cursor continues behind this event.
    pub cursor: EventCursor,
    /// When it happened, by the store's clock.
    pub at: Timestamp,
    /// The task.
    pub task: TaskId,
    /// The task's kind.
    pub kind: Name,
    /// The task's queue.
    pub queue: Name,
    /// What happened to it.
    #[serde(flatten)]
    pub change: Change,
}

/// What can happen to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case", tag = "change")]
pub enum Change {
    /// The store accepted it.
    Submitted,
    /// A session claimed it.
    Started {
        /// Which attempt, counted from 1.
        attempt: u32,
    },
    /// It ended well.
    Completed,
    /// An attempt failed and another follows.
    Retrying {
        /// The attempt that failed.
        attempt: u32,
        /// How long until the next is due.
        #[serde(with = "seconds")]
        after: Duration,
    },
    /// It failed for good.
    Failed,
    /// It went to the dead letters.
    Dead,
    /// Its worker was asked to stop.
    CancelRequested,
    /// It ended because somebody asked for it.
    Cancelled,
    /// It ended because it had not started in time.
    Expired,
    /// It was given back unstarted.
    Released,
    /// Its worker lapsed; it waits again.
    LeaseLost,
    /// Somebody made it wait again after it had ended.
    Retried,
    /// A duplicate raised its priority.
    PriorityRaised,
    /// It was removed by a purge.
    Purged,
    /// What it depended on, or waited for, has ended.
    Unblocked,
    /// Its attempt ended, and it waits for its children, or for somebody to finish it from
    /// elsewhere.
    Blocked,
    /// It is in another queue now.
    Moved,
    /// It was handed over with others as one.
    Bundled {
        /// The task that they are now.
        bundle: TaskId,
    },
}

mod seconds {
    use std::time::Duration;

    pub(super) fn serialize<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }
}

/// A place in the stream of events, to be kept and used later, also after a restart. Its text form
/// is opaque.
///
/// The stream is ordered as the store made the changes durable. Submissions are not logged one by
/// one: they are told from the tasks themselves, so a submission whose task has been pruned or
/// purged is left out.
///
/// Pruning forgets events, up to the last end that it removed
/// ([`Write::Prune`](crate::Write::Prune)). A cursor from before that goes on with the oldest event
/// that is still there, and the page [says](EventPage::forgotten_up_to) that some are missing
/// between them: a reader that must see everything comes by more often than history is kept for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct EventCursor {
    /// The log entry last read from.
    pub(crate) entry: i64,
    /// How many changes of that entry were read.
    pub(crate) offset: u32,
    /// Submissions of tasks below this number were read.
    pub(crate) submitted: i64,
}

impl EventCursor {
    /// Before the first event there is.
    pub const START: Self = Self { entry: 0, offset: 0, submitted: 0 };

    /// The offset behind the last change of an entry.
    pub(crate) const BEHIND: u32 = u32::MAX;

    /// The offset behind so many of the changes of an entry.
    pub(crate) fn offset(read: usize, of: usize) -> u32 {
        if read == of { Self::BEHIND } else { u32::try_from(read).unwrap_or(Self::BEHIND) }
    }

    /// Whether some of the changes of its entry were read, and not all.
    pub(crate) fn is_within(self) -> bool {
        self.offset > 0 && self.offset < Self::BEHIND
    }

    /// Where reading goes on if `oldest` is the first entry from its own on that is not forgotten.
    pub(crate) fn resumed(self, oldest: i64) -> Resumed {
        let is_next = oldest == self.entry + 1 && !self.is_within();
        if oldest == self.entry || is_next {
            return Resumed { at: self, forgotten_up_to: None };
        }
        let at = Self { entry: oldest - 1, offset: Self::BEHIND, ..self };
        Resumed { at, forgotten_up_to: Some(at).filter(|_| self != Self::START) }
    }
}

/// Where a reader goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resumed {
    pub(crate) at: EventCursor,
    /// As in [`EventPage::forgotten_up_to`].
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
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// Where to go on; equal to the cursor given if there was nothing.
    pub next: EventCursor,
    /// If events behind the cursor given have been forgotten: the cursor before the oldest that
    /// there still are, with which the page begins. It is said once, by the page that leaves them
    /// out, and never to a reader from the [start](EventCursor::START). On PostgreSQL a batch that
    /// failed may leave a number out, which a prune that ends just there makes look like one
    /// forgotten.
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
