//! One transaction: applies the writes of many callers, accepts or rejects each one by itself, and
//! becomes durable as a whole.
//!
//! Some work is put off to where it is done once for many writes: completions, the propagation of
//! ends to dependents, the log row and the counts. [`finish`](Transaction::finish) does the rest
//! before the commit.

use std::collections::VecDeque;
use std::rc::Rc;

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, params};
use rustc_hash::FxHashMap;

use crate::api::error::{Error, Result};
use crate::api::event::Change;
use crate::api::notification::TaskNotification;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::store::Hint;
use crate::api::task::{Lease, OnDuplicate, Priority, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::api::write::Write;
use crate::rules;
use crate::sqlite::columns::task_options::TaskOptions;
use crate::sqlite::commit::cache::Cache;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::names::HAS_AFFINITY;
use crate::sqlite::commit::prepared_statements;
use crate::sqlite::commit::transition_log::LogBuffer;
use crate::sqlite::limits::deferred_counters::{ClockReading, CounterSaving};
use crate::sqlite::ready::claimable_heads::ClaimableHeads;
use crate::sqlite::ready::index::{Entry, MemoryTasks};
use crate::sqlite::verbs::attempts::complete::Completion;
use crate::sqlite::verbs::relations::dependents::UnpropagatedEnd;

/// The reason why a verb stopped: it was rejected, or the store failed.
#[derive(Debug)]
pub(in crate::sqlite) enum VerbError {
    /// The write was rejected; the transaction continues.
    Refused(Refusal),
    /// The store failed; the transaction is rolled back.
    Failed(Error),
}

impl From<Refusal> for VerbError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Error> for VerbError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<rusqlite::Error> for VerbError {
    fn from(failure: rusqlite::Error) -> Self {
        Self::Failed(failure.into())
    }
}

/// The result of a verb.
pub(in crate::sqlite) type VerbResult<T> = std::result::Result<T, VerbError>;

/// The state of one transaction.
pub(in crate::sqlite) struct Transaction<'a> {
    /// The connection of the transaction.
    pub(in crate::sqlite) connection: &'a Database<'a>,
    /// The writer's cache. A rollback drops it.
    pub(in crate::sqlite) cache: &'a mut Cache,
    /// The wall time of all decisions.
    pub(in crate::sqlite) now: Timestamp,
    /// Steady time in microseconds.
    pub(in crate::sqlite) steady: i64,
    /// The largest payload or result, in bytes.
    pub(in crate::sqlite) payload_limit: usize,
    /// The number of tasks that may wait in memory before they move to the tables.
    pub(in crate::sqlite) memory_tasks: MemoryTasks,
    /// This process's name among the processes on the file; empty for a store in memory.
    pub(in crate::sqlite) process: &'a str,
    /// The transitions, which become one log row.
    pub(in crate::sqlite) log: LogBuffer,
    /// The changes of statistics by sub-queue and state.
    pub(in crate::sqlite) statistics: FxHashMap<(i64, TaskState), StatisticsChange>,
    /// The kinds of changes so far.
    pub(in crate::sqlite) hint: Hint,
    /// The value of [`Hint::work`] before the transaction. Every change counted in it is visible
    /// here.
    pub(in crate::sqlite) work_before: u64,
    /// The notifications of ended tasks, if the process has a listener.
    pub(in crate::sqlite) notifications: Option<Vec<TaskNotification>>,
    /// Completions that have their outcome but are written later, many in one statement.
    pub(in crate::sqlite) completions: Vec<Completion>,
    /// Ended tasks whose dependents are to be updated.
    pub(in crate::sqlite) unpropagated_ends: VecDeque<UnpropagatedEnd>,
    /// True if this transaction has written its counters and may have read them again. They are
    /// then saved in every case, because the log cannot show which starts they include.
    pub(in crate::sqlite) counters_are_read: bool,
}

