//! Creates a store from pieces.
//!
//! The file is written beside its final path, and gets its name when it is complete and on disk.
//! Its index watermark is zero, so the index tables are empty. The first process that opens the
//! store fills them, as after any restart.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, params};

use super::target_settings::Waiting;
use super::{documents, history, orchestrations, output};
use crate::api::error::{Error, Result};
use crate::api::name::Name;
use crate::api::store::Durability;
use crate::api::task::{NewTask, TaskState};
use crate::api::timestamp::Timestamp;
use crate::copy::Target;
use crate::model::Task;
use crate::postgres::{ChangeSet, Counters, KeyRow, TaskRow, decode, read_changes};
use crate::sqlite::columns::links::{AWAITED, BATCH, CHECKPOINT, MOVING};
use crate::sqlite::columns::task_options::TaskOptions;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::names::{AFFINITY_SHIFT, Names};
use crate::sqlite::commit::transition_log::LogBuffer;
use crate::sqlite::migrations::migrate::{MIGRATIONS, migrate};
use crate::sqlite::store::connect::{check_before_open, check_place, connect, prepare, real_path};
use crate::sqlite::store::maintenance::put_in_place;
use crate::sqlite::store::open::SqliteOptions;

/// A store that is being written.
#[derive(Debug)]
pub(crate) struct SqliteTarget {
    /// The connection to the unfinished file.
    connection: Connection,
    /// The options of the store.
    options: SqliteOptions,
    /// The path of the finished store.
    to: PathBuf,
    /// The names and their numbers so far.
    names: Names,
    /// The numbers of affinity keys so far.
    affinity_key: HashMap<Name, i64>,
    /// The numbers of tags so far.
    tags: HashMap<Vec<u8>, i64>,
    /// The rows to write after the tasks.
    waiting: Waiting,
    /// The guard that removes the file if it is not finished.
    unfinished: Unfinished,
}

/// The guard of an incomplete file. It removes the file and those beside it.
#[derive(Debug)]
struct Unfinished(PathBuf);

impl Unfinished {
    /// Removes the file and SQLite's files beside it.
    fn remove(&self) {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let mut file = self.0.clone().into_os_string();
            file.push(suffix);
            // If this fails, the file does not exist, or creating it again reports the cause.
            let _ = std::fs::remove_file(file);
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.remove();
    }
}

impl SqliteTarget {
    /// Begins a store at a path without a file.
    pub(crate) fn new(to: PathBuf, options: SqliteOptions) -> Result<Self> {
        let name = to.display().to_string();
        Self::begin(to, options).map_err(|error| error.about(&name))
    }

    /// Creates the unfinished file, under the store's path with the suffix `.partial`.
    fn begin(to: PathBuf, options: SqliteOptions) -> Result<Self> {
        check_place(&to, true)?;
        if to.exists() {
            return Err(Error::invalid("the file exists; name one that does not, or move it away"));
        }
        check_before_open(&real_path(&to))?;
        let mut partial = to.as_os_str().to_owned();
        partial.push(".partial");
        let unfinished = Unfinished(PathBuf::from(partial));
        unfinished.remove();
        let mut connection = connect(&unfinished.0, None)?;
        // No sync is needed before the whole file is synced at the end.
        prepare(&connection, Durability::Memory)?;
        connection.pragma_update(None, "wal_autocheckpoint", 4096)?;
        migrate(&mut connection, MIGRATIONS)?;
        connection.execute_batch("CREATE TEMP TABLE key_owner (task INTEGER PRIMARY KEY) STRICT")?;
        let names = Names::load(&Database::from(&connection), None)?;
        let (affinity_key, tags) = (HashMap::new(), HashMap::new());
        Ok(Self { connection, options, to, names, affinity_key, tags, waiting: Waiting::default(), unfinished })
    }

