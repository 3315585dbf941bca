//! Every bound and interval of the gateway. Those of messages are in [`onward_protocol::bounds`].

use std::time::Duration;

/// The time within which a connection must begin with a `hello`.
pub const HELLO_LIMIT: Duration = Duration::from_secs(10);

/// The time for which a worker gets no task of a kind that it has released as unknown.
pub const UNKNOWN_KIND_PAUSE: Duration = Duration::from_secs(10);

/// The longest turn of an orchestration in a worker. Its code may only decide and await.
pub const TURN_LIMIT: Duration = Duration::from_secs(60);

/// The pause before the next attempt at a turn that a worker did not end.
pub const TURN_PAUSE: Duration = Duration::from_secs(1);

/// The number of orchestrations of one worker that the gateway remembers as kept: the worker has
/// their code in memory and gets only new events.
pub const KEPT_TURNS: usize = 4096;

/// The longest history of an orchestration whose code is in a worker, in bytes, as the store has
/// it. At this length its form in JSON with base64 still fits into one message, so another worker
/// can take it over.
pub const HISTORY_BYTES: u64 = 8 << 20;

/// The number of events of such a history.
pub const HISTORY_EVENTS: u64 = 50_000;

/// The number of acknowledgements that a session remembers, to repeat them when an end comes again.
pub const REMEMBERED_ACKS: usize = 4096;

/// The number of beats of one worker whose checkpoints may be on their way to the store.
pub const PENDING_BEATS: usize = 256;

/// The number of reads and submits of one worker that may be under way.
pub const PENDING_REQUESTS: usize = 256;

/// The number of unsent bytes beyond which a session sends no more tasks and events.
pub const UNSENT_BYTES: usize = 8 << 20;

/// The number of bytes that are read from a connection at once.
pub const READ_BYTES: usize = 64 << 10;

/// The number of inputs of a session that are handled before its messages are sent, so that tasks
/// and acknowledgements share messages.
pub const INPUTS_AT_ONCE: usize = 256;

/// The number of acknowledgements in one message, which keeps its header within its bound.
pub const ACKS_IN_MESSAGE: usize = 512;

/// The number of bytes beyond which no task is added to the header of a message of tasks.
pub const TASKS_HEADER_BYTES: usize = 32 << 10;

/// The number of bytes beyond which no child or item is added to the header of a reply.
pub const REPLY_HEADER_BYTES: usize = 60 << 10;

/// The number of workers that one listening gateway serves at once.
pub const SESSIONS: usize = 4096;

/// The number of messages of one worker that wait for its session. Above it the gateway waits
/// [`CATCH_UP`] before it reads on.
pub const SESSION_QUEUE: usize = 1024;

/// The longest time for which a session with a full queue delays the other workers. A session that
/// does not read for so long ends its connection.
pub const CATCH_UP: Duration = Duration::from_secs(1);

/// The number of entries in a page of children or items.
pub const PAGE: usize = 256;
