-- How many bytes a running task has done, and of how many.
ALTER TABLE progress ADD COLUMN done INTEGER;
ALTER TABLE progress ADD COLUMN total INTEGER;
