SELECT h.id, h.state FROM child c CROSS JOIN history h ON h.id = c.child
WHERE c.parent = ? AND h.state <> 4 AND h.submitted_at >= ?
ORDER BY h.id LIMIT 1