/// The amounts that a transaction adds to one row of `statistics`.
#[derive(Debug, Default, Clone, Copy)]
pub(in crate::sqlite) struct StatisticsChange {
    /// Ended tasks.
    pub(in crate::sqlite) ended: i64,
    /// The ended tasks that are in the history.
    pub(in crate::sqlite) in_history: i64,
    /// Attempts of completed tasks.
    pub(in crate::sqlite) attempts: i64,
    /// The sum of times from due to start, in microseconds.
    pub(in crate::sqlite) wait: i64,
    /// The sum of times of last attempts, in microseconds.
    pub(in crate::sqlite) run: i64,
    /// The longest last attempt, in microseconds.
    pub(in crate::sqlite) run_maximum: i64,
}

/// A live task without its payload.
#[derive(Debug, Clone)]
pub(in crate::sqlite) struct LiveTask {
    /// The task's number.
    pub(in crate::sqlite) id: TaskId,
    /// The sub-queue's number.
    pub(in crate::sqlite) sub_queue: i64,
    /// The priority, which orders tasks together with the due time.
    pub(in crate::sqlite) priority: Priority,
    /// True if the task is not due yet.
    pub(in crate::sqlite) scheduled: bool,
    /// True if the task waits for other tasks.
    pub(in crate::sqlite) blocked: bool,
    /// The due time.
    pub(in crate::sqlite) run_at: i64,
    /// The number of claims, which is the fence.
    pub(in crate::sqlite) claims: u32,
    /// The number of attempts that count toward the retry limit.
    pub(in crate::sqlite) attempts: u32,
    /// The number of leases that were lost.
    pub(in crate::sqlite) lost: u32,
    /// 1: asked to stop; 2: asked to stop, and its key belongs to another task.
    pub(in crate::sqlite) cancel_requested: u8,
    /// The start of the last attempt before the present one.
    pub(in crate::sqlite) started_at: Option<i64>,
    /// The time at which the task expires unless it has started.
    pub(in crate::sqlite) expires_at: Option<i64>,
    /// The rarer options.
    pub(in crate::sqlite) options: TaskOptions,
    /// The unique key.
    pub(in crate::sqlite) key: Option<String>,
    /// The lease, while the task runs.
    pub(in crate::sqlite) running: Option<RunningAttempt>,
    /// The kinds of links that other tasks have to it: none for most.
    pub(in crate::sqlite) links: u8,
}

/// The session and the attempt that hold a running task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) struct RunningAttempt {
    /// The session's number.
    pub(in crate::sqlite) session: i64,
    /// The claim's number.
    pub(in crate::sqlite) claim: u32,
    /// The start of the attempt.
    pub(in crate::sqlite) started_at: i64,
}

impl LiveTask {
    /// Returns a new task, without the rare fields.
    pub(in crate::sqlite) fn new(entry: &Entry<'_>) -> Self {
        Self {
            id: TaskId(entry.id),
            sub_queue: entry.list,
            priority: entry.priority,
            scheduled: entry.scheduled,
            blocked: entry.blocked,
            run_at: entry.run_at,
            claims: 0,
            attempts: 0,
            lost: 0,
            cancel_requested: 0,
            started_at: None,
            expires_at: entry.expires_at,
            options: TaskOptions::default(),
            key: None,
            running: None,
            links: 0,
        }
    }

    /// Decodes a row of `live_task.sql`.
    pub(in crate::sqlite) fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let session: Option<i64> = row.get(13)?;
        let running = match session {
            Some(session) => Some(RunningAttempt { session, claim: row.get(14)?, started_at: row.get(15)? }),
            None => None,
        };
        Ok(Self {
            id: TaskId(row.get(0)?),
            sub_queue: row.get(1)?,
            priority: Priority(row.get(2)?),
            scheduled: row.get::<_, u8>(3)? == 1,
            blocked: row.get::<_, u8>(3)? == 2,
            run_at: row.get(4)?,
            claims: row.get(5)?,
            attempts: row.get(6)?,
            lost: row.get(7)?,
            cancel_requested: row.get(8)?,
            started_at: row.get(9)?,
            expires_at: row.get(10)?,
            options: row.get(11)?,
            key: row.get(12)?,
            running,
            links: row.get(16)?,
        })
    }

    /// Returns true if a lease is the current one.
    pub(in crate::sqlite) fn is_held_by(&self, lease: Lease) -> bool {
        self.running.is_some_and(|running| running.session == lease.session.0 && running.claim == lease.claim)
    }

    /// Returns the task's state, which follows from other columns.
    pub(in crate::sqlite) fn state(&self) -> TaskState {
        match (self.running, self.scheduled) {
            (Some(_), _) => TaskState::Running,
            _ if self.blocked => TaskState::Blocked,
            (None, true) => TaskState::Scheduled,
            (None, false) => TaskState::Waiting,
        }
    }

    /// Returns the task as an entry of the ready index, without its key.
    pub(in crate::sqlite) fn entry(&self) -> Entry<'_> {
        Entry {
            id: self.id.0,
            list: self.sub_queue,
            priority: self.priority,
            scheduled: self.scheduled,
            blocked: self.blocked,
            run_at: self.run_at,
            expires_at: self.expires_at,
            key: None,
            affinity_key: self.options.affinity.as_ref(),
        }
    }

    /// Returns the list under which the table `scheduled` has the task until it is due.
    pub(in crate::sqlite) fn scheduled_list(&self) -> i64 {
        if self.options.affinity.is_some() { self.sub_queue | HAS_AFFINITY } else { self.sub_queue }
    }
}

