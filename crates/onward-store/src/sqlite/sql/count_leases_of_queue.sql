SELECT count(*) FROM lease l CROSS JOIN task t ON t.id = l.task
WHERE t.lane IN (SELECT id FROM lane WHERE queue = ?)
