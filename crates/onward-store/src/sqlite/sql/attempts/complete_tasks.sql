INSERT OR FAIL INTO history (id, sub_queue, state, ended_in, priority, run_at, claims, attempts, cancel_requested, submitted_at,
                             started_at, finished_at, expires_at, options, key, payload, result)
SELECT t.id, t.sub_queue, 4, ?2, t.priority, t.run_at, l.claim, t.attempts + 1, t.cancel_requested, t.submitted_at,
       l.started_at, ?3, t.expires_at, t.options, t.key, t.payload, NULL
FROM rarray(?1) a CROSS JOIN task t ON t.id = a.value 
CROSS JOIN lease l ON l.first = (SELECT max(first) FROM lease WHERE first <= t.id) AND l.last >= t.id
