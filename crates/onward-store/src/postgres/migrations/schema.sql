-- The tables of a store on PostgreSQL: schema 1, the first that was released.
--
-- This file both creates a new store and documents it. The program replaces `{schema}` by the name
-- of the PostgreSQL schema that holds the store. Once 0.1 is released, statements here never
-- change. Schema 2 will be a script of its own, `migrations/0002.sql`, which runs after this one in
-- a new store and alone in an old one. Comments may change at any time.
--
-- Conventions:
-- * Only the store writes, except for the two functions at the end, which other programs call. A
--   writing transaction holds the advisory lock `onward {schema}`, so writing transactions run one
--   after another.
-- * The program decides what a transaction writes, over the rows that it has loaded. So a value has
--   a column only if a query searches by it, or if it changes often. The rest of a task is in
--   `task.body`.
-- * Queues, kinds and groups are stored by name. The number of a task is `task.id` or `history.id`.
--   Numbers of tasks and sessions are never reused.
-- * Times are microseconds since 1970-01-01 UTC, by the server's clock. Durations are microseconds.
-- * Names sort by their bytes (`COLLATE "C"`), as they do in the program.
-- * Numbers that change with every transaction are sequences, which leave no dead rows for vacuum.
--   A rollback does not take them back, so numbers may be skipped, and are never assigned twice.
-- * There are no foreign keys. The store removes the rows of a task together.


-- The store -------------------------------------------------------------------------------------

-- The schema's version, in one row. A role that uses the store needs the right to read it.
CREATE TABLE {schema}.version (
    version integer NOT NULL, -- the number of the schema
    -- The largest payload and result that the functions accept, in bytes.
    payload_limit bigint NOT NULL DEFAULT 1048576,
    -- Distinguishes stores of released versions. Development versions, before 0.1, numbered their
    -- schemas 1 to 10 in a table without this column, and are rejected.
    application text NOT NULL DEFAULT 'onward'
);
INSERT INTO {schema}.version (version) VALUES (1);

-- The numbers that the store assigned last.
CREATE SEQUENCE {schema}.last_task MINVALUE 0 START 0;
CREATE SEQUENCE {schema}.last_session MINVALUE 0 START 0;
-- The number of the last end of a task (`task.end_number`).
CREATE SEQUENCE {schema}.ends MINVALUE 0 START 0;
-- The number of the last entry of the log.
CREATE SEQUENCE {schema}.last_entry MINVALUE 0 START 0;
-- The number of changes to `small_state`. A process whose copy has this number need not read the table.
CREATE SEQUENCE {schema}.last_small_state MINVALUE 0 START 0;
-- The number of transactions that wrote. A process that finds the number of its own last one knows
-- that no other process has written since.
CREATE SEQUENCE {schema}.last_write MINVALUE 0 START 0;
-- The value of `last_write` at the last transaction that changed what runs in a session which its
-- writer had not opened. A process that finds the number it knows need not read its running tasks
-- again.
CREATE SEQUENCE {schema}.last_invalidation MINVALUE 0 START 0;

-- Writing processes, each with its last batch, which shows after a lost connection if the batch was
-- committed. Opening a store removes rows that are older than a day. Pages are kept nearly empty,
-- so that each update stays on its page.
CREATE TABLE {schema}.writer (
    id bigint NOT NULL PRIMARY KEY, -- drawn at random by each writer
    batch bigint NOT NULL, -- counts its batches
    at timestamptz NOT NULL
) WITH (fillfactor = 10);

