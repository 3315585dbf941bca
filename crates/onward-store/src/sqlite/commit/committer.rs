//! The commit: applies the writes of all callers in one transaction on the writing connection.
//!
//! The order is the guarantee. [`in_transaction`](Committer::in_transaction) takes the write lock,
//! rereads the changes of other processes, applies the writes, and commits. It then checks that the
//! file is still at its path. Only after that do callers get their outcomes, and waiting callers
//! their notifications. An error before that point rolls everything back and drops the cache.
//!
//! Three kinds of writers share the file. A *lasting* process keeps the store open and has a
//! housekeeping thread. A *brief* process, such as a command, makes a few calls and ends. It has no
//! such thread, so its commits do what is due. A *caller* writes in a transaction of its own, on a
//! connection of its own, so this process learns of the write only from SQLite's data version.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::api::error::{Error, Result};
use crate::api::notification::{NotificationSender, TaskNotification};
use crate::api::outcome::Outcome;
use crate::api::store::Hint;
use crate::api::task::SessionId;
use crate::api::write::Write;
use crate::clock::Clock;
use crate::sqlite::columns::durations::microseconds;
use crate::sqlite::commit::cache::Cache;
use crate::sqlite::commit::commit_counts::CommitSizes;
use crate::sqlite::commit::connection::{Database, WritingConnection};
use crate::sqlite::commit::transaction::{Transaction, VerbError};
use crate::sqlite::commit::transition_log::LogBuffer;
use crate::sqlite::file_layer::store_files::{CommitOutcome, StoreFiles};
use crate::sqlite::limits::deferred_counters::ClockReading;
use crate::sqlite::processes::checkpoint_trigger::CheckpointTrigger;
use crate::sqlite::processes::housekeeping;
use crate::sqlite::processes::notification_watermark::NotificationWatermark;
use crate::sqlite::processes::peers::PeerProcesses;
use crate::sqlite::ready::index::{ALL_IN_TABLES, MemoryTasks};
use crate::sqlite::store::sqlite_errors::in_file;
use crate::watch;

/// One caller's writes and the channel for their outcomes.
#[derive(Debug)]
pub(in crate::sqlite) struct CommitRequest {
    /// The writes, in order.
    pub(in crate::sqlite) writes: Vec<Write>,
    /// True if the tags of all tasks must be in the tables when the request is done.
    pub(in crate::sqlite) tags: bool,
    /// The channel to the caller.
    pub(super) reply: oneshot::Sender<Result<Vec<Outcome>>>,
}

/// The outcomes that a commit sends to its callers. They are sent after the committer is released,
/// so that the next commit can begin.
pub(in crate::sqlite) struct Replies(Vec<(CommitRequest, Result<Vec<Outcome>>)>);

impl Replies {
    /// Sends each caller its outcomes.
    pub(in crate::sqlite) fn send(self) {
        for (request, outcomes) in self.0 {
            // A caller that no longer waits has dropped its receiver. Its writes remain.
            let _ = request.reply.send(outcomes);
        }
    }
}

