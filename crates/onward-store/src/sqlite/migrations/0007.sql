-- Tasks that recur. `definition` is JSON without the payload. `next_at` is the moment of the next firing in the schedule's terms and
-- `next_due` when it is to be done; `held` is the moment of a firing that waits for the end of `last_task`.
CREATE TABLE schedule (
    name TEXT PRIMARY KEY, definition TEXT NOT NULL, payload BLOB NOT NULL, revision INTEGER NOT NULL, paused INTEGER NOT NULL,
    next_at INTEGER, next_due INTEGER, held INTEGER, last_at INTEGER, last_fired_at INTEGER, last_task INTEGER,
    error TEXT, error_at INTEGER, fired INTEGER NOT NULL, skipped INTEGER NOT NULL, missed INTEGER NOT NULL, failed INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX schedule_due ON schedule (next_due, name) WHERE paused = 0 AND next_due IS NOT NULL;
CREATE INDEX schedule_held ON schedule (name) WHERE held IS NOT NULL;

-- The revision of a schedule given last: none is given twice.
INSERT INTO meta VALUES ('schedule_revision', 0);
