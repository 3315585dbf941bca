INSERT OR FAIL INTO history (id, sub_queue, state, ended_in, priority, run_at, claims, attempts, cancel_requested, submitted_at,
                             started_at, finished_at, expires_at, options, key, payload, result)
SELECT id, sub_queue, 4, ?5, priority, run_at, ?3, attempts + 1, cancel_requested, submitted_at,
       ?4, ?6, expires_at, options, key, payload, NULL
FROM task
WHERE id BETWEEN ?1 AND ?2