/// The state that a commit needs exclusively: the writing connection, the cache and the files.
pub(in crate::sqlite) struct Committer {
    /// The only connection on which this process writes for callers.
    pub(in crate::sqlite) connection: WritingConnection,
    /// The clock of all decisions.
    pub(in crate::sqlite) clock: Arc<dyn Clock>,
    /// The largest payload or result, in bytes.
    pub(in crate::sqlite) payload_limit: usize,
    /// The number of tasks that may wait in memory before they move to the tables.
    pub(in crate::sqlite) memory_tasks: MemoryTasks,
    /// The other processes on the file, if there can be any.
    pub(in crate::sqlite) peers: Option<PeerProcesses>,
    /// The files of the store. `None` for a store in memory, and for a file that has no name yet.
    pub(in crate::sqlite) file: Option<StoreFiles>,
    /// `None` for a store in memory, which has no write-ahead log.
    pub(in crate::sqlite) checkpoint_trigger: Option<Arc<CheckpointTrigger>>,
    /// The sum of all hints, for subscribers to changes.
    pub(in crate::sqlite) hints: watch::Sender<Hint>,
    /// The notifications of ended tasks.
    pub(in crate::sqlite) notifications: NotificationSender,
    /// The sizes of commits so far.
    pub(in crate::sqlite) sizes: Arc<CommitSizes>,
    /// True if programs write to the file on connections of their own, in this process. It never
    /// becomes false again.
    pub(in crate::sqlite) callers_write: Arc<AtomicBool>,
    /// True if some tags are only in rows of tasks and not in the tables.
    pub(in crate::sqlite) has_new_tags: Arc<AtomicBool>,
    /// The task number up to which waiting callers were notified.
    pub(in crate::sqlite) notified: Arc<NotificationWatermark>,
    /// The log entry up to which waiting callers were notified.
    pub(in crate::sqlite) notified_entries: Arc<NotificationWatermark>,
    /// `None` after a rollback: the cache may be wrong, and is read again.
    cache: Option<Cache>,
    /// SQLite's data version at the last commit. Another value means that another process has
    /// written.
    data_version: i64,
    /// True if other processes may write to the store: a store in memory has only this one.
    is_file: bool,
    /// True if peers came or went since the index was last moved to fit.
    peers_changed: bool,
    /// True if the index was moved to the tables because callers write on their own connections.
    indexed_for_callers: bool,
    /// The number of the next task at the last check for missed tasks.
    next_task_seen: i64,
    /// The number of the next log entry at that check.
    next_entry_seen: i64,
    /// SQLite's data version when this process last checked for writes of other processes.
    version_notified: i64,
    /// True if a brief process has prepared for sessions: see `prepare_for_sessions`.
    has_sessions: bool,
}

impl fmt::Debug for Committer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committer").finish_non_exhaustive()
    }
}

/// The parts of which a [`Committer`] is made.
pub(in crate::sqlite) struct CommitterParts {
    /// The connection that becomes the writing connection.
    pub(in crate::sqlite) connection: Connection,
    /// The clock of all decisions.
    pub(in crate::sqlite) clock: Arc<dyn Clock>,
    /// The largest payload or result, in bytes.
    pub(in crate::sqlite) payload_limit: usize,
    /// The number of tasks that may wait in memory before they move to the tables.
    pub(in crate::sqlite) memory_tasks: MemoryTasks,
    /// The other processes on the file, if there can be any.
    pub(in crate::sqlite) peers: Option<PeerProcesses>,
    /// The store's files; `None` for a store in memory.
    pub(in crate::sqlite) file: Option<StoreFiles>,
    /// The channel for hints.
    pub(in crate::sqlite) hints: watch::Sender<Hint>,
    /// The channel for notifications of ended tasks.
    pub(in crate::sqlite) notifications: NotificationSender,
    /// The counter of commit sizes.
    pub(in crate::sqlite) sizes: Arc<CommitSizes>,
}

impl Committer {
    /// Creates a committer with an empty cache, which the first commit fills.
    pub(in crate::sqlite) fn new(parts: CommitterParts) -> Self {
        let CommitterParts { connection, clock, payload_limit, memory_tasks, peers, file, hints, notifications, sizes } =
            parts;
        Self {
            connection: connection.into(),
            clock,
            payload_limit,
            memory_tasks,
            hints,
            notifications,
            sizes,
            callers_write: Arc::default(),
            has_new_tags: Arc::default(),
            notified: Arc::default(),
            notified_entries: Arc::default(),
            cache: None,
            data_version: -1,
            is_file: peers.is_some(),
            peers,
            file,
            checkpoint_trigger: None,
            peers_changed: true,
            indexed_for_callers: false,
            next_task_seen: 0,
            next_entry_seen: 0,
            version_notified: -1,
            has_sessions: false,
        }
    }