/// The state in memory of a transaction at the savepoint of an `All`.
struct Savepoint {
    /// The length of the log buffer.
    log: usize,
    /// The changes of statistics.
    statistics: FxHashMap<(i64, TaskState), StatisticsChange>,
    /// The kinds of changes.
    hint: Hint,
    /// The number of the next task.
    next_task: i64,
    /// The number of notifications.
    notified: usize,
}

/// Returns true if a write is a submit that can be rejected for its own fields only, regardless of
/// what is in the store.
fn depends_on_input_alone(write: &Write) -> bool {
    let Write::Submit(new) = write else { return false };
    let takes_key_over =
        new.unique.as_ref().is_some_and(|unique| matches!(unique.on_duplicate, OnDuplicate::TakeOver(_)));
    new.depends_on.is_empty() && new.parent.is_none() && !takes_key_over
}

impl Transaction<'_> {
    /// Applies the writes of one call, each by itself.
    pub(in crate::sqlite) fn write_all(&mut self, writes: &[Write]) -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::with_capacity(writes.len());
        for write in writes {
            outcomes.push(self.write(write)?);
        }
        Ok(outcomes)
    }

    /// Applies one write: all of it, or nothing, and returns its outcome or the refusal.
    pub(in crate::sqlite) fn write(&mut self, write: &Write) -> Result<Outcome> {
        match self.verb(write) {
            Ok(outcome) => Ok(outcome),
            Err(VerbError::Refused(refusal)) => Ok(Outcome::Refused(refusal)),
            Err(VerbError::Failed(error)) => Err(error),
        }
    }

    /// Applies one verb. A verb checks everything before it changes anything, so a rejected verb
    /// leaves no trace. Only `All` can be rejected half-way; it undoes what it did.
    fn verb(&mut self, write: &Write) -> VerbResult<Outcome> {
        let outcome = self.act(write)?;
        // The next write of the call may read a dependent of a task that this one ended.
        self.settle()?;
        Ok(outcome)
    }

    /// Propagates the ends of tasks to dependents, and updates the lists of affinity keys.
    pub(in crate::sqlite) fn settle(&mut self) -> Result<()> {
        self.propagate_ends()?;
        self.refresh_affinity_lists()
    }

    /// Runs the verb of a write.
    fn act(&mut self, write: &Write) -> VerbResult<Outcome> {
        // A run of completions and submits is common, and completions are cheapest in bulk. A
        // submit reads nothing of a completed task but its key, which `complete` frees at once.
        if !matches!(write, Write::Complete { .. } | Write::Submit(_)) {
            self.flush_completions()?;
        }
        match write {
            Write::OpenSession(open) => self.open_session(open),
            Write::RenewSession { session } => self.renew_session(*session),
            Write::CloseSession { session } => self.close_session(*session),
            Write::Submit(task) => self.submit(task).map(Outcome::Submitted),
            Write::Claim(claim) => self.claim(claim),
            Write::Complete { lease, result } => self.complete(*lease, result.as_ref()),
            Write::Fail { lease, error, next } => self.fail(*lease, error, *next),
            Write::Release { lease, after } => self.release(*lease, *after),
            Write::AwaitChildren { lease, checkpoint, on_failure } => {
                self.await_children(*lease, checkpoint, *on_failure)
            }
            Write::ConfirmCancel { lease, reason } => self.confirm_cancel(*lease, reason),
            Write::Report { lease, fraction, message, bytes } => {
                self.report(*lease, *fraction, message.as_deref(), *bytes)
            }
            Write::SaveCheckpoint { lease, checkpoint } => self.save_checkpoint(*lease, checkpoint),
            Write::RecordIo { lease, io } => self.record_io(*lease, *io),
            Write::AppendOutput { lease, piece } => self.append_output(*lease, piece),
            Write::Cancel { task } => self.cancel(*task),
            Write::Retry { task } => self.retry(*task),
            Write::RunNow { task } => self.run_now(*task),
            Write::Kill { task } => self.kill(*task),
            Write::Delete { task } => self.delete(*task),
            Write::Pause { scope, until } => self.pause(scope, *until),
            Write::Resume { scope } => self.resume(scope),
            Write::SetQueue(set) => self.set_queue(set),
            Write::SetLimit(set) => self.set_limit(set),
            Write::SetQueueMode(mode) => self.set_queue_mode(*mode),
            Write::Purge { queue, states, limit } => self.purge(queue, states, *limit),
            Write::DeleteQueue { queue } => self.delete_queue(queue),
            Write::Prune(prune) => self.prune(prune),
            Write::SetSchedule(set) => self.set_schedule(set),
            Write::DeleteSchedule { schedule } => self.delete_schedule(schedule),
            Write::PauseSchedule { schedule } => self.pause_schedule(schedule),
            Write::ResumeSchedule { schedule, revision, next } => self.resume_schedule(schedule, *revision, *next),
            Write::FireSchedule(fire) => self.fire_schedule(fire),
            Write::Sweep => self.sweep().map(Outcome::Swept),
            Write::Bulk(bulk) => self.bulk(bulk).map(Outcome::Bulk),
            Write::AwaitCompletion { lease, wait } => self.await_completion(*lease, wait),
            Write::CompleteExternally { token, completion } => self.complete_externally(*token, completion),
            Write::Move { task, queue } => self.move_task(*task, queue),
            Write::Retire { session } => self.retire(*session),
            Write::Turn(turn) => self.turn(turn),
            Write::EndWithTurn(write) => self.end_with_turn(write),
            Write::Signal(signal) => self.signal(signal),
            Write::Terminate { task, reason } => self.terminate(*task, reason),
            Write::PauseOrchestration { task } => self.pause_orchestration(*task),
            Write::ResumeOrchestration { task } => self.resume_orchestration(*task),
            Write::PutDocument(put) => self.put_document(put),
            Write::DeleteDocument { collection, key, expect } => self.delete_document(collection, key, *expect),
            Write::All(writes) => self.all(writes),
        }
    }

    /// Applies all writes of a list or none.
    ///
    /// A list of independent submits is checked as a whole before anything is written. Any other
    /// list needs a savepoint, which costs two more statements.
    fn all(&mut self, writes: &[Write]) -> VerbResult<Outcome> {
        rules::all::check(writes)?;
        // Nothing can be rejected after these checks, so these writes need no savepoint. The room
        // for names is checked for as many names as there are writes.
        if writes.iter().all(depends_on_input_alone) && self.cache.names.has_room_for(writes.len()) {
            self.check_submits(writes)?;
            return Ok(Outcome::All(self.apply_each(writes)?));
        }
        // Saved before the savepoint, so that a rollback to it restores correct counters.
        self.save_all_counters()?;
        if self.cache.tags.are_shared() {
            self.write_tags()?;
        }
        self.connection.prepare_cached("SAVEPOINT all_writes")?.execute([])?;
        let savepoint = self.savepoint();
        let outcome = match self.apply_each(writes) {
            Ok(outcomes) => {
                self.flush_completions()?;
                Ok(Outcome::All(outcomes))
            }
            Err(VerbError::Refused(refusal)) => {
                self.undo_to(savepoint)?;
                Err(VerbError::Refused(refusal))
            }
            // The whole transaction is rolled back, and SQLite may have done that by itself. Then
            // the savepoint is gone.
            Err(VerbError::Failed(error)) => return Err(VerbError::Failed(error)),
        };
        self.connection.prepare_cached("RELEASE all_writes")?.execute([])?;
        outcome
    }

    /// Returns the transaction's state in memory, for `undo_to`.
    fn savepoint(&self) -> Savepoint {
        Savepoint {
            log: self.log.position(),
            statistics: self.statistics.clone(),
            hint: self.hint,
            next_task: self.cache.next_task,
            notified: self.notifications.as_ref().map_or(0, Vec::len),
        }
    }

    /// Undoes the writes of an `All` since the savepoint.
    fn undo_to(&mut self, savepoint: Savepoint) -> Result<()> {
        self.connection.prepare_cached("ROLLBACK TO all_writes")?.execute([])?;
        self.completions.clear();
        self.unpropagated_ends.clear();
        self.log.undo_to(savepoint.log);
        self.statistics = savepoint.statistics;
        self.hint = savepoint.hint;
        self.notifications.iter_mut().for_each(|notifications| notifications.truncate(savepoint.notified));
        // The next number cannot come from the file: the log row that carries it is not written
        // yet.
        *self.cache = Cache::load(self.connection, self.moment())?;
        self.cache.next_task = savepoint.next_task;
        Ok(())
    }

    /// Checks the submits of a list without writing anything.
    fn check_submits(&mut self, writes: &[Write]) -> VerbResult<()> {
        for (index, write) in writes.iter().enumerate() {
            if let Write::Submit(task) = write {
                self.check_submit(task).map_err(|stop| in_all(index, stop))?;
            }
        }
        Ok(())
    }

    /// Applies the writes of a list in order, up to the first that is rejected.
    fn apply_each(&mut self, writes: &[Write]) -> VerbResult<Vec<Outcome>> {
        let mut outcomes = Vec::with_capacity(writes.len());
        for (index, write) in writes.iter().enumerate() {
            outcomes.push(self.apply_in_all(write, &outcomes).map_err(|stop| in_all(index, stop))?);
        }
        Ok(outcomes)
    }

    /// Applies one write of a list. A submit may depend on the tasks of earlier submits in the
    /// list, whose numbers are known only now.
    fn apply_in_all(&mut self, write: &Write, before: &[Outcome]) -> VerbResult<Outcome> {
        if let Write::Submit(new) = write
            && let Some(resolved) = rules::dependencies::resolved(new, before)?
        {
            return self.verb(&Write::Submit(Box::new(resolved)));
        }
        self.verb(write)
    }

    /// Writes everything that was put off. The caller commits.
    pub(in crate::sqlite) fn finish(&mut self) -> Result<()> {
        // The order matters: completions end tasks, ends release dependents, and released
        // dependents enter the index. So the index and the tags are written after them, and the log
        // and the counts, which every step adds to, come last.
        self.flush_completions()?;
        if !self.unpropagated_ends.is_empty() {
            self.propagate_ends()?;
        }
        self.refresh_affinity_lists()?;
        if self.cache.index.is_full(self.memory_tasks) {
            let index_watermark = self.cache.next_task - 1;
            self.cache.index.flush(self.connection, index_watermark)?;
        }
        if self.cache.tags.are_due(self.cache.next_task, self.memory_tasks.beside_tables) {
            self.write_tags()?;
        }
        if !self.log.is_empty() {
            self.connection.prepare_cached(prepared_statements::ADD_LOG_ENTRY)?.execute(params![
                self.cache.next_log,
                self.now.as_microseconds(),
                self.cache.next_task,
                self.log.bytes()
            ])?;
            self.cache.next_log += 1;
        }
        self.save_counters()?;
        self.cache.limits.set_configuration(self.cache.queues.configuration());
        self.write_statistics()
    }

    /// Saves the counters: sizes of the index tables, running tasks of limited queues and kinds,
    /// and the state of groups.
    fn save_counters(&mut self) -> Result<()> {
        self.cache.index.save_sizes(self.connection, &self.cache.names)?;
        self.cache.queues.save(self.connection)?;
        self.cache.limits.save(self.connection)?;
        let is_alone = matches!(self.cache.heads, ClaimableHeads::Memory { .. });
        let counts = if is_alone && !self.counters_are_read { CounterSaving::Deferred } else { CounterSaving::Now };
        self.cache.limits.save_groups(self.connection, (self.cache.next_log - 1, self.moment()), counts)
    }

    /// Returns the wall time and the steady time of the transaction.
    fn moment(&self) -> ClockReading {
        ClockReading { wall: self.now.as_microseconds(), steady: self.steady }
    }

    /// Saves all counters to the tables, now and at the end of the transaction.
    pub(in crate::sqlite) fn save_all_counters(&mut self) -> Result<()> {
        self.counters_are_read = true;
        self.save_counters()
    }

    /// Writes the changes of statistics. If a task has ended on a new day, the counts so far are
    /// copied first.
    fn write_statistics(&mut self) -> Result<()> {
        if self.statistics.is_empty() {
            return Ok(());
        }
        if self.statistics.values().any(|change| change.ended > 0) {
            self.begin_day()?;
        }
        let mut statement = self.connection.prepare_cached(include_str!("../sql/commit/add_statistics.sql"))?;
        for ((sub_queue, state), change) in self.statistics.drain() {
            let StatisticsChange { ended, in_history, attempts, wait, run, run_maximum } = change;
            statement.execute(params![sub_queue, state.code(), ended, in_history, attempts, wait, run, run_maximum])?;
        }
        Ok(())
    }

    /// Adds a transition to the log.
    pub(in crate::sqlite) fn log(&mut self, task: TaskId, sub_queue: i64, change: Change) {
        self.log.push(task, sub_queue, change);
    }

    /// Adds a notification, if the process has a listener.
    pub(in crate::sqlite) fn notify(&mut self, notification: TaskNotification) {
        if let Some(notified) = &mut self.notifications {
            notified.push(notification);
        }
    }

    /// Reads a live task, from memory if it runs.
    pub(in crate::sqlite) fn live(&self, task: TaskId) -> Result<Option<LiveTask>> {
        if let Some(running) = self.cache.running_rows.get(task) {
            return Ok(Some(running.clone()));
        }
        let mut statement = self.connection.prepare_cached(include_str!("../sql/commit/live_task.sql"))?;
        Ok(statement.query_row([task.0], LiveTask::from_row).optional()?)
    }

    /// Returns the running task of a lease. This is the fence: a lease is refused if the task has
    /// been claimed again, released or ended since.
    pub(in crate::sqlite) fn running_under(&self, lease: Lease) -> VerbResult<(LiveTask, RunningAttempt)> {
        if let Some(task) = self.live(lease.task)?
            && let Some(running) = task.running
            && task.is_held_by(lease)
        {
            return Ok((task, running));
        }
        self.check_session(lease.session)?;
        Err(Refusal::LeaseLost(lease).into())
    }

    /// Returns the state of an ended task.
    pub(in crate::sqlite) fn ended_state(&self, task: TaskId) -> Result<Option<TaskState>> {
        let code: Option<i64> = self
            .connection
            .prepare_cached("SELECT state FROM history WHERE id = ?")?
            .query_row([task.0], |row| row.get(0))
            .optional()?;
        Ok(code.and_then(TaskState::from_code))
    }
}

/// Returns task numbers as a value to bind for `rarray`.
pub(in crate::sqlite) fn id_values(ids: impl Iterator<Item = TaskId>) -> Rc<Vec<Value>> {
    Rc::new(ids.map(|id| Value::Integer(id.0)).collect())
}

/// Adds the position of the rejected write to its refusal.
pub(in crate::sqlite) fn in_all(index: usize, stop: VerbError) -> VerbError {
    match stop {
        VerbError::Refused(refusal) => VerbError::Refused(Refusal::InAll { index, refusal: Box::new(refusal) }),
        VerbError::Failed(error) => VerbError::Failed(error),
    }
}

impl VerbError {
    /// Converts a refusal to an error, for callers in which no refusal can occur.
    pub(in crate::sqlite) fn into_error(self) -> Error {
        match self {
            Self::Refused(refusal) => Error::invalid(refusal.to_string()),
            Self::Failed(error) => error,
        }
    }
}
