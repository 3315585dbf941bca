-- Weights and minimums of groups. `share`: how far groups (0: the tasks without one) have come in the virtual time of a queue, and the queue
-- itself (group -1), among those below their minimum and among the others. `group_head.rank` is the order that follows from it; `task_group.below_minimum`
-- says in which line a group stands. While no group has a weight or a minimum, all of it is empty or 0.
ALTER TABLE task_limit ADD COLUMN weight INTEGER;
ALTER TABLE task_limit ADD COLUMN minimum INTEGER;
ALTER TABLE task_group ADD COLUMN below_minimum INTEGER NOT NULL DEFAULT 0;
CREATE TABLE share (
    queue INTEGER NOT NULL, task_group INTEGER NOT NULL, guaranteed INTEGER NOT NULL, shared INTEGER NOT NULL, PRIMARY KEY (queue, task_group)
) STRICT, WITHOUT ROWID;
ALTER TABLE group_head RENAME TO group_head_without_rank;
CREATE TABLE group_head (
    base INTEGER NOT NULL, rank INTEGER NOT NULL, at INTEGER NOT NULL, task INTEGER NOT NULL, lane INTEGER NOT NULL,
    PRIMARY KEY (base, rank, at, task)
) STRICT, WITHOUT ROWID;
INSERT INTO group_head SELECT base, 0, at, task, lane FROM group_head_without_rank;
DROP TABLE group_head_without_rank;
