//! Every limit and interval of the engine, in one place. Those of the store are in
//! [`onward_store::bounds`].

use std::time::Duration;

/// The most handlers that one engine runs at once.
pub const CONCURRENCY: usize = 100_000;

/// The most tasks that an engine may be told to claim ahead of free slots.
pub const PREFETCH: usize = 65_536;

/// How many ended attempts may wait for their commit before the engine claims nothing more: what
/// holds back an engine whose store cannot keep up.
pub const UNCOMMITTED_ENDS: usize = 16_384;

/// How many calls of the store that end attempts and claim tasks may be under way at once.
pub const STORE_CALLS: usize = 8;

/// Buffered tasks should start within this time at the latest (or within two commits, if those take
/// longer).
pub const BUFFER_HORIZON: Duration = Duration::from_micros(500);

/// How many tasks are claimed at the most although enough are buffered, because they may go before
/// what is buffered.
pub const LOOK_AHEAD: usize = 64;

/// Over what time of taken slots it is told how fast attempts end (or over four commits, if those
/// take longer).
pub const THROUGHPUT_WINDOW: Duration = Duration::from_millis(5);

/// For how long it is remembered how fast attempts ended.
pub const THROUGHPUT_MEMORY: Duration = Duration::from_millis(100);

/// Of how many calls of the store it is known at the most how many attempts had ended when they
/// began: more than are made within two commits.
pub const THROUGHPUT_CALLS: usize = 64;

/// How finely these times are divided.
pub const THROUGHPUT_SAMPLES: u32 = 16;

/// How often the engine looks for further ends, while there are some at each look, before it writes
/// those that it has.
pub const GATHER_ROUNDS: usize = 16;

/// A buffer from which fewer tasks started in this time than it holds gives back the rest.
pub const BUFFER_WAIT: Duration = Duration::from_millis(100);

/// How often a task's changed progress is written at the most.
pub const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// How often one engine has a task give way to more urgent ones at the most: then it runs to its
/// end.
pub const PREEMPTIONS: u32 = 3;

/// Of how many tasks an engine remembers how often they have given way; of more, those with the
/// lowest numbers are forgotten.
pub const PREEMPTED_TASKS: usize = 10_000;

/// How often hints make an engine whose slots are all taken look for urgent work, at the most.
pub const PREEMPTION_INTERVAL: Duration = Duration::from_millis(10);

/// How often the sources of pressure are asked while tasks run or wait.
pub const PRESSURE_INTERVAL: Duration = Duration::from_secs(1);

/// How far tasks may be ahead of a bandwidth until its pressure is at 1.0.
pub const BANDWIDTH_HORIZON: Duration = Duration::from_secs(2);

/// How often a hint that tasks may have been asked to stop is followed at the most.
pub const CANCEL_INTERVAL: Duration = Duration::from_millis(50);

/// The first pause after a store error; it doubles with each further one.
pub const STORE_RETRY_FIRST: Duration = Duration::from_millis(50);

/// The longest pause after a store error.
pub const STORE_RETRY_LONGEST: Duration = Duration::from_secs(5);

/// While this engine runs tasks itself, how often hints make it look for ended tasks that somebody
/// waits for, at the most: it hears of its own at once, so these are tasks that others run.
pub const WAIT_INTERVAL_RUNNING: Duration = Duration::from_millis(50);

/// The same while this engine runs nothing.
pub const WAIT_INTERVAL: Duration = Duration::from_millis(1);

/// How long a wait may go without looking at the clock: so long does the engine take to notice that
/// somebody set the machine's time, or that it slept.
pub const CLOCK_CHECK: Duration = Duration::from_secs(60);

/// How many of the latest ends an engine remembers, so that a handle made after the end knows it.
pub const RECENT_ENDS: usize = 8192;

/// The longest result, in bytes, that a wait is told; a longer one is read.
pub const NOTIFIED_RESULT_BYTES: usize = 4096;

/// How many events are read at once.
pub const EVENT_BATCH: usize = 256;

