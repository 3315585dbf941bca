-- Who works on what. A lease is on those of the tasks from `first` to `last` that are still in `task`: tasks claimed together share one,
-- and it goes with the last of them. `claim` counts the claims of each of these tasks; with the session it is the fence.
-- `expires_at`: when the task would have expired had it not been claimed; a task with that has a lease of its own.
ALTER TABLE lease RENAME TO lease_of_one;
CREATE TABLE lease (
    first INTEGER PRIMARY KEY, last INTEGER NOT NULL, session INTEGER NOT NULL, claim INTEGER NOT NULL, started_at INTEGER NOT NULL,
    expires_at INTEGER
) STRICT;
INSERT INTO lease SELECT task, task, session, claim, started_at, expires_at FROM lease_of_one;
DROP TABLE lease_of_one;
