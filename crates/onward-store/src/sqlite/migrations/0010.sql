-- How tasks ended by day: what `statistics` had counted before the first end of each day, by queue. What ended on a day is the difference to the
-- next one, so that nothing is written for it but once a day. `day` counts from 1970-01-01.
CREATE TABLE day (day INTEGER PRIMARY KEY) STRICT;
CREATE TABLE day_start (
    day INTEGER NOT NULL, queue INTEGER NOT NULL, state INTEGER NOT NULL, ended INTEGER NOT NULL, PRIMARY KEY (day, queue, state)
) STRICT, WITHOUT ROWID;