    /// Commits the writes of all requests together. If a statement fails, commits each request on
    /// its own, so that only the request at fault gets the error.
    #[must_use = "the callers wait for their outcomes"]
    pub(in crate::sqlite) fn commit(&mut self, requests: Vec<CommitRequest>) -> Replies {
        if self.must_copy_log() && self.check_file().is_ok() {
            housekeeping::checkpoint_wal(&self.connection);
        }
        if let Err(error) = self.prepare_for_sessions(&requests) {
            return Replies(requests.into_iter().map(|request| (request, Err(error.clone()))).collect());
        }
        let tags = requests.iter().any(|request| request.tags);
        match self.transact(requests.iter().map(|request| request.writes.as_slice()), tags) {
            Ok(outcomes) => {
                self.sizes.record(&requests, &outcomes);
                Replies(requests.into_iter().zip(outcomes.into_iter().map(Ok)).collect())
            }
            // Another attempt cannot succeed: the file is no longer there.
            Err(error) if requests.len() == 1 || error.is_replaced() => {
                if error.is_replaced() {
                    // Firing the trigger wakes the housekeeping thread, which wakes all waiting
                    // callers, so that they get the error too.
                    self.checkpoint_trigger.iter().for_each(|checkpoint_trigger| checkpoint_trigger.fire());
                }
                Replies(requests.into_iter().map(|request| (request, Err(error.clone()))).collect())
            }
            Err(_) => Replies(requests.into_iter().map(|request| self.commit_alone(request)).collect()),
        }
    }

    /// Returns true if this commit must first copy the write-ahead log into the database: if the
    /// disk is nearly full, or if a brief process, which has no housekeeping thread, has a long
    /// log.
    fn must_copy_log(&self) -> bool {
        let is_brief = self.is_brief();
        self.checkpoint_trigger.as_ref().is_some_and(|checkpoint_trigger| {
            checkpoint_trigger.take_overdue() || is_brief && checkpoint_trigger.take_copy()
        })
    }

    /// Prepares a brief process for its first session or claim. A lasting process does the same
    /// when it opens the store. Sessions of ended processes lapse. Sessions of live processes get a
    /// lease, because a process that was alone did not renew its session.
    fn prepare_for_sessions(&mut self, requests: &[CommitRequest]) -> Result<()> {
        let takes = |write: &Write| matches!(write, Write::OpenSession(_) | Write::Claim(_) | Write::Sweep);
        if !self.is_brief() || self.has_sessions || !requests.iter().any(|request| request.writes.iter().any(takes)) {
            return Ok(());
        }
        let mut peers = self.peers.take();
        let lapsed = self.in_transaction(|transaction| {
            if let Some(peers) = &mut peers {
                peers.refresh(true)?;
                transaction.lapse_ended_processes(peers.name(), |name| peers.is_running(name))?;
            }
            transaction.finish()
        });
        self.peers = peers;
        self.has_sessions = lapsed.is_ok();
        lapsed
    }

    /// Commits one request in a transaction of its own, after a shared one failed.
    fn commit_alone(&mut self, request: CommitRequest) -> (CommitRequest, Result<Vec<Outcome>>) {
        let outcomes = self.transact(std::iter::once(request.writes.as_slice()), request.tags);
        (request, outcomes.map(|outcomes| outcomes.into_iter().flatten().collect()))
    }

