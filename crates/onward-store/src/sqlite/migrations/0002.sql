-- When the task would have expired had it not been claimed: a release gives it back.
ALTER TABLE lease ADD COLUMN expires_at INTEGER;
