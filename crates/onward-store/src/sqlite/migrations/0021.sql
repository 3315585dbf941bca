-- Ended tasks that said how long they are kept, and until when that is. All others are pruned in the order of their ends.
CREATE TABLE retained (until INTEGER NOT NULL, task INTEGER NOT NULL, PRIMARY KEY (until, task)) STRICT, WITHOUT ROWID;
