//! All bounds of the store.

use std::time::Duration;

/// The largest payload or result of a task, in bytes, unless the store was opened with another
/// limit.
pub const PAYLOAD_BYTES: usize = 1024 * 1024;

/// The largest payload limit with which a store can be opened, in bytes.
pub const PAYLOAD_BYTES_CEILING: usize = 256 * 1024 * 1024;

/// The longest name of a kind, a queue or a group, in bytes.
pub const NAME_BYTES: usize = 128;

/// The longest key, in bytes.
pub const KEY_BYTES: usize = 512;

/// The longest error message of an attempt, in bytes. A longer message is cut and ends with a mark.
pub const ERROR_BYTES: usize = 8 * 1024;

/// The longest message of a progress report, in bytes. A longer message is cut.
pub const PROGRESS_BYTES: usize = 1024;

/// The largest output that one [`Write::AppendOutput`](crate::Write::AppendOutput) appends, in
/// bytes.
pub const OUTPUT_APPEND_BYTES: usize = 64 * 1024;

/// The largest size of such output after its encoding by a [`PayloadCodec`](crate::PayloadCodec),
/// in bytes.
pub const OUTPUT_ENCODED_BYTES: usize = 2 * OUTPUT_APPEND_BYTES;

/// The largest output of one stream of a task that a store keeps, in bytes. Of longer output the
/// beginning and the end are kept.
pub const OUTPUT_BYTES: usize = 1024 * 1024;

/// The length of the beginning of a stream, and of its end, that is always kept, in bytes. The
/// pieces that reach beyond it are kept whole, so both are shorter than half of [`OUTPUT_BYTES`].
pub const OUTPUT_END_BYTES: usize = OUTPUT_BYTES / 2 - OUTPUT_APPEND_BYTES;

/// The largest number of errors that a task keeps. The first one and the newest ones stay.
pub const ERRORS_KEPT: usize = 64;

/// The largest number of tasks that one claim returns.
pub const CLAIM: usize = 4096;

/// The number of tasks that one of several concurrent claims requests at most, if a claim costs
/// little compared with the tasks that it returns.
pub const CLAIM_OF_SEVERAL: usize = 512;

/// The largest number of due tasks, expiries or lapsed leases that one sweep handles. The next
/// sweep handles the rest and is due at once.
pub const SWEEP: usize = 1024;

/// The number of commits that a receiver of notifications can be behind. A slower receiver has to
/// read everything instead.
pub const NOTIFICATIONS: usize = 1024;

/// The waiting time that one level of priority is worth. A task goes before a task that is one
/// level more urgent and became due later by more than this.
pub const PRIORITY_LEVEL: Duration = Duration::from_secs(60);

/// The largest number of writes in one [`Write::All`](crate::Write::All).
pub const ALL: usize = 100_000;

/// The largest number of callers' calls in one commit.
pub const COMMIT: usize = 8192;

/// The largest number of tasks completed by the function `onward_complete` that a PostgreSQL store
/// processes at a time. The value is small in debug builds, so that tests reach it.
pub const COMPLETIONS: usize = if cfg!(debug_assertions) { 2 } else { 1000 };

/// The number of writes of a batch after which a PostgreSQL store begins to write rows while it
/// decides the rest. The value is small in debug builds, so that tests reach it.
pub const DECIDED_AT_ONCE: usize = if cfg!(debug_assertions) { 2 } else { 512 };

/// The greatest age of the time at which a PostgreSQL store planned a batch speculatively, while it
/// wrote the previous one. An older plan is computed again.
pub const DECIDED_AHEAD: Duration = Duration::from_millis(500);

/// The number of writes from which on a batch of a PostgreSQL store releases the lock before it is
/// on disk, if another node has written since its last batch. That node is probably busy, too, and
/// waits for the lock. Smaller batches return sooner if the commit itself waits for the disk. The
/// value is small in debug builds, so that tests reach it.
pub const HELD_UP: usize = if cfg!(debug_assertions) { 2 } else { 64 };