-- The small state: everything that is not a task, as named rows of JSON. Pages are kept half empty,
-- so that an update stays on its page. The sorts are:
-- * `queue`, `kind`, `group`: names in use; no body
-- * `settings`: settings of a queue (weight, concurrency, affinity wait)
-- * `limit`, `pause`: by their scope
-- * `bucket`: token buckets, by what they limit, with the steady time at which each is full
-- * `fair_share`: the virtual time that groups of a queue have reached
-- * `session`: registered workers and their leases
-- * `affinity`: affinity keys and the session that each prefers
-- * `schedule`: recurring tasks
-- * `pending_batch`: pending batches and their items
-- * `unpropagated_ends`: one list of ended tasks that have not notified all dependents yet
-- * `store`: one row with the queue mode and two counters
CREATE TABLE {schema}.small_state (
    sort text COLLATE "C" NOT NULL,
    -- Plain text for the first three sorts; empty for a sort with one row; otherwise JSON.
    name text COLLATE "C" NOT NULL,
    body text NOT NULL, -- JSON (`postgres/working_set/small_state.rs`)
    PRIMARY KEY (sort, name)
) WITH (fillfactor = 50);


-- Tasks -----------------------------------------------------------------------------------------

-- Live tasks: scheduled, waiting, running and blocked. A submission inserts a row, and the end of
-- the task moves it to `history`. Vacuum starts early and does not pause, because rows leave as fast
-- as they arrive.
CREATE TABLE {schema}.task (
    id bigint NOT NULL PRIMARY KEY,
    -- 1 scheduled; 2 waiting; 3 running; 9 blocked. Ended tasks: 4 completed; 5 failed; 6 dead
    -- letter; 7 cancelled; 8 expired.
    state smallint NOT NULL,
    queue text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    task_group text COLLATE "C" NOT NULL, -- the group; empty for none
    affinity text COLLATE "C" NOT NULL, -- the affinity key; empty for none
    -- The sort key: the due time, plus 60 s for each level of priority below 255.
    sort_key bigint NOT NULL,
    priority smallint NOT NULL, -- 0 to 255; the highest goes first
    run_at bigint NOT NULL, -- when it is or was due
    expires_at bigint, -- when it expires unless an attempt has started
    -- For a live task, the time at which its attempt fails unless it is completed externally. For
    -- an ended one that was submitted with a retention, the time until which it is kept.
    overdue_at bigint,
    session bigint, -- the session that runs it; with `claims` in `body` it is the fence
    cancel_requested boolean NOT NULL, -- its worker is asked to stop
    parent bigint,
    submitted_at bigint NOT NULL,
    key bytea, -- the unique key, if it has one
    payload bytea,
    result bytea, -- of a completed task, if its handler returned one
    finished_at bigint, -- this and the next two are set for ended tasks only
    end_number bigint, -- orders tasks by when they ended
    ended_in bigint, -- the entry of the log with its end
    body json NOT NULL, -- the rest, without default values (`postgres/working_set/task_row.rs`)
    -- The state of an orchestration without history and messages, as CBOR
    -- (`orchestration/encoding.rs`).
    instance bytea,
    orchestration boolean NOT NULL DEFAULT false -- a column of its own, for the ready list
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- The ready list: a claim walks it sub-queue by sub-queue. It contains only waiting tasks.
-- Orchestrations have sub-queues of their own, because an engine claims only those whose code it
-- has.
CREATE INDEX task_waiting ON {schema}.task (queue, kind, task_group, orchestration, affinity, sort_key, id) WHERE state = 2;

-- Finds tasks that become due.
CREATE INDEX task_scheduled ON {schema}.task (run_at, id) WHERE state = 1;

-- Finds tasks that expire.
CREATE INDEX task_expiring ON {schema}.task (expires_at, id) WHERE expires_at IS NOT NULL AND session IS NULL;

-- Finds attempts that were not completed in time.
CREATE INDEX task_overdue ON {schema}.task (overdue_at, id) WHERE overdue_at IS NOT NULL;

-- Finds the tasks of a session. Tasks that are asked to stop come first: each claim and each
-- renewal of a lease asks for them, and there are nearly none.
CREATE INDEX task_session ON {schema}.task (session, cancel_requested, id) WHERE session IS NOT NULL;

-- Finds children.
CREATE INDEX task_parent ON {schema}.task (parent) WHERE parent IS NOT NULL;

-- Ended tasks, with the columns of `task`. The end of a task inserts a row, a prune or a purge
-- removes it, and a retry moves it back.
CREATE TABLE {schema}.history (LIKE {schema}.task INCLUDING DEFAULTS, PRIMARY KEY (id));

-- Finds the oldest ends, for a prune.
CREATE INDEX history_end ON {schema}.history (end_number) WHERE overdue_at IS NULL;

-- Finds tasks whose own retention is over.
CREATE INDEX history_overdue ON {schema}.history (overdue_at, id) WHERE overdue_at IS NOT NULL;

-- Finds children.
CREATE INDEX history_parent ON {schema}.history (parent) WHERE parent IS NOT NULL;

-- Live and ended tasks by tag.
CREATE TABLE {schema}.task_tag (
    tag bytea NOT NULL, -- `key=value`
    task bigint NOT NULL,
    PRIMARY KEY (tag, task)
);

-- Removes the tags of a task.
CREATE INDEX task_tag_task ON {schema}.task_tag (task);

-- Unique keys, each with the task that holds it. The end of the task removes the row, unless the
-- submitter asked to keep the key longer.
CREATE TABLE {schema}.unique_key (
    kind text COLLATE "C" NOT NULL,
    key bytea NOT NULL,
    task bigint NOT NULL,
    until bigint, -- the time until which it is kept; NULL while its task is live
    PRIMARY KEY (kind, key)
);

-- Finds expired keys.
CREATE INDEX unique_key_until ON {schema}.unique_key (until) WHERE until IS NOT NULL;

-- Blocked tasks, and the live tasks that they depend on. The end of either removes the row.
CREATE TABLE {schema}.dependency (
    task bigint NOT NULL, -- the one to end first
    dependent bigint NOT NULL, -- the one that is blocked
    PRIMARY KEY (task, dependent)
);

-- Finds the remaining dependencies of a task.
CREATE INDEX dependency_dependent ON {schema}.dependency (dependent, task);

-- Items of batches, each with its batch, which is a task as well. The row stays as long as the item
-- does. Items of pending batches are in `small_state`.
CREATE TABLE {schema}.batch_item (
    task bigint NOT NULL PRIMARY KEY,
    batch bigint NOT NULL -- the batch
);

-- Finds the items of a batch.
CREATE INDEX batch_item_batch ON {schema}.batch_item (batch, task);


-- Documents -------------------------------------------------------------------------------------
--
-- Named contents beside tasks, such as templates of workflows. No process keeps them in memory:
-- each write reads the rows that it expects something of.

-- Collections that have documents. The row goes with the last document.
CREATE TABLE {schema}.document_collection (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    documents bigint NOT NULL -- how many it has, which is bounded
);

-- One row for each document. Keys and values of indexes are bytes, since text cannot hold every
-- character.
CREATE TABLE {schema}.document (
    collection text COLLATE "C" NOT NULL,
    key bytea NOT NULL,
    version bigint NOT NULL, -- 1 for a new document, and one more after each change
    changed_at bigint NOT NULL,
    content_type text NOT NULL, -- the media type of the content
    -- The values of the indexes; NULL behind the last one that was given.
    value0 bytea,
    value1 bytea,
    value2 bytea,
    value3 bytea,
    content bytea NOT NULL,
    PRIMARY KEY (collection, key)
);

-- List a collection in the order of an index. An empty value is in none.
CREATE INDEX document_value0 ON {schema}.document (collection, value0, key) WHERE value0 <> '';
CREATE INDEX document_value1 ON {schema}.document (collection, value1, key) WHERE value1 <> '';
CREATE INDEX document_value2 ON {schema}.document (collection, value2, key) WHERE value2 <> '';
CREATE INDEX document_value3 ON {schema}.document (collection, value3, key) WHERE value3 <> '';


-- Orchestrations --------------------------------------------------------------------------------

-- Unread messages of orchestrations: signals, results of activities, timers. The turn that consumes
-- a message removes it. Each is a row, so that a further one costs the same however many are
-- unread.
CREATE TABLE {schema}.message (
    task bigint NOT NULL,
    number bigint NOT NULL, -- counts the messages of the orchestration from 1
    body bytea NOT NULL, -- CBOR (`orchestration/encoding.rs`)
    PRIMARY KEY (task, number)
);

-- Histories, in chunks: the events that one turn appended. The rows are removed with the task.
CREATE TABLE {schema}.turn (
    task bigint NOT NULL,
    first bigint NOT NULL, -- the position of the first event in the history, counted from 0
    events bigint NOT NULL, -- the number of events
    chunk bytea NOT NULL, -- written and read by the engine alone
    PRIMARY KEY (task, first)
);


-- Output ----------------------------------------------------------------------------------------

-- The output that is kept of tasks, in pieces: the beginning and the end of each stream of the
-- last attempt that wrote any. The body of the task says which attempt that was and how much it
-- wrote. The rows go with the task.
CREATE TABLE {schema}.output_piece (
    task bigint NOT NULL,
    stream smallint NOT NULL, -- 0 standard output; 1 standard error
    at bigint NOT NULL, -- how many bytes the attempt wrote to the stream before this piece
    length integer NOT NULL, -- how many bytes of output it has
    bytes bytea NOT NULL, -- the output, encoded where the store has a codec
    PRIMARY KEY (task, stream, at)
);


-- Events and statistics -------------------------------------------------------------------------

-- Transitions of tasks, one row for each call that causes any. Event streams read it. Submissions
-- are not in it, because the rows of the tasks show them. A prune removes the oldest rows.
CREATE TABLE {schema}.log (
    entry bigint NOT NULL PRIMARY KEY,
    next_task bigint NOT NULL, -- the number that the next task would get after that call
    changes text NOT NULL -- JSON (`postgres/working_set/log_entry.rs`)
);

-- Ended tasks by kind and state. Ends only add to the numbers.
CREATE TABLE {schema}.statistics (
    kind text COLLATE "C" NOT NULL PRIMARY KEY,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    dead bigint NOT NULL,
    cancelled bigint NOT NULL,
    expired bigint NOT NULL,
    attempts bigint NOT NULL, -- of completed ones, as is all that follows
    wait bigint NOT NULL, -- the sum of their times from due to start
    run bigint NOT NULL, -- the sum of the times of their last attempts
    run_maximum bigint NOT NULL, -- the longest of these
    io_tasks bigint NOT NULL, -- those with expected or recorded bytes
    -- Bytes in the order of `IoKind::ALL`: four sums of those expected, then four of those
    -- recorded.
    io numeric[] NOT NULL
);

-- Ended tasks by day and queue. A new day removes rows that are too old.
CREATE TABLE {schema}.day (
    day bigint NOT NULL, -- counted from 1970-01-01 UTC
    queue text COLLATE "C" NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    dead bigint NOT NULL,
    cancelled bigint NOT NULL,
    expired bigint NOT NULL,
    PRIMARY KEY (day, queue)
);


-- Tables and functions for other programs ---------------------------------------------------------------------
--
-- Two functions run within the caller's own transaction. They have the rights of their owner, so a
-- caller needs `USAGE` on the schema and `EXECUTE` on the function, and no right on a table. A
-- process that has the store open picks up what they insert.

-- Tasks that `onward_submit` submitted. The process that submits one to the store removes its row.
-- One that the store rejects stays, with the reason. The columns have the meaning of the function's
-- arguments.
CREATE TABLE {schema}.inbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    payload bytea NOT NULL,
    queue text NOT NULL,
    priority smallint NOT NULL,
    key text,
    on_duplicate text NOT NULL, -- `skip`, `supersede` or `requeue`
    keep_key_for bigint NOT NULL,
    run_at bigint,
    task_group text,
    tags text NOT NULL, -- a JSON object
    ttl bigint,
    timeout bigint,
    deadline bigint,
    affinity text,
    parent bigint,
    depends_on bigint[] NOT NULL,
    submitted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    error text, -- why the store rejected it; NULL otherwise
    heartbeat_timeout bigint,
    retention bigint
);

