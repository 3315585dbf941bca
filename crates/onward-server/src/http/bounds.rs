//! The bounds of the HTTP API.

use std::time::Duration;

/// The largest body of a request, in bytes.
pub const BODY_BYTES: usize = 4 * 1024 * 1024;

/// The largest head of a request, in bytes: the request line and all header fields.
pub const HEAD_BYTES: usize = 16 * 1024;

/// The largest number of header fields of a request.
pub const HEADERS: usize = 64;

/// The time within which the head of a request must arrive, and within which a request must end
/// that neither waits nor streams.
pub const REQUEST_TIME: Duration = Duration::from_secs(30);

/// The longest wait that `Prefer: wait` or `wait` of a long poll may ask for.
pub const WAIT: Duration = Duration::from_secs(60);

/// The largest number of connections from one client address.
pub const CONNECTIONS_PER_ADDRESS: usize = 1024;

/// The largest number of connections in all.
pub const CONNECTIONS: usize = 16_384;

/// The largest number of event streams and long polls at once.
pub const STREAMS: usize = 10_000;

/// The largest number of tasks in one `POST /v1/tasks:batch`.
pub const BATCH: usize = 10_000;

/// The largest number of items on a page.
pub const PAGE: usize = 1000;

/// The number of items on a page if the request sets none.
pub const PAGE_DEFAULT: usize = 50;

/// The largest number of events on a page.
pub const EVENT_PAGE: usize = 500;

/// The number of pages of events that streams share.
pub const EVENT_PAGES_SHARED: usize = 64;

/// The time between two comments on an event stream without events.
pub const HEARTBEAT: Duration = Duration::from_secs(15);

/// The longest wait of a worker for bytes, if its request sets none.
pub const WORK_WAIT: Duration = Duration::from_secs(30);

/// The number of bytes of a worker's connection that wait in each direction.
pub const WORK_BYTES: usize = 256 * 1024;

/// The time for which the one-time link of `onward serve` is valid.
pub const LINK_TIME: Duration = Duration::from_secs(600);

/// The longest `Idempotency-Key`, in bytes.
pub const IDEMPOTENCY_KEY_BYTES: usize = 255;

/// The time for which an `Idempotency-Key` is remembered.
pub const IDEMPOTENCY_KEPT: Duration = Duration::from_secs(24 * 3600);

/// The time for which audit records are kept.
pub const AUDIT_KEPT: Duration = Duration::from_secs(90 * 24 * 3600);

/// The largest number of records that one request prunes in passing.
pub const PRUNED_IN_PASSING: usize = 100;

/// The time for which a server trusts its last check of the key of an event stream.
pub const KEY_CHECK: Duration = Duration::from_secs(5);

/// The largest number of keys whose last check a server keeps.
pub const KEYS_CHECKED: usize = 10_000;

/// The time for which a server logs and audits one refused credential, and counts the others.
pub const REFUSALS_COUNTED: Duration = Duration::from_secs(10);

/// The largest number of queues, kinds or scopes that a metric names; the others are joined.
pub const METRIC_VALUES: usize = 200;

/// The longest name of a key, in bytes.
pub const KEY_NAME_BYTES: usize = 128;

/// The time after which a session ends.
pub const SESSION_TIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// The largest number of sessions. A sign-in beyond it ends the oldest session.
pub const SESSIONS: usize = 1000;

/// The shortest time between two messages of `GET /v1/changes`.
pub const CHANGES_INTERVAL: Duration = Duration::from_millis(200);

/// The time within which the store must reply to a check of readiness.
pub const READY_TIME: Duration = Duration::from_secs(2);

/// The number of steps up to which the graph of a run shows every step even if it is folded.
pub const GRAPH_UNFOLDED: usize = 200;
