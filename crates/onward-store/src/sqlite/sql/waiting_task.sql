SELECT lane, priority, claims, attempts, submitted_at, expires_at, options, payload FROM task WHERE id = ?
