//! Events after a cursor, from the log and from the rows of tasks.

use rusqlite::{Connection, OptionalExtension, params};

use crate::api::error::Result;
use crate::api::event::{Change, Event, EventCursor, EventPage, Resumed};
use crate::api::task::TaskId;
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::sqlite::commit::transition_log::{Logged, decode};
use crate::sqlite::reads::sub_queue_names::{NamesOfSubQueue, SubQueueNames};

/// A row of the log.
struct LogRow {
    /// The number of the entry.
    id: i64,
    /// The time of the transitions.
    at: Timestamp,
    /// The number of the next task after the commit. Tasks with lower numbers were submitted before
    /// these transitions or with them.
    next_task: i64,
    /// The encoded transitions.
    changes: Vec<u8>,
}

/// The reader of one page of events.
struct Reader<'c> {
    /// The connection.
    connection: &'c Connection,
    /// The names of sub-queues.
    sub_queues: SubQueueNames<'c>,
    /// The events so far.
    events: Vec<Event>,
    /// The position after the last event.
    cursor: EventCursor,
    /// The position up to which events were pruned, if it is after the caller's cursor.
    forgotten_up_to: Option<EventCursor>,
    /// The most events.
    limit: usize,
}

/// Returns the events after a cursor.
pub(in crate::sqlite) fn events(connection: &Connection, after: EventCursor, limit: usize) -> Result<EventPage> {
    let limit = limit.min(bounds::PAGE);
    let sub_queues = SubQueueNames::new(connection);
    let mut reader = Reader { connection, sub_queues, events: Vec::new(), cursor: after, forgotten_up_to: None, limit };
    reader.run()?;
    let Reader { events, cursor, forgotten_up_to, .. } = reader;
    Ok(EventPage { events, next: cursor, forgotten_up_to })
}

impl Reader<'_> {
    /// Reads events until the page is full or there are no more. Submissions come from the rows of
    /// tasks, all others from the log.
    fn run(&mut self) -> Result<()> {
        if !self.is_full() {
            self.resume()?;
        }
        while !self.is_full() {
            let Some(row) = self.log_row()? else { return self.submissions(i64::MAX) };
            self.submissions(row.next_task)?;
            self.changes(&row)?;
        }
        Ok(())
    }

    /// Moves the cursor over pruned log rows.
    fn resume(&mut self) -> Result<()> {
        let sql = "SELECT id FROM log WHERE id >= ? ORDER BY id LIMIT 1";
        let oldest =
            self.connection.prepare_cached(sql)?.query_row([self.cursor.entry], |row| row.get(0)).optional()?;
        if let Some(oldest) = oldest {
            Resumed { at: self.cursor, forgotten_up_to: self.forgotten_up_to } = self.cursor.resumed(oldest);
        }
        Ok(())
    }

    /// Returns true if the page is full.
    fn is_full(&self) -> bool {
        self.events.len() >= self.limit
    }

    /// Returns the row that the cursor is in, or the next one.
    fn log_row(&self) -> Result<Option<LogRow>> {
        let sql = "SELECT id, at, next_task, changes FROM log WHERE id >= ? ORDER BY id LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let row = statement.query_row([self.cursor.entry + i64::from(!self.cursor.is_within())], |row| {
            Ok(LogRow {
                id: row.get(0)?,
                at: Timestamp::from_microseconds(row.get(1)?),
                next_task: row.get(2)?,
                changes: row.get(3)?,
            })
        });
        Ok(row.optional()?)
    }

    /// Adds the submissions of tasks below a number, which are derived from the rows of tasks that
    /// still exist.
    fn submissions(&mut self, before: i64) -> Result<()> {
        let left = self.limit - self.events.len();
        let mut statement = self.connection.prepare_cached(include_str!("../sql/reads/submissions.sql"))?;
        let mut rows = statement.query(params![self.cursor.submitted, before, left.cast_signed()])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push((row.get(0)?, row.get(1)?, row.get(2)?));
        }
        let all = found.len() < left;
        for (task, sub_queue, at) in found {
            self.cursor.submitted = task + 1;
            self.push(
                Timestamp::from_microseconds(at),
                Logged { task: TaskId(task), sub_queue, change: Change::Submitted },
            )?;
        }
        if all && before != i64::MAX {
            self.cursor.submitted = self.cursor.submitted.max(before);
        }
        Ok(())
    }

    /// Adds the transitions of a log row that are after the cursor.
    fn changes(&mut self, row: &LogRow) -> Result<()> {
        let changes = decode(&row.changes)?;
        if row.id != self.cursor.entry {
            if self.is_full() {
                return Ok(());
            }
            self.cursor.entry = row.id;
            self.cursor.offset = 0;
        }
        let skip = self.cursor.offset as usize;
        for (index, logged) in changes.iter().enumerate().skip(skip) {
            if self.is_full() {
                return Ok(());
            }
            self.cursor.offset = EventCursor::offset(index + 1, changes.len());
            self.push(row.at, *logged)?;
        }
        Ok(())
    }

    /// Adds an event.
    fn push(&mut self, at: Timestamp, logged: Logged) -> Result<()> {
        let NamesOfSubQueue { kind, queue, .. } = self.sub_queues.of(logged.sub_queue)?;
        self.events.push(Event { cursor: self.cursor, at, task: logged.task, kind, queue, change: logged.change });
        Ok(())
    }
}
