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

/// The time for which the one-time link of `onward serve` is valid.
pub const LINK_TIME: Duration = Duration::from_secs(600);

/// The longest `Idempotency-Key`, in bytes.
pub const IDEMPOTENCY_KEY_BYTES: usize = 255;

/// The time for which an `Idempotency-Key` is remembered.
pub const IDEMPOTENCY_KEPT: Duration = Duration::from_secs(24 * 3600);

/// The time for which audit records are kept.
pub const AUDIT_KEPT: Duration = Duration::from_secs(90 * 24 * 3600);

/// The largest number of records that one request prunes in passing.
pub const PRUNED_IN_PASSING: usize = 500;

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

/// The number of calls to the store that fail in a row before requests are refused at once.
pub const STORE_FAILURES: u32 = 5;

/// The time until a first trial of a store that failed. It doubles with each trial that fails.
pub const STORE_PAUSE: Duration = Duration::from_secs(1);

/// The longest time between two trials of a store that failed.
pub const STORE_PAUSE_MAXIMUM: Duration = Duration::from_secs(30);

/// The time after which a call to the store that is given up counts as failed.
pub const STORE_HANGS: Duration = Duration::from_secs(10);

/// The largest number of pages of events that one request without `wait` reads.
pub const EVENT_PAGES_READ: usize = 20;

/// The size at which a page with payloads or histories ends, in bytes. Its last item may exceed it.
pub const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// The largest number of events of a history that one request replays or copies.
pub const HISTORY_EVENTS: u64 = 100_000;

/// The largest history that one request replays or copies, in bytes.
pub const HISTORY_BYTES: u64 = 64 * 1024 * 1024;

/// The largest number of queries of orchestrations that a server replays at once.
pub const QUERIES_AT_ONCE: usize = 4;

/// The largest number of tasks in a tree.
pub const TREE_TASKS: usize = 1000;

/// The largest number of tasks of a tree whose children are read.
pub const TREE_READS: usize = 200;

/// The largest number of webhooks, and of hooks.
pub const WEBHOOKS: usize = 50;

/// The largest number of kinds that a webhook selects.
pub const WEBHOOK_KINDS: usize = 100;

/// The longest URL of a webhook, in bytes.
pub const WEBHOOK_URL_BYTES: usize = 2048;

/// The largest number of events whose deliveries are submitted in one commit.
pub const WEBHOOK_EVENTS: usize = 100;

/// The largest number of pages without deliveries after which the cursor of webhooks is stored.
pub const WEBHOOK_PAGES_SKIPPED: u32 = 100;

/// The number of waiting deliveries beyond which no further events are read for webhooks.
pub const WEBHOOK_BACKLOG: u64 = 100_000;

/// The largest number of deliveries that a server sends at once.
pub const DELIVERIES_AT_ONCE: usize = 16;

/// The time for one attempt of a delivery, from the look-up of the host to the response.
pub const DELIVERY_TIME: Duration = Duration::from_secs(15);

/// The time for which the tasks of deliveries are kept after their end.
pub const DELIVERIES_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// The longest name of a hook, in bytes.
pub const HOOK_NAME_BYTES: usize = 64;

/// The longest secret of a hook, in bytes.
pub const HOOK_SECRET_BYTES: usize = 256;

/// The largest number of sorts of events that a hook names.
pub const HOOK_EVENTS: usize = 100;

/// The time between the timestamp of a delivery to a hook and its arrival, before or after.
pub const HOOK_WINDOW: Duration = Duration::from_secs(300);

/// The longest id of a delivery to a hook, in bytes.
pub const DELIVERY_ID_BYTES: usize = 255;

/// The time for which deliveries to hooks are remembered, so that none has an effect twice.
pub const HOOK_DELIVERIES_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
