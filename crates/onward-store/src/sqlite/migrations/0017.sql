-- What a worker takes (JSON); NULL for everything.
ALTER TABLE session ADD COLUMN serves TEXT;

-- How many tasks of a queue are in `ready` and in `scheduled`, and how many are blocked. What is above the frontier is in none of these tables.
CREATE TABLE queue_size (
    queue INTEGER PRIMARY KEY, waiting INTEGER NOT NULL, scheduled INTEGER NOT NULL, blocked INTEGER NOT NULL
) STRICT;
INSERT INTO queue_size
SELECT n.queue, sum(s.waiting), sum(s.scheduled), sum(s.blocked) FROM (
    SELECT lane, count(*) AS waiting, 0 AS scheduled, 0 AS blocked FROM ready GROUP BY lane
    UNION ALL SELECT lane, 0, count(*), 0 FROM scheduled GROUP BY lane
    UNION ALL SELECT lane, 0, 0, count(*) FROM task WHERE scheduled = 2 GROUP BY lane
) AS s JOIN lane n ON n.id = s.lane & 17179869183 GROUP BY n.queue;

-- What completed tasks of a kind were expected to move and moved (JSON); only of kinds of which any said or recorded something.
CREATE TABLE kind_io (kind INTEGER PRIMARY KEY, totals TEXT NOT NULL) STRICT;
