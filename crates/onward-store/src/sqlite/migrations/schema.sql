-- The tables of a store in a SQLite file: schema 1, the first that was released.
--
-- This file is both what makes a new store and its documentation; `.schema` in the `sqlite3`
-- shell shows most of it. Once 0.1 is released, statements here never change. Schema 2 will be a
-- script of its own, `migrations/0002.sql`, which runs behind this one in a new store and alone
-- in an old one. Comments may change at any time.
--
-- The file's header says what it is. `PRAGMA application_id` is 0x4f6e7764 ("Onwd"), and `PRAGMA
-- user_version` is the number of the schema. Development versions, before 0.1, numbered their
-- schemas 1 to 21 under another application id, 0x4f6e5764 ("OnWd"): so their files cannot be
-- taken for released ones, and are refused.
--
-- Conventions:
-- * Only the store writes. One transaction serves all calls that arrived together.
-- * Queues, kinds, groups and sub-queues have a name once and a number everywhere else. The number of
--   a task is `task.id` or `history.id`; a column `task` holds one. Numbers of tasks and sessions
--   are never used again.
-- * Moments are microseconds since 1970-01-01 UTC, by the store's clock. Some columns count
--   steady time instead, which never jumps, and say so.
-- * Durations are microseconds.
-- * There are no foreign keys. The store removes the rows of a task together, and `onward doctor`
--   compares the tables.
-- * Columns of JSON and of encoded bytes have one reader and writer in the code, which is named.


-- The file --------------------------------------------------------------------------------------

-- Tells this store's file from others, so that a process notices that its file was replaced, and
-- a write-ahead log that belongs to another file. It has one row. It is the first table, so that
-- its page is the second of the file: `identity.rs` reads it there, without the log.
CREATE TABLE identity (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    store BLOB NOT NULL, -- 16 random bytes
    -- Goes up with the first change after each checkpoint. It begins where its length, and so the
    -- place of the row on its page, never changes.
    generation INTEGER NOT NULL
) STRICT;

INSERT INTO identity (id, store, generation) VALUES (1, randomblob(16), 0x100000000);


-- Tasks -----------------------------------------------------------------------------------------

-- Live tasks: scheduled, waiting, running and blocked ones. A submission inserts a row, and the
-- end of the task moves it to `history`. Its state is not a column. It follows from `scheduled`
-- and from whether a row of `lease` includes the number. The table has no index but one that is
-- nearly always empty, so that a submission writes one page; the tables under "Ready tasks" find
-- a task.
CREATE TABLE task (
    id INTEGER PRIMARY KEY,
    sub_queue INTEGER NOT NULL,
    priority INTEGER NOT NULL, -- 0 to 255; the highest goes first
    scheduled INTEGER NOT NULL, -- 0 due, or running; 1 not due yet; 2 blocked
    run_at INTEGER NOT NULL, -- when it is due, or was
    claims INTEGER NOT NULL, -- claims before the present one, whose number is in `lease`
    attempts INTEGER NOT NULL, -- attempts that ended, which the retry policy counts
    lost INTEGER NOT NULL, -- leases lost in a row; too many, and it becomes a dead letter
    -- 1 its worker is asked to stop; 2 and another task has its key.
    cancel_requested INTEGER NOT NULL,
    submitted_at INTEGER NOT NULL,
    started_at INTEGER, -- when the last attempt before the present one started
    expires_at INTEGER, -- when it expires unless an attempt has started
    options TEXT, -- JSON of what else was submitted (`options_column.rs`); NULL for most tasks
    key TEXT, -- the unique key, if it has one
    payload BLOB NOT NULL,
    -- A sum that says which other tables have rows of it, so that most tasks look into none:
    -- * 1: others depend on it, or did
    -- * 2: it has children
    -- * 4: it has a row in `task_checkpoint`
    -- * 8: it has a row in `awaited_completion`
    -- * 16: it has a row in `moving`, or had
    -- * 32: it is a batch and has items
    links INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Finds the running tasks of a session that are asked to stop, with each renewal of its lease.
CREATE INDEX task_cancel_requested ON task (id) WHERE cancel_requested > 0;

-- Ended tasks. The end of a task inserts a row, a prune or a purge removes it, and a retry moves
-- it back to `task`. The columns that it shares with `task` mean the same there.
CREATE TABLE history (
    id INTEGER PRIMARY KEY,
    sub_queue INTEGER NOT NULL,
    state INTEGER NOT NULL, -- 4 completed; 5 failed; 6 dead letter; 7 cancelled; 8 expired
    -- The row of `log` with its end, which orders tasks by when they ended.
    ended_in INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    claims INTEGER NOT NULL, -- all claims
    attempts INTEGER NOT NULL,
    cancel_requested INTEGER NOT NULL,
    submitted_at INTEGER NOT NULL,
    started_at INTEGER, -- when the last attempt started; NULL if there was none
    finished_at INTEGER NOT NULL,
    expires_at INTEGER,
    options TEXT,
    key TEXT,
    payload BLOB NOT NULL,
    result BLOB -- of a completed task, if its handler returned one
) STRICT;

-- Ended tasks that were submitted with a retention, by the moment to which they are kept. Their
-- end inserts a row. All other ended tasks are pruned in the order of their ends, by way of
-- `log`.
CREATE TABLE retention (
    until INTEGER NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (until, task)
) STRICT, WITHOUT ROWID;

-- Errors of failed attempts, for live and ended tasks. Beyond a number (`limits.rs`) the second
-- oldest is removed: the first and the newest stay. The rows go with the task.
CREATE TABLE attempt_error (
    task INTEGER NOT NULL,
    number INTEGER NOT NULL, -- orders the errors of a task
    attempt INTEGER NOT NULL, -- which attempt failed
    at INTEGER NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (task, number)
) STRICT, WITHOUT ROWID;

-- The last progress that a handler reported, for live and ended tasks. The row goes with the
-- task, and a retry of an ended task removes it.
CREATE TABLE progress (
    task INTEGER PRIMARY KEY,
    fraction REAL, -- 0 to 1
    message TEXT,
    at INTEGER NOT NULL,
    done INTEGER, -- bytes done
    total INTEGER -- bytes in all
) STRICT;

-- Output of tasks, live and ended: of the last attempt that wrote any. The first output of the
-- next one replaces the row. The row goes with the task.
CREATE TABLE output (
    task INTEGER PRIMARY KEY,
    claim INTEGER NOT NULL, -- the claim of that attempt, which its lease names
    attempt INTEGER NOT NULL, -- the number of that attempt
    stdout INTEGER NOT NULL, -- how many bytes it has written to its standard output
    stderr INTEGER NOT NULL -- and to its standard error
) STRICT;

-- The output that is kept of these tasks, in pieces: the beginning and the end of each stream.
CREATE TABLE output_piece (
    task INTEGER NOT NULL,
    stream INTEGER NOT NULL, -- 0 standard output; 1 standard error
    at INTEGER NOT NULL, -- how many bytes the attempt wrote to the stream before this piece
    length INTEGER NOT NULL, -- how many bytes of output it has
    bytes BLOB NOT NULL, -- the output, encoded where the store has a codec
    PRIMARY KEY (task, stream, at)
) STRICT, WITHOUT ROWID;

-- Tags in use. A tag leaves with the last task that has it. `task.options` has the tags of a
-- task.
CREATE TABLE tag (
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    number INTEGER NOT NULL, -- names the tag in `task_tag`
    tasks INTEGER NOT NULL, -- live and ended tasks with this tag
    PRIMARY KEY (key, value)
) STRICT, WITHOUT ROWID;

-- Live and ended tasks by tag. Tasks above `meta.tags_watermark` are not here yet.
CREATE TABLE task_tag (
    tag INTEGER NOT NULL, -- `tag.number`
    task INTEGER NOT NULL,
    PRIMARY KEY (tag, task)
) STRICT, WITHOUT ROWID;


-- Names -----------------------------------------------------------------------------------------

-- Queues, with how they are worked off. The first task of a queue inserts a row, which stays.
CREATE TABLE queue (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    -- 1 hidden until it is used again; its ended tasks have its number.
    deleted INTEGER NOT NULL DEFAULT 0,
    weight INTEGER NOT NULL DEFAULT 1, -- its share where the queue mode is lenient or interleaved
    concurrency INTEGER, -- tasks that may run at once; NULL for no limit
    running INTEGER NOT NULL DEFAULT 0, -- tasks that run; counted only where `concurrency` is set
    -- The time for which tasks wait for the session that their affinity key prefers; NULL for the
    -- default.
    affinity_wait INTEGER
) STRICT;

-- Kinds of tasks. The first task of a kind inserts a row, which stays.
CREATE TABLE kind (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- Groups, with how far their limits are used. The first task of a group inserts a row, which
-- stays. A process that is alone writes the counts late: see `meta.deferred_counters_since`.
CREATE TABLE task_group (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    running INTEGER NOT NULL DEFAULT 0, -- tasks that run; counted only where the group has a limit
    full_at INTEGER, -- when its token bucket is full, in nanoseconds of steady time
    -- 1 a limit or a pause keeps its tasks out of `claimable_head`.
    blocked INTEGER NOT NULL DEFAULT 0,
    -- When it gets the token that its due tasks wait for, in microseconds of steady time.
    token_at INTEGER,
    -- 1 fewer tasks run than its minimum, so it goes first.
    below_minimum INTEGER NOT NULL DEFAULT 0,
    saved_in INTEGER NOT NULL DEFAULT 0 -- the last row of `log` that these counts include
) STRICT;

-- Sub-queues: the tasks of one queue, kind and group, orchestrations apart from the others, which
-- are claimable or not together. The first such task inserts a row, which stays. Sub-queues without a
-- group have numbers below 2^32, the others from there on, so that a claim walks the former alone.
CREATE TABLE sub_queue (
    id INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    task_group INTEGER NOT NULL DEFAULT 0, -- 0 for none
    orchestration INTEGER NOT NULL DEFAULT 0, -- 1 for orchestrations: claims may leave them out
    UNIQUE (queue, kind, task_group, orchestration)
) STRICT;

-- Finds the sub-queues of a group when a limit or a pause holds it back or lets it go.
CREATE INDEX sub_queue_task_group ON sub_queue (task_group) WHERE task_group > 0;


-- Ready tasks -----------------------------------------------------------------------------------
--
-- These tables find tasks. A process that is alone on the file keeps what concerns its newest
-- tasks in memory: tasks above `meta.index_watermark` are in none of `ready`, `scheduled`, `expiry` and
-- `active_key`, and are read from `task` when the file is opened. A backlog moves to the tables
-- in bulk. Beside another process all tasks are in the tables.

-- Waiting tasks that may be claimed, in the order of claims.
CREATE TABLE ready (
    -- The ready list: the sub-queue. For a task with an affinity key the `affinity.id`, shifted left
    -- by 34 bits, is added.
    list INTEGER NOT NULL,
    sort_key INTEGER NOT NULL, -- when it was due, and 60 s later for each level below 255
    task INTEGER NOT NULL,
    PRIMARY KEY (list, sort_key, task)
) STRICT, WITHOUT ROWID;

-- Tasks that are not due, by when they will be.
CREATE TABLE scheduled (
    run_at INTEGER NOT NULL,
    task INTEGER NOT NULL,
    list INTEGER NOT NULL, -- the sub-queue, plus 2^62 for a task with an affinity key
    PRIMARY KEY (run_at, task)
) STRICT, WITHOUT ROWID;

-- Tasks that expire unless an attempt starts before.
CREATE TABLE expiry (
    expires_at INTEGER NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (expires_at, task)
) STRICT, WITHOUT ROWID;

-- Tasks in `ready` and `scheduled` and blocked tasks, counted by queue, so that a look at a queue
-- costs nothing. Waiting and scheduled tasks above `meta.index_watermark` are not counted here.
CREATE TABLE queue_size (
    queue INTEGER PRIMARY KEY,
    waiting INTEGER NOT NULL,
    scheduled INTEGER NOT NULL,
    blocked INTEGER NOT NULL
) STRICT;


-- Unique keys -----------------------------------------------------------------------------------

-- Keys of live tasks, each with the task that owns it. The end of the task removes the row.
CREATE TABLE active_key (
    kind INTEGER NOT NULL,
    key TEXT NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

-- Keys that stay taken after the end of their task, as their submitters asked.
CREATE TABLE retained_key (
    kind INTEGER NOT NULL,
    key TEXT NOT NULL,
    task INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

-- Frees the key of a task that is removed or tried again.
CREATE INDEX retained_key_task ON retained_key (task);

-- Finds the keys whose time is over.
CREATE INDEX retained_key_until ON retained_key (until);

-- Tasks to submit when a running one with the same key ends (`OnDuplicate::Requeue`). That end
-- removes the row.
CREATE TABLE successor (
    task INTEGER PRIMARY KEY, -- the running one
    new_task TEXT NOT NULL, -- JSON of a `NewTask` without its payload
    payload BLOB NOT NULL
) STRICT;


-- Workers ---------------------------------------------------------------------------------------

-- Sessions: workers that are registered with the store. Closing a session, or the end of its
-- lease, removes the row and gives its tasks back.
CREATE TABLE session (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL, -- for people
    -- The process that opened it, by the name of the lock that it holds while it lives.
    process TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    lease INTEGER NOT NULL, -- how long it may go without a renewal
    lease_until INTEGER NOT NULL, -- when its lease is over, in microseconds of steady time
    serves TEXT -- JSON of the queues and kinds that it takes (`served_column.rs`); NULL for all
) STRICT;

-- Leases on running tasks. A row holds the tasks from `first` to `last` that are still in `task`:
-- tasks claimed together share it, and the end of the last of them removes it. Ranges of two rows
-- never overlap. Session and claim are the fence, by which a late result is refused.
CREATE TABLE lease (
    first INTEGER PRIMARY KEY,
    last INTEGER NOT NULL,
    session INTEGER NOT NULL,
    claim INTEGER NOT NULL, -- the number of this claim of each of the tasks, counted from 1
    started_at INTEGER NOT NULL,
    -- When its one task expires if the claim is given back; such a task shares no lease.
    expires_at INTEGER
) STRICT;

-- Tasks whose attempt is over and whose result comes from elsewhere (asynchronous completion).
-- They are blocked. The completion, or `until`, removes the row.
CREATE TABLE awaited_completion (
    task INTEGER PRIMARY KEY,
    claim INTEGER NOT NULL, -- the attempt, which the completion's token names
    wait TEXT NOT NULL, -- JSON of a `CompletionWait`
    until INTEGER, -- when the attempt fails without a completion; NULL for never
    expires_at INTEGER -- when the task expires if it is tried again
) STRICT;

-- Finds the tasks whose completion is overdue.
CREATE INDEX awaited_completion_until ON awaited_completion (until, task) WHERE until IS NOT NULL;

-- Running tasks that move to another queue when their attempt is over and they are not.
CREATE TABLE moving (
    task INTEGER PRIMARY KEY,
    queue TEXT NOT NULL -- its name
) STRICT;


-- Limits ----------------------------------------------------------------------------------------

-- Pauses. A resume removes the row, and so does a sweep when `until` is over.
CREATE TABLE pause (
    scope INTEGER NOT NULL, -- 0 all tasks; 1 a queue; 2 a kind; 3 a group
    name TEXT NOT NULL, -- of the queue, kind or group; empty for all
    until INTEGER, -- when it ends by itself; NULL for never
    PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;

-- Limits, as they were set. How far those of groups are used is in `task_group`, and the
-- concurrency of a queue is in `queue`.
CREATE TABLE task_limit (
    -- 0 all tasks; 1 a queue; 2 a kind; 3 a group; 4 groups whose names begin so.
    scope INTEGER NOT NULL,
    name TEXT NOT NULL, -- of the queue, kind or group, or the beginning of names; empty for all
    concurrency INTEGER, -- tasks that may run at once; NULL for no limit
    rate_tasks INTEGER, -- so many starts in `rate_per`; NULL for no limit, as are the next two
    rate_per INTEGER,
    rate_burst INTEGER, -- starts that may come at once
    running INTEGER NOT NULL DEFAULT 0, -- as in `task_group`; of scopes 0, 1 and 2
    full_at INTEGER, -- as in `task_group`; of scopes 0, 1 and 2
    weight INTEGER, -- a group's share of its queues; NULL for none of its own
    minimum INTEGER, -- while fewer of a group's tasks run, it goes first; NULL for none of its own
    PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;

-- Claimable heads: the first due task of each sub-queue with a group that nothing holds back, and of
-- each affinity key in a sub-queue. So a claim never looks at what it cannot claim. Empty while a
-- process that is alone keeps it in memory, as is `group_token_due`.
CREATE TABLE claimable_head (
    -- The sub-queue without a group of the same queue and kind. For an affinity key that is reserved
    -- for a session, the session's number, shifted left by 34 bits, is added.
    head_list INTEGER NOT NULL,
    -- The fair-share tag of the group; negative below its minimum; 0 without shares.
    share_tag INTEGER NOT NULL,
    sort_key INTEGER NOT NULL, -- as in `ready`
    task INTEGER NOT NULL,
    list INTEGER NOT NULL, -- as in `ready`
    PRIMARY KEY (head_list, share_tag, sort_key, task)
) STRICT, WITHOUT ROWID;

-- Groups in the order of `task_group.token_at`: the next to get a token for tasks that wait.
CREATE TABLE group_token_due (
    at INTEGER NOT NULL, -- in microseconds of steady time
    task_group INTEGER NOT NULL,
    PRIMARY KEY (at, task_group)
) STRICT, WITHOUT ROWID;

-- Fair shares: how far each group has come in the virtual time of a queue (`rules/share.rs`). A
-- start of a task moves it on. Empty while no group has a weight or a minimum.
CREATE TABLE fair_share (
    queue INTEGER NOT NULL,
    task_group INTEGER NOT NULL, -- 0 the tasks without a group; -1 the queue itself
    guaranteed INTEGER NOT NULL, -- among groups below their minimum
    shared INTEGER NOT NULL, -- among all others
    PRIMARY KEY (queue, task_group)
) STRICT, WITHOUT ROWID;


-- Affinity --------------------------------------------------------------------------------------

-- Affinity keys that have a preferred session or waiting tasks. When neither is left the row
-- goes, and its number is used again.
CREATE TABLE affinity (
    id INTEGER PRIMARY KEY, -- below 2^28, so that it fits beside a sub-queue in `ready.list`
    name TEXT NOT NULL UNIQUE,
    session INTEGER, -- the session that last started one of its tasks, while that is preferred
    used_at INTEGER -- about when that was
) STRICT;

-- Finds the keys of a session that ends.
CREATE INDEX affinity_session ON affinity (session) WHERE session IS NOT NULL;

-- Finds the keys that were not used for long.
CREATE INDEX affinity_used ON affinity (used_at) WHERE session IS NOT NULL;

-- Waiting tasks of one affinity key in one sub-queue: for whom they are reserved.
CREATE TABLE affinity_list (
    list INTEGER PRIMARY KEY, -- as in `ready.list`
    sub_queue INTEGER NOT NULL,
    session INTEGER, -- which session alone may claim them; NULL for any
    until INTEGER -- to which moment
) STRICT;

-- Finds the keys of a sub-queue that a limit or a pause holds back.
CREATE INDEX affinity_list_sub_queue ON affinity_list (sub_queue);

-- Finds the reservations that are over.
CREATE INDEX affinity_list_until ON affinity_list (until) WHERE until IS NOT NULL;


-- Dependencies and children ---------------------------------------------------------------------

-- Blocked tasks and the live ones that they depend on. The end of one of them removes the row.
CREATE TABLE dependency (
    task INTEGER NOT NULL, -- the one to end first
    dependent INTEGER NOT NULL, -- the one that is blocked
    PRIMARY KEY (task, dependent)
) STRICT, WITHOUT ROWID;

-- Finds what a task still depends on.
CREATE INDEX dependency_dependent ON dependency (dependent, task);

-- Tasks that are over and whose end has not reached all dependents, children and batch items yet,
-- in the order of their ends. An end with more of them than one write may change leaves a row;
-- sweeps go on with it, and the last of them removes it.
CREATE TABLE unpropagated_end (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    task INTEGER NOT NULL,
    state INTEGER NOT NULL, -- as in `history`; 0 if the task was removed
    -- Dependents with higher numbers came after the end and do not belong to it.
    up_to INTEGER NOT NULL,
    next_child INTEGER NOT NULL, -- the next child to be cancelled
    -- The next batch item to end; the default if it is no batch, or if all have ended.
    next_item INTEGER NOT NULL DEFAULT 9223372036854775807
) STRICT;

-- Children of tasks, live and ended. The row goes with the child.
CREATE TABLE child (
    parent INTEGER NOT NULL,
    child INTEGER NOT NULL,
    PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;

-- Checkpoints: what a handler saved for its next attempt, as it does before it waits for
-- children. The end of the task removes the row.
CREATE TABLE task_checkpoint (
    task INTEGER PRIMARY KEY,
    checkpoint BLOB NOT NULL
) STRICT;


-- Batches ---------------------------------------------------------------------------------------
--
-- Tasks with `aggregate` among their options are collected, by sub-queue, in a pending batch. When
-- that is ready, a new task, the batch, is submitted, and the handler is given that one with all
-- items. Items are blocked while they live, and have a row in `pending_item` first and in `batch_item`
-- afterwards.

-- Pending batches. The first item of a sub-queue inserts a row, and it goes when the batch is
-- submitted or its last item leaves.
CREATE TABLE pending_batch (
    sub_queue INTEGER PRIMARY KEY,
    first_item INTEGER NOT NULL, -- the first item
    items INTEGER NOT NULL, -- items
    bytes INTEGER NOT NULL, -- the sum of their payloads
    began_at INTEGER NOT NULL,
    size INTEGER NOT NULL, -- so many items make it ready
    deadline INTEGER NOT NULL, -- when it is ready, whatever still comes
    ready_at INTEGER NOT NULL -- when it is ready if nothing more comes
) STRICT;

-- Finds the pending batches that are ready.
CREATE INDEX pending_batch_ready ON pending_batch (ready_at, first_item);

-- Items of pending batches.
CREATE TABLE pending_item (
    sub_queue INTEGER NOT NULL,
    task INTEGER NOT NULL,
    bytes INTEGER NOT NULL, -- of its payload
    PRIMARY KEY (sub_queue, task)
) STRICT, WITHOUT ROWID;

-- Items of batches, with the batch. The row stays as long as the item does, also when both ended.
CREATE TABLE batch_item (
    task INTEGER PRIMARY KEY,
    batch INTEGER NOT NULL -- the batch
) STRICT;

-- Finds the items of a batch.
CREATE INDEX batch_item_batch ON batch_item (batch, task);

-- Batches, live and ended, that have live items. The end of the last item removes the row.
CREATE TABLE batch (
    task INTEGER PRIMARY KEY
) STRICT;


-- Schedules -------------------------------------------------------------------------------------

-- Schedules: tasks that recur. A row stays until the schedule is deleted.
CREATE TABLE schedule (
    name TEXT PRIMARY KEY,
    definition TEXT NOT NULL, -- JSON of a `NewSchedule` without the payload
    payload BLOB NOT NULL, -- of each task that it submits
    -- Another number after each change and each firing; a firing that names an old one is
    -- refused.
    revision INTEGER NOT NULL,
    paused INTEGER NOT NULL, -- 1 if it is paused
    next_at INTEGER, -- the moment for which it fires next, by its recurrence; NULL for none
    next_due INTEGER, -- when that firing is done: `next_at` and the jitter
    pending_at INTEGER, -- the moment of a firing that waits for the end of `last_task`
    last_at INTEGER, -- the moment for which it fired last
    last_fired_at INTEGER, -- when it did
    last_task INTEGER, -- the task that it submitted then
    error TEXT, -- what went wrong since the last firing that succeeded
    error_at INTEGER,
    fired INTEGER NOT NULL, -- firings that submitted a task
    skipped INTEGER NOT NULL, -- those that were left out because the task before had not ended
    missed INTEGER NOT NULL, -- those that were due while no process ran
    failed INTEGER NOT NULL, -- those that the store refused
    created_at INTEGER NOT NULL
) STRICT;

-- Finds the schedules that are due.
CREATE INDEX schedule_due ON schedule (next_due, name) WHERE paused = 0 AND next_due IS NOT NULL;

-- Finds the firings that wait.
CREATE INDEX schedule_pending ON schedule (name) WHERE pending_at IS NOT NULL;


-- Documents -------------------------------------------------------------------------------------
--
-- Named contents beside tasks, such as templates of workflows. No claim and no submit reads them.

-- Collections that have documents. The row goes with the last document.
CREATE TABLE document_collection (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    documents INTEGER NOT NULL -- how many it has, which is bounded
) STRICT;

-- One row for each document.
CREATE TABLE document (
    id INTEGER PRIMARY KEY,
    collection INTEGER NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL, -- 1 for a new document, and one more after each change
    changed_at INTEGER NOT NULL,
    content_type TEXT NOT NULL, -- the media type of the content
    -- The values of the indexes; NULL behind the last one that was given.
    value0 TEXT,
    value1 TEXT,
    value2 TEXT,
    value3 TEXT,
    content BLOB NOT NULL
) STRICT;

-- Finds a document, and lists a collection in the order of its keys.
CREATE UNIQUE INDEX document_key ON document (collection, key);

-- List a collection in the order of an index. An empty value is in none.
CREATE INDEX document_value0 ON document (collection, value0, key) WHERE value0 <> '';
CREATE INDEX document_value1 ON document (collection, value1, key) WHERE value1 <> '';
CREATE INDEX document_value2 ON document (collection, value2, key) WHERE value2 <> '';
CREATE INDEX document_value3 ON document (collection, value3, key) WHERE value3 <> '';


-- Orchestrations --------------------------------------------------------------------------------
--
-- An orchestration is a task; its attempts are turns. These tables have what it has beside a
-- task. Their rows go with the task.

-- One row for each orchestration, live or ended.
CREATE TABLE instance (
    task INTEGER PRIMARY KEY,
    generation INTEGER NOT NULL DEFAULT 0, -- how often its history began again
    length INTEGER NOT NULL DEFAULT 0, -- events in its history
    bytes INTEGER NOT NULL DEFAULT 0, -- of its history
    received INTEGER NOT NULL DEFAULT 0, -- messages that ever came, which is the number of the last
    status BLOB, -- the last status that its code published
    awaits TEXT, -- JSON of the names of the events that it waits for; NULL for none
    version INTEGER, -- of the code that began it; NULL before it has begun
    -- 0 none; 1 paused; 2 paused with a turn to come; 3 never started.
    hold INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Finds those that were never started, and only keep messages for a later one, to remove them.
CREATE INDEX instance_unstarted ON instance (task) WHERE hold = 3;

-- Values that its code published, by key.
CREATE TABLE instance_value (
    task INTEGER NOT NULL,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (task, key)
) STRICT, WITHOUT ROWID;

-- Messages that wait: signals, results of activities, timers. The turn that consumes one removes
-- it.
CREATE TABLE message (
    task INTEGER NOT NULL,
    number INTEGER NOT NULL, -- counts the messages of the orchestration from 1
    body BLOB NOT NULL, -- CBOR (`orchestration/encoding.rs`)
    PRIMARY KEY (task, number)
) STRICT, WITHOUT ROWID;

-- Histories, in chunks: the events that one turn added.
CREATE TABLE turn (
    task INTEGER NOT NULL,
    first INTEGER NOT NULL, -- the place of the first of them in the history, counted from 0
    events INTEGER NOT NULL, -- how many there are
    chunk BLOB NOT NULL, -- written and read by the engine alone
    PRIMARY KEY (task, first)
) STRICT, WITHOUT ROWID;


-- Events and statistics -------------------------------------------------------------------------

-- Transitions of tasks, one row for each commit that has any. Event streams read it. Submissions
-- are not in it, for they can be told from the tasks. A prune removes the oldest rows.
CREATE TABLE log (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    next_task INTEGER NOT NULL, -- the number that the next task would get after that commit
    changes BLOB NOT NULL -- encoded transitions (`sqlite/log.rs`)
) STRICT;

-- Ended tasks by sub-queue and state.
CREATE TABLE statistics (
    sub_queue INTEGER NOT NULL,
    state INTEGER NOT NULL, -- as in `history`
    ended INTEGER NOT NULL, -- that ever ended so
    in_history INTEGER NOT NULL, -- of them, those in `history`
    attempts INTEGER NOT NULL, -- of completed ones, as are the next three
    wait INTEGER NOT NULL, -- the sum of their times from due to start
    run INTEGER NOT NULL, -- the sum of the times of their last attempts
    run_maximum INTEGER NOT NULL, -- the longest of these
    PRIMARY KEY (sub_queue, state)
) STRICT, WITHOUT ROWID;

-- Bytes that completed tasks of a kind were expected to move, and moved. A kind has a row only if
-- one of its tasks said so.
CREATE TABLE kind_io (
    kind INTEGER PRIMARY KEY,
    totals TEXT NOT NULL -- JSON of an `IoStatistics`
) STRICT;

-- Days on which tasks ended, counted from 1970-01-01 UTC. Old ones are removed when one is added.
CREATE TABLE day (
    day INTEGER PRIMARY KEY
) STRICT;

-- Sums of `statistics.ended` by queue as they were before the first end of a day. The difference
-- to the next day is what ended on that day, so that ends write nothing here but one a day.
CREATE TABLE day_start (
    day INTEGER NOT NULL,
    queue INTEGER NOT NULL,
    state INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    PRIMARY KEY (day, queue, state)
) STRICT, WITHOUT ROWID;


-- Numbers of the store --------------------------------------------------------------------------

-- Single numbers, by name. All of them are there from the beginning.
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO meta (name, value) VALUES
    -- Tasks up to this number are in the tables under "Ready tasks"; the maximum beside other
    -- processes.
    ('index_watermark', 0),
    -- The number of the next task where `log` is empty; `log.next_task` has it otherwise.
    ('next_task', 1),
    -- The order of queues: 0 strict; 1 lenient; 2 interleaved.
    ('queue_mode', 0),
    -- Counts the changes of pauses, limits, queues and the mode, so that processes read them
    -- again.
    ('configuration', 0),
    -- The last `schedule.revision`; none is given twice.
    ('schedule_revision', 0),
    -- Tasks up to this number are in `task_tag`. Those above follow in bulk.
    ('tags_watermark', 0),
    -- The latest moment at which a reservation was found to be over. A clock before it was set
    -- back.
    ('reservations_released_at', -9223372036854775808),
    -- The first row of `log` of which `task_group` may lack something; 0 if it lacks nothing.
    ('deferred_counters_since', 0),
    -- By how many microseconds the time of day was ahead of steady time then.
    ('deferred_counters_offset', 0);
