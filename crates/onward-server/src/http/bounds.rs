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
pub const PRUNED_IN_PASSING: usize = 500;

/// The time for which a server trusts its last check of the key of an event stream.
pub const KEY_CHECK: Duration = Duration::from_secs(5);

/// The largest number of keys whose last check a server keeps.
pub const KEYS_CHECKED: usize = 10_000;

/// The time for which a server logs and audits one refused credential, and counts the others.
pub const REFUSALS_COUNTED: Duration = Duration::from_secs(10);

/// The largest number of queues, kinds or scopes that a metric names; the others are joined.
pub const METRIC_VALUES: usize = 200;

/// The time within which the TLS handshake of a connection must end.
pub const TLS_HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// The shortest time between two looks at the files of a certificate.
pub const TLS_FILES_LOOK: Duration = Duration::from_secs(10);

/// The time before the end of a certificate from which on the log warns when it is read.
pub const TLS_EXPIRES_SOON: Duration = Duration::from_secs(7 * 24 * 3600);

/// The longest name of an account, in bytes.
pub const ACCOUNT_NAME_BYTES: usize = 128;

/// The shortest password that an account may be given, in characters.
pub const PASSWORD_CHARACTERS: usize = 12;

/// The longest password, in bytes.
pub const PASSWORD_BYTES: usize = 1024;

/// The largest number of accounts.
pub const ACCOUNTS: usize = 10_000;

/// The largest body of a sign-in, in bytes.
pub const SIGN_IN_BYTES: usize = 16 * 1024;

/// The largest number of passwords that are hashed at once; fewer on a machine with fewer
/// processors.
pub const HASHES: usize = 4;

/// The largest number of sign-ins that wait for their hash. More are refused.
pub const HASHES_WAITING: usize = 32;

/// The number of failed sign-ins of one account from one address within
/// [`ATTEMPTS_TIME`] after which both are locked out.
pub const ATTEMPTS: u32 = 10;

/// The number of failed sign-ins from one address within [`ATTEMPTS_TIME`], of any accounts, after
/// which the address is locked out.
pub const ATTEMPTS_PER_ADDRESS: u32 = 100;

/// The time in which failed sign-ins count together, and the time of the first lock-out. Each
/// further lock-out takes twice the time of the one before, up to [`LOCK_OUT`].
pub const ATTEMPTS_TIME: Duration = Duration::from_secs(60);

/// The longest lock-out, and the time without failures after which earlier ones are forgotten.
pub const LOCK_OUT: Duration = Duration::from_secs(3600);

/// The largest number of accounts and addresses whose failed sign-ins a server remembers.
pub const ATTEMPTS_REMEMBERED: usize = 20_000;

/// The largest number of keys, with those that are revoked or expired.
pub const KEYS: usize = 10_000;

/// The longest name of a key, in bytes.
pub const KEY_NAME_BYTES: usize = 128;

/// The time after which a session ends.
pub const SESSION_TIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// The time without requests after which a session ends.
pub const SESSION_IDLE: Duration = Duration::from_secs(24 * 3600);

/// The shortest time between two notes that a session is in use. A session may end by this much
/// earlier than [`SESSION_IDLE`] after its last request.
pub const SESSION_NOTED: Duration = Duration::from_secs(3600);

/// The largest number of sessions. A sign-in beyond it ends the oldest session.
pub const SESSIONS: usize = 1000;

/// The shortest time between two messages of `GET /v1/changes`.
pub const CHANGES_INTERVAL: Duration = Duration::from_millis(200);

/// The time within which the store must reply to a check of readiness.
pub const READY_TIME: Duration = Duration::from_secs(2);

/// The number of steps up to which the graph of a run shows every step even if it is folded.
pub const GRAPH_UNFOLDED: usize = 200;
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

/// The largest number of audiences, and of roles of claims, of an issuer.
pub const ISSUER_NAMES: usize = 100;

/// The largest document of an issuer, in bytes: its discovery document, its keys, or its response
/// to a sign-in.
pub const ISSUER_BYTES: usize = 256 * 1024;

/// The largest number of keys of an issuer.
pub const ISSUER_KEYS: usize = 64;

/// The time for one request to an issuer, and at most the time of a request.
pub const ISSUER_TIME: Duration = Duration::from_secs(5);

/// The time after which the documents of an issuer are read again.
pub const ISSUER_FRESH: Duration = Duration::from_secs(600);

/// The time for which the documents of an issuer count that cannot be reached.
pub const ISSUER_STALE: Duration = Duration::from_secs(3600);

/// The shortest time between two readings of the documents of an issuer.
pub const ISSUER_PAUSE: Duration = Duration::from_secs(30);

/// The longest token of an issuer, in bytes.
pub const TOKEN_BYTES: usize = 12 * 1024;

/// The difference of the clocks of an issuer and of a server up to which times of tokens count.
pub const TOKEN_SKEW: Duration = Duration::from_secs(60);

/// The longest subject of a token, in bytes.
pub const SUBJECT_BYTES: usize = 255;

/// The largest number of characters of the name of a token's holder that are kept.
pub const SUBJECT_NAME: usize = 128;

/// The time within which a person signs in at the issuer.
pub const OIDC_TIME: Duration = Duration::from_secs(600);

/// The time after which a session of a sign-in at the issuer ends, so that a lost group counts.
pub const OIDC_SESSION_TIME: Duration = Duration::from_secs(12 * 3600);

/// The largest number of sign-ins that wait for the issuer at once. More are refused.
pub const OIDC_EXCHANGES: usize = 16;

/// The longest place of the page to which a sign-in returns, in bytes.
pub const OIDC_RETURN_BYTES: usize = 512;

/// The longest code of a sign-in at the issuer, in bytes.
pub const OIDC_CODE_BYTES: usize = 2048;

/// The largest result of a tool of the Model Context Protocol, in bytes. More is left out.
pub const MCP_RESULT_BYTES: usize = 25_000;

/// The largest response of a route that a tool reads, in bytes.
pub const MCP_READ_BYTES: usize = 16 * 1024 * 1024;
