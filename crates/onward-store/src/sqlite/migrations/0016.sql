-- Series: tasks with the same affinity. `session` is the one that started a task of it last, if that is still preferred; `used_at` a start that is not
-- long ago. A row is there while a session is preferred or tasks of the series wait; its number is used again when it is gone.
CREATE TABLE affinity (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, session INTEGER, used_at INTEGER) STRICT;
CREATE INDEX affinity_session ON affinity (session) WHERE session IS NOT NULL;
CREATE INDEX affinity_used ON affinity (used_at) WHERE session IS NOT NULL;

-- Lines of waiting tasks of one series in one lane. `ready.lane` is their number: that of the series, 34 bits to the left, and that of the
-- lane. A line that is reserved for a session until a moment has its head in `group_head` under the number of that session, 34 bits to the left,
-- and that of the lane without a group. `scheduled.lane` has 2^62 beside the lane of a task with a series.
CREATE TABLE affinity_line (line INTEGER PRIMARY KEY, lane INTEGER NOT NULL, session INTEGER, until INTEGER) STRICT;
CREATE INDEX affinity_line_lane ON affinity_line (lane);
CREATE INDEX affinity_line_until ON affinity_line (until) WHERE until IS NOT NULL;

-- For how long, in microseconds, tasks of a queue wait for the session that their series prefers; NULL for the default.
ALTER TABLE queue ADD COLUMN affinity_wait INTEGER;

-- `series_opened_at`: the latest moment by which a line was found to be for all. If the clock is before it, it was set back.
INSERT INTO meta VALUES ('series_opened_at', -9223372036854775808);
