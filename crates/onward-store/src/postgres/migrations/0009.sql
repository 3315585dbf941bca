-- Tasks that were completed within transactions of others, until the next transaction that writes takes them in, before it does anything else.
CREATE TABLE {schema}.completion (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task bigint NOT NULL UNIQUE,
    session bigint NOT NULL,
    claim bigint NOT NULL,
    result bytea
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100, autovacuum_vacuum_cost_delay = 0);

-- Who may write tasks looks here before.
DO $$
DECLARE
    held record;
BEGIN
    FOR held IN
        SELECT DISTINCT h.grantee FROM pg_catalog.pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) h
        WHERE c.oid = '{schema}.task'::regclass AND h.privilege_type = 'DELETE' AND h.grantee <> c.relowner
    LOOP
        EXECUTE format('GRANT SELECT, DELETE ON {schema}.completion TO %s',
            CASE WHEN held.grantee = 0 THEN 'PUBLIC' ELSE held.grantee::regrole::text END);
    END LOOP;
END $$;

-- Completes a task within the transaction of the caller, by the lease of an attempt, which is the fence: it is an error if that holds no longer. The task has ended when the
-- transaction commits. Nobody takes the lease away before, for whoever would waits for the lock that this takes.
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
    -- What has the lock and stands still would hold up everybody.
    IF stands_still = '0' OR stands_still::interval > '5 s' THEN
        PERFORM set_config('idle_in_transaction_session_timeout', '5s', true);
    END IF;
    -- Each statement sees what was committed before it, and so what was before the lock.
    PERFORM 1 FROM {schema}.task t JOIN {schema}.item i ON i.sort = 'session' AND i.name = onward_complete.session::text
    WHERE t.id = onward_complete.task AND t.session = onward_complete.session AND (t.body ->> 'claims')::bigint = onward_complete.claim
      AND NOT EXISTS (SELECT 1 FROM {schema}.completion c WHERE c.task = onward_complete.task);
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = format('the lease of claim %s of the task %s holds no longer', claim, task),
            HINT = 'Roll back: another attempt may have done the work by now, or will.';
    END IF;
    INSERT INTO {schema}.completion (task, session, claim, result) VALUES (onward_complete.task, onward_complete.session, onward_complete.claim, onward_complete.result);
    -- Who has written last shall see that somebody has written since.
    PERFORM setval('{schema}.last_write', (SELECT w.last_value + 1 FROM {schema}.last_write w));
    PERFORM pg_notify('onward_{schema}', 'inbox');
END $$;

REVOKE EXECUTE ON FUNCTION {schema}.onward_complete FROM PUBLIC;
