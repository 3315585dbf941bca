INSERT OR FAIL INTO history (id, lane, state, ended_in, priority, run_at, claims, attempts, cancel_requested, submitted_at,
                             started_at, finished_at, expires_at, options, key, payload, result)
SELECT t.id, t.lane, 4, ?3, t.priority, t.run_at, l.claim, t.attempts + 1, t.cancel_requested, t.submitted_at,
       l.started_at, ?4, t.expires_at, t.options, t.key, t.payload, NULL
FROM task t CROSS JOIN lease l ON l.task = t.id
WHERE t.id BETWEEN ?1 AND ?2
