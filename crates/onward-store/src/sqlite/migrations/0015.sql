-- Tasks that are collected to be handed over as one. `collecting`: what is collected in a lane, a row only while there is something; `member`: its
-- tasks. `member_of`: which bundle, a task of its own with `members` among its options and 32 among its links, a task was handed over in; the row
-- stays as long as the task does. Members are blocked, have `aggregate` among their options, and are in one of the two tables while they live.
CREATE TABLE collecting (
    lane INTEGER PRIMARY KEY, began_with INTEGER NOT NULL, members INTEGER NOT NULL, bytes INTEGER NOT NULL, began_at INTEGER NOT NULL,
    size INTEGER NOT NULL, deadline INTEGER NOT NULL, ripe_at INTEGER NOT NULL
) STRICT;
CREATE INDEX collecting_ripe ON collecting (ripe_at, began_with);
CREATE TABLE member (
    lane INTEGER NOT NULL, task INTEGER NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (lane, task)
) STRICT, WITHOUT ROWID;
CREATE TABLE member_of (task INTEGER PRIMARY KEY, bundle INTEGER NOT NULL) STRICT;
CREATE INDEX member_of_bundle ON member_of (bundle, task);

-- Bundles whose members have not all ended.
CREATE TABLE bundle (task INTEGER PRIMARY KEY) STRICT;

-- Which of the members of a bundle that is over is the next to end; the highest number there is, if all have ended or it is no bundle.
ALTER TABLE over ADD COLUMN next_member INTEGER NOT NULL DEFAULT 9223372036854775807;
