//! Every limit of the store, in one place.

use std::time::Duration;

/// The largest payload or result of one task, in bytes, unless the store was opened with another
/// limit.
pub const PAYLOAD_BYTES: usize = 1024 * 1024;

/// The largest payload limit that a store may be opened with, in bytes.
pub const PAYLOAD_BYTES_CEILING: usize = 256 * 1024 * 1024;

/// The longest name of a kind, a queue or a group, in bytes.
pub const NAME_BYTES: usize = 128;

/// The longest key, in bytes.
pub const KEY_BYTES: usize = 512;

/// The longest error message kept of an attempt, in bytes; a longer one is cut, and says so.
pub const ERROR_BYTES: usize = 8 * 1024;

/// The longest message kept with a progress report, in bytes; a longer one is cut.
pub const PROGRESS_BYTES: usize = 1024;

/// How many failed attempts of one task keep their error; older ones in the middle are dropped, the
/// first and the newest stay.
pub const ERRORS_KEPT: usize = 64;

/// How many tasks one claim hands out at the most.
pub const CLAIM: usize = 4096;

/// How many tasks one of several claims under way at once asks for at the most, where a claim costs
/// little beside what it hands out.
pub const CLAIM_OF_SEVERAL: usize = 512;

/// How many due tasks, expiries or lapsed leases one sweep handles; what is left is handled by the
/// next, which is due at once.
pub const SWEEP: usize = 1024;

/// How many commits' news a listener may be behind before it has to look at everything instead.
pub const NEWS: usize = 1024;

/// What one level of priority is worth: a task goes before another that is one level more urgent
/// and became due so much later.
pub const PRIORITY_LEVEL: Duration = Duration::from_secs(60);

/// How many writes one `Write::All` may hold.
pub const ALL: usize = 100_000;

/// How many callers' calls one commit takes in.
pub const COMMIT: usize = 8192;

/// How many tasks that were completed by the function `onward_complete` a store on PostgreSQL takes
/// in at a time.
pub const COMPLETIONS: usize = if cfg!(debug_assertions) { 2 } else { 1000 };

/// After how many writes of a batch a store on PostgreSQL looks what of them can be written while
/// the rest is decided. Few in a build for tests.
pub const DECIDED_AT_ONCE: usize = if cfg!(debug_assertions) { 2 } else { 512 };

/// How old the time may be at which a batch of a store on PostgreSQL was decided ahead, while the
/// one before it was written: it is decided again if it is older.
pub const DECIDED_AHEAD: Duration = Duration::from_millis(500);

/// From how many writes on a batch of a store on PostgreSQL does not hold the lock until it is on
/// disk, if another node has written since the last one: that one is probably busy, too, and waits
/// for the lock. Fewer are answered sooner if the commit itself waits for the disk. Few in a build
/// for tests.
pub const HELD_UP: usize = if cfg!(debug_assertions) { 2 } else { 64 };

/// How many running tasks the writer of a store on PostgreSQL keeps in mind, so that it need not
/// read them again when they end.
pub const KEPT_TASKS: usize = 16_384;

/// Of how many of the sessions that it has opened the writer of a store on PostgreSQL remembers
/// that they are its own, and so counts on being told if others change what they run.
pub const OWN_SESSIONS: usize = 256;

/// How many bytes of payload and memo such a task may have, for it to be kept in mind.
pub const KEPT_TASK_BYTES: usize = 4096;

/// How many tasks must have most of their columns in common, for PostgreSQL to get these once for
/// all of them. Few in a build for tests, which have few tasks.
pub const LOT: usize = if cfg!(debug_assertions) { 2 } else { 32 };

/// How many such lots of tasks one batch is parted into.
pub const LOTS: usize = 64;

/// How many bytes of payload a task may have that is sent again with its end; a larger one goes to
/// the history within the server.
pub const RESENT_BYTES: usize = 1024;

