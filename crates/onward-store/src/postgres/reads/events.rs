//! The stream of events.
//!
//! It merges two sources in order: entries of the log, and submissions, which have no entry. A
//! submission is derived from its task's row, which saves writing an event for each new task.

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::model_reads::end;
use crate::api::error::Result;
use crate::api::event::{Change, Event, EventCursor, EventPage, Resumed};
use crate::api::name::Name;
use crate::api::task::TaskId;
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::postgres::commit::begin::is_unflushed;
use crate::postgres::connect::connection::OwnedConnection;
use crate::postgres::connect::error::classified;
use crate::postgres::load::query::number;
use crate::postgres::shared::Shared;
use crate::postgres::sql::BEGIN_TO_READ;
use crate::postgres::working_set::log_entry::{decode, read_changes};

/// The number of the log's entries that are read at once.
const ENTRIES: i64 = 64;

/// A page that is being filled.
struct PageReader<'a> {
    client: &'a OwnedConnection,
    shared: &'a Shared,
    /// The cursor of the reader.
    after: EventCursor,
    /// The position up to which submissions were read: the last entry before them, all of whose
    /// changes were read, and the first task that it does not cover.
    place: EventCursor,
    /// The position up to which events are no longer kept, if that is after the reader's cursor.
    forgotten_up_to: Option<EventCursor>,
    /// The most events of the page.
    room: usize,
    events: Vec<Event>,
}

/// Returns the events after a cursor, in one snapshot.
pub(in crate::postgres) async fn events(shared: &Shared, after: EventCursor, limit: usize) -> Result<EventPage> {
    let client = shared.pool.get().await?;
    client.batch_execute(BEGIN_TO_READ).await.map_err(classified)?;
    let room = limit.min(bounds::PAGE);
    let mut reader =
        PageReader { client: &client, shared, after, place: after, forgotten_up_to: None, room, events: Vec::new() };
    reader.read().await?;
    let PageReader { events, forgotten_up_to, .. } = reader;
    let is_unflushed = !events.is_empty() && is_unflushed(&client).await?;
    end(&client, shared, is_unflushed).await?;
    client.give_back();
    let next = events.last().map_or(after, |event| event.cursor);
    Ok(EventPage { events, next, forgotten_up_to })
}

impl PageReader<'_> {
    /// Fills the page, entry by entry.
    async fn read(&mut self) -> Result<()> {
        let mut from = self.after.entry;
        while self.is_open() {
            let entries = self.entries(from).await?;
            if let Some(oldest) = entries.first().filter(|_| from == self.after.entry) {
                Resumed { at: self.after, forgotten_up_to: self.forgotten_up_to } = self.after.resumed(oldest.get(0));
                self.place = self.after;
            }
            for row in &entries {
                self.entry(row).await?;
                from = row.get::<_, i64>(0) + 1;
                if !self.is_open() {
                    return Ok(());
                }
            }
            if number(entries.len()) < ENTRIES {
                return self.submissions(i64::MAX).await;
            }
        }
        Ok(())
    }

    /// Returns true if the page has room.
    fn is_open(&self) -> bool {
        self.events.len() < self.room
    }

    /// Reads the next entries.
    async fn entries(&self, from: i64) -> Result<Vec<Row>> {
        let statement = "SELECT entry, next_task, changes FROM {s}.log WHERE entry >= $1 ORDER BY entry LIMIT $2";
        let statement = self.shared.sql.text(statement);
        let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
            [(&from, Type::INT8), (&ENTRIES, Type::INT8)];
        self.client.query_typed(&statement, &parameters).await.map_err(classified)
    }

    /// Adds the events of an entry, after the submissions that precede it.
    async fn entry(&mut self, row: &Row) -> Result<()> {
        let (number, next_task): (i64, i64) = (row.get(0), row.get(1));
        let is_begun = number == self.after.entry;
        if !is_begun {
            self.submissions(next_task).await?;
        }
        let changes = read_changes(row.get(2))?;
        let count = changes.len();
        let skipped = if is_begun { self.after.offset } else { 0 };
        for (read, change) in (1..).zip(changes) {
            let offset = EventCursor::offset(read, count);
            if offset > skipped && self.is_open() {
                self.events.push(decode(change, EventCursor { entry: number, offset, submitted: next_task })?);
            }
        }
        let submitted = next_task.max(self.after.submitted);
        self.place = EventCursor { entry: number, offset: EventCursor::BEHIND, submitted };
        Ok(())
    }

    /// Adds the submissions of tasks below `until` that were not read yet.
    async fn submissions(&mut self, until: i64) -> Result<()> {
        let from = self.place.submitted.max(self.after.submitted);
        let one = |table: &str| {
            format!(
                "(SELECT id, submitted_at, kind, queue FROM {{s}}.{table} WHERE id >= $1 AND id < $2 \
                 ORDER BY id LIMIT $3)"
            )
        };
        let statement = format!("{} UNION ALL {} ORDER BY 1 LIMIT $3", one("task"), one("history"));
        let limit = number(self.room.saturating_sub(self.events.len()));
        let statement = self.shared.sql.text(&statement);
        let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] =
            [(&from, Type::INT8), (&until, Type::INT8), (&limit, Type::INT8)];
        for row in self.client.query_typed(&statement, &parameters).await.map_err(classified)? {
            self.events.push(self.submission(&row)?);
        }
        Ok(())
    }

    /// Returns the event of a submission.
    fn submission(&self, row: &Row) -> Result<Event> {
        let task = TaskId(row.get(0));
        Ok(Event {
            cursor: EventCursor { submitted: task.0 + 1, ..self.place },
            at: Timestamp::from_microseconds(row.get(1)),
            task,
            kind: Name::new(row.get::<_, &str>(2))?,
            queue: Name::new(row.get::<_, &str>(3))?,
            change: Change::Submitted,
        })
    }
}
