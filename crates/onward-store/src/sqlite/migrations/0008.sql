-- Tags in use, each with how many live and ended tasks have it, and which. What a task's tags are is in its `options`.
CREATE TABLE tag (
    key TEXT NOT NULL, value TEXT NOT NULL, number INTEGER NOT NULL, tasks INTEGER NOT NULL, PRIMARY KEY (key, value)
) STRICT, WITHOUT ROWID;
CREATE TABLE tagged (tag INTEGER NOT NULL, task INTEGER NOT NULL, PRIMARY KEY (tag, task)) STRICT, WITHOUT ROWID;