    /// Runs a statement.
    fn execute(&self, sql: &str, values: impl rusqlite::Params) -> Result<()> {
        self.connection.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    /// Returns the number of a task's sub-queue.
    fn sub_queue_of(&mut self, new: &NewTask) -> Result<i64> {
        self.sub_queue(&new.queue, &new.kind, new.group.as_ref(), new.orchestration)
    }

    /// Returns a sub-queue's number, and adds the sub-queue if it is missing.
    fn sub_queue(&mut self, queue: &Name, kind: &Name, group: Option<&Name>, orchestration: bool) -> Result<i64> {
        self.names.ensure_sub_queue(&Database::from(&self.connection), queue, kind, group, orchestration)
    }

    /// Writes a piece. Settings and counts are written after all tasks.
    fn write(&mut self, piece: ChangeSet) -> Result<()> {
        self.waiting.items.extend(piece.items);
        self.waiting.statistics.extend(piece.statistics);
        self.waiting.days.extend(piece.days);
        piece.keys.into_iter().try_for_each(|key| self.key(key))?;
        for (task, dependent) in piece.waits {
            self.execute("INSERT INTO dependency (task, dependent) VALUES (?, ?)", [task, dependent])?;
        }
        for (item, batch) in piece.batch_items {
            self.execute("INSERT INTO batch_item (task, batch) VALUES (?, ?)", [item, batch])?;
        }
        piece.live.into_iter().try_for_each(|row| self.live(row))?;
        piece.ended.into_iter().try_for_each(|row| self.ended(row))?;
        piece.turns.iter().try_for_each(|turn| orchestrations::write_turn(&self.connection, turn))?;
        piece.output.iter().try_for_each(|row| output::write_piece(&self.connection, row))?;
        piece.messages.iter().try_for_each(|message| orchestrations::write_message(&self.connection, message))?;
        piece.documents.iter().try_for_each(|document| documents::write(&self.connection, document))?;
        piece.tags.into_iter().try_for_each(|(task, tag)| self.tag(task, tag))?;
        piece.log.into_iter().try_for_each(|(entry, next, text)| self.log(entry, next, &text))
    }

    /// Writes a unique key. A live task has its key in its row, so only the number of the holder is
    /// recorded.
    fn key(&mut self, row: KeyRow) -> Result<()> {
        let Some(until) = row.until else {
            return self.execute("INSERT INTO temp.key_owner (task) VALUES (?)", [row.task]);
        };
        let kind = self.names.ensure_kind(&Database::from(&self.connection), &Name::new(row.kind)?)?;
        let key = String::from_utf8(row.key).map_err(|_| Error::corrupt("a key is not text; restore a backup"))?;
        let sql = "INSERT INTO retained_key (kind, key, task, until) VALUES (?, ?, ?, ?)";
        self.execute(sql, params![kind, key, row.task, until])
    }

    /// Writes a live task. A running one is an error, because its lease has no meaning in the new
    /// store.
    fn live(&mut self, row: TaskRow) -> Result<()> {
        let task = row.into_task()?;
        let waits = match task.state {
            TaskState::Waiting => 0,
            TaskState::Scheduled => 1,
            TaskState::Blocked => 2,
            state => return Err(Error::invalid(format!("task {} is {state}; stop the worker that runs it", task.id))),
        };
        let sub_queue = self.sub_queue_of(&task.new)?;
        let links = self.details(&task)?;
        let sql = "INSERT INTO task (id, sub_queue, priority, scheduled, run_at, claims, attempts, lost, cancel_requested, submitted_at, \
                   started_at, expires_at, options, key, payload, links) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        self.execute(
            sql,
            params![
                task.id.0,
                sub_queue,
                task.new.priority.0,
                waits,
                task.run_at.as_microseconds(),
                task.claims,
                task.attempts,
                task.lost,
                task.cancel_requested,
                task.submitted_at.as_microseconds(),
                micros(task.started_at),
                micros(task.expires_at),
                options(&task),
                key_of(&task),
                &task.new.payload[..],
                links
            ],
        )?;
        match &task.new.affinity {
            Some(affinity_key) if waits == 0 => self.enter_affinity_list(affinity_key.clone(), sub_queue),
            _ => Ok(()),
        }
    }

    /// Records that a sub-queue has tasks with an affinity key, which gives the key a number.
    fn enter_affinity_list(&mut self, affinity_key: Name, sub_queue: i64) -> Result<()> {
        let next = self.affinity_key.len().cast_signed() as i64 + 1;
        let number = *self.affinity_key.entry(affinity_key.clone()).or_insert(next);
        if number == next {
            self.execute("INSERT INTO affinity (id, name) VALUES (?, ?)", params![number, affinity_key.as_str()])?;
        }
        let sql = "INSERT OR IGNORE INTO affinity_list (list, sub_queue) VALUES (?, ?)";
        self.execute(sql, [number << AFFINITY_SHIFT | sub_queue, sub_queue])
    }

