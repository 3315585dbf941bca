-- What was submitted within transactions of others, until a process that has the store open makes tasks of it.
CREATE TABLE {schema}.inbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    payload bytea NOT NULL,
    queue text NOT NULL,
    priority smallint NOT NULL,
    key text,
    on_duplicate text NOT NULL,
    keep_key_for bigint NOT NULL,
    run_at bigint,
    grp text,
    tags text NOT NULL,
    ttl bigint,
    timeout bigint,
    deadline bigint,
    affinity text,
    parent bigint,
    depends_on bigint[] NOT NULL,
    submitted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    error text
);
CREATE INDEX inbox_new ON {schema}.inbox (id) WHERE error IS NULL;

-- The largest payload that `onward_submit` takes, in bytes.
ALTER TABLE {schema}.version ADD COLUMN payload_limit bigint NOT NULL DEFAULT 1048576;

CREATE FUNCTION {schema}.onward_check(fine boolean, message text, hint text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF fine IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = message, HINT = hint;
    END IF;
END $$;

CREATE FUNCTION {schema}.onward_check_name(what text, name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM {schema}.onward_check(octet_length(name) BETWEEN 1 AND 128,
        format('the name of a %s has %s bytes', what, coalesce(octet_length(name), 0)), 'It may have 1 to 128.');
    PERFORM {schema}.onward_check(name !~ '[[:cntrl:]]' AND name !~ '^[[:space:]]' AND name !~ '[[:space:]]$',
        format('the name of a %s has control characters or outer white space', what), 'It may have neither.');
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
        PERFORM {schema}.onward_check(octet_length(tag.key) BETWEEN 1 AND 64 AND tag.key !~ '[=[:cntrl:]]',
            format('the tag key %L is empty, too long, or has `=` or control characters', left(tag.key, 32)), 'It may have 1 to 64 bytes.');
        PERFORM {schema}.onward_check(jsonb_typeof(tag.value) = 'string', format('the value of the tag %L is no text', tag.key),
            'Write it in quotes.');
        PERFORM {schema}.onward_check(octet_length(tag.value #>> '{}') <= 256, format('the value of the tag %L has more than 256 bytes', tag.key),
            'Use a digest of it.');
    END LOOP;
END $$;

CREATE FUNCTION {schema}.onward_microseconds(what text, value interval, minimum bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    microseconds numeric := extract(epoch FROM value) * 1000000;
BEGIN
    PERFORM {schema}.onward_check(value IS NULL OR microseconds BETWEEN minimum AND 9e17, format('the %s %s cannot be', what, value),
        format('It is at least %s microseconds, or left out.', minimum));
    RETURN microseconds::bigint;
END $$;

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
    depends_on bigint[] DEFAULT '{}'
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
                                deadline, affinity, parent, depends_on)
    VALUES (onward_submit.kind, bytes, onward_submit.queue, onward_submit.priority, onward_submit.key, onward_submit.on_duplicate,
            coalesce({schema}.onward_microseconds('time for which a key is kept', keep_key_for, 0), 0),
            coalesce((extract(epoch FROM clock_timestamp()) * 1000000)::bigint + due, (extract(epoch FROM onward_submit.run_at) * 1000000)::bigint),
            task_group, onward_submit.tags::text,
            {schema}.onward_microseconds('time to live', onward_submit.ttl, 1), {schema}.onward_microseconds('timeout', onward_submit.timeout, 1),
            (extract(epoch FROM onward_submit.deadline) * 1000000)::bigint, onward_submit.affinity, onward_submit.parent,
            onward_submit.depends_on)
    RETURNING id INTO number;
    -- Heard when the caller commits, and once however many tasks it submits.
    PERFORM pg_notify('onward_{schema}', 'inbox');
    RETURN number;
END $$;

REVOKE EXECUTE ON FUNCTION {schema}.onward_submit FROM PUBLIC;
