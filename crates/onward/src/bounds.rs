//! Every limit and interval of the engine. Those of the store are in [`onward_store::bounds`].

use std::time::Duration;

/// The largest number of handlers that one engine runs at once.
pub const CONCURRENCY: usize = 100_000;

/// The largest number of tasks that an engine may be set to claim ahead of free slots.
pub const PREFETCH: usize = 65_536;

/// The number of ended attempts that may wait for their commit before the engine stops claiming. It
/// holds back an engine whose store cannot keep up.
pub const UNCOMMITTED_ENDS: usize = 16_384;

/// The number of store calls that may be in flight at once, for calls that end attempts and claim
/// tasks.
pub const STORE_CALLS: usize = 8;

/// The number of signals and starts that wait for the dispatcher's next commit. The callers of
/// further ones write them themselves.
pub const QUEUED_WRITES: usize = 1024;

/// The largest payload of an orchestration whose submission shares a commit with its claim. The
/// callers of larger ones write them themselves.
pub const QUEUED_PAYLOAD_BYTES: usize = 64 * 1024;

/// The time within which buffered tasks should start, or two commits if that is longer.
pub const BUFFER_HORIZON: Duration = Duration::from_micros(500);

/// The largest number of tasks claimed although enough are buffered, because new tasks may sort
/// before the buffered ones.
pub const LOOK_AHEAD: usize = 64;

/// The slot time over which throughput is measured, or four commits if that is longer.
pub const THROUGHPUT_WINDOW: Duration = Duration::from_millis(5);

/// The age beyond which a throughput sample is ignored.
pub const THROUGHPUT_MEMORY: Duration = Duration::from_millis(100);

/// The largest number of recent store calls of which the throughput meter keeps a sample: more than
/// are made within two commits.
pub const THROUGHPUT_CALLS: usize = 64;

/// The number of samples into which the window and the memory of the throughput meter are divided.
pub const THROUGHPUT_SAMPLES: u32 = 16;

/// The number of times that the dispatcher yields to gather further ends before it writes those
/// that it has. It stops at the first round that brings none.
pub const GATHER_ROUNDS: usize = 16;

/// The interval at which the buffer is checked. If fewer tasks started in it than are buffered, the
/// engine releases the difference.
pub const BUFFER_WAIT: Duration = Duration::from_millis(100);

/// The shortest interval between two writes of changed progress.
pub const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// The number of bytes of one stream of a running task that are kept between two saves of its
/// [output](crate::Context::output).
pub const OUTPUT_BUFFER_BYTES: usize = 256 * 1024;

/// The number of pieces of output that an attempt keeps when the store could not save them.
pub const OUTPUT_UNSAVED_PIECES: usize = 16;

/// The number of times that one engine preempts a task at most. After that the task runs to its
/// end.
pub const PREEMPTIONS: u32 = 3;

/// The number of tasks for which an engine remembers how often it preempted them. Beyond it the
/// engine forgets the tasks with the lowest ids.
pub const PREEMPTED_TASKS: usize = 10_000;

/// The shortest interval at which hints make an engine without a free slot look for urgent work.
pub const PREEMPTION_INTERVAL: Duration = Duration::from_millis(10);

/// The interval at which the sources of pressure are sampled while tasks run or wait.
pub const PRESSURE_INTERVAL: Duration = Duration::from_secs(1);

/// The time by which tasks may be ahead of a bandwidth before its pressure reaches 1.0.
pub const BANDWIDTH_HORIZON: Duration = Duration::from_secs(2);

/// The shortest interval at which an engine follows hints that running tasks may have been
/// cancelled.
pub const CANCEL_INTERVAL: Duration = Duration::from_millis(50);

/// The first pause after a store error. It doubles with each consecutive error.
pub const STORE_RETRY_FIRST: Duration = Duration::from_millis(50);

/// The longest pause after a store error.
pub const STORE_RETRY_LONGEST: Duration = Duration::from_secs(5);

/// The shortest interval at which hints make an engine that runs tasks look for the ends of awaited
/// tasks. It learns of its own at once, so these are tasks that other engines run.
pub const WAIT_INTERVAL_RUNNING: Duration = Duration::from_millis(50);

/// The shortest interval at which hints make an engine that runs nothing look for the ends of
/// awaited tasks.
pub const WAIT_INTERVAL: Duration = Duration::from_millis(1);

/// The longest time that a wait passes without a look at the clock. The engine needs at most this
/// long to notice that the machine's clock was set or that the machine slept.
pub const CLOCK_CHECK: Duration = Duration::from_secs(60);

/// The number of latest ends that an engine remembers, so that a handle made after the end finds
/// it.
pub const RECENT_ENDS: usize = 8192;

/// The longest result, in bytes, that a completion notification carries; a longer one is read from
/// the store.
pub const NOTIFIED_RESULT_BYTES: usize = 4096;

/// The number of events read at once.
pub const EVENT_BATCH: usize = 256;

/// The delay up to which a firing of a schedule is on time; a later one is missed.
pub const FIRING_DELAY: Duration = Duration::from_secs(60);