/// The largest number of running tasks in the row cache of a PostgreSQL store's writer. It need not
/// read these tasks again when they end.
pub const KEPT_TASKS: usize = 16_384;

/// The largest number of own sessions that the writer of a PostgreSQL store remembers. For these
/// sessions it relies on a notification when another node changes what they run.
pub const OWN_SESSIONS: usize = 256;

/// The largest size of payload and checkpoint, in bytes, of a task in that row cache.
pub const KEPT_TASK_BYTES: usize = 4096;

/// The smallest number of tasks with most columns in common for which a PostgreSQL store sends
/// these columns once. The value is small in debug builds, because tests have few tasks.
pub const LOT: usize = if cfg!(debug_assertions) { 2 } else { 32 };

/// The largest number of such groups of tasks in one batch.
pub const LOTS: usize = 64;

/// The largest payload, in bytes, that is sent again with the end of its task. A larger payload is
/// copied to the history within the server.
pub const RESENT_BYTES: usize = 1024;

/// The largest number of calls that wait for a commit. Further callers wait before they can
/// enqueue.
pub const PENDING: usize = 65_536;

/// The largest number of dependencies of one task.
pub const DEPENDENCIES: usize = 1000;

/// The largest number of live children for which one task may wait. It is also the largest number
/// of tasks that are examined to check that none of these waits for the task.
pub const AWAITED_CHILDREN: usize = 10_000;

/// The largest number of steps by which one write, or one sweep, updates the dependents of ended
/// tasks. Later sweeps do the rest, and the next one is due at once.
pub const CASCADE: usize = 1024;

/// The largest number of messages that a claim or a turn returns for an orchestration. The next
/// turn receives the rest.
pub const TURN_MESSAGES: usize = 1024;

/// The largest size of these messages, in bytes. The first message is always returned.
pub const TURN_MESSAGE_BYTES: usize = 8 * 1024 * 1024;

/// The largest size of the events that one turn of an orchestration appends, or with which it
/// begins a new history, in bytes.
pub const TURN_BYTES: usize = 512 * 1024 * 1024;

/// The largest number of values of an orchestration.
pub const VALUES: usize = 1000;

/// The largest number of tags that one turn of an orchestration changes. It can remove all tags and
/// set as many others.
pub const TURN_TAGS: usize = 2 * TAGS;

/// The largest number of tasks that one turn of an orchestration submits.
pub const TURN_TASKS: usize = 10_000;

/// The largest number of events that one turn of an orchestration publishes.
pub const TURN_PUBLISHED: usize = 1000;

/// The number of waiting messages from which on an orchestration accepts no signals. The ends of
/// its tasks are always accepted.
pub const MAILBOX: usize = 10_000;

/// The largest result, in bytes, that the report of a task's end contains. A larger result is read
/// from the task.
pub const REPORTED_RESULT: usize = 64 * 1024;

/// The prefix of kinds of workflow runs.
pub const RUN_KIND_PREFIX: &str = "run:";

/// The prefix of the names of signals that Onward sends itself, such as actions on runs.
pub const RESERVED_SIGNAL_PREFIX: &str = "onward.";

/// The name that stands for a request to cancel among the events for which an orchestration waits.
pub const AWAITED_CANCELLATION: &str = "onward.cancellation";

/// The queue of orchestrations that were never started and keep signals to their keys.
pub const UNSTARTED_QUEUE: &str = "onward.unstarted";

/// The prefix of names of kinds and queues that are reserved for Onward.
pub const RESERVED_PREFIX: &str = "onward.";

/// The kind of the lines of `onward each`. A store accepts it only in the queue of a run, whose
/// name begins with [`EACH_QUEUE_PREFIX`].
pub const EACH_KIND: &str = "onward.each";

/// The kind of the tasks that run a script for `sh`: the `run` steps of workflows. Only an engine
/// that was started to run scripts claims them.
pub const SCRIPT_KIND: &str = "onward.script";

