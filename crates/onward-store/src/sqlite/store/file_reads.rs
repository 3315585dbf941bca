//! The reads of a SQLite file, shared by the store and by the handle that only reads.

use std::collections::BTreeSet;

use rusqlite::Connection;

use crate::api::aggregate::{PendingBatch, PendingBatchSelection};
use crate::api::document::{DocumentPage, DocumentQuery, DocumentRecord};
use crate::api::error::Result;
use crate::api::event::{EventCursor, EventPage};
use crate::api::history::QueueDay;
use crate::api::limit::LimitRecord;
use crate::api::name::Name;
use crate::api::orchestration::{HistoryChunk, InstanceRecord};
use crate::api::output::{OutputStream, TaskOutput};
use crate::api::queue::QueueMode;
use crate::api::read::ReadMethods;
use crate::api::reason::WaitReason;
use crate::api::schedule::{ScheduleRecord, ScheduleSelection};
use crate::api::store::{
    KindStatistics, Page, PauseRecord, QueueRecord, SessionRecord, StoreFuture, TaskFilter, TaskIdPage, TaskPage,
};
use crate::api::tag::{TagKeyPage, TagPage, TagValuePage};
use crate::api::task::{TaskId, TaskRecord};
use crate::api::write::Claim;
use crate::clock::Clock;
use crate::sqlite::commit::cache::Cache;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::reads;

/// The access to a file that its reads need.
pub(in crate::sqlite) trait FileReads {
    /// Returns the store's clock.
    fn clock_ref(&self) -> &dyn Clock;

    /// Runs a read of the file's tables in one transaction.
    fn read_file<T>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T>;

    /// Runs a read that needs the state that a writer has in memory.
    fn read_with_cache<T>(&self, read: impl FnOnce(&Database<'_>, &mut Cache) -> Result<T>) -> Result<T>;

    /// Runs a read, which sees deferred tags if `by_tags`.
    fn read_by_tags<'a, T: Send + 'a>(
        &'a self,
        by_tags: bool,
        read: impl FnOnce(&Connection) -> Result<T> + Send + 'a,
    ) -> StoreFuture<'a, T>;

    /// Returns the ended processes that still have sessions.
    fn ended_processes(&self) -> Result<BTreeSet<String>>;
}

/// Wraps the result of a read in a future that is ready.
pub(in crate::sqlite) fn ready<'a, T: Send + 'a>(outcome: Result<T>) -> StoreFuture<'a, T> {
    Box::pin(std::future::ready(outcome))
}

impl<S: FileReads> ReadMethods for S {
    fn task(&self, task: TaskId) -> StoreFuture<'_, Option<TaskRecord>> {
        ready(self.read_file(|connection| reads::task::task(connection, task)))
    }

