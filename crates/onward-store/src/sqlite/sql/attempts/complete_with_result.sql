INSERT OR FAIL INTO history (id, sub_queue, state, ended_in, priority, run_at, claims, attempts, cancel_requested, submitted_at,
                             started_at, finished_at, expires_at, options, key, payload, result)
SELECT id, sub_queue, 4, ?4, priority, run_at, ?2, attempts + 1, cancel_requested, submitted_at,
       ?3, ?5, expires_at, options, key, payload, ?6
FROM task
WHERE id = ?1
