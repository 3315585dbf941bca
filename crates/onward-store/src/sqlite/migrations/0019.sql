-- Every orchestration has a row in `instance` from now on, by which orchestrations are found among tasks.
-- `awaits`: the names of the events that it waits for, as JSON. `hold`: 1 paused; 2 paused, with a turn to come; 3 never started.
ALTER TABLE instance ADD COLUMN awaits TEXT;
ALTER TABLE instance ADD COLUMN hold INTEGER NOT NULL DEFAULT 0;
INSERT OR IGNORE INTO instance (task) SELECT id FROM task WHERE options IS NOT NULL AND json_extract(options, '$.orchestration');
INSERT OR IGNORE INTO instance (task) SELECT id FROM history WHERE options IS NOT NULL AND json_extract(options, '$.orchestration');
CREATE INDEX instance_unstarted ON instance (task) WHERE hold = 3;