    /// Runs the calls in one transaction. Returns the outcomes of each call in order.
    fn transact<'w>(
        &mut self,
        calls: impl ExactSizeIterator<Item = &'w [Write]>,
        tags: bool,
    ) -> Result<Vec<Vec<Outcome>>> {
        let outcomes = self.in_transaction(|transaction| {
            // A loop, because collecting into a `Result` loses the length, so that the vector would
            // grow by moving its elements.
            let mut outcomes = Vec::with_capacity(calls.len());
            for writes in calls {
                outcomes.push(transaction.write_all(writes)?);
            }
            if tags {
                transaction.write_tags()?;
            }
            transaction.finish()?;
            Ok(outcomes)
        });
        outcomes.map_err(|error| in_file(&self.connection, error))
    }

    /// Runs `work` in a transaction and commits it, or rolls everything back.
    pub(in crate::sqlite) fn in_transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        self.begin().map_err(|error| self.cause_of(error))?;
        // `begin` has taken the write lock: no other process can write between the refresh and the
        // commit, so the cache stays valid for the transaction.
        let outcome = self.check_before().and_then(|()| self.refresh()).and_then(|()| {
            let (first, first_entry) = (self.next_task(), self.next_entry());
            let changes = self.connection.total_changes();
            let (value, hint, notifications) = self.with_transaction(work)?;
            let raised_to = self.raise_generation(changes)?;
            // With durability level `full` this statement syncs the write-ahead log before it
            // returns, so the writes survive power loss from here on. With `normal` they survive
            // the end of the process.
            self.connection.database().prepare_cached("COMMIT")?.execute([])?;
            // The file is checked after the commit and before the acknowledgement: a commit to a
            // file that was moved or replaced must not be acknowledged.
            self.check_after(raised_to)?;
            self.notified.advance(first, self.next_task());
            self.has_new_tags.store(self.cache.as_ref().is_some_and(|cache| !cache.tags.is_empty()), Ordering::Release);
            self.notified_entries.advance(first_entry, self.next_entry());
            // Notified after the commit, so that a woken caller finds the change in the file.
            self.notify(hint, notifications);
            Ok(value)
        });
        if outcome.is_err() {
            self.cache = None;
            // SQLite may have rolled back by itself, for example because the disk is full.
            // `ROLLBACK` would then fail.
            if !self.connection.is_autocommit() {
                let _ = self
                    .connection
                    .database()
                    .prepare_cached("ROLLBACK")
                    .and_then(|mut statement| statement.execute([]));
            }
        }
        outcome.map_err(|error| self.cause_of(error))
    }

    /// Returns the cause of an error. Data that is read from a file while another file replaces it
    /// looks damaged, so damage is reported only if the file is still the same.
    pub(in crate::sqlite) fn cause_of(&mut self, error: Error) -> Error {
        if error.is_corrupt() { self.check_file().err().unwrap_or(error) } else { error }
    }

    /// Returns an error if the files are no longer at their paths or hold something else. The
    /// caller holds the write lock.
    fn check_before(&mut self) -> Result<()> {
        self.file.as_mut().map_or(Ok(()), |file| file.check_before(&self.connection))
    }

    /// Checks the file outside a transaction.
    pub(in crate::sqlite) fn check_file(&mut self) -> Result<()> {
        self.file.as_mut().map_or(Ok(()), |file| file.check(&self.connection, CommitOutcome::NotWritten))
    }

    /// Stops the watch of the database file, while this process writes many pages of it.
    pub(in crate::sqlite) fn stop_file_watch(&mut self) {
        if let Some(peers) = &mut self.peers {
            peers.stop_file_watch();
        }
    }

    /// Resumes the watch of the database file. The caller checks the file afterwards.
    pub(in crate::sqlite) fn resume_file_watch(&mut self) {
        if let Some(peers) = &mut self.peers {
            peers.resume_file_watch();
        }
    }

    /// Raises the generation in the file's identity row, if the transaction has changed a row and
    /// the last raised generation is already in the database file. Otherwise the next checkpoint
    /// would not change the identity of the file. `changes` is the connection's count of changes
    /// before the transaction.
    fn raise_generation(&self, changes: u64) -> Result<Option<i64>> {
        let Some(file) = self.file.as_ref().filter(|file| file.must_raise_generation()) else { return Ok(None) };
        if self.connection.total_changes() == changes {
            return Ok(None);
        }
        file.announce_log();
        let sql = "UPDATE identity SET generation = generation + 1 RETURNING generation";
        let raised = self.connection.database().prepare_cached(sql)?.query_row([], |row| row.get(0));
        raised.map(Some).map_err(|error| match error {
            // Only damage removes the row or the number in it: no statement of the store does.
            rusqlite::Error::QueryReturnedNoRows | rusqlite::Error::InvalidColumnType(..) => {
                Error::corrupt("the identity of the store is missing")
            }
            error if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) => {
                Error::corrupt("the identity of the store is missing")
            }
            error => error.into(),
        })
    }

    /// Checks the file after a commit and before it is acknowledged.
    fn check_after(&mut self, raised_to: Option<i64>) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if let Some(generation) = raised_to {
            file.raised_to(generation);
        }
        file.record_log();
        file.check(&self.connection, CommitOutcome::Unknown)
    }

    /// Begins a transaction, which waits for the write lock. The ticket makes processes take turns:
    /// SQLite's lock has no order, so a busy process could starve its peers.
    fn begin(&self) -> Result<()> {
        let begin = || self.connection.database().prepare_cached("BEGIN IMMEDIATE")?.execute([]).map(drop);
        let Some(peers) = &self.peers else { return Ok(begin()?) };
        let ticket_lock = peers.ticket_lock();
        // A process that is alone takes no ticket, because it has no peer to starve. A brief
        // process counts as a peer before it writes.
        let _ticket = if peers.is_woken_by_all_writes() { None } else { ticket_lock.acquire()? };
        begin().map_err(|failure| ticket_lock.lock().name_holder(failure))
    }

    /// Runs `work` in a transaction that has begun, and returns what it returned with the hint and
    /// the notifications. It neither commits nor rolls back.
    fn with_transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<(T, Hint, Vec<TaskNotification>)> {
        let Some(cache) = self.cache.as_mut() else { return Err(Error::closed()) };
        // Every change that was hinted by now is in the file, and this transaction sees it. A claim
        // that finds nothing reports this count, and a later hint then makes it try again.
        let work_before = self.hints.get().work;
        let mut transaction = Transaction {
            connection: &self.connection.database(),
            cache,
            now: self.clock.now(),
            steady: microseconds(self.clock.steady()),
            payload_limit: self.payload_limit,
            memory_tasks: self.memory_tasks,
            process: self.peers.as_ref().map_or("", PeerProcesses::name),
            log: LogBuffer::default(),
            statistics: rustc_hash::FxHashMap::default(),
            hint: Hint::default(),
            work_before,
            notifications: self.notifications.has_receivers().then(Vec::new),
            completions: Vec::new(),
            unpropagated_ends: std::collections::VecDeque::new(),
            counters_are_read: false,
        };
        let value = work(&mut transaction)?;
        Ok((value, transaction.hint, transaction.notifications.unwrap_or_default()))
    }

    /// Runs `work` while neither this process nor another writes to the file.
    pub(in crate::sqlite) fn while_no_process_writes<T>(&mut self, work: impl FnOnce() -> T) -> Result<T> {
        self.begin()?;
        let done = self.check_file().map(|()| work());
        self.connection.database().prepare_cached("ROLLBACK")?.execute([])?;
        done
    }

    /// Reads again what another process may have changed. Called within a transaction, which fixes
    /// the data version.
    pub(in crate::sqlite) fn refresh(&mut self) -> Result<()> {
        let version = self.version()?;
        let cache = match self.cache.take() {
            Some(cache) if version == self.data_version => cache,
            Some(cache) => cache.reload(&self.connection.database(), self.moment())?,
            None => Cache::load(&self.connection.database(), self.moment())?,
        };
        self.cache = Some(cache);
        self.data_version = version;
        Ok(())
    }

    /// Returns SQLite's data version, which differs when another connection has written.
    fn version(&self) -> Result<i64> {
        if !self.is_file {
            return Ok(0);
        }
        let mut statement = self.connection.database().prepare_cached("PRAGMA data_version")?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }

    /// Returns the wall time and the steady time.
    fn moment(&self) -> ClockReading {
        ClockReading { wall: self.clock.now().as_microseconds(), steady: microseconds(self.clock.steady()) }
    }

    /// Returns the number of the next task; 0 if the cache is not read.
    fn next_task(&self) -> i64 {
        self.cache.as_ref().map_or(0, |cache| cache.next_task)
    }

    /// Returns the number of the next log entry; 0 if the cache is not read.
    fn next_entry(&self) -> i64 {
        self.cache.as_ref().map_or(0, |cache| cache.next_log)
    }

    /// Returns the writer's cache, for reads that need it; `refresh` comes first.
    pub(in crate::sqlite) fn cache(&mut self) -> Option<(Database<'_>, &mut Cache)> {
        self.cache.as_mut().map(|cache| (self.connection.database(), cache))
    }

    /// Notifies the waiting callers of this process and of other processes of a change.
    fn notify(&mut self, change: Hint, notifications: Vec<TaskNotification>) {
        self.notifications.notify(notifications);
        if change == Hint::default() {
            return;
        }
        self.hints.send_modify(|hint| hint.add(change));
        if let Some(peers) = &self.peers {
            peers.wakers().wake();
        }
    }

    /// Makes every waiting caller of this process read the store again.
    pub(in crate::sqlite) fn wake_all(&self) {
        self.notifications.notify_missed();
        self.hints.send_modify(|hint| hint.add(Hint { schedules: 0, ..Hint::all() }));
    }

    /// Refreshes the list of peers. Returns true if the list has changed; `adapt_to_peers` then
    /// follows later. With `sweep`, removes the lock files of brief processes that have ended.
    pub(in crate::sqlite) fn refresh_peers(&mut self, sweep: bool) -> Result<bool> {
        let changed = self.peers.as_mut().map_or(Ok(false), |peers| peers.refresh(sweep))?;
        self.peers_changed |= changed;
        Ok(changed)
    }

    /// Returns true if a process was running when the list of peers was last refreshed.
    pub(in crate::sqlite) fn is_running(&self, process: &str) -> bool {
        self.peers.as_ref().is_none_or(|peers| peers.is_running(process))
    }

    /// Refreshes the list of peers and adapts to changes. A peer that has ended may have committed
    /// without a notification.
    pub(in crate::sqlite) fn update_peers(&mut self, sweep: bool) -> Result<()> {
        self.refresh_peers(sweep)?;
        self.peers_changed |= self.callers_write() && !self.indexed_for_callers;
        if !self.peers_changed {
            return Ok(());
        }
        self.adapt_to_peers()?;
        self.notify_missed_tasks()
    }

    /// Sends hints and notifications for commits since the last call whose process sent none.
    /// This covers a process that was killed between its commit and the notification, and a caller
    /// that did not notify of its own transaction.
    pub(in crate::sqlite) fn notify_missed_tasks(&mut self) -> Result<()> {
        self.connection.database().prepare_cached("BEGIN")?.execute([])?;
        let read = self.refresh();
        // A read that failed on the disk may have ended the transaction by itself.
        if !self.connection.is_autocommit() {
            self.connection.database().prepare_cached("COMMIT")?.execute([])?;
        }
        read?;
        let (next_task, next_entry) = (self.next_task(), self.next_entry());
        // The hint is sent even if it may be needless: it costs one claim, and covers a caller that
        // hinted before it committed. A needless notification would make every waiting caller read
        // the store, so a notification is sent only for a gap in the watermarks.
        if next_task > self.next_task_seen || next_entry > self.next_entry_seen {
            self.hints.send_modify(|hint| hint.add(Hint { work: 1, transitions: 1, ..Hint::default() }));
        }
        if self.notified.missed(next_task) | self.notified_entries.missed(next_entry) {
            self.notifications.notify_missed();
        }
        (self.next_task_seen, self.next_entry_seen) = (next_task, next_entry);
        Ok(())
    }

    /// Lets sessions of ended processes lapse. Moves the index to memory if no other process or
    /// caller writes, and to the tables otherwise.
    pub(in crate::sqlite) fn adapt_to_peers(&mut self) -> Result<()> {
        let callers_write = self.callers_write();
        let mut peers = self.peers.take();
        let outcome = self.in_transaction(|transaction| {
            if let Some(peers) = &mut peers {
                // Refreshed inside the transaction: a process that wrote earlier is in the list
                // now, so no session in the file belongs to a process that the list lacks.
                peers.refresh(true)?;
                transaction.lapse_ended_processes(peers.name(), |name| peers.is_running(name))?;
            }
            let alone = !callers_write && peers.as_ref().is_none_or(PeerProcesses::is_alone);
            let index_watermark = if alone { transaction.cache.next_task - 1 } else { ALL_IN_TABLES };
            transaction.cache.index.flush(transaction.connection, index_watermark)?;
            transaction.write_tags_up_to(index_watermark)?;
            transaction.cache.heads.move_to(transaction.connection, alone)?;
            transaction.finish()
        });
        self.peers = peers;
        outcome?;
        self.peers_changed = false;
        self.indexed_for_callers = callers_write;
        // A process that has ended may have changed a schedule without a hint.
        self.hints.send_modify(|hint| hint.schedules += 1);
        if let Some(peers) = &self.peers {
            peers.wakers().wake();
        }
        Ok(())
    }

    /// Ends this process's sessions, so that the tasks they hold are free at once.
    pub(in crate::sqlite) fn close_sessions(&mut self) -> Result<()> {
        let own = self.peers.as_ref().map_or(String::new(), |peers| peers.name().to_owned());
        self.in_transaction(|transaction| {
            for session in transaction.sessions_of(&own)? {
                transaction.close_session(SessionId(session)).map_err(VerbError::into_error)?;
            }
            transaction.finish()
        })
    }
}

