//! Every limit of the store, in one place.

use std::time::Duration;

/// The largest payload or result of one task, in bytes, unless the store was opened with another limit.
pub const PAYLOAD_BYTES: usize = 1024 * 1024;

/// The largest payload limit that a store may be opened with, in bytes.
pub const PAYLOAD_BYTES_CEILING: usize = 256 * 1024 * 1024;

/// The longest name of a kind or a queue, in bytes.
pub const NAME_BYTES: usize = 128;

/// The longest key, in bytes.
pub const KEY_BYTES: usize = 512;

/// The longest error message kept of an attempt, in bytes; a longer one is cut, and says so.
pub const ERROR_BYTES: usize = 8 * 1024;

/// The longest message kept with a progress report, in bytes; a longer one is cut.
pub const PROGRESS_BYTES: usize = 1024;

/// How many failed attempts of one task keep their error; older ones in the middle are dropped, the first and the newest stay.
pub const ERRORS_KEPT: usize = 64;

/// How many tasks one claim hands out at the most.
pub const CLAIM: usize = 4096;

/// How many due tasks, expiries or lapsed leases one sweep handles; what is left is handled by the next, which is due at once.
pub const SWEEP: usize = 1024;

/// How many commits' news a listener may be behind before it has to look at everything instead.
pub const NEWS: usize = 1024;

/// What one level of priority is worth: a task goes before another that is one level more urgent and became due so much later.
pub const PRIORITY_LEVEL: Duration = Duration::from_secs(60);

/// How many writes one `Write::All` may hold.
pub const ALL: usize = 100_000;

/// How many callers' calls one commit takes in.
pub const COMMIT: usize = 8192;

/// How many calls may wait for a commit before the next caller is held back.
pub const PENDING: usize = 65_536;

/// How many tasks one task may depend on.
pub const DEPENDENCIES: usize = 1000;

/// How many live children one task may wait for, and how many tasks are looked at to see that none of these waits for it.
pub const AWAITED_CHILDREN: usize = 10_000;

/// How many steps one write, or one sweep, takes to tell the dependents of tasks that are over; what is left is done by later sweeps, and
/// the next is due at once.
pub const CASCADE: usize = 1024;

/// The most tasks that one page of a listing holds.
pub const PAGE: usize = 1000;

/// How many leases in a row a task may lose before it goes to the dead letters.
pub const LOST_LEASES: u32 = 3;

/// The shortest lease a session may ask for.
pub const LEASE_MINIMUM: Duration = Duration::from_millis(100);

/// The longest lease a session may ask for.
pub const LEASE_MAXIMUM: Duration = Duration::from_secs(24 * 3600);

/// How many queues one store may hold.
pub const QUEUES: usize = 10_000;

/// The largest weight of a queue; the smallest is 1.
pub const QUEUE_WEIGHT: u32 = 1000;

/// The largest limit on tasks of one queue that run at once; the smallest is 1.
pub const QUEUE_CONCURRENCY: u32 = 1_000_000;

/// How many kinds one store may hold.
pub const KINDS: usize = 10_000;
