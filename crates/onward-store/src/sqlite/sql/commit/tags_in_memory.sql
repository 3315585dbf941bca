-- Copies of the tables that find tasks by tags, in the connection's memory and with the same names.
CREATE TEMP TABLE tag (
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    number INTEGER NOT NULL,
    tasks INTEGER NOT NULL,
    PRIMARY KEY (key, value)
) STRICT, WITHOUT ROWID;
CREATE TEMP TABLE task_tag (
    tag INTEGER NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (tag, task)
) STRICT, WITHOUT ROWID;
INSERT INTO temp.tag (key, value, number, tasks) SELECT key, value, number, tasks FROM main.tag;
INSERT INTO temp.task_tag (tag, task) SELECT tag, task FROM main.task_tag;
