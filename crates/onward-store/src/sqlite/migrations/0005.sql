-- How queues are worked off. `running` counts the queue's leases, and only where it has a concurrency.
ALTER TABLE queue ADD COLUMN weight INTEGER NOT NULL DEFAULT 1;
ALTER TABLE queue ADD COLUMN concurrency INTEGER;
ALTER TABLE queue ADD COLUMN running INTEGER NOT NULL DEFAULT 0;

-- `queue_mode`: 0 strict, 1 lenient, 2 interleaved. `configuration` counts changes of pauses, queues and the mode.
INSERT INTO meta VALUES ('queue_mode', 0), ('configuration', 0);
