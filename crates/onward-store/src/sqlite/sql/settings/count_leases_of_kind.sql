SELECT count(*) FROM lease l CROSS JOIN task t ON t.id BETWEEN l.first AND l.last
WHERE ?1 IS NULL OR t.sub_queue IN (SELECT id FROM sub_queue WHERE kind = ?1)