/// How many calls may wait for a commit before the next caller is held back.
pub const PENDING: usize = 65_536;

/// How many tasks one task may depend on.
pub const DEPENDENCIES: usize = 1000;

/// How many live children one task may wait for, and how many tasks are looked at to see that none
/// of these waits for it.
pub const AWAITED_CHILDREN: usize = 10_000;

/// How many steps one write, or one sweep, takes to tell the dependents of tasks that are over;
/// what is left is done by later sweeps, and the next is due at once.
pub const CASCADE: usize = 1024;

/// How many messages a claim, or a turn, hands to an orchestration; what is left is for its next
/// turn.
pub const TURN_MESSAGES: usize = 1024;

/// How many bytes these messages have at the most; the first is handed out in any case.
pub const TURN_MESSAGE_BYTES: usize = 8 * 1024 * 1024;

/// How many bytes of events one turn of an orchestration appends, or begins a new history with, at
/// the most.
pub const TURN_BYTES: usize = 512 * 1024 * 1024;

/// How many values an orchestration keeps at the most.
pub const VALUES: usize = 1000;

/// How many tags one turn of an orchestration changes at the most: it may remove all that it has,
/// and give itself as many others.
pub const TURN_TAGS: usize = 2 * TAGS;

/// How many tasks one turn of an orchestration submits at the most.
pub const TURN_TASKS: usize = 10_000;

/// How many messages may wait for an orchestration before it takes no more signals. Ends of its
/// tasks come in any case.
pub const MAILBOX: usize = 10_000;

/// The queue of orchestrations that were never started and keep what is sent to their keys.
pub const UNSTARTED_QUEUE: &str = "onward.unstarted";

/// The beginning of names of kinds and queues that Onward keeps for itself.
pub const RESERVED_PREFIX: &str = "onward.";

/// The kind of the lines of `onward each`. A store accepts it only in the queue of a run, whose
/// name begins with [`EACH_QUEUE_PREFIX`].
pub const EACH_KIND: &str = "onward.each";

/// The beginning of the names of queues with the lines of `onward each`.
pub const EACH_QUEUE_PREFIX: &str = "each:";

/// The most orchestrations that were never started.
pub const UNSTARTED_KEYS: u64 = 10_000;

/// How many messages each of them takes.
pub const UNSTARTED_EVENTS: usize = 100;

/// The longest time for which they may be asked to keep a message.
pub const UNSTARTED_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// Names of events that an orchestration waits for and that a turn may say; more are not told.
pub const AWAITED_NAMES: usize = 32;

/// Tasks that an orchestration waits for and that [`Store::why`](crate::Store::why) names.
pub const NAMED_TASKS: usize = 100;

/// The most tasks that one page of a listing holds.
pub const PAGE: usize = 1000;

/// How many leases in a row a task may lose before it goes to the dead letters.
pub const LOST_LEASES: u32 = 3;

/// The shortest lease a session may ask for.
pub const LEASE_MINIMUM: Duration = Duration::from_millis(100);

/// The longest lease a session may ask for.
pub const LEASE_MAXIMUM: Duration = Duration::from_secs(24 * 3600);

/// For how long a session is kept that holds nothing, after its lease is over. Any claim or renewal
/// within this time keeps it.
pub const SESSION_KEPT: Duration = Duration::from_secs(24 * 3600);

/// How many queues one store may hold.
pub const QUEUES: usize = 10_000;

/// The largest weight of a queue; the smallest is 1.
pub const QUEUE_WEIGHT: u32 = 1000;

/// The largest limit on tasks that run at once, of a queue, a kind, a group or in all; the smallest
/// is 1.
pub const QUEUE_CONCURRENCY: u32 = 1_000_000;

/// How many kinds one store may hold.
pub const KINDS: usize = 10_000;

/// How many groups one store may hold. Each takes about 200 bytes of memory in every process that
/// has the store open.
pub const GROUPS: usize = 1_000_000;