/// A firing of a schedule that is done so much after it was due is on time; a later one was missed.
pub const FIRING_DELAY: Duration = Duration::from_secs(60);

/// A clock that is so far behind a schedule's last firing was wrong then, and the schedule follows
/// it back; else it waits until the clock is again where it was.
pub const CLOCK_SET_BACK: Duration = Duration::from_secs(25 * 3600);

/// How many missed firings of a schedule are counted at once; further ones are not.
pub const MISSED_FIRINGS: usize = 10_000;

/// How many schedules are read at once to see which are due.
pub const SCHEDULE_BATCH: usize = 64;

/// How often hints make the engine look whether schedules were changed, at the most.
pub const SCHEDULE_INTERVAL: Duration = Duration::from_millis(50);

/// How long a schedule that cannot be fired (an unknown zone, say) is left alone before it is tried
/// again.
pub const SCHEDULE_RETRY_DELAY: Duration = Duration::from_secs(60);

/// How often a change of a schedule is tried that fires at the same time.
pub const SCHEDULE_ATTEMPTS: usize = 100;

/// How many transitions may wait for one hook; further ones are left out, and the next one that is
/// told says how many.
pub const HOOK_QUEUE: usize = 65_536;

/// For how long hooks are waited for at the end of a run whose [shutdown
/// limit](crate::EngineBuilder::shutdown_limit) is shorter.
pub const HOOK_SHUTDOWN_LIMIT: Duration = Duration::from_secs(1);

/// How often an engine that [forgets ended tasks](crate::EngineBuilder::keep_ended_for), or has run
/// some that [say how long they are kept](crate::NewTask::retention), looks for some that are over.
pub const RETENTION_INTERVAL: Duration = Duration::from_secs(60);

/// How many ended tasks one write forgets.
pub const PRUNE_BATCH: usize = 1000;

/// How many of the schedules that fire next an [`Overview`](crate::Overview) has.
pub const SCHEDULES_SHOWN: usize = 100;

/// The number of times that the end of an orchestration is put off, in one turn, for messages that
/// arrive before it is written. After that it ends, and those that arrive then are kept unread.
pub const END_DEFERRALS: u32 = 100;

/// How often the code of an orchestration may wake itself in one turn before it is held to be
/// stuck.
pub const ORCHESTRATION_POLLS: usize = 10_000;

/// How many answers to updates of an orchestration are kept at most.
pub const UPDATE_REPLIES: u64 = 64;

/// The time that an [update](crate::Engine::update) waits for its answer unless it is given
/// another.
pub const UPDATE_TIMEOUT: Duration = Duration::from_secs(30);

/// How many chunks of a history are read at once.
pub const HISTORY_CHUNKS: usize = 1000;

/// The pause of an orchestration for whose kind an engine that claimed it has no code. The pause
/// doubles each time the engine claims it again.
pub const UNKNOWN_CODE_PAUSE: Duration = Duration::from_secs(1);

/// The longest of these pauses.
pub const UNKNOWN_CODE_LONGEST: Duration = Duration::from_secs(60);

/// The number of orchestrations without code whose last pause an engine remembers.
pub const UNKNOWN_CODE_REMEMBERED: usize = 65_536;

/// The most turns of orchestrations that one engine does at once.
pub const TURNS: usize = 100_000;

/// How many turns are claimed at the most before there is a slot for them.
pub const TURN_PREFETCH: usize = 256;

/// The most orchestrations that one engine keeps in memory between their turns.
pub const ORCHESTRATIONS_KEPT: usize = 10_000_000;

/// How many orchestrations that are in memory an engine looks up at once, to free those that
/// another process has ended.
pub const EVICTION_BATCH: usize = 256;

/// The shortest time between two such looks.
pub const EVICTION_INTERVAL: Duration = Duration::from_millis(250);

/// How many connections for handlers' transactions are kept open between two of them; more may be
/// open while they are used.
pub const IDLE_CONNECTIONS: usize = 8;
