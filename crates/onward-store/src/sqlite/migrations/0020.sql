-- A process that is alone keeps counts of groups back for a while. `group_counts_since`: the first row of the log of which some may lack what it says; 0 where
-- none does. `group_counts_offset`: by how many microseconds the time of day was ahead of steady time then. `saved_in`: the last row of the log of which what is
-- written of a group knows.
ALTER TABLE task_group ADD COLUMN saved_in INTEGER NOT NULL DEFAULT 0;
INSERT INTO meta VALUES ('group_counts_since', 0), ('group_counts_offset', 0);
