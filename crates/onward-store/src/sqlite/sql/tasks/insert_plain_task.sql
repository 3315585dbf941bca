INSERT INTO task (id, sub_queue, priority, scheduled, run_at, claims, attempts, lost, cancel_requested, submitted_at, started_at,
                  expires_at, options, key, payload)
VALUES (?1, ?2, ?3, 0, ?4, 0, 0, 0, 0, ?4, NULL, NULL, NULL, NULL, ?5)