/// The kind of the tasks that deliver an event to a webhook, with the signature of its secret. Only
/// the server submits and claims them.
pub const WEBHOOK_KIND: &str = "onward.webhook";

/// The prefix of the names of queues with the lines of `onward each`.
pub const EACH_QUEUE_PREFIX: &str = "each:";

/// The largest number of orchestrations that were never started.
pub const UNSTARTED_KEYS: u64 = 10_000;

/// The largest number of messages that each of them keeps.
pub const UNSTARTED_EVENTS: usize = 100;

/// The longest time for which a caller can ask them to keep a message.
pub const UNSTARTED_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// The largest number of names of awaited events that a turn may state.
pub const AWAITED_NAMES: usize = 32;

/// The largest number of awaited tasks of an orchestration that
/// [`StoreReads::why`](crate::StoreReads::why) names.
pub const NAMED_TASKS: usize = 100;

/// The largest number of tasks in one page of a listing.
pub const PAGE: usize = 1000;

/// The number of leases lost in a row after which a task becomes a dead letter.
pub const LOST_LEASES: u32 = 3;

/// The shortest lease of a session.
pub const LEASE_MINIMUM: Duration = Duration::from_millis(100);

/// The longest lease of a session.
pub const LEASE_MAXIMUM: Duration = Duration::from_secs(24 * 3600);

/// The time for which an idle session is kept after the end of its lease. Any claim or renewal
/// within this time keeps it open.
pub const SESSION_KEPT: Duration = Duration::from_secs(24 * 3600);

/// The largest number of queues in one store.
pub const QUEUES: usize = 10_000;

/// The largest weight of a queue; the smallest is 1.
pub const QUEUE_WEIGHT: u32 = 1000;

/// The largest limit on tasks that run at once, for a queue, a kind, a group or the whole store;
/// the smallest is 1.
pub const QUEUE_CONCURRENCY: u32 = 1_000_000;

/// The largest number of kinds in one store.
pub const KINDS: usize = 10_000;

/// The largest number of groups in one store. Each group takes about 200 bytes of memory in every
/// process that has the store open.
pub const GROUPS: usize = 1_000_000;

/// The largest number of tasks of a rate; the smallest is 1.
pub const RATE_TASKS: u32 = 1_000_000;

/// The largest burst of a rate; the smallest is 1.
pub const RATE_BURST: u32 = 1_000_000;

/// The shortest period of a rate.
pub const RATE_PER_MINIMUM: Duration = Duration::from_millis(1);

/// The longest period of a rate.
pub const RATE_PER_MAXIMUM: Duration = Duration::from_secs(30 * 24 * 3600);

/// The largest number of limits on groups and on prefixes of their names together.
pub const GROUP_LIMITS: usize = 100_000;

/// The largest weight of a group; the smallest is 1.
pub const GROUP_WEIGHT: u32 = 1000;

/// The number up to which the tasks that go before another one are counted.
pub const AHEAD: u64 = 1000;

/// The largest number of sessions whose reserved tasks `why` examines as those that may go before
/// another task.
pub const CONTENDING_SESSIONS: usize = 16;

/// The largest number of schedules in one store.
pub const SCHEDULES: usize = 10_000;

/// The shortest interval of a schedule.
pub const INTERVAL_MINIMUM: Duration = Duration::from_millis(100);

/// The longest interval of a schedule: 3660 days.
pub const INTERVAL_MAXIMUM: Duration = Duration::from_secs(3660 * 24 * 3600);

/// The longest jitter of a schedule: a day.
pub const JITTER: Duration = Duration::from_secs(24 * 3600);

/// The longest cron expression, in bytes.
pub const CRON_BYTES: usize = 256;

/// The longest name of a time zone, in bytes.
pub const ZONE_BYTES: usize = 64;

/// The largest number of times for which a schedule fires in one write.
pub const FIRINGS: usize = 1000;
/// The largest number of tags of one task.
pub const TAGS: usize = 32;

