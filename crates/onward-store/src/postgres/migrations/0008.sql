-- Of an ended task `overdue_at` is until when it is kept, where its submitter said how long that is. Those that did not say so are pruned in the order of their ends, and
-- the others in the order of that.
DROP INDEX {schema}.ended_end;
CREATE INDEX ended_end ON {schema}.ended (end_number) WHERE overdue_at IS NULL;
CREATE INDEX ended_overdue ON {schema}.ended (overdue_at, id) WHERE overdue_at IS NOT NULL;

-- `onward_submit` takes a retention, too, as with schema 7 a heartbeat timeout.
ALTER TABLE {schema}.inbox ADD COLUMN retention bigint;

SELECT set_config('onward.may_submit', p.proacl::text, true) FROM pg_catalog.pg_proc p WHERE p.oid = '{schema}.onward_submit'::regproc;

DROP FUNCTION {schema}.onward_submit;

-- Submits a task within the transaction of the caller: it exists when that commits. Answers its number in the inbox.
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
    -- Who passes all arguments says NULL where there is nothing to say.
    queue := coalesce(queue, 'default');
    priority := coalesce(priority, 128);
    on_duplicate := coalesce(on_duplicate, 'skip');
    tags := coalesce(tags, '{}');
    depends_on := coalesce(depends_on, '{}');
    PERFORM {schema}.onward_check_name('kind', kind);
    PERFORM {schema}.onward_check_name('queue', queue);
    IF task_group IS NOT NULL THEN PERFORM {schema}.onward_check_name('group', task_group); END IF;
    IF affinity IS NOT NULL THEN PERFORM {schema}.onward_check_name('series', affinity); END IF;
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
    INSERT INTO {schema}.inbox (kind, payload, queue, priority, key, on_duplicate, keep_key_for, run_at, grp, tags, ttl, timeout,
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
    -- Heard when the caller commits, and once however many tasks it submits.
    PERFORM pg_notify('onward_{schema}', 'inbox');
    RETURN number;
END $$;

REVOKE EXECUTE ON FUNCTION {schema}.onward_submit FROM PUBLIC;

DO $$
DECLARE
    held record;
BEGIN
    FOR held IN
        SELECT h.grantee, h.is_grantable FROM aclexplode(nullif(current_setting('onward.may_submit', true), '')::aclitem[]) h
        WHERE h.privilege_type = 'EXECUTE' AND h.grantee <> (SELECT p.proowner FROM pg_proc p WHERE p.oid = '{schema}.onward_submit'::regproc)
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION {schema}.onward_submit TO %s%s',
            CASE WHEN held.grantee = 0 THEN 'PUBLIC' ELSE held.grantee::regrole::text END, CASE WHEN held.is_grantable THEN ' WITH GRANT OPTION' END);
    END LOOP;
END $$;
