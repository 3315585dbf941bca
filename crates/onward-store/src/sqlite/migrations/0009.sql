-- Which blocked task waits for which live one. `task.scheduled` is 2 for a blocked task, and `task.links` has 1 where others depend, or did.
CREATE TABLE dependency (task INTEGER NOT NULL, dependent INTEGER NOT NULL, PRIMARY KEY (task, dependent)) STRICT, WITHOUT ROWID;
CREATE INDEX dependency_dependent ON dependency (dependent, task);
ALTER TABLE task ADD COLUMN links INTEGER NOT NULL DEFAULT 0;

-- Tasks that are over and whose dependents with numbers up to `up_to` do not all know yet, in the order of their ends. `state` is 0 for
-- one that was removed.
CREATE TABLE over (
    number INTEGER PRIMARY KEY AUTOINCREMENT, task INTEGER NOT NULL, state INTEGER NOT NULL, up_to INTEGER NOT NULL
) STRICT;
