-- Which blocked task waits for which live one. `task.scheduled` is 2 for a blocked task. `task.links` has 1 where others depend on it, or
-- did; 2 where it has children; 4 where it has a memo.
CREATE TABLE dependency (task INTEGER NOT NULL, dependent INTEGER NOT NULL, PRIMARY KEY (task, dependent)) STRICT, WITHOUT ROWID;
CREATE INDEX dependency_dependent ON dependency (dependent, task);
ALTER TABLE task ADD COLUMN links INTEGER NOT NULL DEFAULT 0;

-- Tasks that are over and whose dependents with numbers up to `up_to` do not all know yet, in the order of their ends. `state` is 0 for
-- one that was removed; `next_child` is the next child to be cancelled.
CREATE TABLE over (
    number INTEGER PRIMARY KEY AUTOINCREMENT, task INTEGER NOT NULL, state INTEGER NOT NULL, up_to INTEGER NOT NULL,
    next_child INTEGER NOT NULL
) STRICT;

-- Children, live and ended; their parent is among their options too.
CREATE TABLE child (parent INTEGER NOT NULL, child INTEGER NOT NULL, PRIMARY KEY (parent, child)) STRICT, WITHOUT ROWID;

-- What a task left that waits for its children, for when it goes on.
CREATE TABLE memo (task INTEGER PRIMARY KEY, memo BLOB NOT NULL) STRICT;
