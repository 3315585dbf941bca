-- Which transaction was the last that has changed what runs in a session that its writer has not opened: who finds the number that it knows need not look at what it runs itself.
CREATE SEQUENCE {schema}.last_interference MINVALUE 0 START 0;

-- Who may say that it has written says this, too.
DO $$
DECLARE
    held record;
BEGIN
    FOR held IN
        SELECT DISTINCT h.grantee FROM pg_catalog.pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) h
        WHERE c.oid = '{schema}.last_write'::regclass AND h.privilege_type = 'UPDATE' AND h.grantee <> c.relowner
    LOOP
        EXECUTE format('GRANT SELECT, UPDATE ON SEQUENCE {schema}.last_interference TO %s',
            CASE WHEN held.grantee = 0 THEN 'PUBLIC' ELSE held.grantee::regrole::text END);
    END LOOP;
END $$;