/// The most tasks that a rate may name; the smallest is 1.
pub const RATE_TASKS: u32 = 1_000_000;

/// The largest burst of a rate; the smallest is 1.
pub const RATE_BURST: u32 = 1_000_000;

/// The shortest time that a rate may be per.
pub const RATE_PER_MINIMUM: Duration = Duration::from_millis(1);

/// The longest time that a rate may be per.
pub const RATE_PER_MAXIMUM: Duration = Duration::from_secs(30 * 24 * 3600);

/// How many limits may be set on groups and beginnings of their names together.
pub const GROUP_LIMITS: usize = 100_000;

/// The largest weight of a group; the smallest is 1.
pub const GROUP_WEIGHT: u32 = 1000;

/// How far the tasks are counted that go before another.
pub const AHEAD: u64 = 1000;
/// How many schedules one store may hold.
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

/// For how many moments a schedule fires in one write at the most.
pub const FIRINGS: usize = 1000;
/// How many tags one task may have.
pub const TAGS: usize = 32;

/// The longest key of a tag, in bytes.
pub const TAG_KEY_BYTES: usize = 64;

/// The longest value of a tag, in bytes.
pub const TAG_VALUE_BYTES: usize = 256;

/// To how many tasks a [`Write::Bulk`](crate::Write::Bulk) does something at the most.
pub const BULK: usize = 1000;

/// How many numbers of tasks a [`Write::Bulk`](crate::Write::Bulk) looks at, so that it holds
/// nobody up for long where few are selected.
pub const BULK_WINDOW: i64 = 16_384;

/// The most tasks that one page of a listing of numbers holds.
pub const ID_PAGE: usize = 10_000;

/// For how many days a store keeps how tasks [ended by day](crate::Store::history).
pub const HISTORY_DAYS: u32 = 90;

/// How many members one [bundle](crate::Aggregate) has at the most.
pub const BUNDLE: u32 = 1000;

/// How many bytes the payloads of one [bundle](crate::Aggregate)'s members have together, unless a
/// single one has more: 16 MiB.
pub const BUNDLE_BYTES: u64 = 16 * 1024 * 1024;

/// The longest time for which tasks are collected in one [bundle](crate::Aggregate): 30 days.
pub const BUNDLE_DELAY: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long a task waits for the session that its series prefers, unless its queue says otherwise.
pub const AFFINITY_WAIT: Duration = Duration::from_secs(5);

/// The longest time for which a queue may have its tasks wait for the session that their series
/// prefers.
pub const AFFINITY_WAIT_MAXIMUM: Duration = Duration::from_secs(3600);

/// For how long a store remembers which session a series prefers when none of its tasks starts.
/// This, and the end of the session, bounds how many it remembers: as many as series had a start
/// within this time.
pub const AFFINITY_KEPT: Duration = Duration::from_secs(3600);
/// How many kinds and queues a session may name among those that it [serves](crate::Served).
pub const SERVED_NAMES: usize = 16_384;

/// How many workers a [reason](crate::WaitReason) names at the most.
pub const NAMED_WORKERS: usize = 10;

/// At how many lines of waiting tasks (one for each queue, kind and group that has any) a look at
/// the [queues](crate::Store::queues) looks to find out which tasks are first, those without a
/// group before the others.
pub const LINES_LOOKED_AT: usize = 1024;

/// How long a task is left to others that a process claimed and could not
/// [decode](crate::PayloadCodec).
pub const UNREAD_PAUSE: Duration = Duration::from_secs(10);

/// For how long a PostgreSQL store tries a call again while its server is away, unless it was
/// opened with another time.
pub const SERVER_AWAY: Duration = Duration::from_secs(60);

/// How many bytes that a commit appends to SQLite's log are gathered before they are written.
/// SQLite's VFS for unix writes less than 128 KiB in one call, and what is written soon after it
/// was gathered is still in the processor's cache.
pub const LOG_GATHERED_BYTES: usize = 64 * 1024;
