-- Attempts that wait to be finished from elsewhere: which claim, how (as JSON), until when, and when the task expires if it is tried again.
-- Such a task is blocked, and `task.links` has 8.
CREATE TABLE awaited (
    task INTEGER PRIMARY KEY, claim INTEGER NOT NULL, wait TEXT NOT NULL, until INTEGER, expires_at INTEGER
) STRICT;
CREATE INDEX awaited_until ON awaited (until, task) WHERE until IS NOT NULL;

-- To which queue a running task goes when its attempt is over and the task is not; `task.links` has 16, or had.
CREATE TABLE moving (task INTEGER PRIMARY KEY, queue TEXT NOT NULL) STRICT;
