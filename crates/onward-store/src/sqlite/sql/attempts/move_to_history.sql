INSERT OR FAIL INTO history (id, sub_queue, state, ended_in, priority, run_at, claims, attempts, cancel_requested, submitted_at,
                     started_at, finished_at, expires_at, options, key, payload, result)
SELECT id, sub_queue, ?2, ?3, priority, run_at, ?4, ?5, cancel_requested, submitted_at, ?6, ?7, expires_at, options, key, payload, ?8
FROM task WHERE id = ?1
