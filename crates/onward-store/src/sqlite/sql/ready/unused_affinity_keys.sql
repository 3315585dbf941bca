SELECT id FROM affinity WHERE session IS NOT NULL AND used_at <= ? ORDER BY used_at LIMIT ?
