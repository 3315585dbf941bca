//! Reads: every read is a value, as every change is, and [`StoreReads`] has a method for each.

use serde::{Deserialize, Serialize};

use crate::api::aggregate::{PendingBatch, PendingBatchSelection};
use crate::api::document::{DocumentPage, DocumentQuery, DocumentRecord};
use crate::api::error::Error;
use crate::api::event::{EventCursor, EventPage};
use crate::api::history::QueueDay;
use crate::api::limit::LimitRecord;
use crate::api::name::Name;
use crate::api::orchestration::{HistoryChunk, InstanceRecord};
use crate::api::output::{OutputStream, TaskOutput};
use crate::api::queue::QueueMode;
use crate::api::reason::WaitReason;
use crate::api::schedule::{ScheduleRecord, ScheduleSelection};
use crate::api::store::{
    KindStatistics, Page, PauseRecord, QueueRecord, SessionRecord, Store, StoreFuture, TaskFilter, TaskIdPage, TaskPage,
};
use crate::api::tag::{TagKeyPage, TagPage, TagValuePage};
use crate::api::task::{TaskId, TaskRecord};
use crate::api::write::Claim;

/// Declares each read once: its value, its reply, the method that callers use, and the method that
/// a store of this crate has for it.
macro_rules! reads {
    ($($(#[$doc:meta])* $variant:ident = fn $method:ident($($argument:ident: $type:ty),*) -> $reply:ty;)*) => {
        /// A read, for [`Store::read`]. [`StoreReads`] has a typed method for each.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        #[non_exhaustive]
        pub enum Read {
            $($(#[$doc])* $variant {
                $(#[doc = concat!("`", stringify!($argument), "` of [`StoreReads::", stringify!($method), "`].")]
                $argument: $type,)*
            },)*
        }

        /// The reply to a [`Read`], in the variant of the same name.
        #[derive(Debug, Clone, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum ReadReply {
            $(#[doc = concat!("The reply to [`Read::", stringify!($variant), "`].")]
            $variant($reply),)*
        }

        /// The reads of a store, each as a method. Every [`Store`] has them.
        ///
        /// Each sees every write that was acknowledged before it began. Each fails if the store
        /// could not be read. Dropping the future of one abandons the read.
        pub trait StoreReads: Store {
            $($(#[$doc])*
            ///
            /// # Errors
            /// If the store could not be read.
            fn $method(&self $(, $argument: $type)*) -> StoreFuture<'_, $reply> {
                let reply = self.read(Read::$variant { $($argument),* });
                Box::pin(async move {
                    match reply.await? {
                        ReadReply::$variant(reply) => Ok(reply),
                        _ => Err(other_reply(stringify!($variant))),
                    }
                })
            })*
        }

        impl<S: Store + ?Sized> StoreReads for S {}

        /// A method for each read, for stores that implement them one by one.
        pub(crate) trait ReadMethods {
            $(fn $method(&self $(, $argument: $type)*) -> StoreFuture<'_, $reply>;)*

            /// Calls the method of a read.
            fn dispatch(&self, read: Read) -> StoreFuture<'_, ReadReply> {
                match read {
                    $(Read::$variant { $($argument),* } => {
                        let reply = self.$method($($argument),*);
                        Box::pin(async move { reply.await.map(ReadReply::$variant) })
                    })*
                }
            }
        }
    };
}

reads! {
    /// Returns one task with all its stored data, live or ended; `None` if it does not exist. The
    /// cost does not depend on the number of tasks.
    Task = fn task(task: TaskId) -> Option<TaskRecord>;

    /// Returns the reasons why a task does not run, every one that holds now; `None` if the task
    /// does not exist. There are no reasons for a task that could start now, runs, or has ended
    /// otherwise than by [expiring](crate::TaskState::Expired). A claim returns the task once all
    /// reasons are gone. The cost is that of up to [`bounds::AHEAD`](crate::bounds::AHEAD) entries
    /// of its sub-queue.
    Why = fn why(task: TaskId) -> Option<Vec<WaitReason>>;

    /// Returns a page of tasks, newest (highest number) first.
    Tasks = fn tasks(filter: TaskFilter, page: Page) -> TaskPage;

    /// Returns the task that a claim would return first, without claiming it. The store ignores
    /// `claim.session` and `claim.limit`.
    Peek = fn peek(claim: Claim) -> Option<TaskRecord>;

    /// Returns every queue with its sizes, by name. The cost depends on the numbers of queues,
    /// running tasks and sub-queues of waiting tasks (at most
    /// [`bounds::SUB_QUEUES_EXAMINED`](crate::bounds::SUB_QUEUES_EXAMINED) of them), but not on the
    /// number of waiting tasks.
    Queues = fn queues() -> Vec<QueueRecord>;

    /// Returns the mode in which claims choose among queues if they name no mode themselves.
    QueueMode = fn queue_mode() -> QueueMode;

    /// Returns durations and sizes of ended tasks, by kind.
    Statistics = fn statistics() -> Vec<KindStatistics>;

    /// Returns the open sessions, oldest first.
    Sessions = fn sessions() -> Vec<SessionRecord>;

    /// Returns the pauses in force, in the order of their scopes.
    Pauses = fn pauses() -> Vec<PauseRecord>;

    /// Returns the limits in force, in the order of their scopes. They include the concurrencies of
    /// queues.
    Limits = fn limits() -> Vec<LimitRecord>;

    /// Returns pending batches, the one that is ready first before the others. The cost depends on
    /// the number of listed batches, or on those of one queue if the selection names one.
    PendingBatches = fn pending_batches(which: PendingBatchSelection) -> Vec<PendingBatch>;

    /// Returns schedules.
    Schedules = fn schedules(which: ScheduleSelection) -> Vec<ScheduleRecord>;

    /// Returns the events after a cursor, oldest first: at most `limit`, and at most 1000.
    Events = fn events(after: EventCursor, limit: usize) -> EventPage;

    /// Returns the numbers of a page of tasks, newest (highest) first. They are those of the tasks
    /// that [`tasks`](StoreReads::tasks) returns. If the filter has tags, the cost depends on the
    /// number of tasks with the rarest of them, not on the size of the store.
    TaskIds = fn task_ids(filter: TaskFilter, page: Page) -> TaskIdPage;

    /// Returns the number of tasks that a filter selects. The number for a single tag is stored.
    /// Otherwise the cost is that of [`task_ids`](StoreReads::task_ids) for every page.
    Count = fn count(filter: TaskFilter) -> u64;

    /// Returns a page of the values of a tag key, each with the number of its tasks that the filter
    /// selects. Without a filter the cost depends only on the page, otherwise on the number of
    /// tasks that have the key.
    TagValues = fn tag_values(key: String, filter: TaskFilter, page: TagPage) -> TagValuePage;

    /// Returns a page of the tag keys with a prefix; an empty prefix selects all. The cost depends
    /// only on the page.
    TagKeys = fn tag_keys(prefix: String, page: TagPage) -> TagKeyPage;

    /// Returns the numbers of ended tasks on each of the last `days` days, 1 to
    /// [`bounds::HISTORY_DAYS`](crate::bounds::HISTORY_DAYS), in UTC and including today. The
    /// oldest day is first, each day is listed by queue, and days without ends are left out. If the
    /// clock was set back, ends count to the latest day before that. The cost depends on the
    /// numbers of queues and days.
    History = fn history(days: u32) -> Vec<QueueDay>;

    /// Returns the state of an orchestration, apart from its task; `None` if the task does not
    /// exist or is not an orchestration.
    Instance = fn instance(task: TaskId) -> Option<InstanceRecord>;

    /// Returns the history of an orchestration from the chunk that has event number `from`, oldest
    /// first: at most `limit` chunks, and at most 1000.
    InstanceHistory = fn instance_history(task: TaskId, from: u64, limit: usize) -> Vec<HistoryChunk>;

    /// Returns the output of a task on one stream, in the pieces that end after the offset `from`.
    /// They are whole pieces, up to the one with which they reach `limit` bytes. Returns `None` if
    /// no attempt of the task has written output, or if the task does not exist. An offset of
    /// `u64::MAX` returns the sizes without any pieces. The cost depends on the size of the kept
    /// output of the stream.
    TaskOutput = fn task_output(task: TaskId, stream: OutputStream, from: u64, limit: usize) -> Option<TaskOutput>;
    /// Returns a document with its content; `None` if it does not exist.
    Document = fn document(collection: Name, key: String) -> Option<DocumentRecord>;

    /// Returns a page of the documents of a collection, in the order of their keys or of an index.
    /// Cost follows the page alone.
    Documents = fn documents(query: DocumentQuery) -> DocumentPage;
}

/// Returns the error of a store that returned the reply to another read, which only a fault of the
/// store or of a decorator causes.
#[cold]
fn other_reply(read: &str) -> Error {
    Error::corrupt(format!("the store replied to the read `{read}` with the reply to another read"))
}
