SELECT count(*) FROM lease l CROSS JOIN task t ON t.id BETWEEN l.first AND l.last
WHERE ?1 IS NULL OR t.lane IN (SELECT id FROM lane WHERE kind = ?1)