impl Committer {
    /// Returns true if this process is woken by every write of other processes to the file.
    pub(in crate::sqlite) fn is_woken_by_all_writes(&self) -> bool {
        !self.callers_write() && self.peers.as_ref().is_none_or(PeerProcesses::is_woken_by_all_writes)
    }

    /// Returns true if this process makes a few calls and ends.
    pub(in crate::sqlite) fn is_brief(&self) -> bool {
        self.peers.as_ref().is_some_and(PeerProcesses::is_brief)
    }

    /// Returns true if this process may have sessions.
    pub(in crate::sqlite) fn has_sessions(&self) -> bool {
        self.has_sessions || !self.is_brief()
    }

    /// Wakes all waiting callers of this process if another process has written since the last
    /// call. Does nothing where a file watch wakes them.
    pub(in crate::sqlite) fn notify_foreign_writes(&mut self) -> Result<()> {
        if self.peers.as_ref().is_none_or(PeerProcesses::is_watching) {
            return Ok(());
        }
        let version = self.version()?;
        if std::mem::replace(&mut self.version_notified, version) != version {
            self.notifications.notify_missed();
            self.hints.send_modify(|hint| hint.add(Hint::all()));
        }
        Ok(())
    }

    /// Returns true if callers of this process write on their own connections.
    fn callers_write(&self) -> bool {
        self.callers_write.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::sqlite::store::sqlite_store::SqliteStore;

    #[tokio::test]
    async fn what_is_committed_after_the_file_was_moved_is_an_error_that_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("onward.db");
        let store = SqliteStore::open(&path).await.unwrap();
        let moved = store.committer().in_transaction(|transaction| {
            fs::rename(&path, directory.path().join("moved.db")).unwrap();
            transaction.finish()
        });
        let error = moved.unwrap_err();
        assert!(error.is_replaced() && error.to_string().contains("count only if that is put back"), "{error}");
    }

    #[tokio::test]
    async fn each_log_is_recorded_with_the_first_commit_to_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("onward.db");
        let store = SqliteStore::open(&path).await.unwrap();
        let salts = fs::read(directory.path().join("onward.db-wal")).unwrap()[16..24]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>();
        let record = fs::read_to_string(directory.path().join("onward.db-sessions/log")).unwrap();
        assert!(record.starts_with(&salts), "{record} {salts}");
        drop(store);
    }
}