    fn why(&self, task: TaskId) -> StoreFuture<'_, Option<Vec<WaitReason>>> {
        let now = (self.clock_ref().now(), self.clock_ref().steady());
        ready(self.ended_processes().and_then(|ended| {
            self.read_with_cache(|connection, cache| reads::why::why(connection, cache, task, now, &ended))
        }))
    }

    fn tasks(&self, filter: TaskFilter, page: Page) -> StoreFuture<'_, TaskPage> {
        self.read_by_tags(filter.asks_for_tags(), move |connection| reads::list::tasks(connection, &filter, page))
    }

    fn peek(&self, claim: Claim) -> StoreFuture<'_, Option<TaskRecord>> {
        let (now, steady) = (self.clock_ref().now(), self.clock_ref().steady());
        ready(self.read_with_cache(|connection, cache| reads::peek::peek(connection, cache, &claim, now, steady)))
    }

    fn queues(&self) -> StoreFuture<'_, Vec<QueueRecord>> {
        ready(self.read_with_cache(|database, cache| reads::queues::queues(database, cache, self.clock_ref().now())))
    }

    fn queue_mode(&self) -> StoreFuture<'_, QueueMode> {
        ready(self.read_with_cache(|_, cache| Ok(cache.queues.mode())))
    }

    fn statistics(&self) -> StoreFuture<'_, Vec<KindStatistics>> {
        ready(self.read_file(reads::statistics::statistics))
    }

    fn sessions(&self) -> StoreFuture<'_, Vec<SessionRecord>> {
        let ended = self.ended_processes();
        ready(ended.and_then(|ended| self.read_file(|connection| reads::sessions::sessions(connection, &ended))))
    }

    fn pauses(&self) -> StoreFuture<'_, Vec<PauseRecord>> {
        ready(self.read_with_cache(|_, cache| Ok(cache.pauses.in_force(self.clock_ref().now()))))
    }

    fn limits(&self) -> StoreFuture<'_, Vec<LimitRecord>> {
        ready(
            self.read_with_cache(|connection, cache| {
                reads::limits::limits(connection, cache, self.clock_ref().steady())
            }),
        )
    }

    fn pending_batches(&self, which: PendingBatchSelection) -> StoreFuture<'_, Vec<PendingBatch>> {
        ready(self.read_file(|connection| reads::pending_batches::pending_batches(connection, &which)))
    }

    fn schedules(&self, which: ScheduleSelection) -> StoreFuture<'_, Vec<ScheduleRecord>> {
        ready(self.read_file(|connection| reads::schedules::schedules(connection, &which)))
    }

    fn events(&self, after: EventCursor, limit: usize) -> StoreFuture<'_, EventPage> {
        ready(self.read_file(|connection| reads::events::events(connection, after, limit)))
    }

    fn task_ids(&self, filter: TaskFilter, page: Page) -> StoreFuture<'_, TaskIdPage> {
        self.read_by_tags(filter.asks_for_tags(), move |connection| reads::list::task_ids(connection, &filter, page))
    }

    fn count(&self, filter: TaskFilter) -> StoreFuture<'_, u64> {
        self.read_by_tags(filter.asks_for_tags(), move |connection| reads::list::count(connection, &filter))
    }

    fn tag_values(&self, key: String, filter: TaskFilter, page: TagPage) -> StoreFuture<'_, TagValuePage> {
        self.read_by_tags(true, move |connection| reads::tags::tag_values(connection, &key, &filter, &page))
    }

    fn tag_keys(&self, prefix: String, page: TagPage) -> StoreFuture<'_, TagKeyPage> {
        self.read_by_tags(true, move |connection| reads::tags::tag_keys(connection, &prefix, &page))
    }

    fn history(&self, days: u32) -> StoreFuture<'_, Vec<QueueDay>> {
        let now = self.clock_ref().now();
        ready(self.read_file(|connection| reads::history::history(connection, now, days)))
    }

    fn document(&self, collection: Name, key: String) -> StoreFuture<'_, Option<DocumentRecord>> {
        ready(self.read_file(|connection| reads::documents::document(connection, &collection, &key)))
    }

    fn documents(&self, query: DocumentQuery) -> StoreFuture<'_, DocumentPage> {
        ready(self.read_file(|connection| reads::documents::documents(connection, &query)))
    }

    fn instance(&self, task: TaskId) -> StoreFuture<'_, Option<InstanceRecord>> {
        ready(self.read_file(|connection| reads::instance::instance(connection, task)))
    }

    fn instance_history(&self, task: TaskId, from: u64, limit: usize) -> StoreFuture<'_, Vec<HistoryChunk>> {
        ready(self.read_file(|connection| reads::instance::history(connection, task, from, limit)))
    }

    fn task_output(
        &self,
        task: TaskId,
        stream: OutputStream,
        from: u64,
        limit: usize,
    ) -> StoreFuture<'_, Option<TaskOutput>> {
        ready(self.read_file(|connection| reads::output::task_output(connection, task, stream, from, limit)))
    }
}
