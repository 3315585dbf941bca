SELECT t.id FROM lease l CROSS JOIN task t ON t.id BETWEEN l.first AND l.last
WHERE l.session = ?
ORDER BY l.first, t.id LIMIT ?
