SELECT t.id, t.options FROM child c CROSS JOIN task t ON t.id = c.child
WHERE c.parent = ?
ORDER BY c.child
