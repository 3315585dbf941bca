INSERT INTO task (id, sub_queue, priority, scheduled, run_at, claims, attempts, lost, cancel_requested, submitted_at, started_at,
                  expires_at, options, key, payload, links)
SELECT id, sub_queue, priority, 0, ?2, claims, 0, 0, 0, submitted_at, NULL, ?3, options, key, payload,
       2 * EXISTS (SELECT 1 FROM child WHERE parent = ?1)
FROM history WHERE id = ?1