-- Finds rows that can be submitted.
CREATE INDEX inbox_new ON {schema}.inbox (id) WHERE error IS NULL;

-- Tasks that `onward_complete` completed. The next writing transaction of a store ends them before
-- it does anything else, and removes the rows. Vacuum starts after few rows, because every
-- transaction reads this table.
CREATE TABLE {schema}.completion (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task bigint NOT NULL UNIQUE,
    session bigint NOT NULL,
    claim bigint NOT NULL,
    result bytea
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100, autovacuum_vacuum_cost_delay = 0);

-- Raises an error unless a condition holds.
CREATE FUNCTION {schema}.onward_check(fine boolean, message text, hint text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF fine IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = message, HINT = hint;
    END IF;
END $$;

-- The next three functions check arguments as the program does.

-- Raises an error for an invisible character: a control, a direction mark, or one without a shape.
-- A joiner or a variation selector may follow a character whose shape it changes.
CREATE FUNCTION {schema}.onward_check_seen(what text, name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    code integer;
    before integer := 0;
BEGIN
    IF name ~ '^[ -~]*$' COLLATE "C" THEN
        RETURN;
    END IF;
    FOR place IN 1..char_length(name) LOOP
        code := ascii(substr(name, place, 1));
        PERFORM {schema}.onward_check(NOT (
            code < 32 OR code BETWEEN 127 AND 159
            OR code IN (173, 847, 1564, 4447, 4448, 6068, 6069, 6158, 8203, 8206, 8207, 12644, 65279, 65440)
            OR code BETWEEN 8232 AND 8238 OR code BETWEEN 8288 AND 8303 OR code BETWEEN 65520 AND 65531
            OR code BETWEEN 113824 AND 113827 OR code BETWEEN 119155 AND 119162
            OR code BETWEEN 917504 AND 917759 OR code BETWEEN 918000 AND 921599
            OR before < 1536 AND (code IN (6155, 6156, 6157, 6159, 8204, 8205)
                OR code BETWEEN 65024 AND 65039 OR code BETWEEN 917760 AND 917999)),
            format('the %s has the character U+%s at position %s, which is not seen', what,
                upper(lpad(to_hex(code), greatest(4, length(to_hex(code))), '0')), place),
            'Leave it out.');
        before := code;
    END LOOP;
END $$;

CREATE FUNCTION {schema}.onward_check_name(what text, name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM {schema}.onward_check(octet_length(name) BETWEEN 1 AND 128,
        format('the name of a %s has %s bytes', what, coalesce(octet_length(name), 0)), 'It may have 1 to 128.');
    PERFORM {schema}.onward_check_seen(format('name of a %s', what), name);
    PERFORM {schema}.onward_check(name !~ '^[[:space:]]' AND name !~ '[[:space:]]$',
        format('the name of a %s has outer white space', what), 'It may have none.');
END $$;

CREATE FUNCTION {schema}.onward_check_tags(tags jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tag record;
BEGIN
    PERFORM {schema}.onward_check(jsonb_typeof(tags) = 'object', 'the tags are no JSON object',
        'Write them as {"customer": "42"}.');
    PERFORM {schema}.onward_check((SELECT count(*) FROM jsonb_object_keys(tags)) <= 32, 'a task has more than 32 tags',
        'Put what is never searched for in the payload.');
    FOR tag IN SELECT key, value FROM jsonb_each(tags) LOOP
        PERFORM {schema}.onward_check(octet_length(tag.key) BETWEEN 1 AND 64 AND tag.key !~ '=',
            format('the tag key %L is empty, too long, or has `=`', left(tag.key, 32)), 'It may have 1 to 64 bytes.');
        PERFORM {schema}.onward_check_seen('tag key', tag.key);
        PERFORM {schema}.onward_check(jsonb_typeof(tag.value) = 'string', format('the value of the tag %L is no text', tag.key),
            'Write it in quotes.');
        PERFORM {schema}.onward_check(octet_length(tag.value #>> '{}') <= 256, format('the value of the tag %L has more than 256 bytes', tag.key),
            'Use a digest of it.');
    END LOOP;
END $$;

-- Converts an interval to microseconds; the result is at least `minimum`.
CREATE FUNCTION {schema}.onward_microseconds(what text, value interval, minimum bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    microseconds numeric := extract(epoch FROM value) * 1000000;
BEGIN
    PERFORM {schema}.onward_check(value IS NULL OR microseconds BETWEEN minimum AND 9e17, format('the %s %s cannot be', what, value),
        format('It is at least %s microseconds, or left out.', minimum));
    RETURN microseconds::bigint;
END $$;

-- Submits a task within the caller's transaction: the task exists when that commits. Returns the
-- number of the row in the inbox, not that of the task.
CREATE FUNCTION {schema}.onward_submit(
    kind text,
    payload text DEFAULT '',
    payload_bytes bytea DEFAULT NULL,
    queue text DEFAULT 'default',
    priority integer DEFAULT 128,
    key text DEFAULT NULL,
    on_duplicate text DEFAULT 'skip',
    keep_key_for interval DEFAULT '0',
    delay interval DEFAULT NULL,
    run_at timestamptz DEFAULT NULL,
    task_group text DEFAULT NULL,
    tags jsonb DEFAULT '{}',
    ttl interval DEFAULT NULL,
    timeout interval DEFAULT NULL,
    deadline timestamptz DEFAULT NULL,
    affinity text DEFAULT NULL,
    parent bigint DEFAULT NULL,
    depends_on bigint[] DEFAULT '{}',
    heartbeat_timeout interval DEFAULT NULL,
    retention interval DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    bytes bytea := coalesce(payload_bytes, convert_to(payload, 'UTF8'), '');
    most bigint := (SELECT v.payload_limit FROM {schema}.version v);
    due bigint := CASE WHEN delay IS NOT NULL THEN {schema}.onward_microseconds('delay', delay, 0) END;
    number bigint;
BEGIN
    -- A caller that passes all arguments passes NULL for those that it leaves out.
    queue := coalesce(queue, 'default');
    priority := coalesce(priority, 128);
    on_duplicate := coalesce(on_duplicate, 'skip');
    tags := coalesce(tags, '{}');
    depends_on := coalesce(depends_on, '{}');
    PERFORM {schema}.onward_check_name('kind', kind);
    PERFORM {schema}.onward_check_name('queue', queue);
    IF task_group IS NOT NULL THEN PERFORM {schema}.onward_check_name('group', task_group); END IF;
    IF affinity IS NOT NULL THEN PERFORM {schema}.onward_check_name('affinity key', affinity); END IF;
    PERFORM {schema}.onward_check(octet_length(bytes) <= most,
        format('the payload of a task of kind `%s` has %s bytes and the limit is %s', kind, octet_length(bytes), most),
        'Keep the data elsewhere and pass a reference.');
    PERFORM {schema}.onward_check(priority BETWEEN 0 AND 255, format('the priority %s cannot be', priority), 'It is 0 to 255.');
    PERFORM {schema}.onward_check(key IS NULL OR octet_length(key) BETWEEN 1 AND 512, 'the key is empty or has more than 512 bytes',
        'Leave it out, or use a digest of it.');
    PERFORM {schema}.onward_check(on_duplicate IN ('skip', 'supersede', 'requeue'),
        format('`%s` is nothing that can be done with a duplicate', on_duplicate), 'It is skip, supersede or requeue.');
    PERFORM {schema}.onward_check(delay IS NULL OR run_at IS NULL, 'both a delay and a moment are given', 'Leave one of them out.');
    PERFORM {schema}.onward_check(cardinality(depends_on) <= 1000, 'a task depends on more than 1000 others',
        'Have it depend on a task that depends on them.');
    PERFORM {schema}.onward_check_tags(tags);
    INSERT INTO {schema}.inbox (kind, payload, queue, priority, key, on_duplicate, keep_key_for, run_at, task_group, tags, ttl, timeout,
                                deadline, affinity, parent, depends_on, heartbeat_timeout, retention)
    VALUES (onward_submit.kind, bytes, onward_submit.queue, onward_submit.priority, onward_submit.key, onward_submit.on_duplicate,
            coalesce({schema}.onward_microseconds('time for which a key is kept', keep_key_for, 0), 0),
            coalesce((extract(epoch FROM clock_timestamp()) * 1000000)::bigint + due, (extract(epoch FROM onward_submit.run_at) * 1000000)::bigint),
            task_group, onward_submit.tags::text,
            {schema}.onward_microseconds('time to live', onward_submit.ttl, 1), {schema}.onward_microseconds('timeout', onward_submit.timeout, 1),
            (extract(epoch FROM onward_submit.deadline) * 1000000)::bigint, onward_submit.affinity, onward_submit.parent,
            onward_submit.depends_on, {schema}.onward_microseconds('heartbeat timeout', onward_submit.heartbeat_timeout, 1),
            {schema}.onward_microseconds('retention', onward_submit.retention, 0))
    RETURNING id INTO number;
    -- Sent when the caller commits, and once however many tasks it submits.
    PERFORM pg_notify('onward_{schema}', 'inbox');
    RETURN number;
END $$;

REVOKE EXECUTE ON FUNCTION {schema}.onward_submit FROM PUBLIC;

-- Completes a task within the caller's transaction, by the lease of an attempt. The lease is the
-- fence: the function raises an error if it no longer holds. The task has ended when the
-- transaction commits. Until then no other process can take the lease away, because it waits for
-- the lock that this function takes.
CREATE FUNCTION {schema}.onward_complete(
    task bigint,
    session bigint,
    claim bigint,
    result bytea DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    most bigint := (SELECT v.payload_limit FROM {schema}.version v);
    stands_still text := current_setting('idle_in_transaction_session_timeout');
BEGIN
    PERFORM {schema}.onward_check(task IS NOT NULL AND session IS NOT NULL AND claim IS NOT NULL, 'a part of the lease is missing',
        'Pass all three numbers that the attempt has.');
    PERFORM {schema}.onward_check(coalesce(octet_length(result), 0) <= most,
        format('the result of the task %s has %s bytes and the limit is %s', task, octet_length(result), most),
        'Keep the data elsewhere and pass a reference.');
    PERFORM {schema}.onward_check(current_setting('transaction_isolation') = 'read committed',
        'the transaction does not see what others commit', 'Begin it as READ COMMITTED.');
    PERFORM pg_advisory_xact_lock(hashtextextended('onward {schema}', 0));
    -- A transaction that holds the lock and stands still would hold up all others.
    IF stands_still = '0' OR stands_still::interval > '5 s' THEN
        PERFORM set_config('idle_in_transaction_session_timeout', '5s', true);
    END IF;
    -- Each statement sees what was committed before it, and so all that was written before the
    -- lock.
    PERFORM 1 FROM {schema}.task t JOIN {schema}.small_state i ON i.sort = 'session' AND i.name = onward_complete.session::text
    WHERE t.id = onward_complete.task AND t.session = onward_complete.session AND (t.body ->> 'claims')::bigint = onward_complete.claim
      AND NOT EXISTS (SELECT 1 FROM {schema}.completion c WHERE c.task = onward_complete.task);
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = format('the lease of claim %s of the task %s holds no longer', claim, task),
            HINT = 'Roll back: another attempt may have done the work by now, or will.';
    END IF;
    INSERT INTO {schema}.completion (task, session, claim, result) VALUES (onward_complete.task, onward_complete.session, onward_complete.claim, onward_complete.result);
    -- Shows the process that wrote last that another has written since.
    PERFORM setval('{schema}.last_write', (SELECT w.last_value + 1 FROM {schema}.last_write w));
    PERFORM pg_notify('onward_{schema}', 'inbox');
END $$;

REVOKE EXECUTE ON FUNCTION {schema}.onward_complete FROM PUBLIC;
