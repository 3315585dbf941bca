-- Due tasks in an order in which they age: a level of priority is worth 60 seconds of waiting (`limits::PRIORITY_LEVEL`).
DROP TABLE ready;
CREATE TABLE ready (
    lane INTEGER NOT NULL, at INTEGER NOT NULL, task INTEGER NOT NULL, PRIMARY KEY (lane, at, task)
) STRICT, WITHOUT ROWID;
INSERT INTO ready
SELECT lane, run_at + (255 - priority) * 60000000, id FROM task
WHERE scheduled = 0 AND id <= (SELECT value FROM meta WHERE name = 'frontier') AND id NOT IN (SELECT task FROM lease);
