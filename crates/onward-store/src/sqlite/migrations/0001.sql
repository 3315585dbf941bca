-- Live tasks only: the rows leave for `history` when they end. No index on this table but an almost empty one; what finds a task is in `ready`,
-- `scheduled`, `expiry` and `active_key`, or in the writer's memory for tasks above `meta.frontier`.
CREATE TABLE task (
    id INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    scheduled INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    claims INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    cancel_requested INTEGER NOT NULL, -- 1: asked to stop; 2: and its key belongs to another task
    submitted_at INTEGER NOT NULL,
    started_at INTEGER,
    expires_at INTEGER,
    options TEXT,
    key TEXT,
    payload BLOB NOT NULL
) STRICT;

CREATE INDEX task_cancel_requested ON task (id) WHERE cancel_requested > 0;

-- Ended tasks. `ended_in` is the log entry of the end, which orders them by when they ended.
CREATE TABLE history (
    id INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL,
    state INTEGER NOT NULL,
    ended_in INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    claims INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    submitted_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER NOT NULL,
    expires_at INTEGER,
    options TEXT,
    key TEXT,
    payload BLOB NOT NULL,
    result BLOB
) STRICT;

CREATE TABLE queue (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, deleted INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE kind (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;

-- A line of tasks that are claimable or not together.
CREATE TABLE lane (id INTEGER PRIMARY KEY, queue INTEGER NOT NULL, kind INTEGER NOT NULL, UNIQUE (queue, kind)) STRICT;

-- Due tasks that nobody holds, in the order in which they are claimed. `position` is (255 - priority) << 55 | id.
CREATE TABLE ready (lane INTEGER NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (lane, position)) STRICT, WITHOUT ROWID;

-- Tasks that are not due, by when they will be.
CREATE TABLE scheduled (
    run_at INTEGER NOT NULL, task INTEGER NOT NULL, lane INTEGER NOT NULL, PRIMARY KEY (run_at, task)
) STRICT, WITHOUT ROWID;

-- Tasks that expire unless they start before.
CREATE TABLE expiry (expires_at INTEGER NOT NULL, task INTEGER NOT NULL, PRIMARY KEY (expires_at, task)) STRICT, WITHOUT ROWID;

-- Keys of live tasks.
CREATE TABLE active_key (
    kind INTEGER NOT NULL, key TEXT NOT NULL, task INTEGER NOT NULL, PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

-- Keys that stay taken after the end of their task.
CREATE TABLE kept_key (
    kind INTEGER NOT NULL, key TEXT NOT NULL, task INTEGER NOT NULL, until INTEGER NOT NULL, PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX kept_key_until ON kept_key (until);

-- Who works on what. `claim` counts the claims of the task; with the session it is the fence.
CREATE TABLE lease (
    task INTEGER PRIMARY KEY, session INTEGER NOT NULL, claim INTEGER NOT NULL, started_at INTEGER NOT NULL
) STRICT;

CREATE TABLE session (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    process TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    lease INTEGER NOT NULL,
    lease_until INTEGER NOT NULL
) STRICT;

-- A task to submit when a running one ends.
CREATE TABLE follower (task INTEGER PRIMARY KEY, new_task TEXT NOT NULL, payload BLOB NOT NULL) STRICT;

CREATE TABLE attempt_error (
    task INTEGER NOT NULL, number INTEGER NOT NULL, attempt INTEGER NOT NULL, at INTEGER NOT NULL, message TEXT NOT NULL,
    PRIMARY KEY (task, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE progress (task INTEGER PRIMARY KEY, fraction REAL, message TEXT, at INTEGER NOT NULL) STRICT;

-- `scope` is 0 for all, 1 for a queue, 2 for a kind.
CREATE TABLE pause (
    scope INTEGER NOT NULL, name TEXT NOT NULL, until INTEGER, PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;

-- What happened to tasks, one row a commit. `next_task` is the number of the next task after that commit.
CREATE TABLE log (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, next_task INTEGER NOT NULL, changes BLOB NOT NULL) STRICT;

-- `ended` counts for ever; `kept` is what is still in history. Times are of completed tasks, in microseconds.
CREATE TABLE statistics (
    lane INTEGER NOT NULL, state INTEGER NOT NULL, ended INTEGER NOT NULL, kept INTEGER NOT NULL, attempts INTEGER NOT NULL,
    wait INTEGER NOT NULL, run INTEGER NOT NULL, run_maximum INTEGER NOT NULL, PRIMARY KEY (lane, state)
) STRICT, WITHOUT ROWID;

-- `frontier`: tasks with a higher number are not in ready, scheduled, expiry and active_key.
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES ('frontier', 0), ('next_task', 1);
