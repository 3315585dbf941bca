-- Reads the part of the index that is kept in memory. A task that was asked to stop because another
-- task took its key (2) no longer owns the key.
SELECT t.id, t.sub_queue, t.priority, t.scheduled, t.run_at, t.expires_at, t.key, l.kind,
       EXISTS (SELECT 1 FROM lease WHERE first = (SELECT max(first) FROM lease WHERE first <= t.id) AND last >= t.id), t.cancel_requested < 2,
       t.options ->> 'affinity' IS NOT NULL, (SELECT a.id FROM affinity a WHERE a.name = t.options ->> 'affinity')
FROM task t JOIN sub_queue l ON l.id = t.sub_queue
WHERE t.id > ?
ORDER BY t.id
