//! The log of what happened to tasks.

use super::state::State;
use crate::event::{Change, Event, EventCursor, EventPage};
use crate::limits;
use crate::name::Name;
use crate::task::TaskId;
use crate::timestamp::Timestamp;

/// One thing that happened to a task.
#[derive(Debug, Clone)]
pub(super) struct Logged {
    pub(super) at: Timestamp,
    pub(super) task: TaskId,
    pub(super) kind: Name,
    pub(super) queue: Name,
    pub(super) change: Change,
}

/// What one call of `apply` did.
#[derive(Debug)]
struct Entry {
    /// The number that the next task would have got.
    next_task: i64,
    changes: Vec<Logged>,
}

/// Entries numbered from 1 up. Submissions are not in it: they are told from the tasks, and come before the changes of the first
/// entry that knows of them.
#[derive(Debug, Default)]
pub(super) struct Log {
    entries: Vec<Entry>,
}

impl Log {
    /// Moves what the writes under way did into the log.
    pub(super) fn append(&mut self, state: &mut State) {
        if !state.changes.is_empty() {
            let changes = std::mem::take(&mut state.changes);
            self.entries.push(Entry { next_task: state.last_task + 1, changes });
        }
    }

    pub(super) fn read(&self, state: &State, after: EventCursor, limit: usize) -> EventPage {
        let begun = usize::try_from(after.entry).unwrap_or(0).min(self.entries.len());
        let rest = self.changes(begun, after.offset);
        let later = (begun + 1..=self.entries.len())
            .flat_map(|number| self.submissions(state, number, after).chain(self.changes(number, 0)));
        let newest = self.submissions(state, self.entries.len() + 1, after);
        let events: Vec<Event> = rest.chain(later).chain(newest).take(limit.min(limits::PAGE)).collect();
        let next = events.last().map_or(after, |event| event.cursor);
        EventPage { events, next }
    }

    /// The changes of entry `number` behind the first `offset`.
    fn changes(&self, number: usize, offset: u32) -> impl Iterator<Item = Event> {
        let entry = number.checked_sub(1).and_then(|index| self.entries.get(index));
        let changes = entry.into_iter().flat_map(|entry| entry.changes.iter().map(|change| (entry.next_task, change)));
        let numbered = (1u32..).zip(changes).skip(usize::try_from(offset).unwrap_or(usize::MAX));
        numbered.map(move |(offset, (submitted, logged))| Event {
            cursor: EventCursor { entry: as_number(number), offset, submitted },
            at: logged.at,
            task: logged.task,
            kind: logged.kind.clone(),
            queue: logged.queue.clone(),
            change: logged.change,
        })
    }

    /// The submissions between entry `number` and the one before it that `after` has not seen.
    fn submissions<'a>(&'a self, state: &'a State, number: usize, after: EventCursor) -> impl Iterator<Item = Event> {
        let before = number.checked_sub(2).and_then(|index| self.entries.get(index));
        let from = before.map_or(0, |entry| entry.next_task).max(after.submitted);
        let until = self.entries.get(number - 1).map_or(state.last_task + 1, |entry| entry.next_task);
        let offset = before.map_or(0, |entry| u32::try_from(entry.changes.len()).unwrap_or(u32::MAX));
        state.tasks.between(TaskId(from), TaskId(until)).map(move |task| Event {
            cursor: EventCursor { entry: as_number(number - 1), offset, submitted: task.id.0 + 1 },
            at: task.submitted_at,
            task: task.id,
            kind: task.new.kind.clone(),
            queue: task.new.queue.clone(),
            change: Change::Submitted,
        })
    }
}

fn as_number(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