    /// Writes an ended task.
    fn ended(&mut self, row: TaskRow) -> Result<()> {
        let task = row.into_task()?;
        let sub_queue = self.sub_queue_of(&task.new)?;
        self.details(&task)?;
        if let Some(until) = task.retained_until() {
            self.execute("INSERT INTO retention (until, task) VALUES (?, ?)", [until.as_microseconds(), task.id.0])?;
        }
        let sql = "INSERT INTO history (id, sub_queue, state, ended_in, priority, run_at, claims, attempts, cancel_requested, submitted_at, \
                   started_at, finished_at, expires_at, options, key, payload, result) \
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        self.execute(
            sql,
            params![
                task.id.0,
                sub_queue,
                task.state.code(),
                task.end.map_or(0, |end| end.entry),
                task.new.priority.0,
                task.run_at.as_microseconds(),
                task.claims,
                task.attempts,
                task.cancel_requested,
                task.submitted_at.as_microseconds(),
                micros(task.started_at),
                micros(task.finished_at).unwrap_or_default(),
                micros(task.expires_at),
                options(&task),
                key_of(&task),
                &task.new.payload[..],
                task.result.as_deref()
            ],
        )
    }

    /// Writes the details that few tasks have, each to its own table. Returns the bits for `links`.
    fn details(&self, task: &Task) -> Result<u8> {
        let id = task.id.0;
        let mut links = if task.items > 0 { BATCH } else { 0 };
        if let Some(parent) = task.new.parent {
            self.execute("INSERT INTO child (parent, child) VALUES (?, ?)", [parent.0, id])?;
        }
        for (number, error) in (0i64..).zip(&task.errors) {
            let at = error.at.as_microseconds();
            let sql = "INSERT INTO attempt_error (task, number, attempt, at, message) VALUES (?, ?, ?, ?, ?)";
            self.execute(sql, params![id, number, error.attempt, at, error.message])?;
        }
        self.progress(task)?;
        output::write(&self.connection, task)?;
        orchestrations::write(&self.connection, task)?;
        if let Some(checkpoint) = &task.checkpoint {
            links |= CHECKPOINT;
            self.execute("INSERT INTO task_checkpoint (task, checkpoint) VALUES (?, ?)", params![id, &checkpoint[..]])?;
        }
        if let Some(awaited) = &task.awaited {
            links |= AWAITED;
            let wait = json(&awaited.wait)?;
            let (until, expires_at) = (micros(awaited.until), micros(awaited.expires_at));
            let sql = "INSERT INTO awaited_completion (task, claim, wait, until, expires_at) VALUES (?, ?, ?, ?, ?)";
            self.execute(sql, params![id, task.claims, wait, until, expires_at])?;
        }
        if let Some(queue) = &task.move_to {
            links |= MOVING;
            self.execute("INSERT INTO moving (task, queue) VALUES (?, ?)", params![id, queue.as_str()])?;
        }
        if let Some(follower) = &task.follower {
            let text = json(&NewTask { payload: bytes::Bytes::new(), ..(**follower).clone() })?;
            let sql = "INSERT INTO successor (task, new_task, payload) VALUES (?, ?, ?)";
            self.execute(sql, params![id, text, &follower.payload[..]])?;
        }
        Ok(links)
    }

    /// Writes the progress that a task last reported.
    fn progress(&self, task: &Task) -> Result<()> {
        let Some(progress) = &task.progress else { return Ok(()) };
        let (done, total) = progress.bytes.map_or((None, None), |bytes| (Some(bytes.done), bytes.total));
        let sql = "INSERT INTO progress (task, fraction, message, at, done, total) VALUES (?, ?, ?, ?, ?, ?)";
        self.execute(
            sql,
            params![
                task.id.0,
                progress.fraction,
                progress.message,
                progress.at.as_microseconds(),
                done.map(u64::cast_signed),
                total.map(u64::cast_signed)
            ],
        )
    }

    /// Writes a tag of a task, and adds the tag if it is new.
    fn tag(&mut self, task: i64, tag: Vec<u8>) -> Result<()> {
        let next = self.tags.len().cast_signed() as i64 + 1;
        let number = match self.tags.get(&tag) {
            Some(number) => *number,
            None => {
                let text = String::from_utf8_lossy(&tag);
                let (key, value) = text.split_once('=').unwrap_or((&text, ""));
                let sql = "INSERT INTO tag (key, value, number, tasks) VALUES (?, ?, ?, 0)";
                self.execute(sql, params![key, value, next])?;
                self.tags.insert(tag, next);
                next
            }
        };
        self.execute("INSERT INTO task_tag (tag, task) VALUES (?, ?)", [number, task])
    }

    /// Writes an entry of the log in the encoding of SQLite's stores.
    fn log(&mut self, entry: i64, next_task: i64, text: &str) -> Result<()> {
        let mut buffer = LogBuffer::default();
        let mut at = None;
        for row in read_changes(text)? {
            let event = decode(row, crate::api::event::EventCursor::START)?;
            at.get_or_insert(event.at);
            let sub_queue = self.sub_queue(&event.queue, &event.kind, None, false)?;
            buffer.push(event.task, sub_queue, event.change);
        }
        let at = at.map_or(0, Timestamp::as_microseconds);
        let sql = "INSERT INTO log (id, at, next_task, changes) VALUES (?, ?, ?, ?)";
        self.execute(sql, params![entry, at, next_task, buffer.bytes()])
    }

    /// Writes the values that follow from all rows.
    fn set_counters(&mut self, counters: Counters) -> Result<()> {
        self.connection.execute_batch(SETTLE)?;
        let now = self.options.clock_of().now().as_microseconds();
        if counters != Counters::default() {
            self.execute(NUMBERS, params![counters.last_entry, counters.last_task + 1, now])?;
        }
        let sequence = "INSERT INTO sqlite_sequence (name, seq) VALUES ('session', ?)";
        self.execute(sequence, [counters.last_session])?;
        history::write(&self.connection, &mut self.names, &self.waiting)?;
        self.waiting.write_rows(&self.connection, &mut self.names)
    }
}

