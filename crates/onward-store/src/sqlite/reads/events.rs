//! Events behind a cursor, from the log and from the tasks themselves.

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::Result;
use crate::event::{Change, Event, EventCursor, EventPage};
use crate::limits;
use crate::sqlite::log::{Logged, decode};
use crate::sqlite::reads::lane_names::{LaneNames, NamesOfLane};
use crate::task::TaskId;
use crate::timestamp::Timestamp;

/// The offset of a cursor behind the last change of its row.
const BEHIND: u32 = u32::MAX;

/// A row of the log.
struct LogRow {
    id: i64,
    at: Timestamp,
    next_task: i64,
    changes: Vec<u8>,
}

/// Reads events one after the other.
struct Reader<'c> {
    connection: &'c Connection,
    lanes: LaneNames<'c>,
    events: Vec<Event>,
    cursor: EventCursor,
    limit: usize,
}

pub(in crate::sqlite) fn events(connection: &Connection, after: EventCursor, limit: usize) -> Result<EventPage> {
    let limit = limit.min(limits::PAGE);
    let mut reader = Reader { connection, lanes: LaneNames::new(connection), events: Vec::new(), cursor: after, limit };
    reader.run()?;
    Ok(EventPage { events: reader.events, next: reader.cursor })
}

impl Reader<'_> {
    fn run(&mut self) -> Result<()> {
        while !self.is_full() {
            let Some(row) = self.log_row()? else { return self.submissions(i64::MAX) };
            self.submissions(row.next_task)?;
            self.changes(&row)?;
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.events.len() >= self.limit
    }

    /// The row that the cursor is in, or the one behind it.
    fn log_row(&self) -> Result<Option<LogRow>> {
        let in_row = self.cursor.offset > 0 && self.cursor.offset < BEHIND;
        let sql = "SELECT id, at, next_task, changes FROM log WHERE id >= ? ORDER BY id LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let row = statement.query_row([self.cursor.entry + i64::from(!in_row)], |row| {
            Ok(LogRow {
                id: row.get(0)?,
                at: Timestamp::from_microseconds(row.get(1)?),
                next_task: row.get(2)?,
                changes: row.get(3)?,
            })
        });
        Ok(row.optional()?)
    }

    /// Adds the submissions of tasks up to a number, told from the tasks that are still known.
    fn submissions(&mut self, before: i64) -> Result<()> {
        let left = self.limit - self.events.len();
        let mut statement = self.connection.prepare_cached(include_str!("../sql/submissions.sql"))?;
        let mut rows = statement.query(params![self.cursor.submitted, before, left.cast_signed()])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push((row.get(0)?, row.get(1)?, row.get(2)?));
        }
        let all = found.len() < left;
        for (task, lane, at) in found {
            self.cursor.submitted = task + 1;
            self.push(
                Timestamp::from_microseconds(at),
                Logged { task: TaskId(task), lane, change: Change::Submitted },
            )?;
        }
        if all && before != i64::MAX {
            self.cursor.submitted = self.cursor.submitted.max(before);
        }
        Ok(())
    }

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
            let last = index + 1 == changes.len();
            self.cursor.offset = if last { BEHIND } else { u32::try_from(index + 1).unwrap_or(BEHIND) };
            self.push(row.at, *logged)?;
        }
        Ok(())
    }

    fn push(&mut self, at: Timestamp, logged: Logged) -> Result<()> {
        let NamesOfLane { kind, queue, .. } = self.lanes.of(logged.lane)?;
        self.events.push(Event { cursor: self.cursor, at, task: logged.task, kind, queue, change: logged.change });
        Ok(())
    }
}
