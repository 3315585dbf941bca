-- Groups. `running` counts the group's leases, and only where the group has a limit; `full_at` is when its token bucket is full, by steady time in nanoseconds.
-- `held_back`: its lines are out of `group_head` because of a limit or a pause. `due_at`: it has due tasks, no token, and gets the next then.
CREATE TABLE task_group (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, running INTEGER NOT NULL DEFAULT 0, full_at INTEGER,
    held_back INTEGER NOT NULL DEFAULT 0, due_at INTEGER
) STRICT;

-- A line of tasks that are claimable or not together: of a queue, a kind and a group. Lanes without a group (0) have numbers below 2^32.
ALTER TABLE lane RENAME TO lane_without_group;
CREATE TABLE lane (
    id INTEGER PRIMARY KEY, queue INTEGER NOT NULL, kind INTEGER NOT NULL, task_group INTEGER NOT NULL DEFAULT 0,
    UNIQUE (queue, kind, task_group)
) STRICT;
INSERT INTO lane (id, queue, kind) SELECT id, queue, kind FROM lane_without_group;
DROP TABLE lane_without_group;
CREATE INDEX lane_task_group ON lane (task_group) WHERE task_group > 0;

-- The first due task of each lane with a group that is not held back, by the lane without a group of the same queue and kind. Like
-- `group_due` it is empty while a process that is alone keeps it in memory (`meta.frontier`).
CREATE TABLE group_head (
    base INTEGER NOT NULL, at INTEGER NOT NULL, task INTEGER NOT NULL, lane INTEGER NOT NULL, PRIMARY KEY (base, at, task)
) STRICT, WITHOUT ROWID;

-- `task_group.due_at` in its order.
CREATE TABLE group_due (at INTEGER NOT NULL, task_group INTEGER NOT NULL, PRIMARY KEY (at, task_group)) STRICT, WITHOUT ROWID;

-- Limits. `scope` is 0 for all, 1 for a queue (whose concurrency is in `queue`), 2 for a kind, 3 for a group, 4 for groups whose names begin
-- so. `running` and `full_at` as in `task_group`, for the first three.
CREATE TABLE task_limit (
    scope INTEGER NOT NULL, name TEXT NOT NULL, concurrency INTEGER, rate_tasks INTEGER, rate_per INTEGER, rate_burst INTEGER,
    running INTEGER NOT NULL DEFAULT 0, full_at INTEGER, PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;