/// Records the last assigned numbers in a log row, if no row has them. The number of the row is
/// unused, because a prune always leaves the newest row.
const NUMBERS: &str = "
    INSERT INTO log (id, at, next_task, changes)
    SELECT max(?1, coalesce((SELECT max(id) FROM log), 0) + 1), ?3, ?2, x''
    WHERE NOT EXISTS (SELECT 1 FROM log WHERE id >= ?1)
       OR ?2 > max(coalesce((SELECT next_task FROM log ORDER BY id DESC LIMIT 1), 1), coalesce((SELECT max(id) FROM task), 0) + 1)
";

/// Updates rows after all were inserted. A live task whose key belongs to another task is asked to
/// stop. Blocked tasks were counted when they were inserted.
const SETTLE: &str = "
    UPDATE task SET cancel_requested = 2 WHERE key IS NOT NULL AND id NOT IN (SELECT task FROM temp.key_owner);
    UPDATE task SET links = links | 1 WHERE id IN (SELECT task FROM dependency);
    UPDATE task SET links = links | 2 WHERE id IN (SELECT parent FROM child);
    UPDATE tag SET tasks = (SELECT count(*) FROM task_tag WHERE tag = number);
    INSERT INTO batch SELECT DISTINCT m.batch FROM batch_item m JOIN task t ON t.id = m.task;
    INSERT INTO queue_size SELECT l.queue, 0, 0, count(*) FROM task t JOIN sub_queue l ON l.id = t.sub_queue WHERE t.scheduled = 2 GROUP BY l.queue;
    UPDATE meta SET value = (SELECT max(coalesce((SELECT max(id) FROM task), 0), coalesce((SELECT max(id) FROM history), 0)))
    WHERE name = 'tags_watermark';
";

/// Returns the options of a task.
fn options(task: &Task) -> TaskOptions {
    let items = std::num::NonZeroU32::new(task.items);
    TaskOptions { io: task.io, items, ..TaskOptions::of(&task.new) }
}

/// Returns the unique key of a task.
fn key_of(task: &Task) -> Option<&str> {
    task.new.unique.as_ref().map(|unique| unique.key.as_str())
}

/// Returns a time as a column.
fn micros(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_microseconds)
}

/// Encodes a value as JSON.
fn json<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::io("a row cannot be written").caused_by(error))
}

impl Target for SqliteTarget {
    fn steady(&self) -> Duration {
        self.options.clock_of().steady()
    }

    async fn put(&mut self, piece: ChangeSet) -> Result<()> {
        self.connection.execute_batch("BEGIN")?;
        self.write(piece)?;
        Ok(self.connection.execute_batch("COMMIT")?)
    }

    async fn end(mut self, counters: Counters) -> Result<()> {
        self.connection.execute_batch("BEGIN")?;
        self.set_counters(counters)?;
        self.connection.execute_batch("COMMIT")?;
        let Self { connection, options, to, waiting, unfinished, .. } = self;
        drop(connection);
        let writes = waiting.writes()?;
        let connection = options.apply_alone(&unfinished.0, &writes)?;
        waiting.restore_changed_values(&connection)?;
        finish(connection, &unfinished.0, &to).map_err(|error| error.about(&to.display().to_string()))
    }
}

/// Finishes the file: switches the write-ahead log off, closes the file, and renames it.
fn finish(connection: Connection, partial: &Path, to: &Path) -> Result<()> {
    connection.pragma_update(None, "journal_mode", "DELETE")?;
    connection.close().map_err(|(_, failure)| failure)?;
    if to.exists() {
        return Err(Error::invalid("a file came to be there meanwhile; move it away"));
    }
    put_in_place(partial, to)
}
