-- What is kept of an orchestration beside its task. One that has neither had a turn nor a message has no row.
CREATE TABLE instance (
    task INTEGER PRIMARY KEY, generation INTEGER NOT NULL DEFAULT 0, length INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0,
    received INTEGER NOT NULL DEFAULT 0, status BLOB
) STRICT;
CREATE TABLE instance_value (
    task INTEGER NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (task, key)
) STRICT, WITHOUT ROWID;

-- What came for an orchestration and was not taken in yet.
CREATE TABLE message (
    task INTEGER NOT NULL, number INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (task, number)
) STRICT, WITHOUT ROWID;

-- The history of an orchestration: the events of a turn in a row, under the place of the first.
CREATE TABLE turn (
    task INTEGER NOT NULL, first INTEGER NOT NULL, events INTEGER NOT NULL, chunk BLOB NOT NULL, PRIMARY KEY (task, first)
) STRICT, WITHOUT ROWID;
