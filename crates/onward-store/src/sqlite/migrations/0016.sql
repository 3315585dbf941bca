-- What a worker takes (JSON); NULL for everything.
ALTER TABLE session ADD COLUMN serves TEXT;