/// The distance by which a clock must lie behind a schedule's last firing for that firing to count
/// as made with a wrong clock. The schedule then follows the clock back. For a smaller distance it
/// waits until the clock has caught up.
pub const CLOCK_SET_BACK: Duration = Duration::from_secs(25 * 3600);

/// The largest number of missed firings of a schedule that are counted at once; the rest are not
/// counted.
pub const MISSED_FIRINGS: usize = 10_000;

/// The number of schedules read at once to find those that are due.
pub const SCHEDULE_BATCH: usize = 64;

/// The shortest interval at which hints make the engine look for changed schedules.
pub const SCHEDULE_INTERVAL: Duration = Duration::from_millis(50);

/// The time for which a schedule that cannot be fired, for example because of an unknown time zone,
/// is left alone before the next try.
pub const SCHEDULE_RETRY_DELAY: Duration = Duration::from_secs(60);

/// The number of attempts to change a schedule that fires at the same time.
pub const SCHEDULE_ATTEMPTS: usize = 100;

/// The number of transitions that may wait for one hook. Further ones are dropped, and the next
/// transition that the hook gets has their number.
pub const HOOK_QUEUE: usize = 65_536;

/// The time that a run waits for hooks at its end if its [shutdown
/// limit](crate::EngineBuilder::shutdown_limit) is shorter.
pub const HOOK_SHUTDOWN_LIMIT: Duration = Duration::from_secs(1);

/// The interval at which an engine looks for tasks to forget. It looks if it [forgets ended
/// tasks](crate::EngineBuilder::keep_ended_for), or has run tasks that [set their own
/// retention](crate::NewTask::retention).
pub const RETENTION_INTERVAL: Duration = Duration::from_secs(60);

/// The number of ended tasks that one write forgets.
pub const PRUNE_BATCH: usize = 1000;

/// The number of upcoming schedules in an [`Overview`](crate::observe::Overview).
pub const SCHEDULES_SHOWN: usize = 100;

/// The number of times in one turn that the end of an orchestration is deferred for messages that
/// arrive before it is written. After that the orchestration ends, and messages that arrive then
/// are kept unread.
pub const END_DEFERRALS: u32 = 100;

/// The number of times that the code of an orchestration may wake itself in one turn before the
/// engine treats it as stuck.
pub const ORCHESTRATION_POLLS: usize = 10_000;

/// The largest number of replies to updates that an orchestration keeps.
pub const UPDATE_REPLIES: u64 = 64;

/// The time that an [update](crate::Engine::update) waits for its reply by default.
pub const UPDATE_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest number of moments to which the clock of one case of a workflow's test moves.
pub const TEST_MOMENTS: usize = 100_000;

/// The largest number of pages of the store that one list of runs reads.
pub const RUN_SEARCH_PAGES: usize = 20;

/// The number of chunks of a history that are read at once.
pub const HISTORY_CHUNKS: usize = 1000;

/// The pause of an orchestration that an engine has claimed without having code for its kind. The
/// pause doubles each time the engine claims it again.
pub const UNKNOWN_CODE_PAUSE: Duration = Duration::from_secs(1);

/// The longest of these pauses.
pub const UNKNOWN_CODE_LONGEST: Duration = Duration::from_secs(60);

/// The number of orchestrations without code whose last pause an engine remembers.
pub const UNKNOWN_CODE_REMEMBERED: usize = 65_536;

/// The largest number of turns of orchestrations that one engine runs at once.
pub const TURNS: usize = 100_000;

/// The largest number of turns that are claimed before there is a slot for them.
pub const TURN_PREFETCH: usize = 256;

/// The largest number of orchestrations that one engine keeps in memory between their turns.
pub const ORCHESTRATIONS_CACHED: usize = 10_000_000;

/// The number of orchestrations in memory that an engine looks up at once to free those that
/// another process has ended.
pub const EVICTION_BATCH: usize = 256;

/// The shortest time between two such lookups.
pub const EVICTION_INTERVAL: Duration = Duration::from_millis(250);

/// The number of connections for handlers' transactions that are kept open while idle. More may be
/// open while they are in use.
pub const IDLE_CONNECTIONS: usize = 8;

/// The largest number of runs above a run of a workflow: a `workflow` step of a run this deep makes
/// the run a dead letter. It ends a workflow that runs itself.
pub const RUN_DEPTH: u32 = 16;

/// The most live events that wait for a listener. A slower one misses the oldest.
pub const LIVE_EVENTS: usize = 1024;

/// The most events in the history of a run, unless the engine was built with another limit.
pub const RUN_HISTORY_EVENTS: u64 = 1_000_000;

/// The most bytes in the history of a run, unless the engine was built with another limit.
pub const RUN_HISTORY_BYTES: u64 = 256 * 1024 * 1024;

/// The largest number of positions of edges in the layout of a graph. The longest edges beyond it
/// are drawn straight.
pub const GRAPH_WAYPOINTS: usize = 10_000;

/// The largest number of dead letters that are read to group them by cause, the newest first.
pub const DEAD_LETTERS: usize = 10_000;

/// The longest text of the cause of dead letters, in bytes.
pub const DEAD_CAUSE_BYTES: usize = 512;

/// The largest number of dead letters that one commit retries or deletes.
pub const DEAD_LETTER_BATCH: usize = 100;
