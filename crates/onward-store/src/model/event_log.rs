//! The log of changes to tasks.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::api::event::{Change, Event, EventCursor, EventPage, Resumed};
use crate::api::name::Name;
use crate::api::task::TaskId;
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::model::state::State;

/// One change of a task.
#[derive(Debug, Clone)]
pub(crate) struct LoggedChange {
    pub(crate) at: Timestamp,
    pub(crate) task: TaskId,
    pub(crate) kind: Name,
    pub(crate) queue: Name,
    pub(crate) change: Change,
}

/// The changes of one call of `apply`.
#[derive(Debug)]
struct Entry {
    /// The number that the next task would have received.
    next_task: i64,
    changes: Vec<LoggedChange>,
}

/// A log of entries numbered from 1, whose oldest entries may be pruned. Submissions are not in it.
/// They are derived from the tasks, and precede the changes of the first entry with a higher next
/// task number.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    entries: BTreeMap<i64, Entry>,
}

impl EventLog {
    /// Returns the number of the next entry.
    pub(crate) fn next(&self) -> i64 {
        self.entries.last_key_value().map_or(1, |(newest, _)| newest + 1)
    }

    /// Deletes the entries that the current writes pruned, and adds the changes of these writes.
    /// The newest entry from before them stays.
    pub(crate) fn append(&mut self, state: &mut State) {
        let forget_before = std::mem::take(&mut state.forget_before);
        self.entries = self.entries.split_off(&forget_before.min(state.entry - 1));
        if !state.changes.is_empty() {
            let changes = std::mem::take(&mut state.changes);
            self.entries.insert(state.entry, Entry { next_task: state.last_task + 1, changes });
        }
    }

    /// Returns at most `limit` events after a cursor: the rest of its entry, later entries, and
    /// submissions that no entry covers yet.
    pub(crate) fn read(&self, state: &State, given: EventCursor, limit: usize) -> EventPage {
        let Resumed { at: after, forgotten_up_to } = self.resumed(given);
        let rest =
            self.entries.get(&after.entry).into_iter().flat_map(|begun| changes(after.entry, begun, after.offset));
        let later = self.entries.range((Bound::Excluded(after.entry), Bound::Unbounded)).flat_map(|(number, entry)| {
            self.submissions(state, after, *number, entry.next_task).chain(changes(*number, entry, 0))
        });
        let newest = self.submissions(state, after, self.next(), state.last_task + 1);
        let events: Vec<Event> = rest.chain(later).chain(newest).take(limit.min(bounds::PAGE)).collect();
        let next = events.last().map_or(given, |event| event.cursor);
        EventPage { events, next, forgotten_up_to }
    }

    /// Returns the position at which a reader continues if entries after its cursor were pruned.
    fn resumed(&self, after: EventCursor) -> Resumed {
        let oldest = self.entries.range(after.entry..).next();
        oldest.map_or(Resumed { at: after, forgotten_up_to: None }, |(oldest, _)| after.resumed(*oldest))
    }

    /// Returns the submissions of tasks below `until` that `after` has not seen and that no entry
    /// before `number` covers.
    fn submissions<'a>(
        &self,
        state: &'a State,
        after: EventCursor,
        number: i64,
        until: i64,
    ) -> impl Iterator<Item = Event> + use<'a> {
        let before = self.entries.range(..number).next_back().filter(|(before, _)| **before >= after.entry);
        let from = before.map_or(0, |(_, entry)| entry.next_task).max(after.submitted);
        let (entry, offset) = before.map_or((after.entry, after.offset), |(number, _)| (*number, EventCursor::BEHIND));
        state.tasks.between(TaskId(from), TaskId(until)).map(move |task| Event {
            cursor: EventCursor { entry, offset, submitted: task.id.0 + 1 },
            at: task.submitted_at,
            task: task.id,
            kind: task.new.kind.clone(),
            queue: task.new.queue.clone(),
            change: Change::Submitted,
        })
    }
}

/// Returns the changes of an entry after the first `offset`.
fn changes(number: i64, entry: &Entry, offset: u32) -> impl Iterator<Item = Event> {
    let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
    let count = entry.changes.len();
    (1..).zip(&entry.changes).skip(skipped).map(move |(read, logged)| Event {
        cursor: EventCursor { entry: number, offset: EventCursor::offset(read, count), submitted: entry.next_task },
        at: logged.at,
        task: logged.task,
        kind: logged.kind.clone(),
        queue: logged.queue.clone(),
        change: logged.change,
    })
}