/// The longest key of a tag, in bytes.
pub const TAG_KEY_BYTES: usize = 64;

/// The longest value of a tag, in bytes.
pub const TAG_VALUE_BYTES: usize = 256;

/// The largest number of tasks that one [`Write::Bulk`](crate::Write::Bulk) changes.
pub const BULK: usize = 1000;

/// The number of task numbers that one [`Write::Bulk`](crate::Write::Bulk) examines at most, so
/// that it does not delay other writes for long if few tasks match.
pub const BULK_WINDOW: i64 = 16_384;

/// The largest number of task numbers in one page of a listing.
pub const ID_PAGE: usize = 10_000;

/// The number of days for which a store keeps counts of [ended tasks by
/// day](crate::StoreReads::history).
pub const HISTORY_DAYS: u32 = 90;

/// The largest number of items of one [batch](crate::Aggregate).
pub const BATCH_ITEMS: u32 = 1000;

/// The size of the payloads of one [batch](crate::Aggregate), in bytes, at which it is ready: 16
/// MiB. Only a single larger item exceeds it.
pub const BATCH_BYTES: u64 = 16 * 1024 * 1024;

/// The longest time for which tasks are collected into one [batch](crate::Aggregate): 30 days.
pub const BATCH_DELAY: Duration = Duration::from_secs(30 * 24 * 3600);
/// The largest content of a document, in bytes.
pub const DOCUMENT_BYTES: usize = 1024 * 1024;

/// The longest key of a document, in bytes.
pub const DOCUMENT_KEY_BYTES: usize = 512;

/// The longest content type of a document, in bytes.
pub const CONTENT_TYPE_BYTES: usize = 128;

/// The largest number of index values of a document.
pub const DOCUMENT_INDEXES: usize = 4;

/// The longest index value of a document, in bytes.
pub const DOCUMENT_INDEX_BYTES: usize = 256;

/// The largest number of documents in a collection.
pub const DOCUMENTS: u64 = 1_000_000;

/// The largest number of collections of documents in a store.
pub const DOCUMENT_COLLECTIONS: u64 = 1000;

/// The size of the contents in one page of documents, in bytes, at which the page ends.
pub const DOCUMENT_PAGE_BYTES: usize = 8 * 1024 * 1024;

/// The time for which a task waits for the session that its affinity key prefers, unless its queue
/// sets another.
pub const AFFINITY_WAIT: Duration = Duration::from_secs(5);

/// The longest time that a queue can set for this wait.
pub const AFFINITY_WAIT_MAXIMUM: Duration = Duration::from_secs(3600);

/// The time for which a store remembers the preferred session of an affinity key of which no task
/// starts. This time, and the end of the session, bound how many keys it remembers.
pub const AFFINITY_KEPT: Duration = Duration::from_secs(3600);
/// The largest number of kinds and queues that a session may name as [served](crate::Served).
pub const SERVED_NAMES: usize = 16_384;

/// The largest number of workers that a [reason](crate::WaitReason) names.
pub const NAMED_WORKERS: usize = 10;

/// The largest number of sub-queues that [`StoreReads::queues`](crate::StoreReads::queues) examines
/// to find the first waiting task of each queue. Each queue, kind and group with waiting tasks is
/// one; those without a group are examined first.
pub const SUB_QUEUES_EXAMINED: usize = 1024;

/// The delay of a task that a process claimed, could not [decode](crate::PayloadCodec) and
/// released. Other processes can claim it meanwhile.
pub const UNREAD_PAUSE: Duration = Duration::from_secs(10);

/// The time for which a PostgreSQL store retries a call while its server is unreachable, unless it
/// was opened with another time.
pub const SERVER_AWAY: Duration = Duration::from_secs(60);

/// The number of bytes appended to SQLite's log that are gathered before they are written. SQLite's
/// VFS for Unix writes less than 128 KiB in one call, and data that is written soon after it was
/// gathered is still in the processor's cache.
pub const LOG_GATHERED_BYTES: usize = 64 * 1024;
