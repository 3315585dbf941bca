INSERT OR REPLACE INTO schedule (
    name, definition, payload, revision, paused, next_at, next_due, pending_at, last_at, last_fired_at, last_task, error, error_at,
    fired, skipped, missed, failed, created_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
