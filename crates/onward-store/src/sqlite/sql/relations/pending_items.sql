SELECT t.id, t.priority, t.options
FROM pending_item m CROSS JOIN task t ON t.id = m.task
WHERE m.sub_queue = ?
ORDER BY m.task
